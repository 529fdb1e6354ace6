"""A client of the service, with nothing but the standard library."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

BATCH = 5_000
"""Observations sent at a time: some hundred kilobytes."""

ATTEMPTS = 6
"""How often a request is sent that meets a busy or absent service."""

PAUSE = 0.25
"""Seconds before the second attempt, doubled before each further one: eight in all, in which a service starts again."""

RETRIED = (408, 429, 503)
"""Answers after which the same request may be sent again: nothing was done, or it was done once under its key."""


class ServiceError(RuntimeError):
    """The service refused a request; the message is its sentence.

    >>> error = ServiceError(404, "there is no data set 'films'.")
    >>> error.status, str(error)
    (404, "there is no data set 'films'.")
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Client:
    """Asks a service at an address, with a token where it needs one.

    Examples
    --------
    >>> client = Client("http://localhost:8080")
    >>> films = client.data_set("films")
    >>> films.address
    'http://localhost:8080/v1/data-sets/films'
    """

    def __init__(self, address: str = "http://127.0.0.1:8080", token: str | None = None, timeout: float = 60.0) -> None:
        self.address, self._token, self._timeout = address.rstrip("/"), token, timeout

    def data_sets(self) -> list[dict[str, Any]]:
        """All data sets."""
        return list(self.pages("/v1/data-sets"))

    def create(self, name: str, **options: Any) -> DataSetClient:
        """Make a data set: ``bounds=(1, 5)``, ``tolerance=0.8`` and the other options of the service."""
        if options.get("bounds") is not None:
            low, high = options["bounds"]
            options["bounds"] = {"low": low, "high": high}
        self.send("POST", "/v1/data-sets", {"name": name, **options})
        return self.data_set(name)

    def data_set(self, name: str) -> DataSetClient:
        """A data set that exists."""
        return DataSetClient(self, name)

    def delete(self, name: str) -> None:
        """Delete a data set."""
        self.send("DELETE", f"/v1/data-sets/{quote(name, safe='')}")

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """The items of all pages at a path."""
        after: str | None = None
        while True:
            page = self.send("GET", path, query={} if after is None else {"after": after})
            yield from page["items"]
            after = page["next"]
            if after is None:
                return

    def send(
        self,
        method: str,
        path: str,
        content: Any = None,
        query: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """The answer to one request, sent again while the service is busy or away; ServiceError where it refuses."""
        address = f"{self.address}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json"}
        headers |= {} if content is None else {"Content-Type": "application/json"}
        headers |= {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        headers |= {} if key is None else {"Idempotency-Key": key}
        body = None if content is None else json.dumps(content).encode()
        again = method in ("GET", "DELETE") or key is not None
        for attempt in range(ATTEMPTS):
            try:
                with urlopen(Request(address, body, headers, method=method), timeout=self._timeout) as answer:
                    found = answer.read()
                    return json.loads(found) if found else None
            except HTTPError as error:
                problem = _refusal(error)
                if problem.status not in RETRIED or attempt == ATTEMPTS - 1:
                    raise problem from None
            except (URLError, OSError) as error:
                if not again or attempt == ATTEMPTS - 1:
                    raise ServiceError(0, f"{self.address} does not answer: {error}.") from None
            time.sleep(PAUSE * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


class DataSetClient:
    """One data set of a service.

    Examples
    --------
    >>> films = Client("http://localhost:8080").data_set("films")
    >>> films.name
    'films'
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name
        self._path = f"/v1/data-sets/{quote(name, safe='')}"

    @property
    def address(self) -> str:
        """Where it is."""
        return self._client.address + self._path

    def observe(self, cells: Iterable[tuple[Any, Any, float]], asked: bool = False) -> int:
        """Send (row, column, value) triples, in batches that are stored once each; returns how many were stored."""
        triples, stored = iter(cells), 0
        while batch := list(islice(triples, BATCH)):
            listed = [{"row": row, "col": col, "value": float(value)} for row, col, value in batch]
            query = {"asked": "true"} if asked else None
            key = uuid.uuid4().hex
            stored += self._send("POST", "/observations", {"observations": listed}, query, key)["stored"]
        return stored

    def predict(self, row: Any, col: Any, level: float = 0.9) -> dict[str, Any]:
        """What is said of one cell; ``model`` says by whom."""
        found = self._send("GET", "/predictions", query={"row": row, "col": col, "level": level})
        return dict(found["prediction"], model=found["model"])

    def predict_many(self, cells: Iterable[tuple[Any, Any]], level: float = 0.9) -> list[dict[str, Any]]:
        """The same for many cells."""
        pairs, found = iter(cells), list[dict[str, Any]]()
        while batch := list(islice(pairs, BATCH)):
            asked = [{"row": str(row), "col": str(col)} for row, col in batch]
            found += self._send("POST", "/predictions", {"cells": asked, "level": level})["predictions"]
        return found

    def recommend(self, row: Any, n: int = 10, trusted: bool = True) -> list[dict[str, Any]]:
        """The best columns of a row."""
        query = {"row": row, "n": n, "trusted": str(trusted).lower()}
        found: list[dict[str, Any]] = self._send("GET", "/recommendations", query=query)["recommendations"]
        return found

    def suggest(self, n: int = 10, strategy: str = "coverage", row: Any = None) -> list[dict[str, Any]]:
        """The cells to ask next; send their values by ``observe(..., asked=True)``."""
        query = {"n": n, "strategy": strategy} | ({} if row is None else {"row": row})
        found: list[dict[str, Any]] = self._send("GET", "/suggestions", query=query)["suggestions"]
        return found

    def promise(self) -> dict[str, Any]:
        """What is promised of the cells that are kept."""
        found: dict[str, Any] = self._send("GET", "/promise")
        return found

    def status(self) -> dict[str, Any]:
        """How the data set is doing."""
        found: dict[str, Any] = self._send("GET", "/status")
        return found

    def refit(self, wait: float | None = None) -> dict[str, Any]:
        """Ask for a fit; with ``wait``, return when its job has ended, or after so many seconds."""
        job: dict[str, Any] = self._send("POST", "/jobs")
        ends = time.monotonic() + (wait or 0.0)
        while job["state"] in ("queued", "running") and time.monotonic() < ends:
            time.sleep(PAUSE)
            job = self._send("GET", f"/jobs/{job['id']}")
        return job

    def _send(self, method: str, path: str, content: Any = None, query: Any = None, key: str | None = None) -> Any:
        return self._client.send(method, self._path + path, content, query, key)


def _refusal(error: HTTPError) -> ServiceError:
    """The problem that an answer tells."""
    try:
        return ServiceError(error.code, json.loads(error.read())["detail"])
    except (ValueError, LookupError, TypeError):
        return ServiceError(error.code, f"the service answered {error.code} {error.reason}.")

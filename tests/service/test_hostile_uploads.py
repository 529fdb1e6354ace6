"""Whatever is uploaded is stored or refused with one sentence: the readers' bad tables, and random damage."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from surefill.errors import LONGEST_SENTENCE

HOSTILE = Path(__file__).parents[1] / "hostile"
ROUTES = ("/v1/data-sets/hostile/observations", "/page/data-sets/hostile/upload")
KINDS = ("text/csv", "application/x-ndjson", "application/json")


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"hostile_{name}", HOSTILE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


REFUSED = loaded("test_refused_tables")
damage = loaded("fuzz")


@pytest.fixture(scope="module")
def hostile(served):
    assert served.post("/v1/data-sets", json={"name": "hostile", "refit_after": 10**9}).status_code == 201
    return served


def uploaded(client, route, body, kind="text/csv", **query):
    """The acknowledgement, None where it was refused; then it is seen that it was so in one sentence."""
    sender = {"Content-Type": kind, "Origin": str(client.base_url).rstrip("/")}  # as the page does
    answer = client.post(route, content=body, headers=sender, params=query)
    if answer.status_code in (200, 201):
        return answer.json()
    assert 400 <= answer.status_code < 500, (answer.status_code, body[:200])
    assert answer.headers["content-type"] == "application/problem+json"
    sentence = answer.json()["detail"]
    assert sentence.isprintable(), sentence
    assert sentence.endswith(".")
    assert len(sentence) <= LONGEST_SENTENCE
    assert not re.search(r" --[a-z]", sentence), "an option of the command line helps nobody here"
    return None


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("case", REFUSED.CASES)
def test_what_readers_refuse_the_service_refuses(hostile, case, route):
    text, options, _ = REFUSED.CASES[case]
    named = dict(zip(options[::2], options[1::2], strict=False))
    query = {name[2:]: value for name, value in named.items() if name in ("--row", "--col", "--value")}
    refused = uploaded(hostile, route, text, **query) is None
    assert refused == (bool(query) or not options), "only what an option of the command spoils is stored here"


def test_random_damage_is_stored_whole_or_refused_in_one_sentence(hostile, many):
    rng = np.random.default_rng(0)
    before, stored = hostile.get("/v1/data-sets/hostile/status").json()["observations"], 0
    for _ in range(2_000 if many else 60):
        body, kind = random_body(rng)
        told = uploaded(hostile, ROUTES[rng.integers(2)], body, kind)
        stored += 0 if told is None or told.get("repeated") else told["stored"]
    after = hostile.get("/v1/data-sets/hostile/status").json()["observations"]
    assert after - before == stored > 0
    assert hostile.get("/health/ready").status_code == 200


def random_body(rng):
    """A table with pieces put in or cut, as csv, JSON lines or JSON, at times packed, or called another kind."""
    table, kind = damage.table(rng), KINDS[rng.integers(3)]
    if kind != "text/csv" and rng.random() < 0.9:
        cells = [{"row": f"u{k % 9}", "col": k % 7, "value": k % 5} for k in range(rng.integers(0, 40))]
        lines = [json.dumps(cell) for cell in cells]
        whole = "\n".join(lines) if kind == "application/x-ndjson" else f'{{"observations": [{",".join(lines)}]}}'
        table = damage.damaged_bytes(whole.encode() or b"{}", rng) if rng.random() < 0.7 else whole.encode()
    return (gzip.compress(table) if rng.random() < 0.05 else table), kind


def test_bombs_and_depths_are_refused(hostile):
    deep = b"[" * 100_000
    packed = gzip.compress(b"0" * 50_000_000)
    for body in (deep, b'{"observations": ' + deep, packed, b"PAR1" + b"\0" * 1000 + b"PAR1", b"PK\x03\x04" + packed):
        for kind in KINDS:
            assert uploaded(hostile, ROUTES[0], body, kind) is None
    encoded = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}
    assert hostile.post(ROUTES[0], content=packed, headers=encoded).status_code == 415

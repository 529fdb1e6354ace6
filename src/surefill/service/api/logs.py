"""Logs as JSON lines: one for each request, without what was asked or sent."""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("surefill.access")

GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""Request ids that clients may choose; others are replaced."""

PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
"""What every record of a log has; the rest was added by whoever logged it."""


class JsonLines(logging.Formatter):
    """One JSON object to a line: time, level, message, and what was said with it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in PLAIN}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class LogRequests:
    """Gives every request an id, tells how it went, and counts it."""

    def __init__(self, app: ASGIApp, count: Callable[[str, str, int, float], None]) -> None:
        self._app, self._count = app, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        scope["request_id"] = given if GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
        status, start = 500, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", scope["request_id"].encode())]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "")
            self._count(scope["method"], route, status, seconds)
            more = {"token": scope["token_id"]} if "token_id" in scope else {}
            log.info(
                "request",
                extra={
                    "request_id": scope["request_id"],
                    "method": scope["method"],
                    "route": route or "none",
                    "data_set": scope.get("path_params", {}).get("name"),
                    "status": status,
                    "milliseconds": round(1000 * seconds, 2),
                }
                | more,
            )

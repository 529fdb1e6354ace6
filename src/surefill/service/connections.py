"""Connections that are closed where a request does not arrive: too slowly, or with headers without end."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
"""How long the first line and the headers of a request may take; bodies have a limit of their own."""

HEADER_BYTES = 1 << 16
"""Bytes that headers may have: four times what browsers and proxies send."""


class PatientProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, and a connection ends that says nothing, or only headers, for too long.

    Otherwise whoever can reach the service could hold any number of connections, and memory by headers, at no cost.
    """

    _awaited: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._await_headers()

    def on_message_begin(self) -> None:
        """Wait for the headers of a request that has begun."""
        super().on_message_begin()
        self._await_headers()

    def on_headers_complete(self) -> None:
        """They are there; the rest is timed elsewhere."""
        self._stop_waiting()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes in; too many without the end of the headers, and the connection ends."""
        super().data_received(data)
        if self._awaited is not None:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES:
                self.transport.close()

    def connection_lost(self, exc: Any) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._stop_waiting()
        self._awaited = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._awaited is not None:
            self._awaited.cancel()
        self._awaited, self._header_bytes = None, 0

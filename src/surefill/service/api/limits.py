"""Limits of a request: how many at a time, how large, how long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surefill.service.api.problems import problem
from surefill.service.settings import ServiceLimits
from surefill.service.writer import BusyError

Result = TypeVar("Result")

UNLIMITED = ("/health/",)
"""Addresses that are answered even where no room is left, so that a busy service is not taken for a dead one."""


LARGE = ("/observations", "/upload")
"""Ends of the addresses that take observations, whose bodies may be large."""


class LimitRequests:
    """Refuses with 429 what is too many, with 413 what is too large, with 408 what arrives too slowly.

    An answer that is not begun in time is a 503.
    """

    def __init__(self, app: ASGIApp, limits: ServiceLimits) -> None:
        self._app, self._limits, self._running = app, limits, 0
        self._held = Held(limits.bodies_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"].startswith(UNLIMITED):
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await problem(*refusal, scope.get("request_id", ""))(scope, receive, send)
            return
        self._running += 1
        begun, body = False, _Body(receive, self._limits, self._most(scope), self._held)

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            async with asyncio.timeout(self._limits.body_seconds + self._limits.answer_seconds):
                await self._app(scope, body.receive, sending)
        except TimeoutError:
            if not begun:
                late = problem(503, "the answer took too long; try again in a moment.", scope.get("request_id", ""))
                await late(scope, receive, send)
        finally:
            self._running -= 1
            self._held.now -= body.seen

    def _most(self, scope: Scope) -> int:
        return self._limits.body_bytes if scope["path"].endswith(LARGE) else self._limits.question_bytes

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        if self._running >= self._limits.requests:
            return 429, f"{self._running} requests are being answered; try again in a moment."
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._most(scope):
            return 413, _too_large(self._most(scope))
        if headers.get(b"content-encoding", b"identity").lower() not in (b"", b"identity"):
            return 415, "send the body as it is, without a content encoding."
        return None


@dataclass
class Held:
    """Bytes of bodies that are held now, and that may be."""

    most: int
    now: int = 0


class _Body:
    """A body that is counted and timed while it arrives."""

    def __init__(self, receive: Receive, limits: ServiceLimits, most: int, held: Held) -> None:
        self._receive, self._limits, self._most, self._held = receive, limits, most, held
        self.seen, self._ends, self._complete = 0, time.monotonic() + limits.body_seconds, False

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, self._ends - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"the body took more than {self._limits.body_seconds:g} seconds.") from None
        size = len(message.get("body", b""))
        self.seen += size
        self._held.now += size
        self._complete = not message.get("more_body", False)
        if self.seen > self._most:
            raise HTTPException(413, _too_large(self._most))
        if self._held.now > self._held.most:
            raise HTTPException(429, "too much is being sent at a time; try again in a moment.")
        return message


def _too_large(most: int) -> str:
    return f"a body has at most {most:,} bytes here; send this in several."


class Threads:
    """Where answers are made, so that the thread that listens is never busy; few at a time for the costly ones."""

    def __init__(self, limits: ServiceLimits) -> None:
        self._light, self._heavy = CapacityLimiter(8), CapacityLimiter(limits.heavy)

    async def run(self, function: Callable[..., Result], *args: Any, **named: Any) -> Result:
        """The result of a function; if nobody waits for it any more, it ends on its own."""
        call = partial(function, *args, **named)
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._light)

    async def run_heavy(self, function: Callable[..., Result], *args: Any, **named: Any) -> Result:
        """The same for what takes long: BusyError where as many are at work as may be."""
        if self._heavy.available_tokens < 1:
            raise BusyError("other long answers are being made; try again in a moment.")
        call = partial(function, *args, **named)
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._heavy)

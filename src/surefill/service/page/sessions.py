"""Who uses the page: a token is given once and exchanged for a cookie that scripts cannot read.

The API takes tokens alone and the page cookies alone. A cookie holds a random number and not the token, is sent by
pages of this site only (SameSite=Strict), and what changes anything must also say that it comes from here (Origin).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Cookie, HTTPException, Request

from surefill.service.api.security import SAFE, find_token
from surefill.service.service import Service
from surefill.service.store.tokens import SCOPES, Scope, digest_of

COOKIE = "surefill_session"

SESSION_SECONDS = 12 * 3600.0
"""How long a session lasts: a day's work."""

MOST_SESSIONS = 1_000
"""Sessions at a time; the oldest makes room for a new one."""


class Sessions:
    """Random numbers that stand for tokens, in memory: they end with the service.

    Examples
    --------
    >>> sessions = Sessions()
    >>> key = sessions.open(token=7, now=0.0)
    >>> sessions.token(key, now=1.0), sessions.token("guessed", now=1.0), sessions.token(key, now=SESSION_SECONDS)
    (7, None, None)
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, float]] = {}

    def open(self, token: int, now: float) -> str:
        """A new session of the token of that number."""
        if len(self._found) >= MOST_SESSIONS:
            del self._found[next(iter(self._found))]
        key = secrets.token_urlsafe(32)
        self._found[digest_of(key)] = token, now + SESSION_SECONDS
        return key

    def token(self, key: str, now: float) -> int | None:
        """The number of the token that a session stands for; None where there is no such session."""
        token, ends = self._found.get(digest_of(key), (None, 0.0))
        return token if now < ends else None

    def close(self, key: str) -> None:
        """End a session."""
        self._found.pop(digest_of(key), None)


SessionCookie = Annotated[str | None, Cookie(alias=COOKIE)]


def page_requires(scope: Scope, document: bool = False) -> Callable[..., Awaitable[None]]:
    """A dependency that lets a request through if the token behind its session has the scope, or if none is needed.

    Who asks for a ``document`` without a session is led to the form that asks for a token.
    """

    async def check(request: Request, session: SessionCookie = None) -> None:
        if request.method not in SAFE and urlsplit(request.headers.get("origin", "")).netloc == "":
            raise HTTPException(403, "only the page itself can send this.")
        service: Service = request.app.state.service
        request.state.scope = SCOPES[-1]
        if not service.settings.needs_token:
            return
        number = None if session is None else request.app.state.sessions.token(session, time.time())
        known = await request.app.state.threads.run(service.tokens)
        token = next((each for each in known if each.id == number), None)
        if token is None:
            where = {"Location": "/page/sign-in"} if document else None
            raise HTTPException(303 if document else 401, "sign in with a token first.", where)
        request.scope["token_id"], request.state.scope = token.id, token.scope
        if SCOPES.index(token.scope) < SCOPES.index(scope):
            raise HTTPException(403, f"your token may {token.scope}; this needs one that may {scope}.")

    return check


async def sign_in(request: Request, given: str) -> str | None:
    """The key of a new session for a token; None where the token is not known."""
    token = find_token(await request.app.state.threads.run(request.app.state.service.tokens), given)
    return None if token is None else request.app.state.sessions.open(token.id, time.time())

"""Who may ask for what: tokens and scopes, the names the service answers to, headers that keep browsers in."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surefill.service.api.problems import problem
from surefill.service.service import Service
from surefill.service.settings import Settings
from surefill.service.store.tokens import SCOPES, TokenRecord, digest_of
from surefill.service.store.tokens import Scope as TokenScope

HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer that does not set its own."""

RAW_HEADERS = tuple((name.encode(), value.encode()) for name, value in HEADERS.items())

SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""

bearer = HTTPBearer(auto_error=False, description="A token made by `surefill serve token`; none on loopback.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


def requires(scope: TokenScope) -> Callable[..., Awaitable[None]]:
    """A dependency that lets a request through if its token has the scope, or if no token is needed."""

    async def check(request: Request, credentials: Credentials) -> None:
        service: Service = request.app.state.service
        if not service.settings.needs_token:
            return
        if credentials is None:
            raise HTTPException(401, "this service asks for a token: send the header Authorization: Bearer TOKEN.")
        token = find_token(await request.app.state.threads.run(service.tokens), credentials.credentials)
        if token is None:
            raise HTTPException(401, "this token is not known, or was revoked.")
        request.scope["token_id"] = token.id
        if SCOPES.index(token.scope) < SCOPES.index(scope):
            raise HTTPException(403, f"this token may {token.scope}; this request needs one that may {scope}.")

    return check


def find_token(known: list[TokenRecord], given: str) -> TokenRecord | None:
    """The token that was given, compared with every one in the same time whatever they have in common."""
    digest = digest_of(given)
    found = [token for token in known if hmac.compare_digest(token.digest, digest)]
    return found[0] if found else None


class Secure:
    """Answers only to its own names, refuses what other sites' pages send, and adds headers for browsers."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._hosts = settings.allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in RAW_HEADERS if each[0] not in own)]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, sending)
        else:
            await problem(*refusal, scope.get("request_id", ""))(scope, receive, sending)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"host", b"origin")}
        host = headers.get(b"host", "")
        if host_name(host) not in self._hosts:
            return 400, "this service does not answer to that name; give it with --allow-host."
        origin = headers.get(b"origin")
        if scope["method"] not in SAFE and origin is not None and urlsplit(origin).netloc != host:
            return 403, "requests from pages of other sites are refused."
        return None


def host_name(host: str) -> str:
    """The name in a ``Host`` header.

    >>> host_name("localhost:8080"), host_name("[::1]:8080"), host_name("example.org")
    ('localhost', '[::1]', 'example.org')
    """
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0].lower()

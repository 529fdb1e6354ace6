"""Errors as problem details (RFC 9457), each with one clear sentence."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from surefill.errors import InputError
from surefill.service.sentences import sentence_of
from surefill.service.store.data_sets import TakenError
from surefill.service.store.engine import first_line
from surefill.service.store.observations import GoneError, KeyReusedError
from surefill.service.writer import BusyError, StorageError

log = logging.getLogger("surefill.service")

MEDIA_TYPE = "application/problem+json"

RETRY_SECONDS = 1
"""When to try again what was refused for want of room: queues empty in less."""

STATUS: dict[type[Exception], int] = {
    TakenError: 409,
    KeyReusedError: 409,
    GoneError: 404,
    InputError: 422,
    BusyError: 429,
    StorageError: 507,
    TimeoutError: 503,
}
"""The status that each kind of error has."""


class Problem(BaseModel):
    """What went wrong: ``detail`` is one sentence for a person, ``request_id`` finds the request in the logs."""

    type: str = Field(default="about:blank", description="Always about:blank: the status says what kind it is.")
    title: str = Field(description="The name of the status.", examples=["Not Found"])
    status: int = Field(description="The status of the answer.", examples=[404])
    detail: str = Field(description="What is wrong, in one sentence.")
    request_id: str = Field(description="The request, as the logs call it.")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the description of the API says about answers that are problems."""
    return {status: {"description": HTTPStatus(status).phrase, **CONTENT} for status in statuses}


CONTENT: dict[str, Any] = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}

ALWAYS = (400, 401, 403, 408, 413, 422, 429, 503)
"""Problems that any request may meet."""


def problem(status: int, detail: str, request_id: str = "", headers: dict[str, str] | None = None) -> JSONResponse:
    """The answer that tells a problem."""
    title = HTTPStatus(status).phrase
    more = {"Retry-After": str(RETRY_SECONDS)} if status in (429, 503) else {}
    more |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    content = Problem(type="about:blank", title=title, status=status, detail=detail, request_id=request_id).model_dump()
    return JSONResponse(content, status, {**more, **(headers or {})}, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Let the app tell every error as a problem."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind in STATUS:
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(SQLAlchemyError, _unreachable)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unknown)


def request_id(request: Request) -> str:
    """What the logs call a request."""
    return str(request.scope.get("request_id", ""))


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    if detail == HTTPStatus(error.status_code).phrase:
        detail = {404: "there is nothing at this address.", 405: "this address does not take this method."}.get(
            error.status_code, f"{detail.lower()}."
        )
    return problem(error.status_code, detail, request_id(request), dict(error.headers or {}))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return problem(422, sentence_of(error.errors()[0]), request_id(request))


async def _known(request: Request, error: Exception) -> JSONResponse:
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    sentence = str(error) or "the answer took too long; try again in a moment."
    return problem(status, sentence, request_id(request))


async def _gone(request: Request, _: Exception) -> JSONResponse:
    """For the log and the count, since nobody reads it: whoever asked has hung up."""
    return problem(400, "the connection ended before the body did.", request_id(request))


async def _unreachable(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SQLAlchemyError)
    said = first_line(error)
    log.error("the store cannot be read", extra={"problem": said, "request_id": request_id(request)})
    return problem(503, f"the store cannot be read: {said}.", request_id(request))


async def _unknown(request: Request, error: Exception) -> JSONResponse:
    log.error("a request failed", exc_info=error, extra={"request_id": request_id(request)})
    return problem(500, "the service made a mistake; its log says which.", request_id(request))

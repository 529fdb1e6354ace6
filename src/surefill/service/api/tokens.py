"""Tokens: made, listed, revoked."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path
from sqlalchemy import Engine

from surefill.service.api.found import TheService, TheThreads
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import CreatedToken, NewToken, Page, TokenDescription
from surefill.service.api.security import requires
from surefill.service.service import storing
from surefill.service.store import writing
from surefill.service.store.tokens import all_tokens, create_token, delete_token

router = APIRouter(
    prefix="/v1/tokens", tags=["tokens"], dependencies=[Depends(requires("admin"))], responses=documented(*ALWAYS)
)


@router.get("")
async def tokens(service: TheService, threads: TheThreads) -> Page[TokenDescription]:
    """The tokens that are valid, without their secrets."""
    return await threads.run(_tokens, service.engine)


def _tokens(engine: Engine) -> Page[TokenDescription]:
    with engine.connect() as connection:
        return Page(items=[TokenDescription.of(token) for token in all_tokens(connection)], next=None)


@router.post("", status_code=201, responses=documented(507))
async def make_token(service: TheService, threads: TheThreads, new: NewToken) -> CreatedToken:
    """Make a token; its secret is in this answer and nowhere else."""
    return await threads.run(_make, service.engine, new)


def _make(engine: Engine, new: NewToken) -> CreatedToken:
    with storing(), writing(engine) as connection:
        token, record = create_token(connection, new.scope, new.note)
    return CreatedToken(token=token, **TokenDescription.of(record).model_dump())


@router.delete("/{number}", status_code=204, responses=documented(404, 507))
async def revoke_token(service: TheService, threads: TheThreads, number: Annotated[int, Path(ge=1, lt=2**31)]) -> None:
    """Revoke a token; it is refused within seconds."""
    if not await threads.run(_revoke, service.engine, number):
        raise HTTPException(404, f"there is no token {number}.")


def _revoke(engine: Engine, number: int) -> bool:
    with storing(), writing(engine) as connection:
        return delete_token(connection, number)

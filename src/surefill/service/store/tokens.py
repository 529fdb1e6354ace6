"""Tokens: random, shown once, stored as their hash."""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, delete, insert, select

from surefill.service.store.tables import tokens

Scope = Literal["read", "write", "admin"]

SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
"""What a token allows, each what those before it allow and more."""

TOKEN_BYTES = 32
"""256 random bits: nobody guesses them, so a plain hash is enough to store."""


@dataclass(frozen=True)
class TokenRecord:
    """One line of the table of tokens."""

    id: int
    digest: str
    scope: Scope
    note: str
    created: float


def digest_of(token: str) -> str:
    """What is stored of a token.

    >>> digest_of("sf_secret")[:8]
    '7fd9fdce'
    """
    return hashlib.sha256(token.encode()).hexdigest()


def create_token(connection: Connection, scope: Scope, note: str = "") -> tuple[str, TokenRecord]:
    """A new token, which can be seen here only, and its record."""
    token = f"sf_{secrets.token_urlsafe(TOKEN_BYTES)}"
    line = {"digest": digest_of(token), "scope": scope, "note": note, "created": time.time()}
    number = connection.execute(insert(tokens).returning(tokens.c.id), line).scalar_one()
    return token, TokenRecord(id=number, **line)  # type: ignore[arg-type]


def all_tokens(connection: Connection) -> list[TokenRecord]:
    """Every token that is valid, the oldest first."""
    return [TokenRecord(**line._mapping) for line in connection.execute(select(tokens).order_by(tokens.c.id))]


def delete_token(connection: Connection, number: int) -> bool:
    """Revoke a token; False where there is none of that number."""
    return connection.execute(delete(tokens).where(tokens.c.id == number)).rowcount == 1

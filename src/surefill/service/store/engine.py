"""Connections: SQLite that survives a crash of machine and process, or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

from surefill.errors import InputError, MissingPackageError
from surefill.service.store.tables import metadata

BUSY_MS = 30_000
"""How long SQLite waits for the other process, which fits models, to finish a transaction of some milliseconds."""

WRITES = {"surefill_writes": True}
"""Marks a connection whose transactions write, which SQLite is told at their beginning."""


def open_engine(address: str) -> Engine:
    """An engine on a database that has all tables; InputError where it cannot be reached."""
    try:
        url = make_url(address)
        engine = create_engine(url, pool_pre_ping=True) if url.drivername != "sqlite" else _sqlite(address)
        with writing(engine) as connection:
            metadata.create_all(connection)
    except ModuleNotFoundError as error:
        raise MissingPackageError("PostgreSQL", "'surefill[postgres]'") from error
    except (ArgumentError, NoSuchModuleError, OperationalError) as error:
        raise InputError(f"the database cannot be opened: {first_line(error)}.") from None
    return engine


def _sqlite(address: str) -> Engine:
    engine = create_engine(address, pool_size=8, max_overflow=48)

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={BUSY_MS}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails if another wrote in between; IMMEDIATE waits its turn.
        writes = connection.get_execution_options().get("surefill_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes: all of it is durable at the end, or nothing."""
    with engine.connect() as connection:
        marked = connection.execution_options(**WRITES)
        with marked.begin():
            yield marked


def first_line(error: Exception) -> str:
    """What the database itself said, without the statement and its values."""
    cause = error.__cause__ or getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0].strip().rstrip(".")

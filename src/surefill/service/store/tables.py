"""The one schema of both databases: what was observed, fitted, asked and allowed."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import JSON

metadata = MetaData()

BIG = BigInteger().with_variant(Integer, "sqlite")
"""A whole number of 64 bits; SQLite's own integers have them."""


def _of_data_set() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["data_set"], ["data_sets.id"], ondelete="CASCADE")


data_sets = Table(
    "data_sets",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("options", JSON, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("last_sequence", BIG, nullable=False, default=0),
    sqlite_autoincrement=True,
)
"""``last_sequence`` counts the observations: they are numbered 1, 2, ... without gaps."""

batches = Table(
    "batches",
    metadata,
    Column("data_set", Integer, primary_key=True),
    Column("last_sequence", BIG, primary_key=True, autoincrement=False),
    Column("size", Integer, nullable=False),
    Column("key", String(128), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("asked", Boolean, nullable=False),
    Column("created", Float(53), nullable=False),
    _of_data_set(),
    UniqueConstraint("data_set", "key"),
    CheckConstraint("size > 0"),
)
"""A batch is the observations ``last_sequence - size + 1`` to ``last_sequence``, stored in one transaction."""

observations = Table(
    "observations",
    metadata,
    Column("data_set", Integer, primary_key=True),
    Column("sequence", BIG, primary_key=True, autoincrement=False),
    Column("row", Text, nullable=False),
    Column("col", Text, nullable=False),
    Column("value", Float(53), nullable=False),
    _of_data_set(),
    sqlite_with_rowid=False,
)

models = Table(
    "models",
    metadata,
    Column("data_set", Integer, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("file", Text, nullable=False),
    Column("sequence", BIG, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("promised", Boolean, nullable=False),
    Column("kept_share", Float(53), nullable=False),
    Column("error", Float(53)),
    Column("tolerance", Float(53), nullable=False),
    Column("seconds", Float(53), nullable=False),
    _of_data_set(),
)
"""Fitted on the observations up to ``sequence``; the one of the largest number is in use, and all are the history."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("data_set", Integer, nullable=False),
    Column("state", String(8), nullable=False),
    Column("why", Text, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("started", Float(53)),
    Column("heartbeat", Float(53)),
    Column("ended", Float(53)),
    Column("attempts", Integer, nullable=False, default=0),
    Column("sequence", BIG, nullable=False, default=0),
    Column("model", Integer),
    Column("problem", Text),
    _of_data_set(),
    CheckConstraint("state in ('queued', 'running', 'done', 'failed')"),
    Index("jobs_by_state", "state", "id"),
    sqlite_autoincrement=True,
)
"""``sequence`` is the last observation that the job has seen; a model that it made has ``model`` as its number."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scope", String(8), nullable=False),
    Column("note", String(128), nullable=False),
    Column("created", Float(53), nullable=False),
    CheckConstraint("scope in ('read', 'write', 'admin')"),
    sqlite_autoincrement=True,
)

"""Fitted models: their files, what they were fitted on, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, func, insert, select

from surefill.service.store.tables import models


@dataclass(frozen=True)
class ModelRecord:
    """One line of the table of models; the error is that of the kept calibration cells, None where none are kept."""

    data_set: int
    number: int
    file: str
    sequence: int
    promised: bool
    kept_share: float
    error: float | None
    tolerance: float
    seconds: float
    created: float


def add_model(connection: Connection, model: ModelRecord) -> None:
    """Put a model in use: from here on it is the one of the largest number."""
    connection.execute(insert(models), asdict(model))


def next_number(connection: Connection, data_set: int) -> int:
    """The number of the next model of a data set."""
    largest = connection.execute(select(func.max(models.c.number)).where(models.c.data_set == data_set)).scalar()
    return (largest or 0) + 1


def last_models(connection: Connection, data_set: int, limit: int, before: int | None = None) -> list[ModelRecord]:
    """The latest models first, those numbered below ``before`` where it is given."""
    wanted = select(models).where(models.c.data_set == data_set).order_by(models.c.number.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(models.c.number < before)
    return [ModelRecord(**line._mapping) for line in connection.execute(wanted)]

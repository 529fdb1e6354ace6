"""Observations, numbered in the order in which they were acknowledged, and the batches that they came in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, insert, select, update

from surefill.errors import InputError
from surefill.service.store.tables import batches, data_sets, observations

READ_AT_ONCE = 10_000
"""Observations read at a time: some three megabytes of Python's objects, some tens of milliseconds."""


class Columns(NamedTuple):
    """Labels and values of observations, in order."""

    rows: list[str]
    cols: list[str]
    values: list[float]


@dataclass(frozen=True)
class Batch:
    """Observations that a client sent under one key; ``digest`` tells whether a second one is the same.

    ``asked`` says that they answer suggestions: the cells were chosen, so no promise may be tested on them.
    """

    key: str
    digest: str
    columns: Columns
    asked: bool = False


class Stored(NamedTuple):
    """Where a batch was put, and whether it had been there before."""

    last_sequence: int
    size: int
    repeated: bool


class KeyReusedError(InputError):
    """A client used a key for two different batches."""


class GoneError(InputError):
    """The data set was deleted."""


def add_batch(connection: Connection, data_set: int, batch: Batch) -> Stored:
    """Store a batch behind those before it, once: a batch of the same key and content is found, not stored again."""
    lock = select(data_sets.c.last_sequence).where(data_sets.c.id == data_set).with_for_update()
    last = connection.execute(lock).scalar_one_or_none()
    if last is None:
        raise GoneError("the data set was deleted.")
    same = select(batches).where(batches.c.data_set == data_set, batches.c.key == batch.key)
    found = connection.execute(same).one_or_none()
    if found is not None:
        if found.digest != batch.digest:
            raise KeyReusedError(f"the key {batch.key!r} was used for another batch; give each batch a key of its own.")
        return Stored(found.last_sequence, found.size, repeated=True)
    size = len(batch.columns.values)
    line = {"key": batch.key, "digest": batch.digest, "asked": batch.asked, "created": time.time()}
    connection.execute(insert(batches), line | {"data_set": data_set, "last_sequence": last + size, "size": size})
    lines = [
        {"data_set": data_set, "sequence": sequence, "row": row, "col": col, "value": value}
        for sequence, (row, col, value) in enumerate(zip(*batch.columns, strict=True), last + 1)
    ]
    connection.execute(insert(observations), lines)
    connection.execute(update(data_sets).where(data_sets.c.id == data_set).values(last_sequence=last + size))
    return Stored(last + size, size, repeated=False)


def read_observations(connection: Connection, data_set: int, after: int, up_to: int) -> Iterator[Columns]:
    """The observations ``after + 1`` to ``up_to``, some at a time, in order."""
    wanted = select(observations.c.row, observations.c.col, observations.c.value).order_by(observations.c.sequence)
    for first in range(after, up_to, READ_AT_ONCE):
        between = observations.c.sequence.between(first + 1, min(first + READ_AT_ONCE, up_to))
        lines = connection.execute(wanted.where(observations.c.data_set == data_set, between)).all()
        if lines:
            rows, cols, values = zip(*lines, strict=True)
            yield Columns(list(rows), list(cols), list(values))


def asked_mask(connection: Connection, data_set: int, up_to: int) -> NDArray[np.bool_]:
    """Which of the first ``up_to`` observations answer suggestions."""
    mask = np.zeros(up_to, dtype=bool)
    wanted = select(batches.c.last_sequence, batches.c.size).where(
        batches.c.data_set == data_set, batches.c.asked, batches.c.last_sequence <= up_to
    )
    for last, size in connection.execute(wanted):
        mask[last - size : last] = True
    return mask

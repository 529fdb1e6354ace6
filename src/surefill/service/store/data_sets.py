"""Data sets: their names, options and how many observations each has."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from surefill.errors import InputError
from surefill.service.store.tables import data_sets


class TakenError(InputError):
    """There is something of that name already."""


@dataclass(frozen=True)
class Options:
    """How a data set is completed and when it is fitted again.

    Attributes
    ----------
    bounds, tolerance, delta, loss, aim : those of :class:`surefill.PartialCompleter`.
    refit_after, refit_share : it is fitted again when this many observations are new, and this share of those that the
        last fit has seen.
    """

    bounds: tuple[float, float] | None = None
    tolerance: float | None = None
    delta: float = 0.05
    loss: str = "squared"
    aim: str = "unobserved"
    refit_after: int = 1_000
    refit_share: float = 0.2

    def due(self, new: int, seen: int) -> bool:
        """Whether ``new`` observations after a fit on ``seen`` call for another.

        >>> Options().due(1000, 0), Options().due(1000, 100_000)
        (True, False)
        """
        return new >= max(self.refit_after, self.refit_share * seen, 1)


@dataclass(frozen=True)
class DataSetRecord:
    """One line of the table of data sets."""

    id: int
    name: str
    options: Options
    created: float
    last_sequence: int


def create_data_set(connection: Connection, name: str, options: Options) -> DataSetRecord:
    """A new, empty data set; TakenError where the name is taken."""
    line = {"name": name, "options": asdict(options), "created": time.time(), "last_sequence": 0}
    try:
        connection.execute(insert(data_sets), line)
    except IntegrityError:
        raise TakenError(f"there is a data set {name!r} already.") from None
    found = find_data_set(connection, name)
    assert found is not None
    return found


def find_data_set(connection: Connection, name: str) -> DataSetRecord | None:
    """The data set of that name, if there is one."""
    line = connection.execute(select(data_sets).where(data_sets.c.name == name)).one_or_none()
    return None if line is None else _record(line)


def all_data_sets(connection: Connection) -> list[DataSetRecord]:
    """All of them, in the order of their names."""
    return [_record(line) for line in connection.execute(select(data_sets).order_by(data_sets.c.name))]


def delete_data_set(connection: Connection, number: int) -> None:
    """Forget a data set and everything that belongs to it."""
    connection.execute(delete(data_sets).where(data_sets.c.id == number))


def _record(line: Any) -> DataSetRecord:
    bounds = line.options["bounds"]
    options = Options(**line.options | {"bounds": None if bounds is None else tuple(bounds)})
    return DataSetRecord(line.id, line.name, options, line.created, line.last_sequence)

"""Numbers, times and states as the page says them, each state with a shape, so that no colour is needed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from surefill.report.formats import measured, number, percent, shortened
from surefill.service.api.schemas import JobDescription, ModelInUse

STATES = {"queued": "○ waits", "running": "◐ runs", "done": "✓ done", "failed": "✗ failed"}
"""States of a job."""

UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def count(n: float) -> str:
    """A whole number, thousands set apart."""
    return f"{n:,.0f}"


def rate(per_second: float) -> str:
    """Observations a second.

    >>> rate(0), rate(0.04), rate(3.21), rate(5123.4)
    ('0', 'under 0.1', '3.2', '5,123')
    """
    if per_second == 0:
        return "0"
    return "under 0.1" if per_second < 0.05 else f"{per_second:.1f}" if per_second < 10 else count(per_second)


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(0.2), duration(42), duration(60), duration(7300)
    ('under 1 second', '42 seconds', '1 minute', '2 hours')
    """
    if seconds < 1:
        return "under 1 second"
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), (1, "second"))
    n = int(seconds // size)
    return f"{n} {unit}{'' if n == 1 else 's'}"


def ago(then: datetime) -> str:
    """How long ago a moment was."""
    seconds = (datetime.now(UTC) - then).total_seconds()
    return "just now" if seconds < 2 else f"{duration(seconds)} ago"


def moment(then: datetime) -> str:
    """A moment, in universal time."""
    return f"{then.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def promise_state(model: ModelInUse | None) -> str:
    """Whether something is promised, with a shape.

    >>> promise_state(None)
    '○ no model yet'
    """
    if model is None:
        return "○ no model yet"
    return "✓ promised" if model.promised else "✗ nothing promised"


def job_state(latest: list[JobDescription]) -> str:
    """What the latest job of a data set, if there is one, means for it.

    >>> job_state([])
    'none yet'
    """
    told = {"queued": "○ waits to be fitted", "running": "◐ is being fitted", "failed": "✗ the last fit failed"}
    return told.get(latest[0].state, "✓ fitted") if latest else "none yet"


def job_took(job: JobDescription) -> str:
    """How long a job took, or has run."""
    if job.started is None:
        return ""
    return duration(((job.ended or datetime.now(UTC)) - job.started).total_seconds())


class Bar(NamedTuple):
    """An interval and its value as places on a line of 0 to 100."""

    low: float
    value: float
    high: float


def bars(cells: Iterable[tuple[float | None, float | None, float | None]]) -> list[Bar | None]:
    """Places for (low, value, high) of some cells, all on one scale; None where a cell has no interval.

    >>> bars([(1.0, 2.0, 3.0), (2.0, 4.0, 5.0), (None, 3.0, None)])
    [Bar(low=0.0, value=25.0, high=50.0), Bar(low=25.0, value=75.0, high=100.0), None]
    """
    given = [[end for end in cell if end is not None] for cell in cells]
    whole = [ends for ends in given if len(ends) == 3]
    least, most = min((min(ends) for ends in whole), default=0.0), max((max(ends) for ends in whole), default=1.0)
    width = (most - least) or 1.0
    return [Bar(*(round(100 * (end - least) / width, 2) for end in ends)) if len(ends) == 3 else None for ends in given]


FILTERS = {
    "count": count, "rate": rate, "duration": duration, "ago": ago, "moment": moment, "percent": percent,
    "number": number, "measured": measured, "shortened": shortened, "promise_state": promise_state,
    "took": job_took,
}  # fmt: skip
"""What templates can say of a value."""

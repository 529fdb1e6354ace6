"""About how long a completion will take and how much memory, told before it begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from surefill.data import Observations
from surefill.errors import OutOfMemoryError
from surefill.estimators.costs import seconds_of_fit
from surefill.jobs.table_size import in_bytes, round_number
from surefill.risk.cross_fitting import MANY_CELLS

PROGRAM, PER_CELL, PER_LINE, PER_CELL_BEYOND = 550e6, 310.0, 2100.0, 40.0
"""Bytes of memory that a completion takes at most: the program with its blocks, for each observed cell of the first two
million, for each row and column, and for each cell beyond. The first three solve the peaks of ``surefill complete
--top-n 1`` on simulated tables, one thread: 579 MB for 98,360 cells of 2,000 x 1,500, 681 MB for 298,872 of
20,000 x 2,000 and 867 MB for 977,740 of 6,000 x 3,700; a million cells of 50,000 x 10,000 took 1,130 MB where they say
990. The last is what a fit takes for each of nine million more ratings (docs/benchmarks.md)."""

LONG = 60.0
"""Seconds from which on the forecast is told: less is waited for anyway."""


@dataclass(frozen=True)
class Forecast:
    """Seconds and bytes that a completion of observed ``cells`` in so many ``rows`` is expected to take.

    Right to a factor of two or so, on a machine that does nothing else. ``free`` bytes are there for the whole process;
    None where the system does not say.

    Examples
    --------
    >>> Forecast(5_000_000, 50_000, 352.0, 3.1e9, 2e9).sentence
    'This takes about 6 minutes and 3.1 GB of memory, of which 2 GB are free: some 28,000 of the rows would fit.'
    >>> Forecast(5_000_000, 50_000, 352.0, 3.1e9, 8e9).sentence
    'This takes about 6 minutes and 3.1 GB of memory.'
    """

    cells: int
    rows: int
    seconds: float
    bytes: float
    free: float | None

    @classmethod
    def of(cls, observations: Observations, seconds: float) -> Forecast:
        """Of a completion that takes so many seconds beside its fit."""
        cells, (m, n) = len(observations), observations.shape
        of_cells = PER_CELL * min(cells, MANY_CELLS) + PER_CELL_BEYOND * max(cells - MANY_CELLS, 0)
        needed = PROGRAM + of_cells + PER_LINE * (m + n)
        return cls(cells, m, seconds_of_fit(observations) + seconds, needed, free_memory())

    @property
    def is_long(self) -> bool:
        """Whether it is worth telling."""
        return self.seconds >= LONG or not self.fits

    @property
    def fits(self) -> bool:
        """Whether there is memory for it, as far as is known."""
        return self.free is None or self.bytes <= self.free

    @property
    def sentence(self) -> str:
        """Both figures, and where memory does not suffice, what would fit."""
        return f"This takes {self._time} and {in_bytes(self.bytes)} of memory{'' if self.fits else self._fitting}."

    @property
    def refusal(self) -> str:
        """What to say when memory did not suffice."""
        free = "" if self.free is None else f", of which {in_bytes(self.free)} were free"
        return (
            f"memory did not suffice: {self.cells:,} observed cells in {self.rows:,} rows take about "
            f"{in_bytes(self.bytes)}{free}; {self._advice}."
        )

    @property
    def _time(self) -> str:
        minutes = max(1, round(self.seconds / 60))
        return f"about {minutes} minute{'' if minutes == 1 else 's'}" if self.seconds >= LONG else "a moment"

    @property
    def _fitting(self) -> str:
        return f", of which {in_bytes(self.free or 0.0)} are free: {self._advice}"

    @property
    def _advice(self) -> str:
        """A table of fewer rows that would fit, the bytes of the program left out of the proportion."""
        free = self.bytes / 2 if self.free is None else self.free
        share = min(1.0, max(0.0, free - PROGRAM) / max(self.bytes - PROGRAM, 1.0))
        rows = round_number((share if not self.fits else 0.5) * self.rows)  # half, where the forecast was too low
        if rows < 1:
            return f"a machine with {in_bytes(1.5 * self.bytes)} would do"
        return f"some {rows:,} of the rows would fit"


Announce = Callable[[Forecast], None]


def free_memory() -> float | None:
    """Bytes that this process may take in all: what it has and the system can give, or less where a limit was set."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        there = next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
        pages = [float(count) for count in Path("/proc/self/statm").read_text().split()[:2]]
    except (OSError, StopIteration, ValueError):
        return None
    import resource

    reserved, resident = (os.sysconf("SC_PAGE_SIZE") * count for count in pages)
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    left = there if limit == resource.RLIM_INFINITY else min(there, max(0.0, limit - reserved))
    return resident + left


@contextmanager
def saying_what_fits(forecast: Forecast, file: Path) -> Iterator[None]:
    """Where memory does not suffice inside, tell what would."""
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(f"{file}: {forecast.refusal}") from error

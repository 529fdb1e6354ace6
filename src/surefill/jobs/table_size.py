"""How large a table will be, told before it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefill.arrays import Indices
from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators import PartialCompletion
from surefill.estimators.long_table import BLOCK_CELLS
from surefill.io.writers import bytes_per_line
from surefill.jobs.digits import MORE_DIGITS, decimals
from surefill.jobs.write_options import WriteOptions
from surefill.spaces.confidence_matrix import some_cells

LARGE, MOST_UNASKED = 10**8, 10**9
"""Bytes from which a size is told, and above which nothing is written unless somebody agreed."""

LONGEST_LINE = 100
"""Bytes of a line, in most tables about half: tables of fewer cells than LARGE / LONGEST_LINE are not measured."""

N_SAMPLED = 200_000
"""Cells drawn to learn which share is kept: one in a thousand is then known to within 7%."""

ROWS_SAMPLED = 400
"""Rows drawn for how many cells each will have of its top n, which is at most n in all of them."""


LONG_EXACT = {"value", "low", "high"}
"""Columns of a long table with as many digits as they have; others are cut to six."""

USUAL_DIGITS = 4
"""Digits after the point that completed values have at most, in most tables; used for sizes alone."""


@dataclass(frozen=True)
class TableSize:
    """About how many lines and bytes a table will have.

    Examples
    --------
    >>> from pathlib import Path
    >>> TableSize(Path("filled.csv"), 51_234_567, 3.21e9).sentence
    'filled.csv will have about 51,000,000 lines, 3.2 GB.'
    """

    output: Path
    lines: float
    bytes: float
    at_least: bool = False

    @property
    def sentence(self) -> str:
        """The size in words."""
        return f"{self.output} will have {self._words}."

    @property
    def refusal(self) -> str:
        """Why it is not written unless somebody agrees."""
        return (
            f"{self.output} would have {self._words}, and more than {in_bytes(MOST_UNASKED)} is written only if asked "
            "for: with --yes, or confirm= in Python; a folder of parquet files (-o NAME/), --top-n or --rows make less."
        )

    @property
    def _words(self) -> str:
        return f"{'at least' if self.at_least else 'about'} {round_number(self.lines):,} lines, {in_bytes(self.bytes)}"


Confirm = Callable[[TableSize], bool]


def settle_size(size: TableSize, confirm: Confirm | None) -> None:
    """Refuse a table of more than a gigabyte unless ``confirm`` agrees, which is asked about every large one."""
    if size.bytes < LARGE:
        return
    if not (size.bytes <= MOST_UNASKED if confirm is None else confirm(size)):
        raise InputError(size.refusal)


def round_number(number: float) -> int:
    """Two digits of a number: no more is known.

    >>> round_number(51_234_567), round_number(7.4)
    (51000000, 7)
    """
    return round(float(f"{number:.2g}"))


def in_bytes(number: float) -> str:
    """Bytes as people say them.

    >>> in_bytes(3.21e9), in_bytes(140e6)
    ('3.2 GB', '140 MB')
    """
    unit, name = next((pair for pair in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if number >= pair[0]), (1e3, "kB"))
    return f"{float(f'{number / unit:.2g}'):g} {name}"


def could_be_large(rows: Indices, n: int, options: WriteOptions) -> bool:
    """Whether a table could be large enough to be measured."""
    per_row = n if options.top_n is None or options.layout == "wide" else min(n, options.top_n)
    return len(rows) * per_row * LONGEST_LINE > LARGE


def confirmed_before_fit(
    seen: Observations, output: str | Path, rows: Indices, options: WriteOptions, confirm: Confirm | None
) -> Confirm | None:
    """Settle the size of a table before the fit where it is known by then: who agreed is not asked again.

    A table of what is kept has a line for each observed cell at least: where these alone are more than is written
    unasked, nobody should wait for a fit to hear that.
    """
    size = size_before_fit(seen, output, rows, options)
    if size is None:
        return confirm
    if size.at_least:
        if size.bytes > MOST_UNASKED:
            settle_size(size, confirm)
        return confirm
    settle_size(size, confirm)
    return lambda _: True


def size_before_fit(seen: Observations, output: str | Path, rows: Indices, options: WriteOptions) -> TableSize | None:
    """The size of a table whose number of lines does not depend on what is kept, or the least it can have.

    None of small tables, of wide ones, and of the best of each row among what is kept.

    How long lines are is told by some that are made up of the labels and digits that there are.
    """
    n = seen.shape[1]
    of_kept = options.entries == "kept"
    if (of_kept and options.top_n is not None) or options.layout == "wide" or not could_be_large(rows, n, options):
        return None
    cells = np.arange(min(len(rows) * n, BLOCK_CELLS))
    digits = min(decimals(seen.values) + MORE_DIGITS, USUAL_DIGITS) if options.digits is None else options.digits
    rng = np.random.default_rng(0)
    value, (confidence, risk) = np.round(rng.uniform(*seen.bounds, len(cells)), digits), rng.random((2, len(cells)))
    block = {
        "row": seen.row_names(rows[cells // n]),
        "column": seen.col_names(cells % n),
        "value": value,
        "confidence": confidence,
        "risk": risk,
        "keep": confidence < risk,
        "observed": risk < 0,
    } | ({} if options.level is None else {"low": value, "high": value})
    lines = int(np.isin(seen.rows, rows).sum()) if of_kept else expected_lines(seen, rows, options)
    return TableSize(Path(output), lines, lines * bytes_per_line(output, block, exact=LONG_EXACT), at_least=of_kept)


def expected_lines(
    seen: Observations, rows: Indices, options: WriteOptions, result: PartialCompletion | None = None
) -> float:
    """How many lines the table of these rows will have: known, or from the share kept of a sample of the cells."""
    cells = len(rows) * seen.shape[1]
    if options.layout == "wide":
        return len(rows)
    if options.entries == "all":
        return cells
    observed = int(np.isin(seen.rows, rows).sum())
    if options.entries == "missing" or result is None:
        return cells - observed
    if options.top_n is not None:
        return _lines_of_top(seen, rows, options.top_n, result)
    return observed + (cells - observed) * filled_share(seen, rows, result)


def filled_share(seen: Observations, rows: Indices, result: PartialCompletion) -> float:
    """Share of the missing cells of these rows that is kept: exact where there are few cells, else from a sample."""
    i, j = some_cells((len(rows), seen.shape[1]), N_SAMPLED)
    missing = seen.find(rows[i], j) < 0
    return float(result.keeps(rows[i[missing]], j[missing]).mean()) if missing.any() else 0.0


def _lines_of_top(seen: Observations, rows: Indices, top_n: int, result: PartialCompletion) -> float:
    """The sum over rows of min(top_n, cells filled), from some columns of some rows."""
    n = seen.shape[1]
    rng = np.random.default_rng(0)
    some_rows = rng.choice(rows, min(len(rows), ROWS_SAMPLED), replace=False)
    some_cols = rng.choice(n, min(n, N_SAMPLED // ROWS_SAMPLED), replace=False)
    grid = np.repeat(some_rows, len(some_cols)), np.tile(some_cols, len(some_rows))
    kept = result.keeps(*grid) & (seen.find(*grid) < 0)
    filled = kept.reshape(len(some_rows), -1).mean(axis=1) * n
    return float(np.minimum(filled, top_n).mean()) * len(rows)

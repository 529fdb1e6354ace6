"""The best columns of rows, from a saved model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import records
from surefill.errors import InputError
from surefill.estimators import PartialCompleter, iterate_recommendations, load
from surefill.io import write_table
from surefill.io.durable import check_distinct
from surefill.io.writers import check_table_target
from surefill.jobs.write_options import rows_named


@dataclass(frozen=True, eq=False)
class RecommendedColumns:
    """The best columns of some rows, or of all: ``table`` where nothing was written, else ``lines`` in ``output``.

    ``n_rows`` is how many rows were asked about, ``n_with_any`` how many have a line; ``guarantee`` is the sentence of
    the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     found = recommend_columns(Path(folder) / "model.surefill", rows=["7"], n=3)
    >>> list(found.table), found.lines
    (['row', 'column', 'value', 'confidence', 'risk'], 3)
    """

    table: dict[str, NDArray[Any]] | None
    lines: int
    n_rows: int
    n_with_any: int
    promised: bool
    guarantee: str
    output: Path | None = None

    def as_records(self) -> list[dict[str, Any]]:
        """One mapping per line, of plain values; none where they were written to a file."""
        return records(self.table or {})


def recommend_columns(
    model: str | Path,
    *,
    rows: Sequence[Any] = (),
    n: int = 10,
    exclude: Sequence[Any] = (),
    include: Sequence[Any] = (),
    trusted: bool = True,
    rows_file: str | Path | None = None,
    output: str | Path | None = None,
) -> RecommendedColumns:
    """Read a saved model and give the ``n`` best columns of each row, of all rows where none are named.

    Parameters
    ----------
    rows, exclude, include : labels, or 0-based positions where the model has no labels.
    n, trusted : see :meth:`surefill.PartialCompleter.recommend`.
    rows_file : a file with one row label per line, in place of ``rows``.
    output : a table to write, block by block; its suffix says how. Needed for all rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.3, confidence="posterior", aim="observed").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = Path(folder) / "model.surefill"
    ...     completer.save(model)
    ...     found = recommend_columns(model, rows=[7], n=3, trusted=False)
    >>> found.lines, found.table["row"].tolist()
    (3, [7, 7, 7])
    """
    if output is not None:
        check_table_target(output)
        for name, path in (("MODEL", model), ("ROWS", rows_file)):
            check_distinct(**{name: None if path is None else Path(path)}, output=Path(output))
    if rows and rows_file is not None:
        raise InputError("give rows one by one or in a file, not both.")
    if not rows and rows_file is None and output is None:
        raise InputError("all rows make a long table: say where to write it (-o on the command line), or name rows.")
    completer = load(model)
    seen = completer.observations_
    asked = list(rows) if rows_file is None else seen.row_names(rows_named(Path(rows_file), seen)).tolist()
    best = iterate_recommendations(completer, asked or None, n, list(exclude) or None, list(include) or None, trusted)
    blocks, n_rows = _Counted(best), len(asked) if asked else seen.shape[0]
    if output is not None:
        lines = write_table(output, blocks, exact=(seen.names[2], "value"))
        return _found(completer, None, lines, n_rows, blocks.rows, Path(output))
    parts = list(blocks)
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _found(completer, table, len(next(iter(table.values()))), n_rows, blocks.rows, None)


class _Counted:
    """Blocks as they come, and how many rows have a line."""

    def __init__(self, blocks: Iterator[dict[str, NDArray[Any]]]) -> None:
        self._blocks, self.rows = blocks, 0

    def __iter__(self) -> Iterator[dict[str, NDArray[Any]]]:
        for block in self._blocks:
            self.rows += len(np.unique(next(iter(block.values()))))
            yield block


def _found(
    completer: PartialCompleter,
    table: dict[str, NDArray[Any]] | None,
    lines: int,
    n_rows: int,
    n_with_any: int,
    output: Path | None,
) -> RecommendedColumns:
    guarantee = completer.result_.guarantee
    return RecommendedColumns(table, lines, n_rows, n_with_any, guarantee.promised, guarantee.sentence, output)

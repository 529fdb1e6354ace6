"""Which cells to ask next, from a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from surefill.arrays import records
from surefill.estimators import load
from surefill.io import write_table
from surefill.io.durable import check_distinct
from surefill.io.writers import check_table_target


@dataclass(frozen=True, eq=False)
class SuggestedCells:
    """Cells to ask next, by label, in the order they were chosen: what is predicted there, its risk, its utility.

    ``table`` maps the names of the columns to arrays; rows and columns have the names of the file the model was made
    from.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     found = suggest_cells(Path(folder) / "model.surefill", 3, strategy="variance")
    >>> list(found.table), len(found.as_records())
    (['row', 'column', 'predicted', 'risk', 'utility'], 3)
    """

    table: dict[str, NDArray[Any]]

    def as_records(self) -> list[dict[str, Any]]:
        """One mapping per cell, of plain values."""
        return records(self.table)


def suggest_cells(
    model: str | Path,
    n: int,
    *,
    strategy: str = "coverage",
    rows: Sequence[str] = (),
    output: str | Path | None = None,
) -> SuggestedCells:
    """Read a saved model and say which n cells to ask next, or which n of each of the labelled ``rows``.

    Parameters
    ----------
    model : a file written by :meth:`surefill.PartialCompleter.save`, or by ``surefill complete --save``.
    n, strategy : see :meth:`surefill.PartialCompleter.suggest`.
    rows : labels of rows, or their 0-based positions where the model has no labels.
    output : a table to write as well; its suffix says how, see :func:`surefill.io.write_table`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     found = suggest_cells(Path(folder) / "model.surefill", 2, rows=["7"])
    >>> found.table["row"].tolist()
    [7, 7]
    """
    if output is not None:
        check_table_target(output)
        check_distinct(MODEL=Path(model), output=Path(output))
    completer = load(model)
    rows_asked = list(rows) or None
    i, j, utility = completer.suggest(n, strategy=strategy, return_utilities=True, rows=rows_asked)  # type: ignore[arg-type]
    answer, (row, column, _) = completer.result_.answer(*completer._cells(i, j)), completer.observations_.names
    table = {row: i, column: j, "predicted": answer.value, "risk": answer.risk, "utility": utility}
    if output is not None:
        write_table(output, [table])
    return SuggestedCells(table)

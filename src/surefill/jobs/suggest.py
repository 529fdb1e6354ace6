"""Which cells to ask next, from a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Indices
from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators import load
from surefill.io import write_table
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
        columns = [values.tolist() for values in self.table.values()]
        return [dict(zip(self.table, cell, strict=True)) for cell in zip(*columns, strict=True)]


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
    completer = load(model)
    seen = completer.observations_
    ids = _row_positions(seen, rows) if rows else None
    i, j, utility = completer.suggest(n, strategy=strategy, return_utilities=True, rows=ids)  # type: ignore[arg-type]
    answer, (row, column, _) = completer.result_.answer(i, j), seen.names
    table = {
        row: i if seen.row_labels is None else seen.row_labels[i],
        column: j if seen.col_labels is None else seen.col_labels[j],
        "predicted": answer.value,
        "risk": answer.risk,
        "utility": utility,
    }
    if output is not None:
        write_table(output, [table])
    return SuggestedCells(table)


def _row_positions(observations: Observations, labels: Sequence[str]) -> Indices:
    """Positions of rows by label, or by number where there are no labels."""
    if observations.row_labels is not None:
        return observations.row_index(np.array(labels))
    if not all(label.isdigit() for label in labels):
        raise InputError(f"this model's rows have no labels; give positions from 0 to {observations.shape[0] - 1}.")
    return np.array([int(label) for label in labels])

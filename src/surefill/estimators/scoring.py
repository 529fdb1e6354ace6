"""A long table of pairs scored: value, confidence, risk, whether kept, and why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array, Indices
from surefill.data.containers import as_frame
from surefill.errors import InputError, invalid_parameter, is_number
from surefill.estimators.long_columns import SOURCE, id_columns, ids_in
from surefill.estimators.observing import training_cells
from surefill.guarantee import Reason

if TYPE_CHECKING:
    from surefill.estimators.partial_completer import PartialCompleter

BLOCK = 1 << 18
"""Pairs scored at a time, which bounds the memory beside the table itself."""

ADDED = ("confidence", "risk", "keep", "reason", "low", "high")
"""Columns beside the value, which no table to be scored may have already."""


def predict_frame(completer: PartialCompleter, table: Any, level: float | None = None) -> Any:
    """:meth:`surefill.PartialCompleter.predict_frame`."""
    check_level(level)
    frame, seen = as_frame(table, SOURCE), completer._observed()
    names = {str(name): name for name in frame.columns}
    row, col = id_columns(list(names), seen.names)
    value = check_added(list(names), SOURCE, level)
    rows, cols = seen.locate(ids_in(frame, names[row]), ids_in(frame, names[col]))
    blocks = list(score(completer, rows, cols, level)) or [_none(level)]
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    named = {value if name == "value" else name: column for name, column in columns.items()}
    native = nw.get_native_namespace(frame)
    added = [nw.new_series(name, column.tolist(), _type(column), backend=native) for name, column in named.items()]
    if native.__name__ == "pandas":  # lines are told apart by their index there, which is the table's own
        added = [nw.from_native(series.to_native().set_axis(table.index), series_only=True) for series in added]
    return frame.with_columns(*added).to_native()


def score(
    completer: PartialCompleter,
    rows: Indices,
    cols: Indices,
    level: float | None = None,
    times: Array | None = None,
) -> Iterator[dict[str, NDArray[Any]]]:
    """Blocks of value, confidence, risk, keep and reason (low and high) at positions, -1 for what was never seen.

    With ``times`` values are those at these times; all else is about values at no date in particular.
    """
    result, seen = completer._fitted(), completer.observations_
    m, n = seen.shape
    larger = result.extended((m + 1, n + 1), seen.select(training_cells(result, seen)))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        i, j = np.where(rows[block] < 0, m, rows[block]), np.where(cols[block] < 0, n, cols[block])
        answer = larger.answer(i, j)
        new_row, new_col = i == m, j == n
        observed = ~(new_row | new_col) & (seen.find(i, j) >= 0)
        reason = np.select(
            [observed, new_row & new_col, new_row, new_col],
            [Reason.OBSERVED, Reason.NEW_BOTH, Reason.NEW_ROW, Reason.NEW_COLUMN],
            larger.reasons(i, j, answer),
        )
        columns = vars(answer) | {"reason": reason}
        if level is not None:
            columns["low"], columns["high"] = larger.interval_at(i, j, level)
        if times is not None:
            columns["value"] = larger.values_at(i, j, times[block])
        yield columns


def check_level(level: float | None) -> None:
    """Refuse what is no probability."""
    if level is not None and not (is_number(level) and 0 < level < 1):
        raise invalid_parameter("predict_frame", "level", "a number above 0 and below 1, or None", level)


def check_added(names: list[str], source: str, level: float | None) -> str:
    """What to call the predicted value; a table that has one of the other columns already is refused."""
    taken = [name for name in ADDED[: 4 if level is None else 6] if name in names]
    if taken:
        raise InputError(f"{source} has a column {taken[0]!r} already, which would be overwritten: rename or drop it.")
    return "predicted" if "value" in names else "value"


def _none(level: float | None) -> dict[str, NDArray[Any]]:
    """The columns of a table without lines."""
    types = {"value": float, "confidence": float, "risk": float, "keep": bool, "reason": str}
    types |= {} if level is None else {"low": float, "high": float}
    return {name: np.empty(0, dtype=kind) for name, kind in types.items()}


def _type(column: NDArray[Any]) -> Any:
    return {"f": nw.Float64, "b": nw.Boolean, "U": nw.String}[column.dtype.kind]

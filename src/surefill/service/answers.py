"""What a data set says of cells: by the model that promises, by the stream what came after it, or as observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from surefill.service.data_set import DataSet, InUse
from surefill.service.recent import Seen
from surefill.service.served_model import LEVEL, ModelAnswer, ServedModel

Source = Literal["model", "stream", "observed"]

NO_MODEL = "no model is fitted yet"
NO_PROMISE = "the model in use promises nothing"
LATER = {
    (False, True): "row came after the model was fitted",
    (True, False): "column came after the model was fitted",
    (False, False): "row and column came after the model was fitted",
}
"""Why nothing is promised, by whether the model knows row and column."""


class Prediction(NamedTuple):
    """What is said of one cell.

    Attributes
    ----------
    value : in the data's units; None where nothing is known at all.
    confidence : in [0, 1], how well the observations support it.
    risk : expected loss; None from the stream, which has none.
    keep : whether it is in the kept set of the model in use, of which that model's promise is.
    low, high : ends of the interval; None where there is none.
    reason : why it is not kept; empty where it is.
    source : "model", "stream" for what came after the model, "observed" where the value is the mean of what was seen.
    """

    row: str
    col: str
    value: float | None
    confidence: float
    risk: float | None
    keep: bool
    low: float | None
    high: float | None
    reason: str
    source: Source


def predict(
    data_set: DataSet, in_use: InUse, rows: Sequence[str], cols: Sequence[str], level: float = LEVEL
) -> list[Prediction]:
    """One answer for each cell, all of them from one model."""
    model = in_use.model
    answer = None if model is None or not rows else model.answer(np.array(rows), np.array(cols), level)
    recent = in_use.recent.find(rows, cols)
    found: list[Prediction | None] = []
    for place, (row, col) in enumerate(zip(rows, cols, strict=True)):
        prediction = _as_observed(in_use, answer, recent, place, row, col)
        if prediction is None and answer is not None and not _came_later(in_use, answer, place, row, col):
            prediction = _by_model(model, answer, place, row, col)  # type: ignore[arg-type]
        found.append(prediction)
    _ask_stream(data_set, answer, rows, cols, found)
    return [each for each in found if each is not None]


def _as_observed(
    in_use: InUse, answer: ModelAnswer | None, recent: Seen, place: int, row: str, col: str
) -> Prediction | None:
    """The mean of what was seen of the cell, by the model and since."""
    count, total = int(recent.times[place]), float(recent.totals[place])
    if answer is not None and in_use.model is not None and (at := int(answer.observed[place])) >= 0:
        seen = in_use.model.completer.observations_
        count, total = count + int(seen.counts[at]), total + float(seen.values[at] * seen.counts[at])
    if count == 0:
        return None
    return Prediction(row, col, total / count, 1.0, None, False, None, None, "observed", "observed")


def _came_later(in_use: InUse, answer: ModelAnswer, place: int, row: str, col: str) -> bool:
    """Whether the model has not seen the row or the column, and the stream has."""
    later_row = not answer.row_known[place] and in_use.recent.has_row(row)
    return bool(later_row or (not answer.col_known[place] and in_use.recent.has_col(col)))


def _by_model(model: ServedModel, answer: ModelAnswer, place: int, row: str, col: str) -> Prediction:
    keep, reason = bool(answer.keep[place]), str(answer.reason[place])
    return Prediction(
        row,
        col,
        finite(answer.value[place]),
        float(answer.confidence[place]),
        finite(answer.risk[place]),
        keep,
        finite(answer.low[place]),
        finite(answer.high[place]),
        reason if keep or reason else NO_PROMISE,
        "model",
    )


def _ask_stream(
    data_set: DataSet,
    answer: ModelAnswer | None,
    rows: Sequence[str],
    cols: Sequence[str],
    found: list[Prediction | None],
) -> None:
    """Fill what neither was observed nor is the model's to answer."""
    places = [place for place, prediction in enumerate(found) if prediction is None]
    if not places:
        return
    values, confidences = data_set.ask_stream([rows[place] for place in places], [cols[place] for place in places])
    for place, value, confidence in zip(places, values.tolist(), confidences.tolist(), strict=True):
        known = (True, True) if answer is None else (bool(answer.row_known[place]), bool(answer.col_known[place]))
        reason = NO_MODEL if answer is None else LATER[known]
        cell = rows[place], cols[place]
        found[place] = Prediction(*cell, finite(value), confidence, None, False, None, None, reason, "stream")


def finite(number: float) -> float | None:
    """The number, None where it is none or has no end."""
    return float(number) if math.isfinite(number) else None

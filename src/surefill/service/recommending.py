"""The best columns of a row, by the model where it knows the row, else by the stream."""

from __future__ import annotations

import numpy as np

from surefill.data.labels import as_text
from surefill.errors import InputError
from surefill.service.answers import LATER, NO_MODEL, NO_PROMISE, Prediction, predict
from surefill.service.data_set import DataSet, InUse
from surefill.service.served_model import ServedModel


def recommend(data_set: DataSet, in_use: InUse, row: str, n: int, trusted: bool) -> tuple[list[Prediction], str]:
    """At most n columns of largest value that were not observed, and why there are fewer; empty where there are not."""
    model = in_use.model
    known = model is not None and bool((model.completer.observations_.locate([row], [])[0] >= 0).all())
    if model is not None and known:
        return _by_model(data_set, in_use, model, row, n, trusted)
    if not in_use.recent.has_row(row):
        return [], f"there is no row {row!r}."
    if trusted:
        return [], f"{NO_MODEL if model is None else LATER[False, True]}; trusted=false ranks its columns all the same."
    seen = set(in_use.recent.cols_of(row))
    cols = [col for col in _columns(in_use) if col not in seen]
    found = predict(data_set, in_use, [row] * len(cols), cols)
    best = sorted(found, key=lambda each: -np.inf if each.value is None else each.value, reverse=True)[:n]
    return best, "" if len(best) == n else "all its other columns were observed."


def _by_model(
    data_set: DataSet, in_use: InUse, model: ServedModel, row: str, n: int, trusted: bool
) -> tuple[list[Prediction], str]:
    if trusted and not model.guarantee.promised:
        return [], f"{NO_PROMISE}."
    seen = model.completer.observations_
    later = in_use.recent.cols_of(row)
    exclude = [col for col, known in zip(later, seen.locate([], later)[1] >= 0, strict=True) if known] if later else []
    try:
        best = model.completer.recommend(row, n, exclude=exclude or None, trusted=trusted)
    except InputError:
        return [], "all its columns were observed."
    found = predict(data_set, in_use, [row] * len(best), [str(label) for label in best.labels])
    kept = "no more of its columns are kept." if found else "none of its columns is kept."
    missing = kept if trusted else "all its other columns were observed."
    return found, "" if len(found) == n else missing


def _columns(in_use: InUse) -> list[str]:
    """All columns that are known."""
    if in_use.model is None:
        return in_use.recent.cols
    seen = in_use.model.completer.observations_
    labels = as_text(seen.col_names(np.arange(seen.shape[1]))).tolist()
    return list(dict.fromkeys([*labels, *in_use.recent.cols]))

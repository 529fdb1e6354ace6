"""Rows found by part of their label, and all that is said of one."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

import numpy as np

from surefill.data.labels import as_text
from surefill.service.answers import Prediction
from surefill.service.data_set import DataSet, InUse
from surefill.service.recommending import recommend

SHOWN = 10
"""Columns of each kind shown for a row."""


def all_rows(in_use: InUse) -> list[str]:
    """Labels of the rows that are known, those of the model first."""
    later = in_use.recent.rows
    if in_use.model is None:
        return later
    seen = in_use.model.completer.observations_
    labels: list[str] = as_text(seen.row_names(np.arange(seen.shape[0]))).tolist()
    return list(dict.fromkeys([*labels, *later]))


def find_rows(labels: list[str], text: str, n: int) -> list[str]:
    """At most n labels that contain a text, whatever the case: the same first, then those that begin with it.

    >>> find_rows(["annabel", "Ann", "joann", "bob"], "ann", 5)
    ['Ann', 'annabel', 'joann']
    """
    wanted = text.strip().casefold()
    if not wanted:
        return labels[:n]

    def order(label: str) -> tuple[bool, bool, int, str]:
        lower = label.casefold()
        return lower != wanted, not lower.startswith(wanted), len(label), label

    return heapq.nsmallest(n, (label for label in labels if wanted in label.casefold()), key=order)


@dataclass(frozen=True)
class RowView:
    """What is said of a row.

    Attributes
    ----------
    kept, refused : the columns of largest value among those kept, and among those that are not.
    n_kept, n_refused : how many of each there are.
    reasons : how often each reason to refuse, the most frequent first.
    why : why there is nothing, or fewer than asked for.
    """

    row: str
    known: bool
    kept: list[Prediction]
    refused: list[Prediction]
    n_kept: int
    n_refused: int
    reasons: list[tuple[str, int]]
    why: str


def view_row(data_set: DataSet, in_use: InUse, row: str, n: int = SHOWN) -> RowView:
    """All columns of a row that were not observed, the best of those kept and of those refused."""
    why = recommend(data_set, in_use, row, n, trusted=True)[1].partition("; trusted=false")[0]
    ranked, unknown = recommend(data_set, in_use, row, data_set.progress.shape[1], trusted=False)
    kept = [each for each in ranked if each.keep]
    refused = [each for each in ranked if not each.keep]
    reasons = Counter(each.reason for each in refused).most_common()
    known = bool(ranked) or not unknown.startswith("there is no row")
    return RowView(row, known, kept[:n], refused[:n], len(kept), len(refused), reasons, why if known else unknown)

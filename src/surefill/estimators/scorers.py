"""How good a fitted completer is on entries held out from it, as scikit-learn asks: higher is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surefill.arrays import Indices
from surefill.data import Entries, Observations
from surefill.errors import InputError, invalid_parameter, is_number
from surefill.losses import Loss, choose_loss

if TYPE_CHECKING:
    from surefill.estimators.partial_completer import PartialCompleter


@dataclass(frozen=True)
class ErrorScorer:
    """-mean of a loss over held-out entries, trusted or not; a callable for scikit-learn's ``scoring``.

    Examples
    --------
    >>> import surefill as sf
    >>> sf.estimators.make_error_scorer("absolute").loss.mean_name
    'mean absolute error'
    """

    loss: Loss

    def __call__(self, completer: PartialCompleter, X: Any, y: Any = None) -> float:
        """The score of a fitted completer on the entries X; ``y`` plays no part, X has the values."""
        held_out, rows, cols = held_out_entries(completer, X)
        losses = self.loss.at(held_out, completer.result_.values_at(rows, cols, held_out.times))
        return -float(np.average(losses, weights=held_out.counts))


@dataclass(frozen=True)
class KeptShareScorer:
    """Share of held-out entries that are kept at a tolerance, with the promise; a callable for ``scoring``.

    Examples
    --------
    >>> import surefill as sf
    >>> sf.estimators.make_kept_share_scorer(tolerance=0.5)
    KeptShareScorer(tolerance=0.5)
    """

    tolerance: float

    def __call__(self, completer: PartialCompleter, X: Any, y: Any = None) -> float:
        """The score of a fitted completer on the entries X."""
        _, rows, cols = held_out_entries(completer, X)
        return float(completer.result_.at_tolerance(self.tolerance).keeps(rows, cols).mean())


def make_error_scorer(loss: Any = "squared") -> ErrorScorer:
    """-mean l(y - M_ij) over held-out entries: a scorer for ``cross_val_score``, ``GridSearchCV`` and the like.

    ``loss`` is one of :class:`PartialCompleter`, whatever that of the completer is: "squared", "absolute",
    "beyond:0.5", or an object of :mod:`surefill.losses`.

    Examples
    --------
    >>> import surefill as sf
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> seen = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior")
    >>> folds = KFold(2, shuffle=True, random_state=0)
    >>> scores = cross_val_score(completer, seen.entries, cv=folds, scoring=sf.estimators.make_error_scorer())
    >>> bool((scores > -0.02).all())
    True
    """
    return ErrorScorer(choose_loss(loss, "make_error_scorer"))


def make_kept_share_scorer(tolerance: float) -> KeptShareScorer:
    """Share of held-out entries that a completer keeps when it is to promise a mean loss of at most ``tolerance``.

    It is that of ``completer.result_.at_tolerance(tolerance)``, whatever the completer's own tolerance, and 0 where
    nothing can be promised. The loss is the completer's.

    Examples
    --------
    >>> import surefill as sf
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> seen = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(confidence="posterior")
    >>> folds = KFold(2, shuffle=True, random_state=0)
    >>> kept = sf.estimators.make_kept_share_scorer(tolerance=0.3)
    >>> bool((cross_val_score(completer, seen.entries, cv=folds, scoring=kept) > 0.5).all())
    True
    """
    if not (is_number(tolerance) and 0 < tolerance < np.inf):
        raise invalid_parameter("make_kept_share_scorer", "tolerance", "a number above 0", tolerance)
    return KeptShareScorer(float(tolerance))


def held_out_entries(completer: PartialCompleter, X: Any) -> tuple[Observations, Indices, Indices]:
    """Entries to score on, and their positions in the matrix that the completer was fitted on.

    Where both have labels, entries are found by them; a matrix must be of the fitted shape, NaN where nothing is known.
    """
    completer._fitted()
    fitted: Observations = completer.observations_
    if isinstance(X, Entries):
        X = X.observations
    if isinstance(X, Observations):
        return X, _positions(X, fitted, 0), _positions(X, fitted, 1)
    matrix = completer._validate_matrix(X, reset=False)
    if matrix.shape != fitted.shape:
        raise InputError(
            f"entries are scored in the matrix of the fit, {fitted.shape[0]} x {fitted.shape[1]}, with NaN where none "
            f"is held out; got {matrix.shape[0]} x {matrix.shape[1]}. To hold out entries instead of rows, give "
            "scikit-learn observations.entries, such as Observations.from_matrix(X).entries."
        )
    held_out = Observations.from_matrix(matrix)
    return held_out, held_out.rows.astype(np.int64), held_out.cols.astype(np.int64)


def _positions(held_out: Observations, fitted: Observations, axis: int) -> Indices:
    """Rows (axis 0) or columns of ``held_out`` among those of the fit."""
    labels = (held_out.row_labels, held_out.col_labels)[axis]
    known = (fitted.row_labels, fitted.col_labels)[axis]
    positions = (held_out.rows, held_out.cols)[axis].astype(np.int64)
    name = ("row", "column")[axis]
    if (labels is None) != (known is None):
        has, lacks = ("fit has", "entries have none") if labels is None else ("entries have", "fit has none")
        raise InputError(f"the {has} {name} labels and the {lacks}; give both or neither.")
    if labels is None or labels is known:
        if positions.max() >= fitted.shape[axis]:
            raise InputError(f"there is no {name} {positions.max()}: the fit has {fitted.shape[axis]} of them.")
        return positions
    return (fitted.row_index, fitted.col_index)[axis](labels[positions])

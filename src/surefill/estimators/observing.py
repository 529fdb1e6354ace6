"""Answers taken in after a fit: their rows and columns are learnt again, the rest stays, and no promise is left."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion import Completion, FactoredCompletion
from surefill.confidence import (
    CoverageGame,
    ExtendableConfidence,
    ExtendedConfidence,
    GameConfidence,
    PosteriorConfidence,
)
from surefill.data import BoundsSource, Observations
from surefill.errors import InputError
from surefill.estimators.result import PartialCompletion
from surefill.guarantee.wording import observed_since, state_guarantee
from surefill.risk import ConfidenceRisk, FittedRisk, Risk
from surefill.risk.cross_fitting import CountVariance


class NewCells(NamedTuple):
    """All observations, the new cells last in a table as large as they need, and the new cells alone."""

    both: Observations
    new: Observations


def joined(
    observations: Observations,
    rows: ArrayLike,
    cols: ArrayLike,
    values: ArrayLike,
    counts: ArrayLike | None = None,
    scatter: ArrayLike | None = None,
) -> NewCells:
    """Add cells by label; one that was observed before is refused, for it may be a calibration cell.

    Values outside bounds that were given, or outside the scale that all others lie on, are refused as well.
    """
    before, i, j = observations.enlarged(rows, cols)
    bounds = before.bounds if before.bounds_from is BoundsSource.GIVEN else None
    new = Observations(i, j, values, before.shape, bounds, counts=counts, scatter=scatter)
    if before.bounds_from is BoundsSource.SCALE:
        _require_scale(before, new)
    again = np.flatnonzero(before.find(new.rows, new.cols) >= 0)
    if again.size:
        cell = new.rows[again[0]], new.cols[again[0]]
        row, col = before.row_names(cell[0]).item(), before.col_names(cell[1]).item()
        raise InputError(
            f"cell ({row!r}, {col!r}) was observed already, and may be a calibration cell; fit again to add to it."
        )
    columns = ("rows", "cols", "values", "counts", "scatter")
    i, j, y, n, s = (np.concatenate([getattr(before, name), getattr(new, name)]) for name in columns)
    both = Observations(
        i,
        j,
        y,
        before.shape,
        bounds,
        counts=n,
        scatter=s,
        row_labels=before.row_labels,
        col_labels=before.col_labels,
        names=before.names,
    )
    return NewCells(both, new)


def _require_scale(before: Observations, new: Observations) -> None:
    (low, high), outside = (
        before.bounds,
        np.flatnonzero((new.values < before.bounds[0]) | (new.values > before.bounds[1])),
    )
    if outside.size:
        row, col = before.row_names(new.rows[outside[0]]).item(), before.col_names(new.cols[outside[0]]).item()
        raise InputError(
            f"values must lie in [{low:g}, {high:g}], {before.bounds_from.value}; cell ({row!r}, {col!r}) has "
            f"{new.values[outside[0]]:g}: fit anew with bounds=(low, high) (--bounds on the command line) if it may."
        )


def training_cells(result: PartialCompletion, observations: Observations) -> NDArray[np.bool_]:
    """Which observations the model was fitted on: all but the calibration cells."""
    training = np.ones(len(observations), dtype=bool)
    training[observations.find(*result.calibration_cells)] = False
    return training


def observe(result: PartialCompletion, train: Observations, new: Observations) -> PartialCompletion:
    """The result after ``new``, a part of all training cells ``train``, without fitting again and without a promise.

    Rows and columns that are new start from the prior, as they are before anything of them is seen.
    """
    if not isinstance(result.completion, FactoredCompletion):
        raise InputError(
            f"a {type(result.completion).__name__} cannot take in observations; fit again, or fit with "
            "completion='auto' or 'factor-model'."
        )
    completion = result.completion.update(train, new)
    confidence = _updated_confidence(result, completion, train, new)
    n_added = result.n_added + len(new)
    guarantee = state_guarantee(
        result.plan, result.selection, result.calibration, result.weights, result.loss,
        withheld=observed_since(n_added), shape=train.shape,
    )  # fmt: skip
    return replace(
        result,
        completion=completion,
        confidence=confidence,
        risk=_updated_risk(result.risk, completion, confidence, train, new),
        prior=result.prior.now_seen(train),
        guarantee=guarantee,
        n_added=n_added,
        col_labels=train.col_labels,
    )


def _updated_confidence(
    result: PartialCompletion, completion: FactoredCompletion, train: Observations, new: Observations
) -> ExtendableConfidence:
    """The game played again with its settings, the posterior as it is now; any other confidence stays as it was."""
    confidence = result.confidence
    if isinstance(confidence, GameConfidence):
        false_support = result.certificate.false_support
        assert false_support is not None  # every game states it
        game = CoverageGame(false_support, confidence.row_slots.shape[2], confidence.random_state)
        return game.fit(train)[0]
    if isinstance(confidence, PosteriorConfidence):
        own = confidence.completion is result.completion
        model = completion if own else confidence.completion.update(train, new)
        return PosteriorConfidence.of(model, train, tuple(other.update(train, new) for other in confidence.others))
    return confidence if confidence.shape == train.shape else ExtendedConfidence.of(confidence, train.shape)


def _updated_risk(
    risk: Risk, completion: Completion, confidence: ExtendableConfidence, train: Observations, new: Observations
) -> Risk:
    """The same model of errors, read at the new completion and confidence; no residual of new cells is known."""
    if isinstance(risk, ConfidenceRisk):
        return replace(risk, confidence=confidence)
    if not isinstance(risk, FittedRisk):
        raise InputError(f"a {type(risk).__name__} cannot take in observations; fit again.")
    spread = risk.evidence.spread
    if spread is not None:
        spread = CountVariance.of(train) if isinstance(spread, CountVariance) else spread.update(train, new)
    support = None if risk.support is None else replace(risk.support, confidence=confidence)
    return replace(risk, evidence=replace(risk.evidence, completion=completion, spread=spread), support=support)

"""The one object that fitting returns and everything else reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion import Completion
from surefill.coverage.algorithms import Certificate, ExtendableConfidence
from surefill.coverage.confidence import some_cells
from surefill.data import Observations
from surefill.risk import ConformalScores, Guarantee, Risk, Selection, TargetWeights


@dataclass(frozen=True, eq=False)
class PartialCompletion:
    """A completion, how far each entry of it can be trusted, the part that is kept, and what is promised of it.

    Attributes
    ----------
    completion : M-hat, a value for every entry.
    confidence : C in [0, 1], how well the observations support each entry.
    risk : the expected squared error of every entry.
    selection : the kept set at the tolerance asked for.
    certificate : how close the confidence is to the best possible.
    guarantee : what is promised of the kept set, and what is not.
    scores : how far off the calibration entries were, for intervals.
    weights : which entries promise and intervals are aimed at.
    bounds : the range of values.
    predicted_range : the least and the largest prediction at a training cell; all predictions are cut to it, so that no
        squared error exceeds the square of the distance from one of these to the far bound.
    timings : seconds spent in each stage.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.05, confidence="posterior").fit(sim.observations)
    >>> result = completer.result_
    >>> result.values_at([0, 1], [3, 4]).shape
    (2,)
    >>> 0 < result.kept_share() <= 1
    True
    >>> sorted(result.timings)
    ['fit', 'promise', 'rehearsal', 'risk']
    """

    completion: Completion
    confidence: ExtendableConfidence
    risk: Risk
    selection: Selection
    certificate: Certificate
    guarantee: Guarantee
    scores: ConformalScores
    weights: TargetWeights
    bounds: tuple[float, float]
    predicted_range: tuple[float, float]
    timings: dict[str, float]

    def values_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Completed values at the pairs (rows[t], cols[t]), kept or not."""
        return np.clip(self.completion.at(rows, cols), *self.predicted_range)

    def confidence_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Confidences in [0, 1]."""
        return self.confidence.at(rows, cols)

    def risk_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected squared errors, in the data's squared units."""
        return self.risk.at(rows, cols)

    def keeps(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Whether each entry is in the kept set."""
        return self.selection.keeps(self.risk.at(rows, cols), self.confidence.at(rows, cols))

    def keeps_dense(self) -> NDArray[np.bool_]:
        """Whether each of all m x n entries is kept; only for matrices small enough to hold."""
        rows, cols = np.indices(self.completion.shape).reshape(2, -1)
        return self.keeps(rows, cols).reshape(self.completion.shape)

    def interval_at(
        self, rows: ArrayLike, cols: ArrayLike, level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends of intervals that hold a new value with probability ``level``, within the bounds."""
        centre, half = (
            self.values_at(rows, cols),
            self.scores.half_widths(self.risk.at(rows, cols), self.weights.at(rows, cols), level),
        )
        return np.clip(centre - half, *self.bounds), np.clip(centre + half, *self.bounds)

    def kept_share(self, n_sampled: int = 200_000, random_state: int = 0) -> float:
        """Share of all m x n entries that are kept: exact where there are at most ``n_sampled``, else sampled."""
        return float(self.keeps(*some_cells(self.completion.shape, n_sampled, random_state)).mean())

    def fold_in(self, observations: Observations) -> Self:
        """The same for other rows, seen at ``observations``; the promise does not extend to them."""
        return replace(
            self,
            completion=self.completion.fold_in(observations),
            confidence=self.confidence.fold_in(observations),
            risk=self.risk.fold_in(observations),
        )

    def summary(self, observations: Observations) -> dict[str, object]:
        """What was found, as plain numbers and sentences ready for JSON."""
        m, n = observations.shape
        return {
            "rows": m,
            "columns": n,
            "columns_read": list(observations.names),
            "observed_cells": len(observations),
            "draws": observations.n_draws,
            "cells_with_differing_repeats": observations.disagreements,
            "bounds": list(observations.bounds),
            "tolerance": self.selection.tolerance,
            "delta": self.guarantee.delta,
            "kept_share": self.kept_share(),
            "held_out_error": self.selection.held_out_error,
            "held_out_entries": self.selection.n_held_out,
            "selection": self.selection.sentence,
            "confidence_standing": self.certificate.standing,
            "certificate": self.certificate.sentence,
            "promised": self.guarantee.promised,
            "guarantee": self.guarantee.sentence,
            "holds_over": self.guarantee.holds_over,
            "not_promised": self.guarantee.not_promised,
            "seconds": self.timings,
        }

"""The one object that fitting returns and everything else reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.completion import Completion
from surefill.coverage.algorithms import Certificate, ExtendableConfidence
from surefill.coverage.confidence import some_cells
from surefill.data import Observations
from surefill.risk import Guarantee, RiskCurve, Selection


@dataclass(frozen=True, eq=False)
class PartialCompletion:
    """A completion, how far each entry of it can be trusted, the part that is kept, and what is known of all that.

    Attributes
    ----------
    completion : M-hat, a value for every entry.
    confidence : C in [0, 1], how well the observations support each entry.
    risk : expected squared error as a function of confidence.
    selection : the kept set at the tolerance asked for.
    certificate : how close the confidence is to the best possible.
    guarantee : what is promised of the kept set, and what is not.
    timings : seconds spent in each stage.
    """

    completion: Completion
    confidence: ExtendableConfidence
    risk: RiskCurve
    selection: Selection
    certificate: Certificate
    guarantee: Guarantee
    timings: dict[str, float]

    def values_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Completed values at the pairs (rows[t], cols[t]), kept or not."""
        return self.completion.at(rows, cols)

    def confidence_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Confidences in [0, 1]."""
        return self.confidence.at(rows, cols)

    def risk_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected squared errors, in the data's squared units."""
        return self.risk.at(self.confidence.at(rows, cols))

    def keeps(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Whether each entry is in the kept set."""
        return self.selection.keeps(self.confidence.at(rows, cols))

    def kept_share(self, n_sampled: int = 200_000, random_state: int = 0) -> float:
        """Share of all m x n entries that are kept: exact where there are at most ``n_sampled``, else sampled."""
        return float(self.keeps(*some_cells(self.completion.shape, n_sampled, random_state)).mean())

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

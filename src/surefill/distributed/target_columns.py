"""What weights of cells need of columns: with a row's own part it gives the weights of the row's cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array
from surefill.guarantee.propensity import (
    Aim,
    CalibratedPropensity,
    FactorPropensity,
    InteractionScaling,
    MarginalPropensity,
    MarginRaking,
    PropensityMisfit,
)
from surefill.guarantee.target_weights import LARGEST_RATE, HeldOutRate, TargetWeights
from surefill.registry import storable

Rows = dict[str, Array]


@storable
@dataclass(frozen=True, eq=False)
class TargetColumns:
    """The columns' part of :class:`TargetWeights`, and what no row alone knows.

    ``n_draws`` is how many unobserved cells all rows together draw where chances of rows are fitted to ``pattern``.
    """

    aim: Aim
    col_logit: Array
    pattern: Array | None = None
    scaling: InteractionScaling | None = None
    n_draws: float = 0.0
    rate: HeldOutRate | None = None
    knots: Array | None = None
    shifts: Array | None = None
    misfit: PropensityMisfit | None = None
    col_factor: Array | None = None

    def propensity(self, rows: Rows) -> MarginalPropensity | FactorPropensity:
        """The modelled chances of the cells of these rows."""
        margins = MarginalPropensity(rows["row_logit"], self.col_logit)
        if self.pattern is None or self.scaling is None:
            return margins
        return FactorPropensity(margins, rows["row_pattern"], self.pattern, self.scaling)

    @property
    def calibrated(self) -> CalibratedPropensity | None:
        """The correction of modelled chances by strata."""
        if self.knots is None or self.shifts is None or self.misfit is None:
            return None
        nothing = MarginalPropensity(np.zeros(0), self.col_logit)
        return CalibratedPropensity(nothing, self.knots, self.shifts, self.misfit)

    def weights(self, rows: Rows, shape: tuple[int, int]) -> TargetWeights:
        """The weights of the cells of these rows."""
        if self.aim == "observed":
            return TargetWeights(self.aim, shape=shape)
        model = self.propensity(rows)
        assert self.knots is not None
        assert self.shifts is not None
        assert self.misfit is not None
        raking = None
        if self.col_factor is not None:
            raking = MarginRaking(rows["row_factor"], self.col_factor, 1 - LARGEST_RATE)
        calibrated = CalibratedPropensity(model, self.knots, self.shifts, self.misfit, raking)
        return TargetWeights(self.aim, model, self.rate, calibrated, self.misfit, shape)

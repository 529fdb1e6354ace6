"""Weights that make calibration cells stand for the cells a promise is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array, IntArray, is_grid
from surefill.guarantee.propensity import Aim, CalibratedPropensity, Propensity, PropensityMisfit
from surefill.guarantee.propensity.base import MOST_LIKELY
from surefill.kernels.weight_grid import weights_on_grid
from surefill.registry import storable

LARGEST_RATE = 0.5
"""Of the rarest cells half are held out, so that half are left to learn from."""


@storable
@dataclass(frozen=True)
class HeldOutRate:
    """q(p) = min(c / sqrt(p), 1/2), the share of the observed cells of chance p that are held out.

    A cell never used in training stands for 1 / pi of them, pi about p q. For a total of n calibration cells the
    variance of a weighted mean, sum_x 1 / pi_x, is least with pi the same for all cells, q in proportion to 1 / p, and
    what is lost to training least with q the same. The root is between: rare cells, of which most filled ones are, are
    held out more often, and weights range over the root of what they would.

    Examples
    --------
    >>> import numpy as np
    >>> rate = HeldOutRate.of(np.array([0.01, 0.04, 0.16]), share=0.2)
    >>> rate.at(np.array([0.01, 0.04, 0.16])).round(3)
    array([0.343, 0.171, 0.086])
    """

    scale: float

    @classmethod
    def of(cls, chances: Array, share: float) -> Self:
        """The rate at which a ``share`` of cells of these chances is held out."""
        low, high = 0.0, LARGEST_RATE
        for _ in range(60):
            scale = (low + high) / 2
            low, high = (scale, high) if cls(scale).at(chances).mean() < share else (low, scale)
        return cls(high)

    def at(self, chance: Array) -> Array:
        """q at these chances of being observed."""
        return np.asarray(np.minimum(self.scale / np.sqrt(chance), LARGEST_RATE))


@storable
@dataclass(frozen=True, eq=False)
class TargetWeights:
    """w_x = 1 / pi_x, with pi_x = q p / (1 - (1 - q) p) the chance that a cell outside training is held out.

    p_x is the chance that x is observed and q_x that it is then held out. Calibration cells with these weights stand
    for all cells outside training. w = 1 where the promise is about cells drawn like the observed ones, and in rows and
    columns that came later, which no promise is about.

    Attributes
    ----------
    aim : the cells that a promise is about.
    propensity : p as modelled or given, which q follows; None for cells drawn like the observed ones.
    rate : q as a function of p.
    calibrated : p corrected by what was held out, or None to take it as it is.
    misfit : how far the modelled p is from what was observed.
    shape : of the table that p is about; rows and columns beyond it came later. None where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.guarantee.propensity import GivenPropensity
    >>> given = GivenPropensity(np.array([[0.64, 0.04]]))
    >>> TargetWeights("unobserved", given, HeldOutRate(0.1)).at([0, 0], [0, 1]).round(2)
    array([ 5.5, 49. ])
    """

    aim: Aim
    propensity: Propensity | None = None
    rate: HeldOutRate | None = None
    calibrated: CalibratedPropensity | None = None
    misfit: PropensityMisfit | None = None
    shape: tuple[int, int] | None = None

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Weights at the cells (rows[t], cols[t])."""
        i, j = np.asarray(rows), np.asarray(cols)
        if self.propensity is None or self.rate is None:
            return np.ones(np.broadcast_shapes(i.shape, j.shape))
        m, n = self.shape or (np.inf, np.inf)
        if (i < m).all() and (j < n).all():
            return self._on_grid(i, j) if is_grid(i, j) and self._has_log_odds else self._modelled(i, j)
        i, j = np.broadcast_arrays(i, j)
        inside = (i < m) & (j < n)
        weights = np.ones(i.shape)
        weights[inside] = self._modelled(i[inside], j[inside])
        return weights

    def _modelled(self, rows: IntArray, cols: IntArray) -> Array:
        assert self.propensity is not None
        assert self.rate is not None
        modelled = self.propensity.at(rows, cols)
        p = modelled if self.calibrated is None else self.calibrated.corrected(modelled, rows, cols)
        q = self.rate.at(modelled)
        return np.asarray((1 - (1 - q) * p) / (q * p))

    def _on_grid(self, i: IntArray, j: IntArray) -> Array:
        """The same on a grid, from log odds."""
        assert self.rate is not None
        (m, n), corrected = (i.size, j.size), self.calibrated
        shifted = corrected is not None and bool(corrected.shifts.any())
        steps = (corrected.knots, corrected.shifts) if shifted else (np.zeros(1), np.zeros(1))  # type: ignore[union-attr]
        raking = None if corrected is None else corrected.raking
        a, b = np.ones(m), np.ones(n)
        if raking is not None:
            a, b = raking.row_factor[i[:, 0]], raking.col_factor[j[0]]
        share = 0.0 if raking is None else raking.share
        weights: Array = self.propensity.logit_at(i, j)  # type: ignore[union-attr]
        weights_on_grid(weights, MOST_LIKELY, *steps, a, b, share, self.rate.scale, LARGEST_RATE)
        return weights

    @property
    def _has_log_odds(self) -> bool:
        """Whether the model gives log odds and the correction is a function of them."""
        rising = self.calibrated is None or bool((np.diff(self.calibrated.knots) > 0).all())
        return rising and hasattr(self.propensity, "logit_at")

    @property
    def leaves_out_calibration(self) -> bool:
        """Whether the promise is about cells never observed."""
        return self.aim == "unobserved"

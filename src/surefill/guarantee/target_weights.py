"""Weights that make calibration cells stand for the cells a promise is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array, IntArray
from surefill.guarantee.propensity import Aim, CalibratedPropensity, Propensity, PropensityMisfit
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
        inside = (i < m) & (j < n)
        if inside.all():
            return self._modelled(i, j)
        i, j = np.broadcast_arrays(i, j)
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

    @property
    def leaves_out_calibration(self) -> bool:
        """Whether the promise is about cells never observed."""
        return self.aim == "unobserved"

"""Modelled chances of being observed against what was observed: misfit by strata of like chances, and its correction.

With a share s of the observed cells in O1 and the others in O2, a cell outside O1 is in O2 with probability

    h = (1 - s) p / (1 - s p),   logit h = logit p + log(1 - s),

so that in any group of cells outside O1 the number of O2 cells is known in advance, if p is right. Only locations are
looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression

from surefill.arrays import Array, Indices, IntArray
from surefill.data import Observations
from surefill.data.compact import PIECE
from surefill.errors import InputError
from surefill.guarantee.propensity.base import MOST_LIKELY, Propensity
from surefill.guarantee.propensity.cell_sample import ALL_CELLS, CellSample, CellSampler
from surefill.guarantee.propensity.raking import MarginRaking
from surefill.registry import storable

STRATA = 16
"""Strata at most."""

LEAST_EXPECTED = 50
"""Cells of O2 that every stratum expects, so that its ratio is known to about 14%."""

MOST_DRAWS = 4_000_000
"""Most draws of cells outside O1: the sum over each of 16 strata is then known to a few thousandths."""

BINS = 400
"""Narrow bins of p out of which strata are made."""

LIKELIEST_SEEN = 1 - 1e-12
"""Given chances of 1 have no odds; these stand for them."""

NEWTON_STEPS = 20
"""For the shifts of the log odds; the problem is strictly concave, and 10 steps settle it to 1e-9."""


@storable
@dataclass(frozen=True, eq=False)
class PropensityMisfit:
    """Cells expected and found in O2 per stratum of modelled chances, from rare cells to popular ones.

    ``chance`` is the mean modelled p of the cells expected, ``error`` the standard error of found / expected by chance
    alone, ``corrected`` what is expected after the correction, ``spread`` the estimated standard deviation of
    log(true / modelled number) over strata, 0 where chance explains all differences.

    Examples
    --------
    >>> import numpy as np
    >>> expected, found = np.array([100.0, 400.0]), np.array([130.0, 390.0])
    >>> chance, error, corrected = np.array([0.01, 0.2]), np.array([0.1, 0.04]), np.array([120.0, 395.0])
    >>> misfit = PropensityMisfit(chance, expected, found, error, corrected, spread=0.2)
    >>> misfit.largest_ratio, misfit.largest_ratio_error
    (1.3, 0.1)
    >>> print(misfit.sentence)
    The modelled chances of being observed were off by up to 30% (give or take 10%) in groups of cells; that was \
corrected, and errors of up to 25% in a group cannot be excluded.
    """

    chance: Array
    expected: Array
    found: Array
    error: Array
    corrected: Array
    spread: float

    @property
    def ratio(self) -> Array:
        """Found over expected, before the correction."""
        return self.found / self.expected

    @property
    def worst(self) -> int:
        """The stratum whose ratio is farthest from 1."""
        return int(np.argmax(np.abs(self.ratio - 1)))

    @property
    def largest_ratio(self) -> float:
        """Found over expected where that is farthest from 1."""
        return float(self.ratio[self.worst])

    @property
    def largest_ratio_error(self) -> float:
        """Its standard error."""
        return float(self.error[self.worst])

    @property
    def remaining(self) -> float:
        """Relative error of a stratum's chances that may remain: the largest |found / corrected - 1| + 2 errors."""
        return float((np.abs(self.found / self.corrected - 1) + 2 * self.error * self.expected / self.corrected).max())

    def beyond(self, factor: float) -> bool:
        """Whether some stratum's chances are off by more than this factor, and not by chance alone."""
        return self.spread > 0 and not 1 / factor <= self.largest_ratio <= factor

    @property
    def sentence_if_given(self) -> str:
        """Misfit of chances that were given, which are not corrected, in words."""
        off, error = abs(self.largest_ratio - 1), self.largest_ratio_error
        if self.spread == 0:
            return (
                f"The cells held out agree with them: in groups of cells they differ by up to {off:.0%}, which chance "
                "explains."
            )
        return (
            f"The cells held out do not agree with them: in groups of cells they are off by up to {off:.0%} (give or "
            f"take {error:.0%})."
        )

    @property
    def sentence(self) -> str:
        """Misfit and correction in words."""
        off, error = abs(self.largest_ratio - 1), self.largest_ratio_error
        if self.spread == 0:
            return (
                "The modelled chances of being observed agree with the cells held out: in groups of cells they differ "
                f"by up to {off:.0%}, which chance explains; up to {self.remaining:.0%} cannot be excluded."
            )
        return (
            f"The modelled chances of being observed were off by up to {off:.0%} (give or take {error:.0%}) in groups "
            f"of cells; that was corrected, and errors of up to {self.remaining:.0%} in a group cannot be excluded."
        )


@storable
@dataclass(frozen=True, eq=False)
class CalibratedPropensity:
    """logit p' = logit p + f(logit p), f linear between ``knots`` and constant beyond, p' increasing with p.

    Then raked to the margins (:class:`MarginRaking`), where there is a ``raking``.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.guarantee.propensity import GivenPropensity
    >>> model, none = GivenPropensity(np.array([[0.5, 0.2]])), np.ones(1)
    >>> misfit = PropensityMisfit(none, none, none, none, none, 0.0)
    >>> CalibratedPropensity(model, np.zeros(1), np.log([0.25]), misfit).at([0], [0])
    array([0.2])
    """

    propensity: Propensity
    knots: Array
    shifts: Array
    misfit: PropensityMisfit
    raking: MarginRaking | None = None

    def __post_init__(self) -> None:
        if self.knots.shape != self.shifts.shape or self.knots.ndim != 1 or not len(self.knots):
            raise InputError("chances that were corrected need one shift for each knot.")

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Probabilities at the cells (rows[t], cols[t])."""
        return self.corrected(self.propensity.at(rows, cols), rows, cols)

    def corrected(self, modelled: Array, rows: ArrayLike, cols: ArrayLike) -> Array:
        """p' at the cells (rows[t], cols[t]), of which the model says p."""
        by_stratum = modelled
        if self.shifts.any():
            odds = _logits(modelled)
            by_stratum = np.minimum(expit(odds + np.interp(odds, self.knots, self.shifts)), MOST_LIKELY)
        return np.asarray(by_stratum if self.raking is None else self.raking.corrected(by_stratum, rows, cols))


def calibrate(
    propensity: Propensity, fitted_on: Observations, held_out: Observations, share: float, random_state: int = 0
) -> CalibratedPropensity:
    """Compare modelled chances with the locations held out, and correct them by strata of like chances.

    ``fitted_on`` is O1, a random ``share`` of all observed cells, ``held_out`` O2, the others.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.guarantee.propensity import PropensityFunction
    >>> rng = np.random.default_rng(0)
    >>> rows, cols = np.divmod(np.flatnonzero(rng.random(20_000) < 0.3), 100)
    >>> seen, first = Observations(rows, cols, np.zeros(len(rows)), (200, 100)), rng.random(len(rows)) < 0.5
    >>> wrong = PropensityFunction(lambda i, j: np.full(len(i), 0.2))
    >>> right = calibrate(wrong, seen.select(first), seen.select(~first), share=0.5)
    >>> right.at([0], [0]).round(1), round(right.misfit.largest_ratio, 1)
    (array([0.3]), 1.5)
    """
    if not 0 < share < 1:
        raise InputError(f"the share of observed cells that chances were fitted on is between 0 and 1; got {share}.")
    sample = _cells_outside(fitted_on, len(held_out), random_state)

    def found(edges: Array) -> Array:
        pieces = (slice(first, first + PIECE) for first in range(0, len(held_out), PIECE))
        return sum(
            (count_in_bins(edges, propensity.at(held_out.rows[t], held_out.cols[t])) for t in pieces),
            start=np.zeros(len(edges) + 1),
        )

    knots, shifts, misfit = calibrate_sample(propensity.at(sample.rows, sample.cols), sample.rates, found, share)
    return CalibratedPropensity(propensity, knots, shifts, misfit)


def calibrate_sample(
    chances: Array, rates: Array, found: Callable[[Array], Array], share: float
) -> tuple[Array, Array, PropensityMisfit]:
    """Knots, shifts and misfit from modelled ``chances`` of a sample of the cells outside O1, drawn at these ``rates``.

    ``found`` gives how many cells of O2 are in each of the bins between given log odds (:func:`count_in_bins`).
    """
    bins = _Bins.of(_logits(chances), rates, found, share)
    stratum = bins.strata()
    expected, seen = _sums(stratum, bins.expected), _sums(stratum, bins.found)
    error = np.sqrt(_sums(stratum, bins.variance)) / expected
    knots = _sums(stratum, bins.expected * bins.logits) / expected
    spread = _spread(seen / expected, error)
    shifts = _increasing(knots, bins.shifts(knots, spread), expected)
    corrected = _sums(stratum, bins.shifted(np.interp(bins.logits, knots, shifts)))
    chance = _sums(stratum, bins.expected * expit(bins.logits)) / expected
    return knots, shifts, PropensityMisfit(chance, expected, seen, error, corrected, spread)


def count_in_bins(edges: Array, chances: Array) -> Array:
    """How many of these chances have log odds in each of the bins that ``edges`` part."""
    return _sums(np.searchsorted(edges, _logits(chances), "right"), None, len(edges) + 1)


class _Bins(NamedTuple):
    """Cells outside O1 in narrow bins of p: their number, and how many of O2 are expected and found among them.

    ``logits`` are those at which the number of cells gives the number expected, ``variance`` that of the number found
    less the number expected, with the part that comes from summing over a sample of cells.
    """

    cells: Array
    expected: Array
    found: Array
    variance: Array
    logits: Array
    offset: float

    @classmethod
    def of(cls, logits: Array, rates: Array, found_in: Callable[[Array], Array], share: float) -> _Bins:
        offset = float(np.log1p(-share))
        count, chance = 1 / rates, expit(logits + offset)
        edges = _edges(logits, count / count.sum() + count * chance / (count @ chance))
        bin_of, size = np.searchsorted(edges, logits, "right"), len(edges) + 1
        cells, expected = _sums(bin_of, count, size), _sums(bin_of, count * chance, size)
        found = found_in(edges)
        by_coin, by_sample = count * chance * (1 - chance), np.where(rates == 1, 0.0, (count * chance) ** 2)
        variance = _sums(bin_of, by_coin + by_sample, size)
        centres = logit(np.clip(expected / np.maximum(cells, 1e-300), 1e-300, LIKELIEST_SEEN)) - offset
        kept = expected > 0
        return cls(cells[kept], expected[kept], found[kept], variance[kept], centres[kept], offset)

    def strata(self) -> Indices:
        """The stratum of each bin: up to 16 of equal shares of cells and of expected cells, none too small."""
        n_strata = max(1, min(STRATA, int(self.expected.sum() / LEAST_EXPECTED)))
        mass = np.cumsum(self.expected / self.expected.sum() + self.cells / self.cells.sum()) / 2
        wanted = np.minimum((mass * n_strata - 1e-9).astype(int), n_strata - 1)
        stratum, current, filled = np.zeros(len(wanted), dtype=np.int64), 0, 0.0
        for b in range(len(wanted)):
            if b and wanted[b] > wanted[b - 1] and filled >= LEAST_EXPECTED:
                current, filled = current + 1, 0.0
            stratum[b] = current
            filled += self.expected[b]
        if current and filled < LEAST_EXPECTED:
            stratum[stratum == current] = current - 1
        return stratum

    def shifted(self, shift: Array) -> Array:
        """Cells of O2 expected in each bin when log odds change by ``shift``."""
        return np.asarray(self.cells * expit(self.logits + shift + self.offset))

    def shifts(self, knots: Array, spread: float) -> Array:
        """f at the knots, the mode of its posterior: log likelihood of the found - |f|^2 / (2 spread^2)."""
        shifts = np.zeros(len(knots))
        if spread == 0:
            return shifts
        hats = np.stack([np.interp(self.logits, knots, hat) for hat in np.eye(len(knots))], axis=1)
        for _ in range(NEWTON_STEPS):
            expected = self.shifted(hats @ shifts)
            curvature = expected * (1 - expected / self.cells)
            hessian = (hats.T * curvature) @ hats + np.eye(len(knots)) / spread**2
            step = np.linalg.solve(hessian, hats.T @ (self.found - expected) - shifts / spread**2)
            shifts += np.clip(step, -1.0, 1.0)
        return shifts


def _cells_outside(fitted_on: Observations, n_held_out: int, random_state: int) -> CellSample:
    """All cells outside O1, or draws of them: half by how often rows and columns are seen, half from anywhere."""
    m, n = fitted_on.shape
    if m * n <= ALL_CELLS:
        return CellSample.whole((m, n), fitted_on)
    row_weight, col_weight = (_sums(lines, None, k) + 0.5 for lines, k in ((fitted_on.rows, m), (fitted_on.cols, n)))
    sampler = CellSampler.of(row_weight, col_weight, uniform=0.5)
    n_draws = max(ALL_CELLS, min(4 * n_held_out, MOST_DRAWS))
    return sampler.draw(n_draws, np.random.default_rng(random_state)).outside(fitted_on)


def _sums(group: IntArray, values: Array | None, size: int = 0) -> Array:
    """Sums of the values of each group, or how many there are."""
    return np.bincount(group, values, size).astype(np.float64, copy=False)


def _logits(chances: Array) -> Array:
    return np.asarray(logit(np.minimum(chances, LIKELIEST_SEEN)))


def _edges(values: Array, mass: Array) -> Array:
    """Values that cut the mass into bins of about equal mass."""
    order = np.argsort(values)
    ends = np.searchsorted(np.cumsum(mass[order]), mass.sum() * np.arange(1, BINS) / BINS)
    return np.unique(values[order][np.minimum(ends, len(values) - 1)])


def _spread(ratio: Array, error: Array) -> float:
    """Standard deviation of the strata's true ratios around 1, by moments: E (ratio - 1)^2 = error^2 + spread^2.

    0 unless sum (ratio - 1)^2 / error^2 is beyond its 95% point under chance alone, about K + 1.645 sqrt(2 K).
    """
    off, size = ratio - 1, len(ratio)
    explained = ((off / error) ** 2).sum() <= size + 1.645 * np.sqrt(2 * size)
    return 0.0 if explained else float(np.sqrt(max(np.mean(off**2 - error**2), np.mean(error**2))))


def _increasing(knots: Array, shifts: Array, weight: Array) -> Array:
    """The nearest shifts with which log odds do not fall where the modelled ones rise."""
    return np.asarray(isotonic_regression(knots + shifts, sample_weight=weight)) - knots

"""SoftImpute: least squares with a trace-norm penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from surefill.completion.effects import Centre
from surefill.completion.spectral.alternating_least_squares import SoftImputeALS
from surefill.completion.spectral.proximal_gradient import FittedSVD, ProximalGradient
from surefill.completion.spectral.shrinkage import Shrinkage, SoftThreshold
from surefill.completion.spectral.spectral_algorithm import (
    SMALLEST,
    SpectralAlgorithm,
    check_positive,
    check_whole,
    top_singular_value,
)
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.errors import invalid_parameter
from surefill.registry import storable

PATH_RATIO, PATH_LENGTH = 0.75, 32
"""Penalties |E|_2 0.75^k, k = 1..32, down to a ten-thousandth of the one from which on nothing is fitted."""


@storable
@dataclass(frozen=True)
class SoftImpute(SpectralAlgorithm):
    """min  (1/2) sum_S c_x (y_x - common_x - M_x)^2 + penalty |M|_tr

    over all matrices M (Mazumder, Hastie, Tibshirani, 2010), y in the user's units, c the counts. The problem is convex
    and the result carries a certified duality gap; nothing of size m x n is formed.

    Parameters
    ----------
    penalty : a number above 0, in the units of the values, or "auto": the one of 0.75, 0.56, ... times |E|_2 at M = 0
        with the least error on a tenth of the cells held out. With ``centre="none"`` it is what fancyimpute calls
        ``shrinkage_value``. On values mapped to [-1, 1] by a half-width s the same solution has penalty / s.
    rank : largest rank; None for no limit. A limit that binds leaves a gap, which the result shows.
    method : "svd", accelerated steps on singular values, or "als", alternating ridge regressions (Hastie, Mazumder,
        Lee, Zadeh, 2015). They solve the same problem; the first is faster at small penalties.
    centre : what is taken off first: "effects" (a mean and shrunken row and column effects), "mean" or "none".
    max_steps, tol : stop after so many steps, or at a relative duality gap of ``tol``.
    random_state : seed of the starting vectors and of the cells held out; same seed, same result.

    Examples
    --------
    >>> from surefill.datasets import make_low_rank
    >>> sim = make_low_rank((40, 30), rank=2, n_draws=900, random_state=0)
    >>> completion = SoftImpute(penalty=0.1).fit(sim.observations)
    >>> bool(completion.gap.relative < 1e-3)
    True
    """

    penalty: float | Literal["auto"] = "auto"
    rank: int | None = None
    method: Literal["svd", "als"] = "svd"
    centre: Centre = "effects"
    max_steps: int = 500
    tol: float = 1e-3
    random_state: int = 0

    @property
    def _parameter(self) -> str:
        return "penalty"

    def _check_own(self) -> None:
        if self.penalty != "auto":
            check_positive("SoftImpute", "penalty", self.penalty)
        if self.rank is not None:
            check_whole("SoftImpute", "rank", self.rank)
        if self.method not in ("svd", "als"):
            raise invalid_parameter("SoftImpute", "method", "'svd' or 'als'", self.method)

    def _given(self) -> float | None:
        return None if self.penalty == "auto" else float(self.penalty)

    def _path(self, loss: SquaredLoss) -> tuple[float, ...]:
        largest = max(top_singular_value(loss), SMALLEST)
        return tuple(largest * PATH_RATIO**k for k in range(1, PATH_LENGTH + 1))

    def _default(self, loss: SquaredLoss) -> float:
        return max(top_singular_value(loss), SMALLEST) / 4

    def _shrinkage(self, parameter: float) -> SoftThreshold:
        return SoftThreshold(parameter)

    def _solver(self, loss: SquaredLoss, shrinkage: Shrinkage, tol: float, start: FittedSVD | None) -> Any:
        limit = min(loss.shape) if self.rank is None else min(self.rank, *loss.shape)
        solver = ProximalGradient if self.method == "svd" else SoftImputeALS
        return solver(loss, shrinkage, tol, limit, self.random_state, start)  # type: ignore[arg-type]

    def _multiplier(self, loss: SquaredLoss, shrinkage: Shrinkage, found: FittedSVD) -> float:
        assert isinstance(shrinkage, SoftThreshold)
        return shrinkage.penalty

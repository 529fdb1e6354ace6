"""SoftImpute: least squares with a trace-norm penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from surefill.completion.effects import Centre
from surefill.completion.spectral.alternating_least_squares import SoftAlternation
from surefill.completion.spectral.proximal_gradient import SpectralDescent, Spectrum
from surefill.completion.spectral.shrinkage import Shrinkage, SoftThreshold
from surefill.completion.spectral.spectral_algorithm import (
    SpectralAlgorithm,
    check_positive,
    check_whole,
    top_singular_value,
)
from surefill.completion.spectral.squared_loss import Sample
from surefill.errors import invalid_parameter
from surefill.registry import storable

PATH_RATIO = 0.75
PATH_LENGTH = 32


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
    parameter: ClassVar[str] = "penalty"

    def _check_own(self) -> None:
        if self.penalty != "auto":
            check_positive("SoftImpute", "penalty", self.penalty)
        if self.rank is not None:
            check_whole("SoftImpute", "rank", self.rank)
        if self.method not in ("svd", "als"):
            raise invalid_parameter("SoftImpute", "method", "'svd' or 'als'", self.method)

    def _given(self) -> float | None:
        return None if self.penalty == "auto" else float(self.penalty)

    def _path(self, sample: Sample) -> tuple[float, ...]:
        largest = max(top_singular_value(sample), 1e-300)
        return tuple(largest * PATH_RATIO**k for k in range(1, PATH_LENGTH + 1))

    def _default(self, sample: Sample) -> float:
        return max(top_singular_value(sample), 1e-300) / 4

    def _shrinkage(self, parameter: float) -> SoftThreshold:
        return SoftThreshold(parameter)

    def _solver(self, sample: Sample, shrinkage: Shrinkage, tol: float, start: Spectrum | None) -> Any:
        limit = min(sample.shape) if self.rank is None else min(self.rank, *sample.shape)
        solver = SpectralDescent if self.method == "svd" else SoftAlternation
        return solver(sample, shrinkage, tol, limit, self.random_state, start)  # type: ignore[arg-type]

    def _multiplier(self, sample: Sample, shrinkage: Shrinkage, found: Spectrum) -> float:
        assert isinstance(shrinkage, SoftThreshold)
        return shrinkage.penalty

"""IterativeSVD: the best fit of a given rank, by hard impute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from surefill.completion.effects import Centre
from surefill.completion.spectral.shrinkage import RankLimit
from surefill.completion.spectral.spectral_algorithm import SpectralAlgorithm, check_whole
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.registry import storable

RANK_PATH = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Ranks to choose from, two per octave."""


@storable
@dataclass(frozen=True)
class IterativeSVD(SpectralAlgorithm):
    """min  (1/2) sum_S c_x (y_x - common_x - M_x)^2  over rank(M) <= rank  (the paper's M^rk_k without its box)

    by hard impute: fill the holes with M, take the ``rank`` largest singular triplets as the next M. Not convex: the
    objective never rises, but no bound on the optimum is known. Nothing of size m x n is formed.

    Parameters
    ----------
    rank : a whole number, or "auto": the one of 1, 2, 3, 4, 6, 8, 12, ... with the least error on a tenth of the cells
        held out.
    centre : what is taken off first: "effects" (a mean and shrunken row and column effects), "mean" or "none".
    max_steps, tol : stop after so many steps, or when ten steps lower the objective by less than this share.
    random_state : seed of the starting vectors and of the cells held out; same seed, same result.

    Examples
    --------
    >>> from surefill.datasets import make_low_rank
    >>> sim = make_low_rank((40, 30), rank=2, n_draws=900, random_state=0)
    >>> IterativeSVD(rank=2).fit(sim.observations).rank
    2
    """

    rank: int | Literal["auto"] = "auto"
    centre: Centre = "effects"
    max_steps: int = 300
    tol: float = 1e-3
    random_state: int = 0

    @property
    def _parameter(self) -> str:
        return "rank"

    def _check_own(self) -> None:
        if self.rank != "auto":
            check_whole("IterativeSVD", "rank", self.rank)

    def _given(self) -> float | None:
        return None if self.rank == "auto" else self.rank

    def _path(self, loss: SquaredLoss) -> tuple[float, ...]:
        return tuple(rank for rank in RANK_PATH if rank <= min(loss.shape)) or (1,)

    def _default(self, loss: SquaredLoss) -> float:
        return 1

    def _shrinkage(self, parameter: float) -> RankLimit:
        return RankLimit(int(parameter))

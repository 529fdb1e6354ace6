"""TraceNormCompletion: empirical risk minimisation over the paper's trace-norm class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from surefill.arrays import Array
from surefill.completion.effects import Centre, Effects
from surefill.completion.spectral.proximal_gradient import FittedSVD
from surefill.completion.spectral.shrinkage import Shrinkage, SoftThreshold, TraceBall
from surefill.completion.spectral.spectral_algorithm import SMALLEST, SpectralAlgorithm, check_positive
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.data import Observations
from surefill.errors import invalid_parameter
from surefill.loop import ProgressCallback, Status
from surefill.registry import storable
from surefill.spaces.conic_model import attempts, check_size, load_cvxpy, plan_for
from surefill.spaces.spectral_norm import SparseOperator, lanczos

PATH_LENGTH = 16
"""Radii from an eighth of the default to 22 times it, two per octave."""

MULTIPLIER_LANCZOS_STEPS = 100
"""Steps of Lanczos for the multiplier that folding in uses."""


@storable
@dataclass(frozen=True)
class TraceNormCompletion(SpectralAlgorithm):
    """min  sum_S w_x (u_x - M_x)^2  over |M|_tr <= tau  (the paper's M^tr_tau), w = counts / N, u in [-1, 1]

    or, where ``penalty`` is given instead, min (1/2) sum_S c_x (u_x - M_x)^2 + penalty |M|_tr. Convex, with a certified
    gap. The class's box |M_x| <= 1 is not imposed while solving; predictions are clipped to it. That loses nothing of
    the paper's bound: clipping brings M closer to every u in the box, so the empirical risk is at most that of the best
    matrix of the class, and it is a contraction, so the sample complexity of the class is unchanged.

    Parameters
    ----------
    tau : radius in the units of [-1, 1], or "auto", the one on a path of growing radii with the least error on a tenth
        of the cells held out. A matrix of rank k with entries in [-1, 1] has norm at most k sqrt(m n).
    penalty : None, or a number above 0, and tau is then not used.
    method : "factored", at any size, or "conic" (extra ``conic``), the reference for up to 150 rows and columns.
    centre : "none", the paper's class; "mean" or "effects" fit M to what they leave over.
    max_steps, tol : stop after so many steps, or at a relative duality gap of ``tol``.
    random_state : seed of the starting vectors and of the cells held out; same seed, same result.

    Examples
    --------
    >>> from surefill.datasets import make_low_rank
    >>> sim = make_low_rank((40, 30), rank=2, n_draws=900, random_state=0)
    >>> completion = TraceNormCompletion(tau=10).fit(sim.observations)
    >>> bool(completion.gap.relative < 1e-3)
    True
    """

    tau: float | Literal["auto"] = "auto"
    penalty: float | None = None
    method: Literal["factored", "conic"] = "factored"
    centre: Centre = "none"
    max_steps: int = 1000
    tol: float = 5e-4
    random_state: int = 0

    @property
    def _parameter(self) -> str:
        return "tau" if self.penalty is None else "penalty"

    def _check_own(self) -> None:
        if self.tau != "auto":
            check_positive("TraceNormCompletion", "tau", self.tau)
        if self.penalty is not None:
            check_positive("TraceNormCompletion", "penalty", self.penalty, "None")
        if self.method not in ("factored", "conic"):
            raise invalid_parameter("TraceNormCompletion", "method", "'factored' or 'conic'", self.method)

    def _loss(self, observations: Observations) -> SquaredLoss:
        unit = observations.unit
        return SquaredLoss(
            observations,
            Effects.of(observations, self.centre, "TraceNormCompletion", zero=unit.centre),
            scale=unit.half_width,
        )

    def _given(self) -> float | None:
        if self.penalty is not None:
            return self.penalty
        return None if self.tau == "auto" else float(self.tau)

    def _path(self, loss: SquaredLoss) -> tuple[float, ...]:
        smallest = self._default(loss) / 8
        return tuple(smallest * 2 ** (k / 2) for k in range(PATH_LENGTH))

    def _default(self, loss: SquaredLoss) -> float:
        """The norm of a matrix of rank 1 with entries as large as those seen."""
        mean_square = 2 * loss.value_at_zero / loss.observations.n_draws
        return max(float(np.sqrt(mean_square * loss.shape[0] * loss.shape[1])), SMALLEST)

    def _shrinkage(self, parameter: float) -> SoftThreshold | TraceBall:
        return TraceBall(parameter) if self.penalty is None else SoftThreshold(parameter)

    def _factor(self, loss: SquaredLoss) -> float:
        return 2.0 / loss.observations.n_draws if self.penalty is None else 1.0

    def _solved(
        self,
        loss: SquaredLoss,
        shrinkage: Shrinkage,
        tol: float,
        max_steps: int,
        start: FittedSVD | None,
        progress: ProgressCallback | None,
    ) -> tuple[FittedSVD, Status]:
        if self.method == "factored":
            return super()._solved(loss, shrinkage, tol, max_steps, start, progress)
        assert isinstance(shrinkage, SoftThreshold | TraceBall)
        left, values, right = np.linalg.svd(solve_trace_conic(loss, shrinkage), full_matrices=False)
        if isinstance(shrinkage, TraceBall):
            values = shrinkage.prox(values, 1.0)
        residual = loss.residual(left * values, np.ascontiguousarray(right.T))
        objective = loss.value(residual) + shrinkage.cost(values)
        return FittedSVD(left, values, right.T, residual, objective), Status.CONVERGED

    def _multiplier(self, loss: SquaredLoss, shrinkage: Shrinkage, found: FittedSVD) -> float:
        """The penalty itself; for the ball |E|_2, which is the multiplier of its constraint at the optimum."""
        if isinstance(shrinkage, SoftThreshold):
            return shrinkage.penalty
        return float(lanczos(SparseOperator(loss.matrix(found.residual)), MULTIPLIER_LANCZOS_STEPS).values[0])


def solve_trace_conic(loss: SquaredLoss, shrinkage: SoftThreshold | TraceBall, *, box: bool = False) -> Array:
    """min f(M) + h(M) over the Gram matrix G = [[W1, M], [M', W2]] PSD, |M|_tr = min trace(G) / 2.

    ``box`` adds |M_x| <= 1, the paper's class to the letter. Up to 150 rows and columns.
    """
    check_size(loss.shape)
    cp = load_cvxpy()
    m, n = loss.shape
    rows = loss.rows
    i, j = np.repeat(np.arange(m), rows.groups.sizes), rows.other
    gram = cp.Variable((m + n, m + n), PSD=True)
    squares = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(rows.weight), rows.target - gram[i, m + j]))
    norm = cp.trace(gram) / 2
    limits = [cp.abs(gram[:m, m:]) <= 1] if box else []
    if isinstance(shrinkage, TraceBall):
        problem = cp.Problem(cp.Minimize(squares), [norm <= shrinkage.tau, *limits])
    else:
        problem = cp.Problem(cp.Minimize(squares + shrinkage.penalty * norm), limits)
    next(attempts(problem, plan_for(loss.shape)))
    return np.asarray(gram.value[:m, m:])

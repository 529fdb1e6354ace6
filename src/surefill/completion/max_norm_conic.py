"""The empirical risk over the max-norm ball as one semidefinite program, for small matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from surefill.completion.max_norm_descent import Bracket
from surefill.completion.max_norm_risk import Risk
from surefill.spaces.conic import attempts, check_size, first_tight, load_cvxpy, plan_for
from surefill.spaces.grams import Matrix, bound_dual_max_norm, factor_gram


def solve_conic(risk: Risk, tolerance: float) -> Bracket:
    """min over G = [[W1, M], [M', W2]] PSD with diag(G) <= K and |M_x| <= 1, repaired and certified afresh."""
    check_size(risk.shape)
    return first_tight(_answers(risk), lambda found: found.objective - found.lower, tolerance * 1e-2 * risk.at_zero)


def _answers(risk: Risk) -> Iterator[Bracket]:
    cp = load_cvxpy()
    m, n = risk.shape
    gram = cp.Variable((m + n, m + n), PSD=True)
    norm = cp.Variable() if risk.K is None else risk.K
    matrix, diagonal = gram[:m, m:], cp.diag(gram) <= norm
    box = [matrix <= 1, -matrix <= 1] if risk.boxed else []
    misses = cp.multiply(np.sqrt(risk.weight), gram[risk.rows, m + risk.cols] - risk.target)
    penalty = 0.0 if risk.penalty is None else risk.penalty * norm
    problem = cp.Problem(cp.Minimize(cp.sum_squares(misses) + penalty), [diagonal, *box])
    for _ in attempts(problem, plan_for(risk.shape)):
        A = box[0].dual_value - box[1].dual_value if box else np.zeros((m, n))
        yield _certified(risk, np.array(gram.value), A, 2 * np.maximum(0.0, diagonal.dual_value))


def _certified(risk: Risk, G: Matrix, A: Matrix, y: Matrix) -> Bracket:
    """A member made of the Gram matrix, and the bound that the multipliers A of the box and y of the diagonal give."""
    m = risk.shape[0]
    U, V = factor_gram(G[:m, :m], G[:m, m:], G[m:, m:])
    M = U @ V.T
    entries = M[risk.rows, risk.cols]
    B = -A
    B[risk.rows, risk.cols] += 2 * risk.weight * (risk.target - entries)
    lower = risk.lower_bound(risk.target - entries, bound_dual_max_norm(B, y), float(np.abs(A).sum()))
    norm = max(float(np.sum(side**2, axis=1).max()) for side in (U, V))
    shrink = max(1.0, norm / risk.K if risk.K is not None else 1.0, float(np.abs(M).max()) if risk.boxed else 1.0)
    objective = risk.objective(entries / shrink, norm / shrink)
    left, right = U / np.sqrt(shrink), V / np.sqrt(shrink)
    return Bracket(np.empty((0, 0)), norm, objective, min(lower, objective), left, right, norm / shrink)

"""The linear relaxation for pairs: false off the centre, true with zero observations, and what that does to ODD."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest

from surefill.online import OnlineDualDescent
from surefill.spaces import max_norm

CONIC = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-7, "tol_gap_rel": 1e-7, "tol_feas": 1e-7}
"""Accuracy asked of the conic solver: a hundredth of what the comparisons below forgive."""

SEEN = np.array([[True, True], [False, False]])
VALUES = np.array([[1.0, -1.0], [0.0, 0.0]])
"""2 x 2, the first row seen as (1, -1), the second never."""


def largest(C: np.ndarray, seen: np.ndarray, values: np.ndarray, delta: float, K: float = 1.0) -> float:
    """sup <C, M> over max-norm(M) <= K, |M_x| <= 1, mean over the seen cells of (M - values)^2 <= delta."""
    m, n = C.shape
    gram = cp.Variable((m + n, m + n), PSD=True)
    M = gram[:m, m:]
    misfit = cp.sum(cp.multiply(seen / seen.sum(), cp.square(M - values)))
    within = [cp.diag(gram) <= K, cp.abs(M) <= 1, misfit <= delta]
    return float(cp.Problem(cp.Maximize(cp.sum(cp.multiply(C, M))), within).solve(**CONIC))


def largest_gap(C: np.ndarray, seen: np.ndarray, values: np.ndarray, delta: float, K: float = 1.0) -> float:
    """sup over pairs of the version space of G(C, M^1, M^2) = <C, M^1 - M^2>."""
    return largest(C, seen, values, delta, K) + largest(-C, seen, values, delta, K)


def test_the_corollary_on_pairs_is_false_off_the_centre() -> None:
    """Two completions of max-norm 1 that fit exactly differ by 4 where pi K sup G is less than 1."""
    C = np.where(SEEN, 0.0, 0.5)
    pair = [np.array([[1.0, -1.0], [a, -a]]) for a in (1.0, -1.0)]
    assert max(max_norm(M).value for M in pair) <= 1 + 1e-6
    squared = float(np.sum(C * (pair[0] - pair[1]) ** 2))
    assert squared == 4.0
    assert math.pi * largest_gap(C, SEEN, VALUES, 1e-4) < 0.9


def test_both_signs_of_the_whole_difference_do_not_repair_it() -> None:
    """G(C, M^2, M^1) = -G(C, M^1, M^2), so that the supremum over both signs is the same number."""
    C = np.where(SEEN, 0.0, 0.5)
    assert largest_gap(C, SEEN, VALUES, 0.01) == pytest.approx(largest_gap(-C, SEEN, VALUES, 0.01), abs=1e-5)


def members(seen: np.ndarray, values: np.ndarray, delta: float, count: int) -> list[np.ndarray]:
    """Extreme points of the version space, in random directions."""
    rng, (m, n) = np.random.default_rng(0), seen.shape
    gram, A = cp.Variable((m + n, m + n), PSD=True), cp.Parameter((m, n))
    M = gram[:m, m:]
    misfit = cp.sum(cp.multiply(seen / seen.sum(), cp.square(M - values)))
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(A, M))), [cp.diag(gram) <= 1, cp.abs(M) <= 1, misfit <= delta])
    found = []
    for _ in range(count):
        A.value = rng.normal(size=(m, n))
        problem.solve(**CONIC)
        found.append(M.value.copy())
    return found


def test_two_repairs_bound_every_pair_that_fits() -> None:
    """Centred pairs, and every sign of rows and columns, against extreme points of version spaces off the centre."""
    rng, delta, seen = np.random.default_rng(1), 0.01, np.zeros((3, 4), dtype=bool)
    seen[0] = seen[1, 0] = True
    signs = [np.array([1, *rest]) for n in (2, 3) for rest in itertools.product([1, -1], repeat=n)]
    fails = []
    for C in (np.where(np.arange(3)[:, None] == 2, 0.25, np.zeros((3, 4))), rng.dirichlet(np.ones(12)).reshape(3, 4)):
        truth = np.outer(rng.choice([-1.0, 1.0], 3), [1, -1, -1, 1])
        pairs = itertools.combinations(members(seen, truth, delta, 12), 2)
        squared = max(float(np.sum(C * (a - b) ** 2)) for a, b in pairs)
        flipped = [C * np.outer(s, t) for s in signs if len(s) == 3 for t in signs if len(t) == 4]
        signed = max(largest_gap(A, seen, truth, delta) for A in flipped)
        assert squared <= math.pi * signed + 1e-5
        assert signed <= largest_gap(C, seen, np.zeros((3, 4)), delta) + 1e-5
        fails.append(squared > math.pi * largest_gap(C, seen, truth, delta))
    assert any(fails)  # what the paper states fails on at least one of them


def test_a_row_never_seen_gets_confidence_with_values_and_none_with_zeros() -> None:
    """6 x 6 of rank one with both signs: the rows below the third are never drawn."""
    rng = np.random.default_rng(0)
    truth = np.outer(np.ones(6), np.where(np.arange(6) % 2, 1.0, -1.0))
    rows, cols = rng.integers(3, size=500), rng.integers(6, size=500)
    confidences = {}
    for mode in ("zero", "values"):
        options = {
            "confidence": "cube",
            "theta": 8.0,
            "eta_matrix": 1 / 17,
        }  # the zero mode's longest step with a bound
        game = OnlineDualDescent((6, 6), observations=mode, **options)
        confidences[mode] = game.learn_many(rows, cols, truth[rows, cols]).confidence().dense()
    assert confidences["values"][3:].mean() > 0.95
    assert confidences["zero"][3:].mean() < 0.5 * confidences["zero"][:3].mean()

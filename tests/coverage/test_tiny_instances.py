"""Factored solvers on tiny random instances and gaps: nothing breaks, and every answer is what its certificate says.

``--fuzz`` says how many instances there are; on matrices this small, searches end where numbers do.
"""

import numpy as np
import pytest

from surefill import Observations, max_norm, solve_coverage
from surefill.completion import MaxNormCompletion
from surefill.spaces import MaxNorm, VersionSpace
from surefill.spaces.separation_oracle import best_responses


def pytest_generate_tests(metafunc):
    metafunc.parametrize("seed", range(metafunc.config.getoption("--fuzz")))


def draw(seed):
    """Up to 6 x 6 cells, a few of them seen, some more than once, and numbers to solve with."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 7, 2))
    n = rng.integers(1, 2 * shape[0] * shape[1] + 1)
    values = rng.choice([rng.uniform(-1, 1, n), rng.choice([-1.0, 0.0, 1.0], n)])
    seen = Observations(rng.integers(shape[0], size=n), rng.integers(shape[1], size=n), values, shape, (-1, 1))
    return rng, seen, float(rng.choice([0.1, 0.6, 1.0, 1.5, 3.0]))


def check_member(space, found):
    """A member up to the rounding of its own precision."""
    M = found.matrix
    rounding = 100 * np.finfo(found.left.dtype).eps
    rows = max(np.sum(side.astype(float) ** 2, axis=1).max() for side in (found.left, found.right))
    assert rows <= space.matrix_class.K * (1 + rounding)
    assert np.abs(M).max() <= 1 + rounding
    assert space.mean_square(M) <= space.beta * (1 + rounding)


def test_certified_coverage_brackets_what_the_conic_program_finds(seed):
    rng, seen, K = draw(seed)
    gamma, gap = float(rng.uniform(0.05, 0.6)), float(10.0 ** -rng.integers(1, 6))
    found = solve_coverage(seen, K=K, gamma=gamma, method="factored", gap=gap)
    conic = solve_coverage(seen, K=K, gamma=gamma, method="conic")
    C = found.confidence.dense()
    assert 0 <= C.min() <= C.max() <= 1
    assert found.coverage == pytest.approx(C.sum(), rel=1e-9)
    assert found.coverage <= found.upper_bound
    rounding = 1e-9 * seen.shape[0] * seen.shape[1]
    assert found.coverage <= conic.upper_bound + rounding
    assert conic.coverage <= found.upper_bound + rounding


def test_searched_coverage_is_a_confidence(seed):
    rng, seen, K = draw(seed)
    rank, gamma, gap = int(rng.integers(1, 4)), float(rng.uniform(0.05, 0.6)), float(10.0 ** -rng.integers(1, 5))
    found = solve_coverage(seen, K=K, gamma=gamma, rank=rank, method="factored", gap=gap)
    C = found.confidence.dense()
    assert 0 <= C.min() <= C.max() <= 1
    assert found.coverage == pytest.approx(C.sum(), rel=1e-5)


def test_responses_are_members_below_their_bound(seed):
    rng, seen, K = draw(seed)
    C = rng.uniform(size=seen.shape) * (rng.uniform(size=seen.shape) < rng.uniform(0.2, 1))
    beta = float(10.0 ** -rng.uniform(0, 6))
    convex = VersionSpace(seen, beta, MaxNorm(K))
    ranked = VersionSpace(seen, beta, MaxNorm(K, int(rng.integers(1, 4))))
    tolerance = float(10.0 ** -rng.integers(1, 7))
    found = best_responses(convex, C, rng=np.random.default_rng(seed), tol=tolerance)[0]
    conic, searched = convex.maximize(C), ranked.maximize(C, starts=2)
    check_member(convex, found)
    check_member(ranked, searched)
    rounding = 1e-5 * C.sum()  # the search with a rank is in single precision
    assert max(found.value, searched.value) <= min(found.bound, conic.bound) + rounding
    assert conic.value <= found.bound + rounding


def test_completion_and_norm_are_certified(seed):
    rng, seen, K = draw(seed)
    rank, centre = rng.choice([None, 1, 2]), bool(rng.integers(2))
    tolerance = float(rng.choice([0.0, 1e-6, 1e-2]))
    fit = MaxNormCompletion(K=K, rank=rank, centre=centre, tol=tolerance).fit(seen)
    assert 0 <= fit.lower_bound <= fit.objective
    assert np.abs(fit.dense()).max() <= 1 + 1e-12
    norm = max_norm(fit.left @ fit.right.T)
    assert norm.lower <= fit.K * (1 + 1e-6)
    assert norm.upper - norm.lower <= 1e-8 * np.abs(fit.left @ fit.right.T).max()

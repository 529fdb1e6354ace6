"""Rounding: sets with exact marginals, and signs as in the proof that relaxes squares to means."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import surefill as sf
from surefill.coverage import expected_sign_rounded, round_confidence, sign_round
from surefill.coverage.rounding import _holds_mark
from surefill.data import Observations
from surefill.errors import InputError
from surefill.spaces.confidence_matrix import DenseConfidence
from surefill.spaces.conic_model import ScaledMember
from surefill.theory import relaxation_constant

confidences = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.sampled_from([0, 1, 0.5, 0.3, 1e-9, 0.999])
)


@given(confidences, st.integers(0, 10**6))
def test_size_is_within_one_and_the_certain_stay(C, seed):
    kept = round_confidence(C, seed)
    assert kept.shape == C.shape
    assert abs(kept.sum() - C.sum()) < 1 + 1e-9
    assert kept[C == 1].all()
    assert not kept[C == 0].any()


@given(st.lists(st.integers(1, 63), min_size=1, max_size=12))
def test_marginals_are_exact_over_all_starts(numerators):
    """In sixty-fourths all sums are exact, and the kept set is constant between consecutive 64ths of u."""
    lengths = np.array(numerators) / 64
    kept = np.array([_holds_mark(lengths, (step + 0.5) / 64) for step in range(64)])
    np.testing.assert_array_equal(kept.mean(axis=0), lengths)
    assert set(kept.sum(axis=1)) <= {np.floor(lengths.sum()), np.ceil(lengths.sum())}
    np.testing.assert_allclose(kept.sum(axis=1).mean(), lengths.sum())


def test_marginals_over_many_draws():
    rng = np.random.default_rng(0)
    C = rng.choice([0, 0.05, 0.4, 0.9, 1], size=(5, 7))
    draws = 4000
    kept = np.mean([round_confidence(C, rng) for _ in range(draws)], axis=0)
    np.testing.assert_array_less(np.abs(kept - C), 4.5 * np.sqrt(C * (1 - C) / draws) + 1e-12)


def test_every_pair_of_doubtful_entries_can_be_kept_together():
    """With a fixed order the first two halves would exclude each other for ever."""
    rng = np.random.default_rng(1)
    together = sum(np.multiply.outer(k, k) for k in (round_confidence([[0.5] * 4], rng)[0] for _ in range(300)))
    assert together.min() > 20


def test_certain_confidences_are_unchanged_in_any_memory_order():
    C = np.random.default_rng(2).integers(0, 2, size=(9, 4)).astype(float)
    for given_C in (C, np.asfortranarray(C), DenseConfidence(C), C.tolist()):
        np.testing.assert_array_equal(round_confidence(given_C, 0), C == 1)
    mixed = np.asfortranarray(np.where(C == 1, 0.5, 0.0))
    kept = round_confidence(mixed, 3)
    assert not kept[mixed == 0].any()
    np.testing.assert_array_equal(kept, sf.round_confidence(np.ascontiguousarray(mixed), 3))


def test_rounding_rejects_what_is_no_confidence():
    with pytest.raises(InputError, match="must lie in"):
        round_confidence([[1.2]], 0)


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(3)
    U, V = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
    V[4] = 0
    U[0], V[0] = [1, 2, 3], [2, 4, 6]
    V[1] = -U[1]
    return U, V


def test_signs_change_and_nothing_else(factors):
    U, V = factors
    for seed in range(20):
        left, right = sign_round(U, V, seed)
        np.testing.assert_array_equal(np.abs(left), np.abs(U))
        np.testing.assert_array_equal(np.linalg.norm(right, axis=1), np.linalg.norm(V, axis=1))
        np.testing.assert_allclose(np.abs(left @ right.T), np.abs(U @ V.T))
        assert np.linalg.matrix_rank(left @ right.T) == np.linalg.matrix_rank(U @ V.T) == 3


def test_expectation_in_closed_form(factors):
    U, V = factors
    rng, draws = np.random.default_rng(4), 6000
    products = [left @ right.T for left, right in (sign_round(U, V, rng) for _ in range(draws))]
    expected = expected_sign_rounded(U, V)
    standard_error = np.sqrt(((U @ V.T) ** 2 - expected**2).clip(0) / draws)
    np.testing.assert_array_less(np.abs(np.mean(products, axis=0) - expected), 4.5 * standard_error + 1e-9)
    np.testing.assert_allclose(expected[0, 0], 28)
    np.testing.assert_allclose(expected[1, 1], U[1] @ U[1])
    np.testing.assert_array_equal(expected[:, 4], 0)


@given(st.integers(0, 10**6))
def test_expectation_is_at_least_the_relaxations_share(seed):
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    K = np.linalg.norm(U, axis=1).max() * np.linalg.norm(V, axis=1).max()
    assert np.all(expected_sign_rounded(U, V) >= 2 * (U @ V.T) ** 2 / (np.pi * K) - 1e-12)


def test_factors_must_fit():
    with pytest.raises(InputError, match=r"got shapes \(2, 3\) and \(2, 2\)"):
        sign_round(np.ones((2, 3)), np.ones((2, 2)), 0)


def _search_mean_square(space, nu, starts):
    """A lower bound on sup E_nu[M^2] over V: a convex function is climbed by maximising its linearisation."""
    model, weights = ScaledMember(space, 1.0), cp.Parameter(space.shape)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(weights, model.matrix))), model.constraints)
    best = 0.0
    for M in starts:
        value = -1.0
        while (reached := float(np.sum(nu * M**2))) > value + 1e-6:
            value, weights.value = reached, nu * M
            problem.solve(solver=cp.CLARABEL)
            M = model.member()
        best = max(best, reached)
    return best


@pytest.mark.parametrize(("K", "beta"), [(0.8, 0.02), (1.0, 0.0), (1.0, 0.05), (1.5, 0.02)])
def test_relaxation_inequality_on_small_instances(K, beta):
    """Proposition 16: sup E_nu[M^2] <= (pi K / 2) sup E_nu[M]."""
    rng = np.random.default_rng(int(100 * (K + beta)))
    counts = rng.poisson(0.8, size=(4, 4))
    rows, cols = np.nonzero(counts)
    obs = Observations(rows, cols, np.zeros(len(rows)), counts.shape, counts=counts[rows, cols])
    space = sf.VersionSpace(obs, beta, sf.MaxNorm(K))
    nu = rng.dirichlet(np.full(16, 0.5)).reshape(4, 4)
    square = _search_mean_square(space, nu, rng.normal(size=(3, 4, 4)))
    mean = space.maximize(nu)
    assert 0 < square <= relaxation_constant(K) * mean.bound
    assert mean.value**2 <= square + 1e-4

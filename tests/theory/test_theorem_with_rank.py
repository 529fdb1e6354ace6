"""Every step of docs/theorem_with_rank.md that numbers can check."""

import numpy as np
import pytest

import surefill as sf
from surefill.coverage import expected_sign_rounded, sign_round
from surefill.data import Observations
from surefill.theory import efficient_parameters, relaxation_constant

K, RANK, SHAPE = 1.3, 2, (7, 6)


def draw_member(rng, rank=RANK, norm=K):
    """Factors of a random matrix of the given rank with max-norm at most ``norm`` and entries in [-1, 1]."""
    U, V = (rng.normal(size=(size, rank)) for size in SHAPE)
    U, V = (F / np.linalg.norm(F, axis=1).max() for F in (U, V))
    return U * min(norm, 1 / np.abs(U @ V.T).max()), V


def product(factors):
    return factors[0] @ factors[1].T


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def obs(rng):
    cells = rng.integers(SHAPE[0] * SHAPE[1], size=60)
    return Observations(cells // SHAPE[1], cells % SHAPE[1], np.zeros(60), SHAPE)


def test_half_the_difference_is_in_the_class_of_twice_the_rank(rng):
    for _ in range(3):
        truth, completion = draw_member(rng), draw_member(rng)
        D = (product(truth) - product(completion)) / 2
        assert np.linalg.matrix_rank(D) == 2 * RANK
        assert np.abs(D).max() <= 1
        assert sf.max_norm(D).upper <= K + 1e-6


def test_sign_rounding_stays_in_the_version_space_with_its_rank(rng, obs):
    """M~ = D1 M D2 with signs D1, D2: entries keep their size, the rank stays, and so does every constraint."""
    U, V = draw_member(rng, 2 * RANK)
    M = U @ V.T
    beta = float(np.sum(obs.weights * M[obs.rows, obs.cols] ** 2))
    space = sf.VersionSpace(obs, beta, sf.MaxNorm(K, rank=2 * RANK))
    assert space.contains(M)
    for seed in range(3):
        rounded = product(sign_round(U, V, seed))
        assert np.linalg.matrix_rank(rounded) == 2 * RANK
        assert space.contains(rounded)
        assert space.mean_square(rounded) == pytest.approx(beta)
        signs = np.sign(rounded * M)
        np.testing.assert_array_equal(signs, np.outer(signs[:, 0], signs[0] * signs[0, 0]))


def test_some_sign_rounding_has_the_mean_that_the_relaxation_needs(rng):
    """So sup E[M^2] <= (pi K / 2) sup E[M] over the rank-limited space, member by member."""
    for _ in range(20):
        U, V = draw_member(rng, 2 * RANK)
        nu = rng.dirichlet(np.full(SHAPE[0] * SHAPE[1], 0.3)).reshape(SHAPE)
        needed = np.sum(nu * (U @ V.T) ** 2) / relaxation_constant(K)
        assert np.sum(nu * expected_sign_rounded(U, V)) >= needed
        best = max(np.sum(nu * product(sign_round(U, V, rng))) for _ in range(200))
        assert best >= needed


def test_the_distribution_is_feasible_and_the_smaller_class_only_helps(rng, obs):
    """E_mu[M] <= |M|_mu <= gamma where beta = gamma^2/2 and sample and population agree to beta."""
    parameters = efficient_parameters(1.0, K)
    for _ in range(20):
        U, V = draw_member(rng, 2 * RANK)
        M = U @ V.T
        M *= min(1.0, np.sqrt(2 * parameters.beta / np.mean(M**2)))
        assert np.mean(M) <= parameters.gamma * (1 + 1e-12)
    convex = sf.solve_coverage(obs, K, gamma=parameters.gamma, beta=parameters.beta)
    C = convex.confidence.dense()
    for _ in range(20):
        M = product(draw_member(rng, 2 * RANK))
        square = np.sum(obs.weights * M[obs.rows, obs.cols] ** 2)
        M *= min(1.0, np.sqrt(parameters.beta / square))
        assert np.sum(C * M) <= parameters.gamma * C.sum()

"""The paper's parameters and sample sizes: identities of its proofs, orders, inverses, and tight norm bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

import surefill as sf
from surefill import theory
from surefill.errors import InputError

positive = st.floats(0.01, 10)


def test_sample_complexities_are_the_papers_orders_times_the_constant():
    assert theory.sample_complexity_max_norm(0.5, math.exp(-3), 2.0, (4, 3)) == 4 * (4 * 7 + 3)
    assert theory.sample_complexity_max_norm(0.5, math.exp(-3), 2.0, (4, 3), constant=10) == 40 * (4 * 7 + 3)
    assert theory.sample_complexity_trace_norm(0.5, math.exp(-3), 2.0, (5, 4)) == 4 * (2 * 3 + 3)
    ones = theory.sample_complexity_trace_norm(0.1, 0.05, math.sqrt(50 * 50), (50, 50))
    assert ones > 4 * theory.sample_complexity_max_norm(0.1, 0.05, 1.0, (50, 50))


@given(positive, positive)
def test_efficient_parameters_close_the_proof(eps, K):
    found = theory.efficient_parameters(eps, K)
    assert found.gamma == pytest.approx(eps / (2 * math.pi * K))
    assert found.beta == pytest.approx(eps**2 / (8 * math.pi**2 * K**2))
    assert found.completion_accuracy == pytest.approx(eps**2 / (4 * math.pi**2 * K**2))
    assert 4 * theory.relaxation_constant(K) * found.gamma == pytest.approx(eps)
    _check_steps(found, mean_square=found.gamma**2)


@given(positive)
def test_inefficient_parameters_close_the_proof(eps):
    found = theory.inefficient_parameters(eps)
    assert (found.gamma, found.beta, found.completion_accuracy) == pytest.approx((eps / 4, eps / 8, eps / 4))
    _check_steps(found, mean_square=found.gamma)


def _check_steps(found, mean_square):
    """(M* - M-hat)/2 is small on the sample, and the distribution itself is a feasible confidence."""
    assert found.completion_accuracy / 4 + found.beta / 4 <= found.beta
    assert found.beta + found.beta <= mean_square * (1 + 1e-12)


def test_required_draws_are_the_larger_of_the_two_at_a_third_of_delta():
    for program, parameters in [
        ("linear", theory.efficient_parameters(0.5, 1.5)),
        ("quadratic", theory.inefficient_parameters(0.5)),
    ]:
        both = [
            theory.sample_complexity_max_norm(accuracy, 0.03 / 3, 1.5, (8, 9), 2.0)
            for accuracy in (parameters.completion_accuracy, parameters.beta)
        ]
        assert theory.required_draws(program, 0.5, 0.03, (8, 9), K=1.5, constant=2.0) == max(both)
    by_trace = theory.required_draws("quadratic", 0.5, 0.03, (8, 9), tau=7.0)
    assert by_trace == theory.sample_complexity_trace_norm(0.5 / 8, 0.01, 7.0, (8, 9))


def test_orders_of_the_corollaries():
    """Corollaries 2 and 3: 1/eps^2 and k (m + n), against 1/eps^4 and k^3 (m + n) for rank k."""
    shape, delta = (10**6, 10**6), 0.05

    def draws(program, eps, rank):
        return theory.required_draws(program, eps, delta, shape, K=theory.max_norm_of_rank(rank))

    assert draws("quadratic", 0.1, 1) / draws("quadratic", 0.2, 1) == pytest.approx(4, rel=1e-3)
    assert draws("quadratic", 0.1, 4) / draws("quadratic", 0.1, 1) == pytest.approx(4, rel=1e-3)
    assert draws("linear", 0.1, 1) / draws("linear", 0.2, 1) == pytest.approx(16, rel=1e-3)
    assert draws("linear", 0.1, 4) / draws("linear", 0.1, 1) == pytest.approx(64, rel=1e-3)


@given(
    st.integers(10, 10**9),
    st.floats(0.001, 0.5),
    positive,
    st.sampled_from(["linear K", "quadratic K", "quadratic tau"]),
    st.floats(0.1, 10),
)
def test_achievable_eps_inverts_required_draws(n_draws, delta, radius, case, constant):
    program, name = case.split()
    options = {name: radius, "constant": constant}
    eps = theory.achievable_eps(n_draws, program, delta, (30, 20), **options)
    assert theory.required_draws(program, eps * (1 + 1e-9), delta, (30, 20), **options) <= n_draws
    assert theory.required_draws(program, eps * (1 - 1e-9) * 0.99, delta, (30, 20), **options) >= n_draws


def test_too_few_draws_are_said_in_a_sentence():
    short = theory.compare_draws(400, "linear", 0.5, 0.05, (20, 20), K=1.0)
    assert not short.enough
    assert short.required == 4_398_275
    assert short.sentence == (
        "With its constant, which the paper does not state, taken as 1, the theorem asks for about 4,400,000 draws and "
        "there are 400: 11,000 times too few, so its guarantee is not known to hold. These draws are too few for any "
        "mean squared error below the largest possible, 4 on [-1, 1]."
    )
    partial = theory.compare_draws(400_000, "linear", 0.5, 0.05, (20, 20), K=1.0)
    assert partial.achievable_eps == pytest.approx(0.5 * (partial.required / 400_000) ** 0.25, rel=1e-6)
    assert f"would do for a mean squared error of {partial.achievable_eps:.3g} on the [-1, 1]" in partial.sentence
    enough = theory.compare_draws(5_000_000, "linear", 0.5, 0.05, (20, 20), K=1.0, constant=1.1)
    assert enough.enough
    assert enough.achievable_eps <= 0.5
    assert "taken as 1.1" in enough.sentence
    assert enough.sentence.endswith("there are 5,000,000: enough if the constant is right, which is not known to hold.")


def _low_rank_in_box(rng, shape, rank):
    M = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    return M / np.abs(M).max()


def test_trace_norm_of_rank_holds_and_cannot_be_improved():
    rng = np.random.default_rng(0)
    for _ in range(50):
        shape, rank = tuple(rng.integers(3, 12, size=2)), int(rng.integers(1, 4))
        assert sf.trace_norm(_low_rank_in_box(rng, shape, rank)).lower <= theory.trace_norm_of_rank(rank, shape)
    for order in (1, 2, 4, 8):
        H = np.tile(hadamard(order), (2, 3))
        assert np.linalg.matrix_rank(H) == order
        assert float(sf.trace_norm(H)) == pytest.approx(theory.trace_norm_of_rank(order, H.shape))


def test_max_norm_of_rank_holds_and_cannot_be_improved():
    rng = np.random.default_rng(1)
    for rank in (1, 2, 3):
        M = np.sign(_low_rank_in_box(rng, (5, 6), 1)) if rank == 1 else _low_rank_in_box(rng, (5, 6), rank)
        assert sf.max_norm(M).lower <= theory.max_norm_of_rank(rank) * (1 + 1e-9)
    assert float(sf.max_norm(hadamard(4))) == pytest.approx(theory.max_norm_of_rank(4), rel=1e-6)


def test_errors_are_sentences():
    for make, sentence in [
        (
            lambda: theory.required_draws("cubic", 0.1, 0.1, (2, 2), K=1.0),
            r"The 'program' parameter of required_draws must be 'linear' or 'quadratic'\. Got 'cubic' instead\.",
        ),
        (lambda: theory.required_draws("linear", 0.1, 0.1, (2, 2)), "needs either K"),
        (lambda: theory.required_draws("quadratic", 0.1, 0.1, (2, 2), K=1.0, tau=1.0), "needs either K"),
        (lambda: theory.required_draws("linear", 0.1, 0.1, (2, 2), tau=1.0), "'tau' parameter .* for the max-norm"),
        (lambda: theory.required_draws("linear", 0.1, 1.0, (2, 2), K=1.0), "'delta' parameter"),
        (lambda: theory.required_draws("linear", 0.1, 0.1, (2, 0), K=1.0), "'shape' parameter"),
        (lambda: theory.achievable_eps(0, "linear", 0.1, (2, 2), K=1.0), "'n_draws' parameter"),
        (lambda: theory.sample_complexity_max_norm(0.0, 0.1, 1.0, (2, 2)), "'eps' parameter"),
        (lambda: theory.sample_complexity_max_norm(0.1, 0.1, -1.0, (2, 2)), "'K' parameter"),
        (lambda: theory.sample_complexity_trace_norm(0.1, 0.1, math.nan, (2, 2)), "'tau' parameter"),
        (lambda: theory.sample_complexity_trace_norm(0.1, 0.1, 1.0, (2, 2), constant=0), "'constant' parameter"),
        (lambda: theory.efficient_parameters(-1.0, 1.0), "'eps' parameter"),
        (lambda: theory.inefficient_parameters(math.inf), "'eps' parameter"),
        (lambda: theory.relaxation_constant(0.0), "'K' parameter"),
        (lambda: theory.max_norm_of_rank(0), "'rank' parameter"),
        (lambda: theory.trace_norm_of_rank(1, (3, 0)), "'shape' parameter"),
    ]:
        with pytest.raises(InputError, match=sentence):
            make()


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_the_class_of_rank_k_with_its_box_asks_for_what_corollary_1_says(rank):
    """k (m + n) in place of K^2 (m + n), and no matrix of rank k in the box beyond max-norm sqrt(k)."""
    m, n, eps, delta = 12, 8, 0.1, 0.05
    wanted = math.ceil((rank * (m + n) + math.log(1 / delta)) / eps**2)
    assert abs(theory.sample_complexity_rank(eps, delta, rank, (m, n)) - wanted) <= 1
    assert sf.MaxNorm(100.0, rank=rank).within_box((m, n)) == sf.MaxNorm.of_rank(rank)
    rng = np.random.default_rng(rank)
    M = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    assert sf.max_norm(M / np.abs(M).max()).lower <= sf.MaxNorm.of_rank(rank).K + 1e-6

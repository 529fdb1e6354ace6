"""MP 2 by the conic program: strong duality, certificates, independent solvers, closed forms."""

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from surefill.coverage import CoverageStatus, solve_coverage
from surefill.coverage.closed_form import counts_confidence, cover_against, make_feasible
from surefill.coverage.linear.conic_dual import solve_conic
from surefill.data.observations import Observations
from surefill.errors import InputError
from surefill.spaces import DenseConfidence, MaxNorm, VersionSpace

few = settings(max_examples=8, deadline=None)


def observe(counts):
    counts = np.asarray(counts)
    rows, cols = np.nonzero(counts)
    return Observations(rows, cols, np.zeros(len(rows)), counts.shape, counts=counts[rows, cols])


def draw_blocks(half, draws, seed=0):
    """``draws`` uniform draws, with repeats, from the two diagonal blocks, and where the blocks are."""
    side = np.arange(2 * half) < half
    inside = side[:, None] == side[None, :]
    cells = np.argwhere(inside)
    drawn = cells[np.random.default_rng(seed).integers(len(cells), size=draws)]
    return Observations(drawn[:, 0], drawn[:, 1], np.zeros(draws), inside.shape), inside


def random_case(seed, shape=(4, 3)):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.0, size=shape)
    counts[0, 0] += 1
    return counts


@pytest.mark.parametrize(
    ("half", "draws", "on_blocks"),
    [(5, 200, 0.8), (10, 200, 0.6), (10, 400, 0.8)],
    ids=["10", "20", "20-dense"],
)
def test_two_blocks_are_trusted_and_the_rest_is_not(half, draws, on_blocks):
    obs, inside = draw_blocks(half, draws)
    gamma = 0.16
    found = solve_coverage(obs, K=1.0, gamma=gamma, gap=1e-8)
    assert found.status is CoverageStatus.WITHIN_GAP
    assert found.beta == gamma**2 / 2
    assert 0 <= found.upper_bound - found.coverage < 1e-6
    C = found.confidence.dense()
    assert C[inside].mean() > on_blocks
    assert C[~inside].mean() < 0.1
    space = VersionSpace(obs, found.beta, MaxNorm(1.0))
    best = space.maximize(C)
    assert best.mean == pytest.approx(gamma, abs=1e-6)
    assert best.bound <= gamma * C.sum() + 1e-6
    assert space.contains(found.adversaries[0].matrix)
    assert found.adversaries[0].mean == pytest.approx(gamma, abs=1e-6)
    assert found.adversaries[0].bound <= gamma * found.coverage * (1 + 1e-12)


def test_first_order_sizes_reach_the_gap_asked_for():
    obs, inside = draw_blocks(15, 900)
    found = solve_coverage(obs, gamma=0.16, gap=1e-4)
    assert found.status is CoverageStatus.WITHIN_GAP
    assert 0 <= found.gap <= 1e-4
    assert found.confidence.dense()[inside].mean() > 0.8
    best = VersionSpace(obs, found.beta, MaxNorm(1.0)).maximize(found.confidence.dense())
    assert best.mean == pytest.approx(0.16, rel=1e-4)
    assert best.value <= 0.16 * found.coverage * (1 + 1e-12)


@pytest.mark.parametrize(("K", "beta"), [(1.0, 0.02), (1.6, 0.02), (0.7, 0.0), (1.3, 0.0)])
def test_cutting_planes_reach_the_same_optimum(K, beta):
    """The primal as the paper states it: a linear program in C whose rows the separation oracle supplies."""
    gamma, counts = 0.3, random_case(4, (5, 4))
    space = VersionSpace(observe(counts), beta, MaxNorm(K))
    found = solve_coverage(space.observations, K, gamma=gamma, beta=beta, gap=1e-8)
    rows, value = [np.full(20, -gamma)], 20.0
    for _ in range(200):
        plan = linprog(-np.ones(20), A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=(0, 1))
        value, C = -plan.fun, plan.x.reshape(5, 4)
        assert value >= found.coverage - 1e-6
        best = space.maximize(C)
        if best.mean <= gamma + 1e-7:
            break
        rows.append(best.matrix.ravel() - gamma)
    assert value == pytest.approx(found.coverage, rel=1e-5)
    assert value == pytest.approx(found.upper_bound, rel=1e-5)


@pytest.mark.parametrize(("K", "beta"), [(0.8, 0.03), (1.0, 0.01), (1.7, 0.03), (1.7, 0.0)])
def test_semidefinite_program_in_the_confidence_has_the_same_optimum(K, beta):
    """The other side of the duality, written on its own: C = B + Z + A with the three terms."""
    gamma, counts = 0.3, random_case(8, (5, 4))
    m, n = counts.shape
    seen = counts > 0
    w = counts[seen] / counts.sum()
    C, A, slack = cp.Variable((m, n)), cp.Variable((m, n)), cp.Variable((m + n, m + n), PSD=True)
    z = cp.Variable(int(seen.sum()))
    place = np.zeros((m * n, int(seen.sum())))
    place[np.flatnonzero(seen), np.arange(int(seen.sum()))] = 1
    Z = cp.reshape(place @ z, (m, n), order="C")
    off = cp.multiply(1 - np.eye(m), slack[:m, :m]), cp.multiply(1 - np.eye(n), slack[m:, m:])
    limit = K / 2 * cp.trace(slack) + cp.sum(cp.abs(A)) + np.sqrt(beta) * cp.norm(cp.multiply(w**-0.5, z))
    constraints = [
        C >= 0,
        C <= 1,
        off[0] == 0,
        off[1] == 0,
        -slack[:m, m:] + Z + A == C,
        limit <= gamma * cp.sum(C),
    ]
    problem = cp.Problem(cp.Maximize(cp.sum(C)), constraints)
    problem.solve(solver=cp.CLARABEL)
    found = solve_coverage(observe(counts), K, gamma=gamma, beta=beta, gap=1e-8)
    assert found.coverage == pytest.approx(problem.value, abs=1e-5)
    assert found.upper_bound == pytest.approx(problem.value, abs=1e-5)


@few
@given(st.integers(0, 10**6), st.sampled_from([0.8, 1.0, 1.5]), st.sampled_from([0.0, 0.02, 0.06]))
def test_optimality_conditions(seed, K, beta):
    """Gap = sum_x [max(0, s_x) - C_x s_x] + lambda (gamma |C| - <C, M>), s = 1 + lambda (gamma - M)."""
    gamma = 0.3
    found = solve_coverage(observe(random_case(seed)), K, gamma=gamma, beta=beta, gap=1e-8)
    if found.status is CoverageStatus.EXACT:
        return
    C, M = found.confidence.dense(), found.adversaries[0].matrix
    breaks = np.r_[0.0, 1 / (M - gamma)[gamma < M]]
    hinges = [np.maximum(0, 1 + lam * (gamma - M)).sum() for lam in breaks]
    assert min(hinges) == pytest.approx(found.upper_bound, abs=1e-9)
    lam = breaks[np.argmin(hinges)]
    slope = 1 + lam * (gamma - M)
    assert np.abs(np.where(slope > 0, slope * (1 - C), -slope * C)).max() < 1e-5
    assert 0 <= lam * (gamma * C.sum() - np.sum(C * M)) < 1e-5
    assert np.all(C[slope > 1e-4] > 1 - 1e-3)
    assert np.all(C[slope < -1e-4] < 1e-3)


@few
@given(st.integers(0, 10**6), st.sampled_from([0.8, 1.0, 1.5]))
def test_no_feasible_confidence_exceeds_the_upper_bound(seed, K):
    gamma, beta = 0.3, 0.03
    rng = np.random.default_rng(seed)
    space = VersionSpace(observe(random_case(seed)), beta, MaxNorm(K))
    found = solve_coverage(space.observations, K, gamma=gamma, beta=beta, gap=1e-8)
    C0 = counts_confidence(space)
    for _ in range(3):
        C = np.clip(found.confidence.dense() + rng.normal(scale=0.3, size=space.shape), 0, 1)
        excess = max(0.0, space.bound(C) - gamma * C.sum())
        share = excess / (excess + (gamma - np.sqrt(beta)) * C0.sum())
        assert ((1 - share) * C + share * C0).sum() <= found.upper_bound * (1 + 1e-9)


@pytest.mark.parametrize("accuracy", [1.0, 0.1, 1e-2, 1e-3])
def test_claims_hold_however_crude_the_solver(accuracy):
    obs, _ = draw_blocks(5, 100)
    gamma = 0.16
    space = VersionSpace(obs, gamma**2 / 2, MaxNorm(1.4))
    truth = solve_coverage(obs, 1.4, gamma=gamma, gap=1e-8)
    crude = next(solve_conic(space, gamma, (("scs", accuracy),)))
    assert crude.C.sum() <= truth.upper_bound + 1e-9
    assert crude.upper_bound >= truth.coverage - 1e-9
    assert space.maximize(crude.C).value <= gamma * crude.C.sum() * (1 + 1e-9)
    assert crude.bound <= gamma * crude.C.sum() * (1 + 1e-12)
    assert space.contains(crude.M)
    assert crude.gap >= truth.gap


def test_a_useless_answer_falls_back_on_the_counts():
    space = VersionSpace(observe([[2, 1], [0, 4]]), 0.02, MaxNorm(1.0))
    C, bound = make_feasible(space, 0.3, np.zeros((2, 2)), 0.0, np.sqrt(space.beta))
    np.testing.assert_array_equal(C, [[0.5, 0.25], [0, 1]])
    assert bound == pytest.approx(np.sqrt(0.02) * 1.75)
    C, bound = make_feasible(space, 0.3, np.ones((2, 2)), 4.0, np.sqrt(space.beta))
    assert bound == pytest.approx(0.3 * C.sum())
    assert 1.75 < C.sum() < 4


def test_a_gap_that_is_not_reached_is_said():
    obs, _ = draw_blocks(5, 100)
    found = solve_coverage(obs, gamma=0.16, gap=1e-15)
    assert found.status is CoverageStatus.WIDE_GAP
    assert 1e-15 < found.gap < 1e-6
    assert found.upper_bound > found.coverage


@few
@given(st.integers(0, 10**6))
def test_order_and_transposition_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    counts = random_case(seed, (4, 5))
    shuffled = counts[rng.permutation(4)][:, rng.permutation(5)].T
    first, second = (solve_coverage(observe(c), 1.2, gamma=0.25, gap=1e-7) for c in (counts, shuffled))
    assert first.coverage == pytest.approx(second.coverage, rel=1e-5)
    assert first.upper_bound == pytest.approx(second.upper_bound, rel=1e-5)


def test_values_do_not_matter_and_repeats_count_as_draws():
    rows, cols = np.array([0, 0, 1, 2, 0]), np.array([0, 1, 1, 2, 0])
    first = solve_coverage(Observations(rows, cols, [1.0, 5, 3, 2, 4]), gamma=0.3)
    second = solve_coverage(observe([[2, 1, 0], [0, 1, 0], [0, 0, 1]]), gamma=0.3)
    assert first.coverage == pytest.approx(second.coverage, rel=1e-7)


@few
@given(st.integers(0, 10**6))
def test_coverage_grows_with_gamma_and_falls_with_beta_and_norm(seed):
    obs = observe(random_case(seed))

    def optimum(K=1.2, gamma=0.3, beta=0.03):
        found = solve_coverage(obs, K, gamma=gamma, beta=beta, gap=1e-7)
        return found.coverage, found.upper_bound

    for weaker, stronger in [
        ([optimum(gamma=g) for g in (0.15, 0.2, 0.4, 0.9, 1.0)], 1),
        ([optimum(beta=b) for b in (0.0, 0.01, 0.05, 0.09, 0.1)], -1),
        ([optimum(K=k) for k in (0.25, 0.5, 0.9, 1.1, 2.0)], -1),
    ]:
        ladder = weaker[::stronger]
        assert all(low <= high + 1e-7 for (low, _), (_, high) in pairwise(ladder))


@pytest.mark.parametrize("K", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("beta", [0.0, 0.01, 0.04])
@pytest.mark.parametrize("transpose", [False, True])
def test_one_row_in_closed_form(K, beta, transpose):
    """One row, one observation: an adversary plays sqrt(beta) there and k = min(K, 1) on u other cells."""
    gamma, u, k = 0.3, 5, min(K, 1.0)
    counts = np.array([[3] + [0] * u])
    found = solve_coverage(observe(counts.T if transpose else counts), K, gamma=gamma, beta=beta, gap=1e-8)
    truth = 1 + min(u, (gamma - np.sqrt(beta)) / (k - gamma))
    assert found.coverage == pytest.approx(truth, rel=1e-6)
    assert found.upper_bound == pytest.approx(truth, rel=1e-6)


def test_exactly_known_cells_and_an_empty_column():
    """beta = 0 on a fully seen block: it is covered whole, and its certainty pays for some of the rest."""
    counts = np.ones((3, 4), dtype=int)
    counts[:, 3] = 0
    found = solve_coverage(observe(counts), 1.0, gamma=0.25, beta=0.0, gap=1e-8)
    C = found.confidence.dense()
    np.testing.assert_allclose(C[:, :3], 1, atol=1e-5)
    # The adversary plays 1 on the empty column: sum C <= 9 + a with a = gamma (9 + a).
    assert found.coverage == pytest.approx(9 + 0.25 * 9 / 0.75, rel=1e-6)


def test_one_observation_in_a_matrix():
    found = solve_coverage(observe([[1, 0], [0, 0]]), 1.0, gamma=0.4, beta=0.0, gap=1e-8)
    assert 1 <= found.coverage <= found.upper_bound < 4
    assert found.gap < 1e-6


@pytest.mark.parametrize(
    ("counts", "K", "gamma", "beta", "coverage"),
    [
        ([[1, 0], [0, 0]], 1.0, 1.0, 0.3, 4.0),  # (i) entries never exceed 1
        ([[1, 0], [0, 0]], 0.2, 0.2, 0.04, 4.0),  # (i) nor K
        ([[1, 0], [0, 0]], 0.2, 0.5, 0.9, 4.0),  # (i) even where beta is large
        ([[1, 1], [0, 1]], 1.0, 0.3, 0.1, 0.0),  # (ii) the constant 0.316 is a member
        ([[1, 1], [0, 1]], 0.31, 0.3, 0.5, 0.0),  # (ii) the constant K is a member
        ([[2, 2], [2, 2]], 1.5, 0.3, 0.09, 4.0),  # (iii) seen equally often
        ([[2, 2], [2, 2]], 1.5, 0.3, 0.0, 4.0),  # (iii)
        ([[2, 1], [0, 4]], 1.0, 0.3, 0.3**2, 7 / 4),  # (iv) sqrt(beta) = gamma
    ],
)
def test_cases_decided_without_a_solver(counts, K, gamma, beta, coverage, monkeypatch):
    monkeypatch.setattr("surefill.spaces.conic_model._solve", lambda *given: pytest.fail("a solver ran"))
    found = solve_coverage(observe(counts), K, gamma=gamma, beta=beta)
    assert found.status is CoverageStatus.EXACT
    assert found.coverage == found.upper_bound == coverage
    assert found.gap == 0
    constant = found.adversaries[0].matrix
    assert np.ptp(constant) == 0
    assert cover_against(constant, gamma) >= coverage
    if coverage == 0:
        assert constant[0, 0] > gamma


@pytest.mark.parametrize(("K", "near"), [(1.0, 0.99), (1.5, 0.99)])
def test_the_tie_is_the_limit_of_what_comes_before(K, near):
    obs, gamma = observe([[2, 1, 0], [0, 4, 1]]), 0.3
    tie = solve_coverage(obs, K, gamma=gamma, beta=gamma**2).coverage
    before = [solve_coverage(obs, K, gamma=gamma, beta=share * gamma**2).coverage for share in (0.5, near, near**0.01)]
    assert tie == 2.0
    assert before[0] > before[1] > before[2] > tie
    assert before[2] == pytest.approx(tie, rel=0.1)


def test_the_paper_promises_the_counts_confidence():
    """C0 = counts / max(counts) is feasible, so the coverage is at least N / max(counts)."""
    for seed in range(5):
        counts = random_case(seed)
        found = solve_coverage(observe(counts), 1.3, gamma=0.2)
        assert found.coverage >= counts.sum() / counts.max() - 1e-9


def test_one_adversary_is_a_knapsack():
    M = np.array([[-1.0, 0.5], [1.0, 0.25]])
    # With gamma 0: -1 and 0.25 and 0.5 are taken whole, 0.25 of the entry 1.
    assert cover_against(M, 0.0) == 3.25
    assert cover_against(M, 0.5) == 4
    assert cover_against(np.full((2, 2), 0.5), 0.4) == 0
    rng = np.random.default_rng(0)
    for _ in range(20):
        M, gamma = rng.normal(size=(3, 4)), rng.uniform(0, 1)
        plan = linprog(-np.ones(12), A_ub=[M.ravel() - gamma], b_ub=[0.0], bounds=(0, 1))
        assert cover_against(M, gamma) == pytest.approx(-plan.fun, abs=1e-9)


def test_dense_confidence_answers_by_cell_and_by_block():
    given = np.array([[0.0, 0.5, 1.0], [0.25, 0.0, 0.0]])
    sure = DenseConfidence(given)
    assert sure.shape == (2, 3)
    assert sure.coverage == 1.75
    np.testing.assert_array_equal(sure.at([0, 1], [2, 0]), [1.0, 0.25])
    np.testing.assert_array_equal(sure.block([1, 0], [0, 2]), [[0.25, 0.0], [0.0, 1.0]])
    given[0, 0] = 1
    assert sure.dense()[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        sure.dense()[0, 0] = 1
    for bad, sentence in [
        ([[1.5]], "must lie in"),
        ([[-0.1]], "in"),
        ([[np.nan]], "in"),
        ([1.0], "1 dimensions"),
    ]:
        with pytest.raises(InputError, match=sentence):
            DenseConfidence(bad)


def test_result_reads_as_a_sentence():
    found = solve_coverage(observe([[1, 0], [0, 0]]), gamma=1.0)
    assert repr(found) == "Coverage(4 of 4 cells, at most 4 possible, gap 0, certified)"
    assert (found.K, found.gamma, found.beta, found.standing) == (1.0, 1.0, 0.5, "certified")


def test_errors_are_sentences():
    obs = observe([[1, 0], [0, 1]])
    large = Observations([0], [0], [1.0], (2, 200))
    for make, sentence in [
        (
            lambda: solve_coverage(obs, gamma=0.1, method="simplex"),
            r"'method' parameter of solve_coverage must be 'auto' or 'conic' or 'factored'\. Got 'simplex' instead\.",
        ),
        (
            lambda: solve_coverage(obs, gamma=0.0),
            "The 'gamma' parameter of solve_coverage must be a positive",
        ),
        (lambda: solve_coverage(obs, gamma=np.nan), "'gamma'"),
        (lambda: solve_coverage(obs, gamma=0.1, gap=0.0), "The 'gap' parameter"),
        (lambda: solve_coverage(obs, gamma=0.1, beta=-1.0), "The 'beta' parameter of VersionSpace"),
        (lambda: solve_coverage(obs, K=-1.0, gamma=0.1), "The 'K' parameter of MaxNorm"),
        (
            lambda: solve_coverage(obs, gamma=0.1, rank=2, method="conic"),
            "the conic solver needs a convex class; got .* and rank at most 2: leave the rank out",
        ),
        (
            lambda: solve_coverage(large, gamma=0.1, method="conic"),
            "needs at most 150 rows and columns; got 2 x 200",
        ),
    ]:
        with pytest.raises(InputError, match=sentence):
            make()

"""The factored coverage solver: brackets around the conic optimum, mixtures that hold, honest limits."""

from dataclasses import replace

import numpy as np
import pytest

from surefill import Observations, max_norm, solve_coverage
from surefill.coverage import CoverageStatus, FactoredConfidence
from surefill.coverage.closed_form import cover_against
from surefill.coverage.linear.certified import CertifiedDualSolver
from surefill.coverage.linear.factored_dual import WarmStart
from surefill.errors import InputError
from surefill.spaces import MaxNorm, VersionSpace
from surefill.spaces.separation_oracle import best_responses

GAMMA = 0.16


def draw_blocks(size, seed=0, share=0.6):
    half = np.arange(size) < size // 2
    cells = np.argwhere(half[:, None] == half[None, :])
    seen = np.random.default_rng(seed).choice(len(cells), round(share * len(cells)), replace=False)
    return Observations(cells[seen, 0], cells[seen, 1], np.zeros(len(seen)), (size, size))


def draw_counts(seed, shape, mean=0.7):
    counts = np.random.default_rng(seed).poisson(mean, size=shape)
    counts[0, 0] += 1
    rows, cols = np.nonzero(counts)
    return Observations(rows, cols, np.zeros(len(rows)), shape, counts=counts[rows, cols])


@pytest.fixture(scope="module")
def blocks():
    return draw_blocks(24)


@pytest.fixture(scope="module")
def certified(blocks):
    return solve_coverage(blocks, gamma=GAMMA, method="factored")


@pytest.fixture(scope="module")
def sparse():
    return draw_counts(0, (24, 20), mean=0.3)


@pytest.fixture(scope="module")
def searched(sparse):
    return solve_coverage(sparse, gamma=0.3, beta=0.045, rank=4, gap=0.03)


@pytest.mark.parametrize(
    ("obs", "K", "gamma", "beta"),
    [
        (draw_blocks(20), 1.0, 0.16, None),
        (draw_blocks(20), 1.5, 0.16, None),
        (draw_counts(1, (15, 24)), 1.0, 0.3, 0.045),
        (draw_counts(2, (24, 12)), 0.7, 0.25, 0.01),
        (draw_counts(3, (16, 16)), 2.5, 0.3, 0.03),
        (draw_counts(4, (1, 20)), 1.0, 0.3, 0.02),
    ],
    ids=["blocks", "K 1.5", "counts", "K below 1", "box", "one row"],
)
def test_the_bracket_holds_the_conic_optimum(obs, K, gamma, beta):
    truth = solve_coverage(obs, K, gamma=gamma, beta=beta, method="conic", gap=1e-6)
    found = solve_coverage(obs, K, gamma=gamma, beta=beta, method="factored")
    assert found.standing == "certified"
    assert found.status is CoverageStatus.WITHIN_GAP
    assert found.gap <= 0.01
    assert found.coverage <= truth.upper_bound * (1 + 1e-6)
    assert found.upper_bound >= truth.coverage * (1 - 1e-6)
    C, adversary = found.confidence.dense(), found.adversaries[0]
    assert ((C >= 0) & (C <= 1)).all()
    assert found.coverage == pytest.approx(C.sum(), rel=1e-9)
    space = VersionSpace(obs, found.beta, MaxNorm(K))
    assert space.bound(C) <= gamma * C.sum() * (1 + 1e-4)  # the conic bound, to its own accuracy
    assert adversary.value == pytest.approx(np.sum(C * adversary.matrix), rel=1e-6)
    assert adversary.value <= adversary.bound <= gamma * C.sum() * (1 + 1e-9)
    assert space.contains(adversary.matrix)
    assert cover_against(adversary.matrix, gamma) == pytest.approx(found.upper_bound, rel=1e-6)


def test_complementarity(certified):
    """Confidence is whole where the adversary is low, none where it is high, and its mean is all but gamma."""
    C, M = certified.confidence.dense(), certified.adversaries[0].matrix
    assert certified.adversaries[0].mean == pytest.approx(GAMMA, rel=0.02)
    assert C[np.quantile(M, 0.2) > M].mean() > 0.95
    assert C[np.quantile(M, 0.8) < M].mean() < 0.05


def test_searched_confidence_survives_fresh_best_responses(sparse, searched):
    assert searched.standing == "searched"
    assert searched.status is CoverageStatus.NO_VIOLATION_FOUND
    space = VersionSpace(sparse, searched.beta, MaxNorm(1.0, 4))
    fresh = best_responses(space, searched.confidence, starts=10, rng=np.random.default_rng(99))
    assert fresh[0].mean <= 0.3 * 1.05
    assert searched.adversaries[0].mean <= 0.3 * 1.03
    convex = solve_coverage(sparse, gamma=0.3, beta=0.045)
    assert searched.upper_bound > convex.coverage  # fewer adversaries, more coverage
    assert searched.upper_bound >= searched.coverage
    mixture = sum(one.matrix for one in searched.adversaries[1:]) / searched.confidence.count
    assert cover_against(mixture, 0.3) >= searched.upper_bound * (1 - 1e-4)
    assert all(np.linalg.matrix_rank(one.matrix, tol=1e-4) <= 4 for one in searched.adversaries)


def test_one_adversary_of_a_searched_answer_is_not_enough(sparse, searched):
    """The mixture is the point: against the C that one of its members leaves, fresh responses win."""
    one = searched.adversaries[-1].matrix
    C = np.zeros(one.size)
    C[np.argsort(one, axis=None)[: int(cover_against(one, 0.3))]] = 1
    space = VersionSpace(sparse, searched.beta, MaxNorm(1.0, 4))
    assert best_responses(space, C.reshape(one.shape), starts=3, rng=np.random.default_rng(0))[0].mean > 1.1 * 0.3


def test_a_wide_rank_agrees_with_the_convex_class(certified, blocks):
    wide = solve_coverage(blocks, gamma=GAMMA, rank=24, gap=0.02)
    assert wide.coverage == pytest.approx(certified.coverage, rel=0.03)
    assert wide.upper_bound >= certified.coverage


def test_warm_start_agrees_with_cold(blocks, certified):
    cold, warm = (
        solve_coverage(blocks, gamma=0.17, method="factored", warm_start=start) for start in (None, certified)
    )
    assert warm.status == cold.status
    assert warm.coverage <= cold.upper_bound
    assert cold.coverage <= warm.upper_bound


def test_warm_start_with_a_rank(sparse, searched):
    rounds = []
    cold = solve_coverage(sparse, gamma=0.31, beta=0.045, rank=4, gap=0.04)
    warm = solve_coverage(sparse, gamma=0.31, beta=0.045, rank=4, gap=0.04, warm_start=searched, progress=rounds.append)
    assert warm.coverage <= cold.upper_bound * 1.04  # searched answers exceed gamma by as much as their gap
    assert cold.coverage <= warm.upper_bound * 1.04
    assert warm.upper_bound > searched.upper_bound
    assert rounds[0].measure < np.inf  # the first round is already at the finest smoothing


def test_warm_start_across_ranks(sparse, searched):
    for rank in (5, 1):
        found = solve_coverage(sparse, gamma=0.3, beta=0.045, rank=rank, gap=0.05, warm_start=searched, time_limit=1.0)
        assert 0 < found.coverage <= found.upper_bound
        assert found.confidence.left.shape[1] == rank * found.confidence.count


def test_a_searched_answer_warms_the_convex_class(sparse, searched):
    found = solve_coverage(sparse, gamma=0.3, beta=0.045, method="factored", warm_start=searched)
    assert found.status is CoverageStatus.WITHIN_GAP
    assert found.coverage < searched.upper_bound


def test_the_certificate_leads_out_of_a_saddle(blocks, certified):
    """With all columns but one at zero their gradient is zero, and only the directions of gain lead on."""
    thin = VersionSpace(blocks, certified.beta, MaxNorm(1.0, 1))
    one = best_responses(thin, np.ones(blocks.shape), starts=3, rng=np.random.default_rng(0))[0]
    saddle = WarmStart(one.left, one.right, 1, certified.warm.multipliers, 1.0, 0.16)
    space = VersionSpace(blocks, certified.beta, MaxNorm(1.0))
    solver = CertifiedDualSolver(space, GAMMA, 0.01, np.random.default_rng(0), np.inf, saddle)
    start = solver.init()
    narrow = solver.run_stage(start.iterate).confidence
    assert np.linalg.matrix_rank(narrow.left) == 1
    freed = solver.step(start)
    wide = solver.run_stage(replace(freed.iterate, mu=0.16)).confidence
    assert np.linalg.matrix_rank(wide.left, tol=1e-3) > 3
    assert wide.coverage < 0.95 * narrow.coverage


def test_a_warm_start_that_holds_nothing_back_is_dropped(blocks, certified):
    weak = replace(certified.warm, left=0.01 * certified.warm.left)
    found = solve_coverage(blocks, gamma=GAMMA, method="factored", warm_start=replace(certified, warm=weak))
    assert found.coverage == pytest.approx(certified.coverage, rel=0.01)


def test_values_never_matter_and_seeds_repeat(blocks):
    shuffled = np.random.default_rng(0).permutation(len(blocks)).astype(float)
    other = Observations(blocks.rows, blocks.cols, shuffled, blocks.shape)
    first, second = (solve_coverage(obs, gamma=GAMMA, method="factored", gap=0.05) for obs in (blocks, other))
    np.testing.assert_array_equal(first.confidence.dense(), second.confidence.dense())
    assert first.upper_bound == second.upper_bound


def test_time_limit_gives_an_honest_answer(blocks):
    hasty = solve_coverage(blocks, gamma=GAMMA, method="factored", gap=1e-4, time_limit=0.05)
    assert hasty.status is CoverageStatus.TIME_LIMIT
    space = VersionSpace(blocks, hasty.beta, MaxNorm(1.0))
    C = hasty.confidence.dense()
    assert space.maximize(C).value <= GAMMA * C.sum() * (1 + 1e-4)
    assert hasty.coverage <= hasty.upper_bound
    searched = solve_coverage(blocks, gamma=GAMMA, rank=2, time_limit=0.05)
    assert searched.status is CoverageStatus.TIME_LIMIT
    assert 0 < searched.coverage <= searched.upper_bound


def test_confidence_is_the_same_asked_in_any_way(certified, searched):
    for sure in (certified.confidence, searched.confidence):
        assert isinstance(sure, FactoredConfidence)
        C = sure.dense()
        rows, cols = np.array([0, 5, 23, 7]), np.array([1, 5, 0, 19])
        np.testing.assert_allclose(sure.at(rows, cols), C[rows, cols], atol=1e-5)
        np.testing.assert_allclose(sure.block(rows, cols), C[np.ix_(rows, cols)], atol=1e-5)
        np.testing.assert_allclose(sure.row_means(), C.mean(axis=1), atol=1e-5)
        np.testing.assert_allclose(sure.col_means(), C.mean(axis=0), atol=1e-5)
        assert sure.coverage == pytest.approx(C.sum(), rel=1e-6)


def test_coverage_by_drawn_cells_has_an_error_bar(certified, monkeypatch):
    monkeypatch.setattr("surefill.coverage.linear.factored_confidence.EXACT_CELLS", 10)
    monkeypatch.setattr("surefill.coverage.linear.factored_confidence.DRAWN_CELLS", 200_000)
    estimate, error = certified.confidence.coverage_and_error()
    assert 0 < error < 2
    assert abs(estimate - certified.coverage) < 4 * error


@pytest.mark.parametrize(
    ("K", "gamma", "beta", "coverage"),
    [(1.0, 1.0, 0.3, 4e12), (1.0, 0.3, 0.1, 0.0), (1.0, 0.3, 0.3**2, 1.75)],
    ids=["all", "none", "counts"],
)
def test_closed_forms_need_no_memory(K, gamma, beta, coverage):
    huge = Observations([0, 1, 5], [0, 0, 7], np.zeros(3), (2_000_000, 2_000_000), counts=[2, 1, 4])
    found = solve_coverage(huge, K, gamma=gamma, beta=beta, rank=3)
    assert found.status is CoverageStatus.EXACT
    assert found.coverage == found.upper_bound == coverage
    np.testing.assert_allclose(
        found.confidence.at([0, 1, 9], [0, 0, 9]), {0.0: [0, 0, 0], 1.75: [0.5, 0.25, 0]}.get(coverage, [1, 1, 1])
    )


def test_when_everything_may_be_covered():
    """gamma just below 1 with nearly all cells seen: no adversary reaches it, and the bracket closes on m n."""
    obs = draw_blocks(10, share=0.9)
    for rank in (None, 2):
        found = solve_coverage(obs, gamma=0.95, beta=0.01, rank=rank, method="factored")
        assert found.coverage == pytest.approx(100.0)
        assert found.upper_bound == pytest.approx(100.0)


GRID = np.argwhere(np.ones((8, 6), dtype=bool))


@pytest.mark.parametrize("rank", [None, 1, 9])
@pytest.mark.parametrize(
    ("cells", "shape", "K"),
    [
        (GRID[:1], (8, 6), 1.0),
        (GRID[:4], (1, 6), 1.0),
        (GRID[:4, ::-1], (6, 1), 1.0),
        (GRID[GRID[:, 1] != 2], (8, 6), 1.0),
        (GRID[GRID[:, 1] % 2 == 0], (8, 6), 50.0),
    ],
    ids=["one observation", "one row", "one column", "an empty column", "K huge"],
)
def test_degenerate_matrices(cells, shape, K, rank):
    """The conic optimum lies in the bracket; with a rank there are fewer adversaries and no less coverage."""
    obs = Observations(cells[:, 0], cells[:, 1], np.zeros(len(cells)), shape)
    conic = solve_coverage(obs, K, gamma=0.3, method="conic")
    limit = None if rank is None else 2.0
    found = solve_coverage(obs, K, gamma=0.3, rank=rank, method="factored", time_limit=limit)
    if rank is None:
        assert found.coverage <= conic.upper_bound * (1 + 1e-6)
        assert found.gap <= 0.01
    assert found.upper_bound >= conic.coverage * (1 - 1e-6)
    if found.status is CoverageStatus.NO_VIOLATION_FOUND:
        assert found.coverage >= 0.98 * conic.coverage


def test_no_K_beyond_that_of_the_box_changes_the_class():
    assert MaxNorm(50.0).within_box((9, 20)) == MaxNorm(3.0)
    assert MaxNorm(50.0, rank=4).within_box((9, 20)) == MaxNorm(2.0, rank=4)
    assert MaxNorm(1.5, rank=30).within_box((9, 20)) == MaxNorm(1.5, rank=9)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        M = rng.uniform(-1, 1, size=(7, 3)) @ rng.uniform(-1, 1, size=(3, 8))
        assert max_norm(M / np.abs(M).max()).upper <= np.sqrt(3) * (1 + 1e-6)


def test_auto_chooses_by_size_and_errors_are_sentences(blocks):
    assert isinstance(solve_coverage(draw_blocks(30), gamma=GAMMA, gap=0.2).confidence, FactoredConfidence)
    for make, sentence in [
        (lambda: solve_coverage(blocks, gamma=GAMMA, beta=0.0, rank=2), "needs beta > 0"),
        (lambda: solve_coverage(blocks, gamma=GAMMA, time_limit=0), "The 'time_limit' parameter"),
        (
            lambda: solve_coverage(
                blocks, gamma=GAMMA, rank=1, warm_start=solve_coverage(draw_blocks(4), gamma=1.0, rank=1)
            ),
            r"same shape; it is \(4, 4\) and not \(24, 24\)",
        ),
    ]:
        with pytest.raises(InputError, match=sentence):
            make()


def test_without_the_conic_extra_small_problems_are_solved_in_factors(monkeypatch):
    monkeypatch.setattr("surefill.coverage.linear.linear_program.importlib.util.find_spec", lambda name: None)
    seen = Observations([0, 1, 1, 2], [0, 0, 1, 2], [1.0, 2.0, 3.0, 4.0])
    found = solve_coverage(seen, gamma=0.3)
    assert isinstance(found.confidence, FactoredConfidence)
    assert found.coverage <= found.upper_bound


def test_only_locations_count():
    rng = np.random.default_rng(0)
    rows, cols, values = rng.integers(30, size=300), rng.integers(25, size=300), rng.normal(size=300)
    shuffled = rng.permutation(values)
    for rank in (None, 3):
        one, other = (
            solve_coverage(Observations(rows, cols, y, (30, 25)), gamma=0.3, rank=rank, method="factored", gap=0.1)
            for y in (values, shuffled)
        )
        np.testing.assert_array_equal(one.confidence.dense(), other.confidence.dense())

"""SoftImpute, TraceNormCompletion and IterativeSVD: by certificate, by another solver, by closed forms and limits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill.completion import IterativeSVD, SoftImpute, TraceNormCompletion
from surefill.completion.effects import Effects
from surefill.completion.spectral.alternating_least_squares import SoftImputeALS
from surefill.completion.spectral.proximal_gradient import FittedSVD, ProximalGradient
from surefill.completion.spectral.shrinkage import RankLimit, SoftThreshold, TraceBall
from surefill.completion.spectral.spectral_algorithm import _extended
from surefill.completion.spectral.squared_loss import SquaredLoss
from surefill.completion.spectral.trace_norm import solve_trace_conic
from surefill.data import Observations, split_entries
from surefill.datasets import make_low_rank
from surefill.loop import Status, run


def low_rank_sample(seed, shape=(30, 25), n_draws=400, noise=0.2):
    return make_low_rank(shape, rank=2, n_draws=n_draws, noise=noise, random_state=seed).observations


def product(completion):
    """The low-rank part on all cells, before anything is cut."""
    return completion.row_solution[:-1, 1:] @ completion.col_solution[:-1, 1:].T


def objective(seen, M, penalty, offset=0.0):
    """SoftImpute's docstring, written out."""
    loss = 0.5 * np.sum(seen.counts * (seen.values - offset - M[seen.rows, seen.cols]) ** 2)
    return loss + penalty * np.linalg.norm(M, "nuc")


@pytest.mark.parametrize("method", ["svd", "als"])
@pytest.mark.parametrize("penalty", [0.3, 1.0])
def test_soft_impute_agrees_with_the_conic_solver(method, penalty):
    seen = low_rank_sample(3, (14, 11), 120)
    completion = SoftImpute(penalty, method=method, centre="none", tol=1e-6, max_steps=5000).fit(seen)
    reference = solve_trace_conic(SquaredLoss(seen, Effects.of(seen, "none", "")), SoftThreshold(penalty))
    ours, theirs = (objective(seen, M, penalty) for M in (product(completion), reference))
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert completion.gap.objective == pytest.approx(ours, rel=1e-9)
    assert completion.gap.lower_bound <= theirs * (1 + 1e-7)
    assert completion.gap.relative < 2e-6
    assert completion.gap.standing == "proved"
    assert completion.status is Status.CONVERGED


@pytest.mark.parametrize("seed", [0, 1])
def test_trace_norm_agrees_with_the_conic_solver(seed):
    seen = low_rank_sample(seed, (30, 25))
    completion = TraceNormCompletion(tau=12).fit(seen)
    u = seen.unit.to_unit(seen.values)
    M = product(completion) / seen.unit.half_width
    assert np.linalg.norm(M, "nuc") <= 12 * (1 + 1e-9)
    risk = np.average((u - M[seen.rows, seen.cols]) ** 2, weights=seen.counts)
    assert completion.gap.objective == pytest.approx(risk, rel=1e-9)
    reference = TraceNormCompletion(tau=12, method="conic").fit(seen)
    assert risk == pytest.approx(reference.gap.objective, rel=1e-4)
    assert completion.gap.relative <= 1e-3
    assert completion.gap.lower_bound <= reference.gap.objective * (1 + 1e-6)


def test_cutting_to_the_box_loses_nothing_against_the_paper_s_class():
    rng = np.random.default_rng(0)
    truth = np.sign(rng.normal(size=(11, 2)) @ rng.normal(size=(2, 10)))
    rows, cols = np.nonzero(rng.random(truth.shape) < 0.6)
    seen = Observations(rows, cols, truth[rows, cols], truth.shape, (-1, 1))
    tau = 0.7 * float(np.linalg.norm(truth, "nuc"))
    completion = TraceNormCompletion(tau=tau, tol=1e-6, max_steps=3000).fit(seen)
    assert np.abs(product(completion)).max() > 1.15
    squared_loss = SquaredLoss(seen, Effects.of(seen, "none", "", zero=seen.unit.centre), seen.unit.half_width)
    boxed = solve_trace_conic(squared_loss, TraceBall(tau), box=True)
    of_class = np.average((seen.unit.to_unit(seen.values) - boxed[seen.rows, seen.cols]) ** 2, weights=seen.counts)
    cut = seen.unit.to_unit(completion.at(seen.rows, seen.cols))
    assert np.average((seen.unit.to_unit(seen.values) - cut) ** 2, weights=seen.counts) <= of_class * (1 + 1e-5)


def test_the_penalised_form_is_the_ball_of_its_own_norm():
    seen = low_rank_sample(2)
    penalised = TraceNormCompletion(penalty=0.7, tol=1e-7).fit(seen)
    norm = np.linalg.norm(product(penalised), "nuc") / seen.unit.half_width
    ball = TraceNormCompletion(tau=norm, tol=1e-7, max_steps=5000).fit(seen)
    np.testing.assert_allclose(product(ball), product(penalised), atol=2e-3)
    assert ball.penalty == pytest.approx(penalised.penalty, rel=1e-3)


def test_the_penalty_converts_between_units_as_documented():
    seen = low_rank_sample(2)
    stars = Observations(seen.rows, seen.cols, 3 + 2 * seen.values, seen.shape, (1, 5), counts=seen.counts)
    in_stars = SoftImpute(1.4, centre="mean", tol=1e-7).fit(stars)
    in_units = SoftImpute(1.4 / stars.unit.half_width, centre="mean", tol=1e-7).fit(seen)
    np.testing.assert_allclose(product(in_stars), 2 * product(in_units), atol=1e-4)


@pytest.fixture(scope="module")
def full():
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 15)) @ np.diag(0.8 ** np.arange(15))


@pytest.mark.parametrize("method", ["svd", "als"])
def test_soft_thresholding_is_the_answer_when_everything_is_seen(full, method):
    U, s, Vt = np.linalg.svd(full, full_matrices=False)
    penalty = float((s[4] + s[5]) / 2)
    completion = SoftImpute(penalty, method=method, centre="none", tol=1e-9, max_steps=3000).fit(
        Observations.from_matrix(full)
    )
    np.testing.assert_allclose(product(completion), U * np.maximum(s - penalty, 0) @ Vt, atol=1e-3)
    assert completion.rank == 5


def test_alternation_lets_in_as_many_directions_as_the_answer_needs():
    full = np.random.default_rng(1).normal(size=(30, 24))
    completion = SoftImpute(1.0, method="als", centre="none").fit(Observations.from_matrix(full))
    assert completion.rank == np.count_nonzero(np.linalg.svd(full, compute_uv=False) > 1.0) > 12
    assert completion.gap.relative < 2e-3


def test_new_directions_are_orthogonal_to_those_there():
    seen = low_rank_sample(0, noise=0.5)
    squared_loss = SquaredLoss(seen, Effects.of(seen, "none", ""))
    solver = SoftImputeALS(squared_loss, SoftThreshold(0.3), 1e-3, 25)
    start = solver.solution(run(solver, max_steps=3).state)
    few = replace(start, left=start.left[:, :2], values=start.values[:2], right=start.right[:, :2])
    grown = SoftImputeALS(squared_loss, SoftThreshold(0.3), 1e-3, 25, start=few).init()
    assert len(grown.values) > 2
    for vectors in (grown.left, grown.right):
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(grown.values)), atol=1e-8)


def test_truncation_is_the_answer_when_everything_is_seen(full):
    U, s, Vt = np.linalg.svd(full, full_matrices=False)
    completion = IterativeSVD(rank=3, centre="none", tol=1e-12, max_steps=500).fit(Observations.from_matrix(full))
    np.testing.assert_allclose(product(completion), U[:, :3] * s[:3] @ Vt[:3], atol=1e-6)
    assert completion.gap.standing == "searched"


def test_the_ball_is_the_projection_when_everything_is_seen(full):
    seen = Observations.from_matrix(full)
    s = np.linalg.svd(seen.unit.to_unit(full), compute_uv=False)
    completion = TraceNormCompletion(tau=0.4 * s.sum(), tol=1e-9).fit(seen)
    found = np.linalg.svd(product(completion) / seen.unit.half_width, compute_uv=False)
    kept = found[found > 1e-6]
    np.testing.assert_allclose(s[: len(kept)] - kept, s[0] - kept[0], atol=1e-4)
    assert kept.sum() == pytest.approx(0.4 * s.sum())


@pytest.mark.parametrize(("centre", "expected"), [("none", 0.0), ("mean", None)])
@pytest.mark.parametrize("method", ["svd", "als"])
def test_a_penalty_without_end_leaves_the_common_part(centre, expected, method):
    seen = low_rank_sample(0)
    completion = SoftImpute(1e6, centre=centre, method=method).fit(seen)
    constant = np.average(seen.values, weights=seen.counts) if expected is None else expected
    np.testing.assert_allclose(completion.dense(), constant, atol=1e-12)
    assert completion.gap.relative == pytest.approx(0.0, abs=1e-9)


def test_a_vanishing_penalty_interpolates():
    seen = low_rank_sample(0, n_draws=150)
    completion = SoftImpute(1e-3, centre="none", tol=1e-2, max_steps=3000).fit(seen)
    np.testing.assert_allclose(completion.at(seen.rows, seen.cols), seen.values, atol=0.01)


def test_warm_starts_reach_what_cold_ones_do():
    seen = low_rank_sample(4)
    squared_loss = SquaredLoss(seen, Effects.of(seen, "mean", ""))
    start = None
    for penalty in (2.0, 1.0, 0.5):
        solver = ProximalGradient(squared_loss, SoftThreshold(penalty), 1e-7, 25, start=start)
        outcome = run(solver, max_steps=2000)
        start = solver.solution(outcome.state)
        warm_steps = outcome.steps
    cold = run(ProximalGradient(squared_loss, SoftThreshold(0.5), 1e-7, 25), max_steps=2000)
    assert start.objective == pytest.approx(cold.state.now.objective, rel=1e-6)
    assert warm_steps <= cold.steps


def test_both_methods_find_the_same_and_choose_nearly_so():
    seen = low_rank_sample(1)
    one, other = (SoftImpute(0.3, method=method, tol=1e-5, max_steps=3000).fit(seen) for method in ("svd", "als"))
    np.testing.assert_allclose(one.dense(), other.dense(), atol=0.02)
    one, other = (SoftImpute(method=method).fit(seen).chosen["penalty"] for method in ("svd", "als"))
    assert abs(np.log(one / other)) <= 2.01 * abs(np.log(0.75))


@pytest.mark.parametrize("algorithm", [SoftImpute(0.4), TraceNormCompletion(tau=12), IterativeSVD(rank=2)])
def test_the_objective_never_rises(algorithm):
    told = []
    algorithm.fit(low_rank_sample(6), told.append)
    values = [progress.measure for progress in told if progress.task == "completing"]
    assert len(values) > 5
    assert np.all(np.diff(values) <= 1e-12 * values[0])


@pytest.mark.parametrize(
    "algorithm",
    [
        SoftImpute(0.5, tol=1e-8, max_steps=3000),
        SoftImpute(0.5, tol=1e-6, max_steps=3000, centre="mean", method="als"),
        TraceNormCompletion(tau=10, tol=1e-6, max_steps=3000),
        IterativeSVD(rank=2, tol=1e-12, max_steps=3000),
    ],
)
def test_folding_in_a_fitted_row_or_column_returns_it(algorithm):
    seen = low_rank_sample(2)
    completion = algorithm.fit(seen)
    np.testing.assert_allclose(completion.fold_in(seen).dense(), completion.dense(), atol=2e-3)
    if not completion.has_effects:  # the effects of rows are fitted last, so only theirs are those of the columns
        np.testing.assert_allclose(completion.fold_in_columns(seen).dense(), completion.dense(), atol=2e-3)


def test_the_chosen_penalty_is_a_good_one():
    sim = make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.6, random_state=0)
    chosen = SoftImpute(centre="none").fit(sim.observations).chosen["penalty"]
    errors = {
        penalty: np.mean((SoftImpute(penalty, centre="none").fit(sim.observations).dense() - sim.truth) ** 2)
        for penalty in (chosen, 4 * chosen, chosen / 4)
    }
    assert min(errors, key=errors.get) == chosen


def test_a_rank_limit_that_binds_shows_in_the_gap():
    seen = low_rank_sample(0, noise=0.5)
    free, bound = (SoftImpute(0.3, rank=rank, centre="none", max_steps=200).fit(seen) for rank in (None, 2))
    assert free.rank > 2
    assert bound.rank == 2
    assert bound.gap.relative > 0.01 > free.gap.relative
    assert bound.status is Status.STEP_LIMIT


@given(st.floats(0.01, 100), st.lists(st.floats(0, 50), min_size=1, max_size=8))
def test_the_ball_projects(tau, values):
    s = np.sort(values)[::-1]
    projected = TraceBall(tau).prox(s, 1.0)
    assert projected.sum() <= tau * (1 + 1e-9)
    assert np.all(projected <= s + 1e-12)
    if s.sum() > tau:
        assert projected.sum() == pytest.approx(tau)
        lost = (s - projected)[projected > 0]
        np.testing.assert_allclose(lost, lost[0], atol=1e-9)
        assert np.all(s[projected == 0] <= lost[0] + 1e-9)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_every_lower_bound_is_one(seed, penalty):
    """At any matrix, not only at the solution, the dual values lie below every primal one."""
    seen = low_rank_sample(seed % 7, (9, 8), 50)
    squared_loss = SquaredLoss(seen, Effects.of(seen, "none", ""))
    rng = np.random.default_rng(seed)
    A, B, N = rng.normal(size=(9, 2)), rng.normal(size=(8, 2)), rng.normal(size=(9, 8)) * rng.uniform(0, 1)
    E = squared_loss.residual(A, B)
    sigma = float(np.linalg.norm(squared_loss.matrix(E).toarray(), 2))
    norm = np.linalg.norm(N, "nuc")
    loss = objective(seen, N, 0.0)
    assert SoftThreshold(penalty).lower_bound(squared_loss, E, sigma) <= loss + penalty * norm + 1e-9
    assert TraceBall(norm).lower_bound(squared_loss, E, sigma) <= loss + 1e-9
    assert RankLimit(2).lower_bound(squared_loss, E, sigma) == 0.0


def test_too_few_cells_to_choose_from_take_a_default():
    seen = Observations([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0])
    for algorithm in (SoftImpute(), TraceNormCompletion(), IterativeSVD()):
        assert np.isfinite(algorithm.fit(seen).dense()).all()


def test_values_that_are_all_equal_are_their_own_completion():
    seen = Observations([0, 1, 1], [0, 0, 1], [2.0, 2.0, 2.0])
    for algorithm in (SoftImpute(), IterativeSVD()):
        np.testing.assert_allclose(algorithm.fit(seen).dense(), 2.0)


def test_the_penalty_chosen_is_one_that_the_fit_on_all_cells_reaches():
    sim = make_low_rank((200, 20), rank=2, n_draws=2500, noise=0.1, random_state=0)
    train, held_out = split_entries(sim.observations, 0.3, 0)
    chosen, given = (model.fit(train) for model in (SoftImpute(), SoftImpute(penalty=0.3)))
    errors = [held_out.squared_errors(c.at(held_out.rows, held_out.cols)).mean() for c in (chosen, given)]
    assert errors[0] < 1.1 * errors[1]


def test_the_fit_at_a_chosen_penalty_starts_from_the_paths_own():
    seen = make_low_rank((60, 40), rank=2, n_draws=1200, noise=0.1, random_state=0).observations
    chosen = SoftImpute(max_steps=1).fit(seen)
    cold = SoftImpute(penalty=chosen.chosen["penalty"], max_steps=1).fit(seen)
    assert chosen.gap.objective < 0.5 * cold.gap.objective


def test_a_fit_of_a_part_is_placed_by_its_rows_and_columns_and_zero_where_the_part_has_none():
    seen = make_low_rank((8, 6), rank=2, n_draws=60, random_state=0).observations
    part = seen.select((seen.rows != 2) & (seen.cols != 0))
    losses = [SquaredLoss(obs, Effects.of(obs, "none", ""), scale) for obs, scale in ((part, 2.0), (seen, 4.0))]
    rng = np.random.default_rng(0)
    found = FittedSVD(rng.normal(size=(7, 2)), np.array([3.0, 1.0]), rng.normal(size=(5, 2)), np.empty(0), 0.0)
    placed = _extended(found, *losses)
    expected = np.zeros((8, 6))
    expected[np.ix_(part.by_row.ids, part.by_col.ids)] = 2 * (found.left * found.values) @ found.right.T
    np.testing.assert_allclose(4 * (placed.left * placed.values) @ placed.right.T, expected, atol=1e-12)


def test_the_chosen_parameter_goes_by_its_own_name():
    seen = make_low_rank((12, 10), rank=1, n_draws=90, random_state=0).observations
    assert TraceNormCompletion(tau=3.0).fit(seen).chosen == {"tau": 3.0}
    assert TraceNormCompletion(penalty=0.5).fit(seen).chosen == {"penalty": 0.5}

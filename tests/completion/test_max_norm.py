"""The risk over the max-norm ball: certificates, the conic reference, known truths, symmetries, degenerate inputs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill import InputError, Observations, PartialCompleter, load, max_norm
from surefill.completion import Completion, CompletionAlgorithm, MaxNormCompletion
from surefill.completion.max_norm.max_norm_completion import ball_regression
from surefill.completion.max_norm.max_norm_loss import BoundedLoss, EmpiricalRisk
from surefill.datasets import make_low_rank
from surefill.loop import Status


def draw(seed=0, shape=(30, 25), n_draws=700, flip=0.3):
    """Noisy signs of a matrix of rank 4: the loss stays positive for all K tried, and the box binds above 1."""
    sim = make_low_rank(shape, rank=4, n_draws=n_draws, random_state=seed)
    seen, rng = sim.observations, np.random.default_rng(seed)
    values = np.sign(seen.values) * np.where(rng.uniform(size=len(seen)) < flip, -1, 1)
    return Observations(seen.rows, seen.cols, values, shape, (-1, 1), counts=seen.counts)


def risk_of(fit, seen):
    return float(seen.weights @ (seen.values - fit.at(seen.rows, seen.cols)) ** 2)


def factors_prove_membership(fit):
    longest = max(np.sum(side.astype(float) ** 2, axis=1).max() for side in (fit.left, fit.right))
    assert longest <= fit.K * (1 + 1e-6)
    assert np.abs(fit.left @ fit.right.T).max() <= 1 + 1e-9


@pytest.mark.parametrize("K", [0.3, 1.0, 1.4, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_agreement_with_the_conic_program(K, seed):
    seen = draw(seed)
    fit = MaxNormCompletion(K=K, tol=1e-4).fit(seen)
    conic = MaxNormCompletion(K=K, method="conic").fit(seen)
    assert conic.relative_gap <= 1e-4
    assert fit.objective == pytest.approx(conic.objective, rel=1e-4)
    assert max(fit.lower_bound, conic.lower_bound) <= min(fit.objective, conic.objective) * (1 + 1e-9)
    assert fit.relative_gap <= 1e-4
    assert fit.status is Status.CONVERGED
    assert fit.objective == pytest.approx(risk_of(fit, seen), rel=1e-9)
    factors_prove_membership(fit)
    factors_prove_membership(conic)


def test_the_box_binds_and_not_only_where_something_was_seen():
    seen = draw(0)
    fit = MaxNormCompletion(K=2.0, tol=1e-4).fit(seen)
    free = MaxNormCompletion(K=2.0, tol=1e-4, centre=True).fit(seen)
    inside = fit.left @ fit.right.T
    unseen = np.isnan(seen.dense())
    assert (np.abs(inside[:-1, :-1]) > 0.99)[unseen].any()
    assert np.abs(free.left @ free.right.T).max() > 1.05
    assert np.abs(free.dense()).max() <= 1


@pytest.mark.parametrize("penalty", [0.3, 0.1, 0.05])
def test_the_penalised_form_agrees_with_the_conic_program_and_with_its_own_k(penalty):
    seen = draw(2)
    fit = MaxNormCompletion(penalty=penalty, tol=1e-4).fit(seen)
    conic = MaxNormCompletion(penalty=penalty, method="conic").fit(seen)
    assert fit.objective == pytest.approx(conic.objective, rel=1e-4)
    assert fit.relative_gap <= 1e-4
    assert fit.objective == pytest.approx(risk_of(fit, seen) + penalty * fit.K, rel=1e-9)
    limited = MaxNormCompletion(K=fit.K, tol=1e-4).fit(seen)
    assert limited.objective + penalty * fit.K == pytest.approx(fit.objective, rel=3e-4)
    factors_prove_membership(fit)


@pytest.mark.parametrize("K", [0.3, 1.0, 4.0])
def test_fits_to_values_that_differ_by_rounding_are_as_near_as_their_gaps_say(K):
    """The loss is a squared distance, so sum_S w_x (M_x - M*_x)^2 <= gap for every member M and the best one M*."""
    seen = draw(4, n_draws=300)
    rounded = np.clip(seen.values * (1 + 1e-15 * np.random.default_rng(0).normal(size=len(seen))), -1, 1)
    here = MaxNormCompletion(K=K, tol=1e-2).fit(seen)
    there = MaxNormCompletion(K=K, tol=1e-2).fit(replace(seen, values=rounded))
    apart = np.sqrt(seen.weights @ (here.at(seen.rows, seen.cols) - there.at(seen.rows, seen.cols)) ** 2)
    assert apart <= np.sqrt(here.gap) + np.sqrt(there.gap) + 1e-9


def test_a_large_penalty_leaves_nothing():
    fit = MaxNormCompletion(penalty=50.0).fit(draw())
    assert fit.K < 1e-6
    assert np.abs(fit.dense()).max() < 1e-6
    assert fit.relative_gap < 1e-6


def test_no_member_of_the_class_beats_the_lower_bound():
    seen = draw(3)
    fit = MaxNormCompletion(K=1.3).fit(seen)
    rng = np.random.default_rng(0)
    for start in (fit.left[:-1], rng.normal(size=(30, 3))):
        for scale in (0.0, 0.1, 1.0):
            U, V = start + scale * rng.normal(size=start.shape), rng.normal(size=(25, start.shape[1]))
            U, V = (np.sqrt(1.3) * side / np.linalg.norm(side, axis=1, keepdims=True) for side in (U, V))
            M = U @ V.T / max(1, np.abs(U @ V.T).max())
            assert seen.weights @ (seen.values - M[seen.rows, seen.cols]) ** 2 >= fit.lower_bound


@given(seed=st.integers(0, 20), K=st.sampled_from([0.4, 1.6]), dual=st.floats(0, 1), box=st.floats(0, 0.2))
@settings(max_examples=20)
def test_the_bound_is_the_best_scaling_of_the_dual(seed, K, dual, box):
    seen, rng = draw(seed, (6, 5), 20), np.random.default_rng(seed)
    risk = EmpiricalRisk.of(seen, seen.values, K, None, True)
    residual = rng.normal(size=len(seen))
    a, b = 2 * risk.weight @ (residual * risk.target), risk.weight @ residual**2
    grid = np.linspace(0, 5, 20001)
    best = np.max(grid * (a - K * dual - box) - grid**2 * b)
    assert risk.lower_bound(residual, dual, box) == pytest.approx(best, abs=1e-6)
    penalised = replace(risk, K=None, penalty=0.1)
    allowed = grid[grid * dual <= 0.1]
    best = np.max(allowed * (a - box) - allowed**2 * b)
    assert penalised.lower_bound(residual, dual, box) == pytest.approx(best, abs=1e-3)


def test_a_sign_matrix_of_rank_one_is_recovered_where_it_was_drawn():
    rng = np.random.default_rng(0)
    truth = np.outer(rng.choice([-1, 1], 40), rng.choice([-1, 1], 30)).astype(float)
    cells = rng.choice(20 * 30, 350, replace=False)
    seen = Observations(cells // 30, cells % 30, truth[cells // 30, cells % 30], (40, 30), (-1, 1))
    fit = MaxNormCompletion(K=1.0, tol=1e-4).fit(seen)
    assert np.abs(fit.dense()[:20] - truth[:20]).max() < 0.05
    assert fit.status is Status.CONVERGED
    np.testing.assert_array_equal(fit.dense()[20:], 0)


def test_a_rank_is_kept_and_bounded_by_the_convex_class():
    seen = draw(4)
    fit = MaxNormCompletion(K=1.5, rank=2).fit(seen)
    convex = MaxNormCompletion(K=1.5).fit(seen)
    assert fit.left.shape[1] == 2
    assert fit.status is Status.CONVERGED
    assert fit.lower_bound <= convex.objective < fit.objective
    factors_prove_membership(fit)


@given(signs=st.lists(st.sampled_from([-1.0, 1.0]), min_size=12, max_size=12), order=st.permutations(range(12)))
@settings(max_examples=8)
def test_signs_and_names_of_rows_carry_over_to_predictions(signs, order):
    seen, signs, order = draw(5, (12, 9), 80), np.array(signs), np.array(order)
    model = MaxNormCompletion(K=0.8, tol=1e-8)
    turned = Observations(
        order[seen.rows], seen.cols, signs[seen.rows] * seen.values, (12, 9), (-1, 1), counts=seen.counts
    )
    known, again = model.fit(seen), model.fit(turned)
    assert again.objective == pytest.approx(known.objective, rel=1e-6)
    at_turned = again.at(order[seen.rows], seen.cols)
    np.testing.assert_allclose(at_turned, signs[seen.rows] * known.at(seen.rows, seen.cols), atol=2e-3)


def test_units_and_repeats():
    seen = draw(6, (12, 9), 60)
    stars = Observations(seen.rows, seen.cols, 3 + 2 * seen.values, (12, 9), (1, 5), counts=seen.counts)
    fit, in_stars = MaxNormCompletion(K=1.0).fit(seen), MaxNormCompletion(K=1.0).fit(stars)
    np.testing.assert_allclose(in_stars.dense(), 3 + 2 * fit.dense(), atol=1e-6)
    single = Observations(seen.rows, seen.cols, seen.values, (12, 9), (-1, 1))
    assert (seen.counts > 1).any()
    assert abs(MaxNormCompletion(K=1.0).fit(single).objective - fit.objective) > 1e-3


@pytest.mark.parametrize("K", [1e-6, 1.0, 50.0])
def test_degenerate_inputs(K):
    one = MaxNormCompletion(K=K).fit(Observations([1], [2], [0.5], (3, 4), (-1, 1)))
    assert one.at([1], [2])[0] == pytest.approx(min(K, 0.5), abs=2e-3)
    everything = draw(7, (6, 5), 400)
    fit = MaxNormCompletion(K=K).fit(everything)
    assert fit.status is Status.CONVERGED
    assert fit.lower_bound <= fit.objective
    zeros = MaxNormCompletion(K=K).fit(Observations([0, 1], [0, 1], [0.0, 0.0], (2, 2), (-1, 1)))
    np.testing.assert_allclose(zeros.dense(), 0, atol=1e-9)
    column = MaxNormCompletion(K=K).fit(Observations([0, 1, 2], [0, 0, 0], [1.0, -1.0, 1.0], (3, 1)))
    np.testing.assert_allclose(column.dense()[:, 0], min(K, 1) * np.array([1, -1, 1]), atol=2e-3)


def test_an_answer_of_the_stated_norm():
    seen = draw(8, (10, 8), 60)
    fit = MaxNormCompletion(K=1.2).fit(seen)
    assert max_norm(fit.dense()).lower <= 1.2 * (1 + 1e-6)


def test_k_is_chosen_on_held_out_cells_within_the_time():
    sim = make_low_rank((40, 30), rank=1, n_draws=900, noise=0.2, random_state=0)
    steps = []
    fit = MaxNormCompletion(time_limit=20).fit(sim.observations, steps.append)
    assert 0.35 <= fit.K <= 1.5
    assert {step.task for step in steps} == {"choosing K", "fitting in the max-norm ball"}
    assert np.mean((fit.dense() - sim.truth) ** 2) < 0.02
    hurried = MaxNormCompletion(time_limit=1e-3).fit(sim.observations)
    assert hurried.K == 0.25
    assert MaxNormCompletion().fit(sim.observations.select(np.arange(10))).K == 1.0


def test_fold_in_of_a_fitted_row_returns_that_row():
    seen = draw(9)
    for model in (MaxNormCompletion(K=0.5, tol=1e-8), MaxNormCompletion(K=0.3, tol=1e-8, centre=True)):
        fit = model.fit(seen)
        np.testing.assert_allclose(fit.fold_in(seen).dense(), fit.dense(), atol=5e-3)


@given(seed=st.integers(0, 50), K=st.floats(0.01, 3))
@settings(max_examples=20)
def test_ball_regression_is_optimal(seed, K):
    rng = np.random.default_rng(seed)
    size, width = rng.integers(1, 6), rng.integers(1, 6)
    F, y, c = rng.normal(size=(size, width)), rng.normal(size=size), rng.integers(1, 4, size)
    x = ball_regression(F, y, c, K)
    gradient = F.T @ (c * (F @ x - y))
    assert x @ x <= K * (1 + 1e-9)
    if x @ x < K * (1 - 1e-6):
        np.testing.assert_allclose(gradient, 0, atol=1e-8)
    else:
        multiplier = -(gradient @ x) / K
        assert multiplier >= -1e-9
        np.testing.assert_allclose(gradient, -multiplier * x, atol=1e-6)


def test_gradients_by_differences_at_listed_cells():
    seen, rng = draw(0, (6, 5), 20), np.random.default_rng(0)
    risk = EmpiricalRisk.of(seen, seen.values, 2.0, None, True)
    loss, (m, n) = BoundedLoss(risk), risk.shape  # of the rows and columns that were seen
    U, V = rng.normal(size=(m, 3)), rng.normal(size=(n, 3))
    largest = loss.update_box(U, V, 2.0) if loss(U, V, 2.0) else 0
    assert largest == pytest.approx(2 * np.abs(U @ V.T).max())
    assert len(loss.rows) > len(seen)
    value, dU, dV, in_K = loss(U, V, 2.0)
    step = 1e-6
    for side, gradient in ((U, 2 * dU), (V, 2 * dV)):
        side[1, 2] += step
        assert (loss(U, V, 2.0)[0] - value) / step == pytest.approx(gradient[1, 2], rel=1e-3, abs=1e-5)
        side[1, 2] -= step
    assert (loss(U, V, 2.0 + step)[0] - value) / step == pytest.approx(in_K, rel=1e-3)


def test_protocols_seeds_and_storage(tmp_path):
    seen = draw(1, (14, 12), 120)
    model = MaxNormCompletion(K=0.7, centre=True)
    fit = model.fit(seen)
    assert isinstance(model, CompletionAlgorithm)
    assert isinstance(fit, Completion)
    np.testing.assert_array_equal(model.fit(seen).dense(), fit.dense())
    np.testing.assert_allclose(fit.block([3, 1], [2, 5]), fit.dense()[np.ix_([3, 1], [2, 5])])
    completer = PartialCompleter(0.5, completion=model, confidence="coverage")
    completer.fit(seen).save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.result_.completion.dense(), completer.result_.completion.dense())
    assert again.result_.completion.gap == completer.result_.completion.gap


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"K": 0}, "K"),
        ({"K": "big"}, "K"),
        ({"K": 1.0, "penalty": 0.1}, "K"),
        ({"penalty": -1}, "penalty"),
        ({"rank": 0}, "rank"),
        ({"rank": 2, "method": "conic"}, "rank"),
        ({"method": "guess"}, "method"),
        ({"tol": -1}, "tol"),
        ({"time_limit": 0}, "time_limit"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters_are_named(parameters, named):
    with pytest.raises(InputError, match=f"The '{named}' parameter of MaxNormCompletion"):
        MaxNormCompletion(**parameters).fit(draw())

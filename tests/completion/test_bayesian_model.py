"""The Bayesian factor model: what it recovers, folding in, updates, units, repeats, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill.completion import BayesianFactorModel, Completion, CompletionAlgorithm
from surefill.completion.bayes.noise_precision import NoisePrecision
from surefill.completion.bayes.variational_solver import VariationalSolver
from surefill.data import Observations, split_rows
from surefill.datasets import load_movielens, make_blocks, make_low_rank
from surefill.errors import InputError
from surefill.loop import Status, run


def transposed(observations):
    obs = observations
    return Observations(
        obs.cols, obs.rows, obs.values, obs.shape[::-1], obs.bounds, counts=obs.counts, scatter=obs.scatter
    )


def flipped(completion):
    c = completion
    return replace(
        c,
        shape=c.shape[::-1],
        rows=c.cols,
        cols=c.rows,
        row_covariances=c.col_covariances,
        col_covariances=c.row_covariances,
    )


def test_it_is_what_the_protocols_ask_for(fitted):
    assert isinstance(BayesianFactorModel(), CompletionAlgorithm)
    assert isinstance(fitted, Completion)


def test_a_truth_without_noise_is_recovered():
    sim = make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.0, random_state=4)
    completion = BayesianFactorModel().fit(sim.observations)
    np.testing.assert_allclose(completion.dense(), sim.truth, atol=2e-3)


@pytest.mark.parametrize("seed", range(6))
def test_factors_do_not_vanish_where_little_was_seen(seed):
    sim = make_blocks((15, 15), n_draws=400 + 50 * seed, rank=2, noise=0.1, random_state=seed)
    completion = BayesianFactorModel().fit(Observations.from_matrix(sim.observations.dense()))
    assert np.mean((completion.dense() - sim.truth)[sim.support] ** 2) < 0.02 * np.var(sim.truth[sim.support])


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_the_noise_is_learnt_and_unneeded_factors_do_no_harm(noise):
    sim = make_low_rank((80, 70), rank=2, n_draws=4000, noise=noise, random_state=1)
    needed, spare = (BayesianFactorModel(rank=rank).fit(sim.observations) for rank in (2, 10))
    for completion in (needed, spare):
        usual = completion.noise / (
            completion.rows.noise_precision.mean.mean() * completion.cols.noise_precision.mean.mean()
        )
        assert completion.unit.squared_error_from_unit(usual) == pytest.approx(noise**2 / 3, rel=0.15)
    errors = [np.mean((completion.dense() - sim.truth) ** 2) for completion in (needed, spare)]
    assert errors[1] < 1.2 * errors[0] < 0.05 * np.var(sim.truth)


def test_folding_in_a_fitted_row_returns_that_row(sim, fitted):
    again = fitted.fold_in(sim.observations)
    np.testing.assert_allclose(again.rows.mean, fitted.rows.mean, atol=1e-5)
    np.testing.assert_allclose(again.rows.noise_precision.mean, fitted.rows.noise_precision.mean, rtol=0.01)
    np.testing.assert_allclose(again.row_covariances.matrices, fitted.row_covariances.matrices, rtol=0.01, atol=1e-5)
    one = sim.observations.select(sim.observations.rows == 7)
    alone = fitted.fold_in(one)
    np.testing.assert_allclose(alone.block([7], range(50)), again.block([7], range(50)), atol=1e-12)
    np.testing.assert_array_equal(alone.cols.implicit, fitted.cols.implicit[[7, -1]])


def test_a_new_row_is_predicted_nearly_as_well_as_a_fitted_one(sim):
    train, left_out = split_rows(sim.observations, 0.2, 0)
    folded = BayesianFactorModel(rank=3).fit(train).fold_in(left_out)
    rows = left_out.by_row.ids
    assert np.mean((folded.block(rows, np.arange(50)) - sim.truth[rows]) ** 2) < 0.001


def test_folding_in_columns_is_folding_in_rows_of_the_transpose(sim, fitted):
    some = sim.observations.select(sim.observations.cols < 9)
    columns = fitted.fold_in_columns(some)
    rows = flipped(fitted).fold_in(transposed(some))
    np.testing.assert_allclose(columns.dense(), rows.dense().T, atol=1e-12)
    assert columns.cols.ids.tolist() == list(range(9))
    np.testing.assert_allclose(columns.variance([0, 3], [2, 4]), rows.variance([2, 4], [0, 3]), rtol=1e-12)


def test_an_update_learns_new_entries_and_leaves_the_rest():
    sim = make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.05, random_state=0)
    seen = sim.observations
    later = np.isin(seen.rows, [3, 59]) & (seen.cols % 2 == 0) | (seen.cols == 11)
    before, new = seen.select(~later & (seen.rows != 59)), seen.select(later)
    known = seen.select(later | (seen.rows != 59))
    first = BayesianFactorModel(rank=3).fit(before)
    then = first.update(known, new)
    assert (then.rows.ids.tolist(), then.cols.ids.tolist()) == (list(range(60)), list(range(50)))
    refitted = BayesianFactorModel(rank=3).fit(known)
    touched = np.ix_([3, 59], range(50))
    errors = [np.mean((c.dense()[touched] - sim.truth[touched]) ** 2) for c in (first, then, refitted)]
    assert errors[1] < 2 * errors[2] < 0.1 * errors[0]
    column = [np.mean((c.dense()[:, 11] - sim.truth[:, 11]) ** 2) for c in (first, then, refitted)]
    assert column[1] < 2 * column[2] < 0.1 * column[0]
    same = np.setdiff1d(first.rows.ids, new.rows)
    np.testing.assert_array_equal(
        then.rows.mean[np.searchsorted(then.rows.ids, same)], first.rows.mean[np.searchsorted(first.rows.ids, same)]
    )


def test_after_an_update_its_rows_are_optimal_given_the_columns(sim):
    train, left_out = split_rows(sim.observations, 0.1, 0)
    updated = BayesianFactorModel(rank=3).fit(train).update(sim.observations, left_out)
    folded = updated.fold_in(left_out)
    np.testing.assert_allclose(updated.rows.mean[folded.rows.ids], folded.rows.mean[:-1], atol=1e-12)
    np.testing.assert_allclose(
        updated.row_covariances.matrices[folded.rows.ids], folded.row_covariances.matrices[:-1], atol=1e-12
    )


def test_which_cells_were_seen_tells_of_a_row_before_any_value_does():
    rng = np.random.default_rng(0)
    kind = np.arange(300) % 2
    likes = np.outer(2 * kind - 1, np.where(np.arange(60) < 30, 1.0, -1.0))
    shown = rng.random(likes.shape) < np.where((kind[:, None] + np.arange(60)) % 2 == 0, 0.4, 0.05)
    i, j = np.nonzero(shown)
    values = np.clip(likes + rng.normal(0, 1.0, likes.shape), -5, 5)
    completion = BayesianFactorModel(rank=2).fit(Observations(i, j, values[i, j], likes.shape, (-5, 5)))
    blind = replace(completion, rows=replace(completion.rows, implicit=np.zeros_like(completion.rows.implicit)))
    for parity in (0, 1):
        cols = np.arange(parity, 60, 4)
        newcomer = Observations([0] * len(cols), cols, np.zeros(len(cols)), (1, 60), (-5, 5))
        expected, without_implicit = (c.fold_in(newcomer).dense()[0] for c in (completion, blind))
        assert np.corrcoef(expected, likes[parity])[0, 1] > 0.75
        assert np.corrcoef(without_implicit, likes[parity])[0, 1] < 0.5


def test_values_and_variances_are_in_the_users_units():
    sim = make_low_rank((30, 30), rank=1, n_draws=900, noise=0.1, random_state=3)
    seen = sim.observations
    stars = Observations(
        seen.rows, seen.cols, 3 + 2 * seen.values, (30, 30), (3 + 2 * seen.bounds[0], 3 + 2 * seen.bounds[1]),
        counts=seen.counts, scatter=4 * seen.scatter,
    )  # fmt: skip
    in_stars, in_units = BayesianFactorModel(rank=1).fit(stars), BayesianFactorModel(rank=1).fit(seen)
    np.testing.assert_allclose(in_stars.dense(), 3 + 2 * in_units.dense(), atol=1e-8)
    np.testing.assert_allclose(in_stars.variance([0, 5], [3, 9]), 4 * in_units.variance([0, 5], [3, 9]), rtol=1e-8)
    assert stars.bounds[0] <= in_stars.dense().min() <= in_stars.dense().max() <= stars.bounds[1]


def test_repeats_count_as_often_as_they_were_drawn_and_disagreement_is_noise():
    rows, cols, values = [0, 0, 1, 1, 2], [0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 2.0]
    once = Observations(rows * 3, cols * 3, values * 3, bounds=(1, 5))
    counted = Observations(rows, cols, values, bounds=(1, 5), counts=[3] * 5)
    model = BayesianFactorModel(rank=1)
    np.testing.assert_allclose(model.fit(once).dense(), model.fit(counted).dense(), atol=1e-9)
    differing = Observations(rows, cols, values, bounds=(1, 5), counts=[3] * 5, scatter=[6.0] * 5)
    assert model.fit(differing).noise > 2 / 4 > model.fit(counted).noise  # 6 / 3 in units of half-width 2


@given(st.permutations(range(8)))
def test_renaming_rows_renames_what_is_folded_in(names):
    seen = make_low_rank((8, 6), rank=1, n_draws=60, random_state=5).observations
    completion = BayesianFactorModel(rank=2).fit(seen)
    renamed = Observations(
        np.array(names)[seen.rows], seen.cols, seen.values, seen.shape, seen.bounds, counts=seen.counts
    )
    here, there = completion.fold_in(seen).dense(), completion.fold_in(renamed).dense()
    np.testing.assert_allclose(here, there[names], atol=1e-12)


@settings(max_examples=8)
@given(st.permutations(range(20)), st.permutations(range(15)))
def test_renaming_rows_and_columns_renames_a_converged_fit(row_names, col_names):
    seen = make_low_rank((20, 15), rank=1, n_draws=600, noise=0.1, random_state=5).observations
    renamed = Observations(
        np.array(row_names)[seen.rows], np.array(col_names)[seen.cols], seen.values, seen.shape, seen.bounds,
        counts=seen.counts, scatter=seen.scatter,
    )  # fmt: skip
    model = BayesianFactorModel(rank=1, tol=1e-6, max_sweeps=500)
    here, there = model.fit(seen).dense(), model.fit(renamed).dense()
    np.testing.assert_allclose(here, there[np.ix_(row_names, col_names)], atol=0.01)


def test_same_seed_same_result_and_predicting_changes_nothing(sim, fitted):
    same = BayesianFactorModel(rank=3).fit(sim.observations)
    before = fitted.rows.mean.copy()
    np.testing.assert_array_equal(fitted.dense(), same.dense())
    fitted.at([0], [0]), fitted.variance([0], [0]), fitted.fold_in(sim.observations)
    fitted.update(sim.observations, sim.observations.select([0]))
    np.testing.assert_array_equal(fitted.rows.mean, before)
    np.testing.assert_allclose(fitted.at([0, 3], [2, 4]), fitted.dense()[[0, 3], [2, 4]])


def test_unseen_rows_and_columns_fall_back_to_what_is_known():
    seen = Observations([0, 0, 1] * 9, [0, 1, 0] * 9, [1.0, 5.0, 2.0] * 9, shape=(10**9, 10**9), bounds=(1, 5))
    completion = BayesianFactorModel(rank=1).fit(seen)
    assert completion.at([5], [7])[0] == pytest.approx(completion.unit.from_unit(completion.mean))
    assert completion.at([5], [1])[0] > completion.at([5], [0])[0]


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0], [1.0, 5.0, 3.0]])
def test_a_handful_of_cells_is_enough(values):
    completion = BayesianFactorModel().fit(Observations(range(len(values)), [0] * len(values), values, bounds=(1, 5)))
    assert np.isfinite(completion.dense()).all()
    assert (completion.variance([0], [0]) > 0).all()
    assert completion.at([0], [0])[0] == pytest.approx(values[0], abs=1.9)


def test_loop_states_are_reported(sim):
    seen = []
    assert BayesianFactorModel(rank=3, max_sweeps=2).fit(sim.observations, seen.append).status is Status.STEP_LIMIT
    assert len(seen) == 3
    outcome = run(VariationalSolver.of(sim.observations, 3, 0.0, 0), max_steps=2)
    assert (outcome.status, outcome.steps) == (Status.STEP_LIMIT, 2)
    assert BayesianFactorModel(rank=3).fit(sim.observations).status is Status.CONVERGED


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"rank": 0}, "rank"),
        ({"max_sweeps": 1}, "max_sweeps"),
        ({"tol": -1}, "tol"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters(sim, parameters, name):
    with pytest.raises(InputError, match=f"The '{name}' parameter of BayesianFactorModel must be"):
        BayesianFactorModel(**parameters).fit(sim.observations)


def test_parts_that_do_not_fit_together_are_refused(fitted):
    with pytest.raises(InputError, match="must fit together"):
        replace(fitted, rows=fitted.cols)
    with pytest.raises(InputError, match="its noise be above 0"):
        replace(fitted, noise=0.0)
    with pytest.raises(InputError, match="sorted ids and finite tables"):
        replace(fitted.rows, ids=fitted.rows.ids[::-1])
    with pytest.raises(InputError, match="sorted ids and finite tables"):
        replace(fitted.rows, noise_precision=NoisePrecision.unknown(np.ones(3)))
    with pytest.raises(InputError, match="strength above 0"):
        replace(fitted.rows.noise_precision, strength=0.0)
    with pytest.raises(InputError, match="at least 0"):
        replace(fitted.rows.noise_precision, errors=-fitted.rows.noise_precision.errors)


def test_error_and_calibration_on_the_first_official_fold_of_movielens(data_folder):
    base, test = load_movielens("ml-100k", data_folder, fold=1)
    completion = BayesianFactorModel().fit(base)
    errors = (completion.at(test.rows, test.cols) - test.values) ** 2
    assert np.sqrt(np.mean(errors)) < 0.905
    assert np.mean(errors / completion.variance(test.rows, test.cols)) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("wide", [False, True])
def test_a_fit_that_starts_on_a_sample_of_lines_is_as_good(wide, monkeypatch):
    sim = make_low_rank((300, 40), rank=3, n_draws=6000, noise=0.05, random_state=0)
    seen = transposed(sim.observations) if wide else sim.observations
    truth = sim.truth.T if wide else sim.truth
    whole = BayesianFactorModel(rank=3).fit(seen)
    monkeypatch.setattr("surefill.completion.bayes.bayesian_model.SAMPLED_CELLS", 3000)
    sizes = []
    of = VariationalSolver.of
    monkeypatch.setattr(
        VariationalSolver, "of", lambda seen, *rest: sizes.append(seen.by_row.ids.size) or of(seen, *rest)
    )
    sampled = BayesianFactorModel(rank=3).fit(seen)
    assert sizes == ([40, 40] if wide else [300, 38])
    errors = [np.mean((completion.dense() - truth) ** 2) for completion in (whole, sampled)]
    assert errors[1] < 1.1 * errors[0]


def test_many_cells_are_fitted_in_single_precision_as_well_as_in_double(monkeypatch):
    sim = make_low_rank((300, 200), rank=3, n_draws=20_000, noise=0.1, random_state=0)
    double = BayesianFactorModel(rank=5).fit(sim.observations)
    monkeypatch.setattr("surefill.completion.bayes.variational.COMPACT_CELLS", 1)
    single = BayesianFactorModel(rank=5).fit(sim.observations)
    assert (single.rows.mean.dtype, double.rows.mean.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single.dense(), double.dense(), atol=1e-3)
    pairs = np.arange(200), np.arange(200)
    np.testing.assert_allclose(single.variance(*pairs), double.variance(*pairs), rtol=1e-2)
    grid = np.ix_(range(9), range(200))
    np.testing.assert_allclose(single.variance(*grid), double.variance(*grid), rtol=1e-2)
    assert single.row_covariances.matrices.dtype == np.float32
    folded = single.fold_in(sim.observations.select(sim.observations.rows < 9))
    np.testing.assert_allclose(folded.block(range(9), range(200)), single.block(range(9), range(200)), atol=0.02)

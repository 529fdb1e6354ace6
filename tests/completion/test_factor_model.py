from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.completion import Completion, CompletionAlgorithm, FactorModel
from surefill.completion.factor_model import AlternatingLeastSquares
from surefill.data import Observations, split_rows
from surefill.datasets import load_movielens, make_low_rank
from surefill.errors import InputError
from surefill.loop import Status, run


@pytest.fixture(scope="module")
def sim():
    return make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.05, random_state=0)


def test_it_is_what_the_protocols_ask_for(sim):
    model = FactorModel(rank=3)
    assert isinstance(model, CompletionAlgorithm)
    assert isinstance(model.fit(sim.observations), Completion)


def test_a_low_rank_truth_is_found(sim):
    completion = FactorModel(rank=3).fit(sim.observations)
    assert np.mean((completion.dense() - sim.truth) ** 2) < 0.004 < 0.05 * np.var(sim.truth)


def objective(observations, completion, x, y):
    """The docstring's formula, written out."""
    u = observations.unit.to_unit(observations.values)
    i, j = observations.rows, observations.cols
    fitted = completion.mean + x[i, 0] + y[j, 0] + (x[i, 1:] * y[j, 1:]).sum(axis=1)
    loss = np.sum(observations.counts * (u - fitted) ** 2)
    for side, index in ((x, i), (y, j)):
        draws = np.bincount(index, observations.counts, minlength=len(side))
        loss += completion.penalty * np.sum(5 * side[:, 0] ** 2 + np.sqrt(draws) * (side[:, 1:] ** 2).sum(axis=1))
    return loss


def test_the_objective_is_the_documented_one_and_never_rises(sim):
    seen = []
    completion = FactorModel(rank=3, penalty=0.2, tol=0, max_sweeps=25).fit(sim.observations, seen.append)
    values = [p.measure for p in seen]
    assert len(values) == 25
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    x, y = completion.row_solution[:-1], completion.col_solution[:-1]
    assert objective(sim.observations, completion, x, y) == pytest.approx(values[-1], rel=1e-10)


def test_rows_are_optimal_given_the_columns_and_both_when_converged(sim):
    seen = sim.observations
    completion = FactorModel(rank=3, penalty=0.2, tol=1e-12, max_sweeps=3000).fit(seen)
    assert completion.status is Status.CONVERGED
    x, y = completion.row_solution[:-1], completion.col_solution[:-1]
    scale, step = objective(seen, completion, x, y), 1e-4
    for seed in range(20):
        rng = np.random.default_rng(seed)
        dx, dy = step * rng.normal(size=x.shape), step * rng.normal(size=y.shape)
        slope_x = objective(seen, completion, x + dx, y) - objective(seen, completion, x - dx, y)
        slope_y = objective(seen, completion, x, y + dy) - objective(seen, completion, x, y - dy)
        assert abs(slope_x) / (2 * step) < 1e-6 * scale
        assert abs(slope_y) / (2 * step) < 1e-4 * scale


def test_folding_in_a_fitted_row_returns_that_row(sim):
    seen = sim.observations
    completion = FactorModel(rank=3, penalty=0.2, max_sweeps=5).fit(seen)
    again = completion.fold_in(seen)
    np.testing.assert_allclose(again.row_solution, completion.row_solution, atol=1e-12)
    one = seen.select(seen.rows == 7)
    np.testing.assert_allclose(completion.fold_in(one).block([7], range(50)), completion.block([7], range(50)))


def test_a_new_row_is_predicted_nearly_as_well_as_a_fitted_one(sim):
    train, left_out = split_rows(sim.observations, 0.2, 0)
    folded = FactorModel(rank=3).fit(train).fold_in(left_out)
    rows = left_out.by_row.ids
    error = np.mean((folded.block(rows, np.arange(50)) - sim.truth[rows]) ** 2)
    assert error < 0.006


def test_folding_in_columns_is_folding_in_rows_of_the_transpose(sim):
    seen = sim.observations
    completion = FactorModel(rank=3, penalty=0.2, max_sweeps=5).fit(seen)
    some = seen.select(seen.cols < 9)
    columns = completion.fold_in_columns(some)
    flipped = replace(
        completion, shape=(50, 60), row_ids=completion.col_ids, col_ids=completion.row_ids,
        row_solution=completion.col_solution, col_solution=completion.row_solution,
    )  # fmt: skip
    across = Observations(some.cols, some.rows, some.values, (50, 60), some.bounds, counts=some.counts)
    np.testing.assert_allclose(columns.dense(), flipped.fold_in(across).dense().T, atol=1e-12)
    assert columns.col_ids.tolist() == list(range(9))


def test_an_update_learns_new_entries_and_leaves_the_rest(sim):
    seen = sim.observations
    later = (np.isin(seen.rows, [3, 59]) & (seen.cols % 2 == 0)) | (seen.cols == 11)
    new, known = seen.select(later), seen.select(later | (seen.rows != 59))
    first = FactorModel(rank=3, penalty=0.05).fit(seen.select(~later & (seen.rows != 59)))
    then = first.update(known, new)
    assert (then.row_ids.tolist(), then.col_ids.tolist()) == (list(range(60)), list(range(50)))
    for touched in (np.ix_([3, 59], range(50)), np.ix_(range(60), [11])):
        before, after = (np.mean((c.dense()[touched] - sim.truth[touched]) ** 2) for c in (first, then))
        assert after < 0.05 * before
    same = np.setdiff1d(first.col_ids, new.cols)
    np.testing.assert_array_equal(then.col_solution[same], first.col_solution[np.searchsorted(first.col_ids, same)])
    folded = then.fold_in(known.select(np.isin(known.rows, [3, 59])))
    np.testing.assert_allclose(then.row_solution[[3, 59]], folded.row_solution[:-1], atol=1e-12)


def test_values_are_cut_to_the_bounds_in_the_users_units():
    sim = make_low_rank((30, 30), rank=1, n_draws=900, random_state=3)
    seen = sim.observations
    stars = Observations(seen.rows, seen.cols, 3 + 2 * seen.values, (30, 30), (1, 5), counts=seen.counts)
    in_stars = FactorModel(rank=1).fit(stars).dense()
    in_units = FactorModel(rank=1).fit(sim.observations).dense()
    np.testing.assert_allclose(in_stars, 3 + 2 * in_units, atol=1e-9)
    assert in_stars.min() >= 1
    assert in_stars.max() <= 5
    steep = replace(FactorModel(rank=1).fit(stars), mean=0.5)
    steep.row_solution[:, 0] += 2
    assert steep.dense().max() == steep.at([0], [0])[0] == 5


def test_repeats_count_as_often_as_they_were_drawn():
    rows, cols, values = [0, 0, 1, 1, 2], [0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 2.0]
    once = Observations(rows * 3, cols * 3, values * 3, bounds=(1, 5))
    counted = Observations(rows, cols, values, bounds=(1, 5), counts=[3] * 5)
    model = FactorModel(rank=1, penalty=0.5)
    np.testing.assert_allclose(model.fit(once).dense(), model.fit(counted).dense(), atol=1e-12)
    single = Observations(rows, cols, values, bounds=(1, 5))
    assert np.abs(model.fit(single).dense() - model.fit(counted).dense()).max() > 0.01


@given(st.permutations(range(8)), st.permutations(range(6)))
def test_renaming_rows_and_columns_renames_the_biases(row_names, col_names):
    seen = make_low_rank((8, 6), rank=1, n_draws=60, random_state=5).observations
    renamed = Observations(
        np.array(row_names)[seen.rows], np.array(col_names)[seen.cols], seen.values, seen.shape, seen.bounds,
        counts=seen.counts,
    )  # fmt: skip
    strong = FactorModel(rank=1, penalty=50.0, tol=1e-12, max_sweeps=500)
    here, there = strong.fit(seen), strong.fit(renamed)
    np.testing.assert_allclose(here.dense(), there.dense()[np.ix_(row_names, col_names)], atol=1e-6)


def test_limits_of_the_penalty():
    seen = make_low_rank((12, 10), rank=2, n_draws=400, noise=0.1, random_state=1).observations
    flat = FactorModel(penalty=1e9).fit(seen)
    np.testing.assert_allclose(flat.dense(), np.average(seen.values, weights=seen.counts), atol=1e-6)
    free = FactorModel(rank=10, penalty=1e-9, tol=1e-12, max_sweeps=500).fit(seen)
    np.testing.assert_allclose(free.at(seen.rows, seen.cols), seen.values, atol=1e-3)


def test_same_seed_same_result_and_predicting_changes_nothing(sim):
    one, same = FactorModel(rank=3).fit(sim.observations), FactorModel(rank=3).fit(sim.observations)
    before = one.row_solution.copy()
    np.testing.assert_array_equal(one.dense(), same.dense())
    one.at([0], [0]), one.fold_in(sim.observations)
    np.testing.assert_array_equal(one.row_solution, before)
    np.testing.assert_allclose(one.at([0, 3], [2, 4]), one.dense()[[0, 3], [2, 4]])


def test_unseen_rows_and_columns_fall_back_to_what_is_known():
    seen = Observations([0, 0, 1], [0, 1, 0], [1.0, 5.0, 2.0], shape=(10**9, 10**9), bounds=(1, 5))
    completion = FactorModel(rank=1, penalty=0.1).fit(seen)
    mean = completion.unit.from_unit(completion.mean)
    assert completion.at([5], [7])[0] == pytest.approx(mean)
    assert completion.at([5], [1])[0] > completion.at([5], [0])[0]


def test_the_search_for_a_penalty_stops_early_and_finds_a_good_one():
    sim = make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.6, random_state=0)
    seen = []
    chosen = FactorModel().fit(sim.observations, seen.append).penalty
    tried = [p.measure for p in seen if p.task == "choosing the penalty"]
    assert 2 < len(tried) < 10
    assert min(tried) == tried[-3]
    errors = {
        penalty: np.mean((FactorModel(penalty=penalty).fit(sim.observations).dense() - sim.truth) ** 2)
        for penalty in (chosen, 4 * chosen, chosen / 4)
    }
    assert min(errors, key=errors.get) == chosen


def test_a_start_lends_its_rows_to_the_same_rows(sim):
    seen = sim.observations
    fitted = FactorModel(rank=3, penalty=0.2).fit(seen)
    fewer = seen.select(~np.isin(seen.rows, [0, 7]))
    reindexed = AlternatingLeastSquares(fewer, 3, 0.2, 1e-3, 0, fitted).init().row_solution
    np.testing.assert_array_equal(reindexed[:-1], np.delete(fitted.row_solution[:-1], [0, 7], axis=0))
    more = (
        AlternatingLeastSquares(seen, 3, 0.2, 1e-3, 0, FactorModel(rank=3, penalty=0.2).fit(fewer)).init().row_solution
    )
    assert not more[[0, 7]].any()
    assert more[1].any()


def test_too_few_cells_to_choose_from_take_the_default():
    seen = Observations([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0])
    assert FactorModel().fit(seen).penalty == 0.6


def test_loop_states_are_reported(sim):
    outcome = run(AlternatingLeastSquares(sim.observations, 3, 0.3, 0.0, 0), max_steps=2)
    assert (outcome.status, outcome.steps) == (Status.STEP_LIMIT, 2)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"rank": 0}, "rank"),
        ({"penalty": 0}, "penalty"),
        ({"penalty": "x"}, "penalty"),
        ({"max_sweeps": 0}, "max_sweeps"),
        ({"tol": -1}, "tol"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters(sim, parameters, name):
    with pytest.raises(InputError, match=f"The '{name}' parameter of FactorModel must be"):
        FactorModel(**parameters).fit(sim.observations)


def test_error_on_the_first_official_fold_of_movielens(data_folder):
    base, test = load_movielens("ml-100k", data_folder, fold=1)
    completion = FactorModel().fit(base)
    assert np.sqrt(np.mean((completion.at(test.rows, test.cols) - test.values) ** 2)) < 0.93

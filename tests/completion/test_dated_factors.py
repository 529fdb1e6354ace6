"""The model with dates: its bound, its limits, and known truths."""

from dataclasses import replace

import numpy as np
import pytest

from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.dated import DatedSolver
from surefill.completion.bayes.drift import Sittings
from surefill.completion.bayes.variational_solver import VariationalSolver
from surefill.data import Observations, split_entries
from surefill.datasets import make_low_rank
from surefill.errors import InputError
from surefill.io.archive import read_archive, write_archive

SITTINGS = 6


def drifting(seed=0, drift=0.3):
    """Rows answer in a few sittings, and are in another mood in each."""
    sim = make_low_rank((120, 60), rank=2, n_draws=4000, noise=0.2, random_state=seed)
    seen, rng = sim.observations, np.random.default_rng(seed)
    sitting = rng.integers(0, SITTINGS, len(seen))
    mood = rng.normal(0, drift, (120, SITTINGS))
    times = sitting * 1000.0 + rng.integers(0, 5, len(seen))
    values = seen.values + mood[seen.rows, sitting]
    return Observations(seen.rows, seen.cols, values, seen.shape, bounds=(-3, 3)).with_times(times)


@pytest.fixture(scope="module")
def split():
    return split_entries(drifting(), 0.1)


@pytest.fixture(scope="module")
def fitted(split):
    return BayesianFactorModel(rank=3).fit(split[0])


def error(held_out, predicted):
    return float(np.mean(held_out.squared_errors(predicted)))


def test_the_bound_never_falls(split):
    train = split[0]
    plain = VariationalSolver.of(train, 3, 1e-3, 0)
    state = plain.init()
    for _ in range(5):
        state = plain.step(state)
    solver = DatedSolver.of(plain, state, 1.0)
    dated = solver.init()
    assert dated.bound > state.bound - 1e-9 * abs(state.bound)
    for _ in range(15):
        before, dated = dated, solver.step(dated)
        assert dated.bound >= before.bound - 1e-9 * abs(before.bound)


def test_known_dates_lower_the_error_where_rows_drift(split, fitted):
    held_out = split[1]
    undated = error(held_out, fitted.at(held_out.rows, held_out.cols))
    dated = error(held_out, fitted.at(held_out.rows, held_out.cols, held_out.times))
    assert dated < 0.6 * undated  # the moods' variance, 0.09, beside the noise's, 0.013, and what they add to factors


def test_the_right_size_of_drift_is_learnt_and_none_where_there_is_none(split):
    assert BayesianFactorModel(rank=3).chosen_for(split[0]).drift > 0
    calm = drifting(drift=0.0)
    assert BayesianFactorModel(rank=3).chosen_for(calm).drift <= 1 / 64


def test_without_a_date_values_are_those_of_the_model_without_dates(split, fitted):
    plain = BayesianFactorModel(rank=3).fit(split[0].with_times(None))
    np.testing.assert_array_equal(fitted.dense(), plain.dense())
    assert plain.dated is None


def test_one_date_for_all_is_as_good_as_none(split):
    train, held_out = (part.with_times(np.zeros(len(part))) for part in split)
    fitted = BayesianFactorModel(rank=3, drift=1 / 15).fit(train)
    one, none = (error(held_out, fitted.at(held_out.rows, held_out.cols, t)) for t in (held_out.times, None))
    assert one == pytest.approx(none, rel=0.02)


def test_far_from_all_dates_a_row_is_what_it_is_on_average(fitted):
    far = fitted.dated.drift.at(np.arange(5), np.full(5, 1e9))[0]
    np.testing.assert_allclose(far, 0.0, atol=1e-12)


def test_new_rows_are_folded_in_with_their_dates(split, fitted):
    train, held_out = split
    rows = np.arange(40)
    some, asked = (part.select(np.isin(part.rows, rows)) for part in (train, held_out))
    folded = fitted.fold_in(some)
    dated = error(asked, folded.at(asked.rows, asked.cols, asked.times))
    assert dated < 0.6 * error(asked, folded.at(asked.rows, asked.cols))
    assert fitted.fold_in(some.with_times(None)).dated is None


def test_a_saved_model_knows_its_dates(split, fitted, tmp_path):
    write_archive(tmp_path / "model", "test", 1, fitted)
    again = read_archive(tmp_path / "model", "test", 1, lambda content: content)
    cells = split[1].rows, split[1].cols, split[1].times
    np.testing.assert_array_equal(again.at(*cells), fitted.at(*cells))


def test_times_go_with_their_cells(split):
    whole, (train, _) = drifting(), split
    np.testing.assert_array_equal(train.times, whole.times[whole.find(train.rows, train.cols)])
    twice = whole.select(np.array([3, 5, 3]))
    np.testing.assert_array_equal(twice.times, whole.times[[3, 5]])
    assert whole.in_shape((50, 40)).times.shape == whole.in_shape((50, 40)).values.shape


def test_scales_are_between_the_gap_and_the_span():
    sittings = Sittings.of(np.array([0, 0, 0, 1]), np.array([0.0, 1.0, 16.0, 0.0]))
    scales = sittings.scales()
    assert scales[0] == pytest.approx(np.median([1, 15]))
    assert np.all(np.diff(scales) > 0)
    assert scales[-1] < 16


def test_bad_times_and_drifts_are_refused(split):
    with pytest.raises(InputError, match="one finite number for each of the"):
        split[0].with_times([1.0])
    with pytest.raises(InputError, match="drift"):
        replace(BayesianFactorModel(), drift=-1.0).fit(split[0])

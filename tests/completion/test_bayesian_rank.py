"""How the Bayesian factor model chooses its rank, grows to it, and goes on from an earlier fit."""

import numpy as np
import pytest

from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.variational_solver import VariationalSolver
from surefill.data import Observations
from surefill.datasets import make_low_rank
from surefill.errors import InputError
from surefill.loop import Status


@pytest.fixture(scope="module")
def twenty_five_factors():
    return make_low_rank((150, 120), rank=25, n_draws=12_000, noise=0.02, random_state=3)


def error_of(completion, sim):
    return float(np.mean((completion.dense() - sim.truth) ** 2))


def test_rank_grows_where_more_factors_predict_better(twenty_five_factors):
    sim = twenty_five_factors
    chosen = BayesianFactorModel(rank="auto").fit(sim.observations)
    assert chosen.rank >= 20
    assert error_of(chosen, sim) < 0.5 * error_of(BayesianFactorModel(rank=10).fit(sim.observations), sim)
    assert BayesianFactorModel(rank="auto").chosen_for(sim.observations).rank == chosen.rank


def test_rank_of_many_cells_is_chosen_on_a_part_of_the_lines(twenty_five_factors, monkeypatch):
    monkeypatch.setattr("surefill.completion.bayes.bayesian_model.SAMPLED_CELLS", 6000)
    sizes, of = [], VariationalSolver.of
    monkeypatch.setattr(VariationalSolver, "of", lambda seen, *rest: sizes.append(len(seen)) or of(seen, *rest))
    assert BayesianFactorModel(rank="auto").chosen_for(twenty_five_factors.observations).rank >= 20
    assert max(sizes) < 6000


def test_rank_stays_where_they_do_not():
    sim = make_low_rank((150, 120), rank=2, n_draws=12_000, noise=0.3, random_state=3)
    assert BayesianFactorModel(rank="auto").chosen_for(sim.observations).rank == 10


def test_rank_is_not_chosen_by_a_few_hundred_cells():
    sim = make_low_rank((150, 120), rank=25, n_draws=3000, noise=0.02, random_state=3)
    assert BayesianFactorModel(rank="auto").chosen_for(sim.observations).rank == 10


def test_growth_goes_through_doublings_to_the_rank(twenty_five_factors):
    grown = list(BayesianFactorModel(rank=33).growth(twenty_five_factors.observations))
    assert [completion.rank for completion in grown] == [10, 20, 33]
    at_once = [error_of(completion, twenty_five_factors) for completion in grown]
    assert at_once[0] > at_once[1] > at_once[2]


def test_widened_posterior_keeps_what_was_learnt(twenty_five_factors):
    seen = twenty_five_factors.observations
    solver = VariationalSolver.of(seen, 3, 1e-3, 0)
    before = solver.init().rows
    after = before.widened(2, np.random.default_rng(0))
    np.testing.assert_array_equal(after.mean[:, :4], before.mean)
    np.testing.assert_array_equal(after.precision[:4, :4], before.precision)
    assert after.mean.shape == (before.mean.shape[0], 6)
    assert not after.mean[-1, 4:].any()  # a row never seen has no factors


def test_a_fit_that_goes_on_from_a_converged_one_stays_there(sim, fitted):
    steps = []
    again = BayesianFactorModel(rank=3).fit_from(fitted, sim.observations, steps.append)
    assert again.status is Status.CONVERGED
    assert len(steps) <= 2
    assert np.abs(again.dense() - fitted.dense()).max() < 0.01


def test_going_on_from_some_cells_is_as_good_as_fitting_all(sim):
    rng = np.random.default_rng(0)
    known = (rng.random(len(sim.observations)) < 0.6) & (sim.observations.rows < 55) & (sim.observations.cols > 3)
    first = BayesianFactorModel(rank=3).fit(sim.observations.select(known))
    then = BayesianFactorModel().fit_from(first, sim.observations)
    assert then.rows.ids.tolist() == list(range(60))
    errors = [error_of(c, sim) for c in (first, then, BayesianFactorModel(rank=3).fit(sim.observations))]
    assert errors[1] < 1.1 * errors[2] < 0.2 * errors[0]


def test_a_fit_goes_on_only_within_the_same_bounds(sim, fitted):
    seen = sim.observations
    wider = Observations(seen.rows, seen.cols, seen.values, seen.shape, (-9, 9), counts=seen.counts)
    with pytest.raises(InputError, match="same 'bounds'"):
        BayesianFactorModel().fit_from(fitted, wider)

"""What is said is never more than what was shown: where nothing is promised, and how figures are rounded."""

from dataclasses import replace

import numpy as np
import pytest

import surefill as sf
from surefill.completion import ExternalCompletion
from surefill.guarantee import Calibration, Limit, Population, SelectionPlan
from surefill.guarantee.shortfall import find_shortfall
from surefill.losses import SQUARED
from surefill.report import render_report


@pytest.fixture(scope="module")
def sim():
    return sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)


def fitted(observations, tolerance=0.1, **asked):
    return sf.PartialCompleter(tolerance, confidence="posterior", random_state=0, **asked).fit(observations)


def test_rows_that_are_folded_in_have_no_promise_at_any_tolerance(sim):
    folded = fitted(sim.observations).result_.fold_in(sf.Observations([0], [7], [0.5], shape=(1, 50)))
    for result in (folded, folded.at_tolerance(0.3)):
        assert not result.guarantee.promised
        assert "these rows were not there" in result.guarantee.sentence


def test_no_factor_is_said_to_be_survived_once_the_promise_is_withdrawn(sim):
    completer = fitted(sim.observations)
    assert "It holds as long as" in completer.result_.guarantee.holds_over
    rows, cols = completer.suggest(3)
    guarantee = completer.observe(rows, cols, sim.truth_at(rows, cols)).result_.guarantee
    assert (guarantee.promised, guarantee.sensitivity) == (False, None)
    assert "It holds as long as" not in guarantee.holds_over
    assert "Room for hidden bias" not in render_report(completer)


def test_a_table_without_a_hole_has_no_promise_about_filled_cells():
    values = np.random.default_rng(0).normal(size=(30, 20)) * 0.01
    guarantee = fitted(sf.Observations.from_matrix(values), bounds=(-1, 1)).result_.guarantee
    assert not guarantee.promised
    assert "no cell is missing" in guarantee.sentence


def test_probability_and_tolerance_are_not_rounded_towards_more(sim):
    sentence = fitted(sim.observations, 0.344449, delta=1e-7).result_.guarantee.sentence
    assert sentence.startswith("With probability at least 0.9999999 over")
    assert "is at most 0.3445." in sentence


def test_nothing_is_advised_of_predictions_that_may_have_seen_the_calibration_cells(sim):
    seen = sim.observations
    theirs = np.zeros(seen.shape)
    result = (
        sf.PartialCompleter(1e-3, completion=ExternalCompletion(lambda rows, cols: theirs[rows, cols]), random_state=0)
        .fit(seen)
        .result_
    )
    assert result.selection.empty
    assert result.selection.shortfall is None
    assert "could be promised" not in result.guarantee.sentence


def test_more_cells_than_the_table_has_are_never_advised():
    """The same calibration cells, of a table that has room for as many as would do, and of one that has not."""
    n, held_out, n_observed = 4000, 60, 300
    cells = Population.of(np.full(n, 0.1), np.full(n, 50.0), np.ones(n), 1.0, np.ones(n, bool), 1e5)
    plan = SelectionPlan(0.3, 0.01, 0.0, held_out, n_observed, cells, SQUARED)
    ones = np.ones(held_out)
    seen = Calibration(0.1 * ones, ones, 0.25 * ones, ones, 50 * ones)
    needed = find_shortfall(plan, seen).needed_observations
    assert n_observed < needed <= n_observed + 1e5
    full = replace(plan, population=replace(cells, n_missing=0.95 * needed - n_observed))
    assert find_shortfall(full, seen).needed_observations is None


def test_what_is_advised_does_as_it_is_printed(sim):
    result = fitted(sim.observations, 1e-3).result_
    assert result.selection.shortfall.reachable
    for each in result.selection.shortfall.reachable:
        printed = float(f"{each.tolerance:.3g}")
        assert printed == each.tolerance
        assert not result.at_tolerance(printed).selection.empty


def test_a_sensitivity_that_no_number_of_cells_meets_is_named():
    """Half of the cells lose 0, half 0.5 where 0.3 is asked: (0.3 / 2 - 2 * 0.2) / 2 is below 0."""
    n, held_out = 4000, 400
    cells = Population.of(np.full(n, 0.1), np.full(n, 10.0), np.ones(n), 1.0, np.ones(n, bool), float(n))
    plan = SelectionPlan(0.3, 0.1, 0.0, held_out, 2000, cells, SQUARED)
    ones = np.ones(held_out)
    seen = Calibration(0.1 * ones, ones, np.resize([0.0, 0.5], held_out), ones, 10 * ones)
    assert find_shortfall(plan, seen).limited_by is Limit.CALIBRATION
    shortfall = find_shortfall(replace(plan, sensitivity=2.0), seen)
    assert shortfall.best_error == 0.25
    assert (shortfall.limited_by, shortfall.needed_observations) == (Limit.SENSITIVITY, None)
    assert "odds of being observed that are off by a factor of 2" in shortfall.sentence


def test_chances_that_are_clearly_wrong_are_not_to_be_relied_on():
    sim = sf.datasets.make_low_rank((200, 100), rank=2, n_draws=10_000, noise=0.1, random_state=1)
    wrong = fitted(sim.observations, 0.1, propensity=np.full((200, 100), 0.08)).result_.guarantee
    right = fitted(sim.observations, 0.1, propensity=np.full((200, 100), 1 - np.exp(-0.5))).result_.guarantee
    assert wrong.promised
    assert "do not rely on the guarantee with them" in wrong.holds_over
    assert "do not rely" not in right.holds_over


def test_a_report_of_a_table_without_a_supported_cell():
    tiny = sf.Observations([0, 0, 1, 1], [0, 1, 0, 2], [1.0, 2.0, 3.0, 4.0], (3, 3))
    assert "promises nothing" in render_report(sf.PartialCompleter(1.0, random_state=0).fit(tiny))

"""Cells observed since the calibration cells were held out: chosen among the others, whatever the promise is about."""

import numpy as np
from scipy.stats import binom

import surefill as sf
from surefill.guarantee import Calibration, Population, SelectionPlan, tested_sets
from surefill.losses import SQUARED

TOLERANCE, BAD, CHANCE, DELTA = 0.5, 0.55, 0.5, 0.05


def chance_of_a_promise(n, allow):
    """P(the set of all cells is promised) where n good cells lose nothing, n bad ones 0.55, each held out by a fair
    coin, and then all good cells but the calibration cells are asked: what is left to be filled loses 0.55 on average.

    Exactly, by two binomials: what the test sees depends on how many of each are held out.
    """
    size = 2 * n
    cells = Population.of(
        np.full(size, 0.27), np.full(size, 1 / CHANCE), np.ones(size), 1.0, np.ones(size, bool), float(size)
    )
    promised, weights = 0.0, binom.pmf(np.arange(n + 1), n, CHANCE)
    for good in range(n + 1):
        asked = n - good if allow else 0
        plan = SelectionPlan(TOLERANCE, DELTA, 0.0, n, n, cells, SQUARED, n_asked=asked)
        for bad in np.flatnonzero(weights > 1e-9):
            held_out = good + bad
            loss, ones = np.r_[np.zeros(good), np.full(bad, BAD)], np.ones(held_out)
            seen = Calibration(0.27 * ones, ones, loss, ones, ones / CHANCE)
            promised += (
                weights[good] * weights[bad] * (tested_sets.TestedSets.of(plan, seen).rejected(plan, 1.0).size > 0)
            )
    return promised


def test_a_false_promise_stays_rare_though_all_that_was_easy_was_asked():
    assert chance_of_a_promise(60, allow=True) <= DELTA
    assert chance_of_a_promise(60, allow=False) > DELTA


def test_few_answers_leave_the_promise_and_many_take_it_away():
    """Quiet columns are asked out, so that only the loud ones, beyond the tolerance, are left to be filled."""
    rng = np.random.default_rng(4)
    m, n = 150, 60
    noise = np.where(np.arange(n) < n // 2, 0.1, 1.0)
    values = np.clip(rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) / 2 + noise * rng.normal(size=(m, n)), -4, 4)
    seen = rng.random((m, n)) < 0.2
    rows, cols = np.nonzero(seen)
    first = sf.Observations(rows, cols, values[seen], (m, n), (-4, 4))
    completer = sf.PartialCompleter(0.7, 0.05, random_state=4, confidence="posterior").fit(first)
    assert completer.result_.guarantee.promised
    few = np.nonzero(~seen & (np.arange(n) == 3))
    completer.observe(*few, values[few]).refit()
    assert completer.result_.plan.n_asked == len(few[0])
    assert completer.result_.guarantee.promised
    rest = np.nonzero(~seen & (np.arange(n) < n // 2) & (np.arange(n) != 3))
    completer.observe(*rest, values[rest]).refit()
    result = completer.result_
    assert not result.guarantee.promised
    assert f"The {len(few[0]) + len(rest[0]):,} cells observed since the first fit" in result.guarantee.sentence

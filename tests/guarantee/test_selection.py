from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from surefill.data import Observations
from surefill.estimators import PartialCompleter
from surefill.guarantee import Calibration, Limit, Population, SelectionPlan, rounding_threshold, select, tested_sets
from surefill.guarantee.selection import MOST_SENSITIVITY, REFUSALS, survived_sensitivity
from surefill.losses import SQUARED
from surefill.risk import RiskCurve
from surefill.spaces import DenseConfidence

pairs = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 4)), min_size=10, max_size=60)


def plan_for(tolerance, n=500, floor=0.0, delta=0.1, largest=4.0, reference=None, weight=1.0, sensitivity=1.0):
    """A plan for n calibration cells like the reference, or for cells that weigh more each."""
    risks = np.linspace(0.01, 1.0, 400) if reference is None else np.asarray(reference)
    size = len(risks)
    count = n * weight / size
    cells = Population.of(risks, np.full(size, weight), np.full(size, largest), count, np.zeros(size, bool), None)
    return SelectionPlan(tolerance, delta, floor, n, 5 * n, cells, SQUARED, sensitivity, leaves_out_calibration=False)


def calibration_of(risk, loss, confidence=None, weight=None, largest=4.0):
    risk, n = np.asarray(risk, float), len(risk)
    return Calibration(
        risk, np.ones(n) if confidence is None else confidence, np.asarray(loss, float), np.full(n, largest),
        np.ones(n) if weight is None else weight,
    )  # fmt: skip


def draws(rng, n, loss_per_risk=1.0):
    """Squared normal errors whose mean is the risk times a factor, cut at 4."""
    risk = rng.uniform(0.01, 1.0, n)
    return risk, np.minimum(loss_per_risk * risk * rng.chisquare(1, n), 4.0)


def test_no_losses_keep_everything_and_losses_above_the_tolerance_nothing():
    risk = np.random.default_rng(0).uniform(0.01, 1.0, 500)
    everything = select(plan_for(0.5), calibration_of(risk, np.zeros(500)))
    assert everything.keeps(risk, np.ones(500)).all()
    assert (everything.held_out_share, everything.held_out_error) == (1.0, 0.0)
    assert (everything.limited_by, everything.shortfall) == (Limit.SUPPORT, None)
    nothing = select(plan_for(0.5), calibration_of(risk, np.full(500, 0.51)))
    assert nothing.empty
    assert not nothing.keeps(risk, np.ones(500)).any()
    assert nothing.held_out_error is None
    assert nothing.limited_by is Limit.TOLERANCE
    assert nothing.shortfall.best_error == pytest.approx(0.51)
    assert nothing.shortfall.needed_observations is None
    assert "has mean squared error 0.51, not below the tolerance 0.5" in nothing.sentence


def test_a_larger_tolerance_keeps_no_less_and_a_smaller_delta_no_more():
    rng = np.random.default_rng(1)
    seen = calibration_of(*draws(rng, 3000))
    by_tolerance = [select(plan_for(t, 3000), seen).held_out_share for t in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 1.0)]
    assert by_tolerance == sorted(by_tolerance)
    assert by_tolerance[0] < 0.1
    assert by_tolerance[-1] == 1
    by_delta = [select(plan_for(0.3, 3000, delta=d), seen).held_out_share for d in (1e-6, 0.01, 0.1, 0.5)]
    assert by_delta == sorted(by_delta)


def test_a_delta_next_to_one_keeps_no_less_than_a_smaller_one():
    risk, loss = draws(np.random.default_rng(2), 500)
    kept = [
        select(plan_for(0.5, delta=delta), calibration_of(risk, loss), advise=False).held_out_share
        for delta in (0.05, 0.5, 0.9, 0.9999, 0.999999, 1 - 1e-12)
    ]
    assert kept[0] > 0.5
    assert min(kept[3:]) >= kept[0]


@pytest.mark.parametrize("tolerance", [15.0, 16.0, 20.0, 1e6, 1e60, 1e120])
def test_a_tolerance_that_no_loss_exceeds_keeps_everything(tolerance):
    rng, n = np.random.default_rng(3), 160
    held_out, risk, weight = rng.random(n) < 0.2, rng.uniform(0.5, 2.0, n), rng.uniform(3.0, 8.0, n)
    largest = np.full(n, 16.0)
    cells = Population.of(risk, weight, largest, 1.0, ~held_out, float((~held_out).sum()))
    plan = SelectionPlan(tolerance, 0.05, 0.0, int(held_out.sum()), n, cells, SQUARED)
    loss = np.minimum(risk * rng.chisquare(1, n), 16.0)
    tested = Calibration(risk[held_out], np.ones(held_out.sum()), *(x[held_out] for x in (loss, largest, weight)))
    with np.errstate(all="raise", under="ignore"):
        assert select(plan, tested).filled_share > 0.95


def test_the_kept_set_is_most_of_what_the_truth_allows_and_is_broken_at_most_delta_of_the_time():
    """Risks are right: all of {risk <= t} has mean loss t / 2, so that tolerance 0.3 allows t = 0.6 (less the cut)."""
    rng, broken, thresholds = np.random.default_rng(2), 0, []
    for _ in range(300):
        selection = select(plan_for(0.3, 2000), calibration_of(*draws(rng, 2000)))
        thresholds.append(selection.threshold)
        broken += (0.01 + selection.threshold) / 2 > 0.3
    assert broken <= binom.ppf(0.999, 300, 0.1)
    assert 0.5 < np.mean(thresholds) < 0.6


@pytest.mark.parametrize("loss_per_risk", [0.5, 2.0, 4.0])
def test_risks_that_are_wrong_cost_coverage_and_not_the_promise(loss_per_risk):
    rng, broken = np.random.default_rng(3), 0
    for _ in range(200):
        selection = select(plan_for(0.3, 2000), calibration_of(*draws(rng, 2000, loss_per_risk)), advise=False)
        broken += not selection.empty and loss_per_risk * (0.01 + min(selection.threshold, 1.0)) / 2 > 0.3 * 1.02
    assert broken <= binom.ppf(0.999, 200, 0.1)


def test_an_order_without_information_is_safe_too():
    """All entries have mean loss 0.3 = the tolerance, whatever the risk says: hardly anything may be kept."""
    rng = np.random.default_rng(4)
    losses = 4.0 * (rng.random((500, 500)) < 0.075)
    seen = [calibration_of(rng.uniform(0.01, 1, 500), loss) for loss in losses]
    kept = [not select(plan_for(0.3, 500), each, advise=False).empty for each in seen]
    assert np.mean(kept) <= binom.ppf(0.999, 500, 0.1) / 500


def test_weights_aim_at_other_entries():
    """Half of the entries are bad; those drawn seldom. The weighted mean is what counts."""
    rng, broken, unweighted = np.random.default_rng(5), 0, 0
    for _ in range(200):
        bad = rng.random(1500) < 0.1
        loss = np.where(bad, 1.0, 0.1) * rng.uniform(0.5, 1.5, 1500)
        weight = np.where(bad, 9.0, 1.0)  # aimed at entries of which half are bad: mean 0.55
        risk = rng.uniform(0.01, 1, 1500)
        aimed = calibration_of(risk, loss, weight=weight)
        broken += not select(plan_for(0.5, 1500, weight=9.0), aimed, advise=False).empty
        unweighted += not select(plan_for(0.5, 1500), calibration_of(risk, loss)).empty
    assert broken <= binom.ppf(0.999, 200, 0.1)
    assert unweighted == 200
    allowed = select(plan_for(0.7, 1500, weight=9.0), calibration_of(risk, loss, weight=weight))
    assert allowed.held_out_error == pytest.approx(np.average(loss, weights=weight), abs=0.05)


def test_the_floor_keeps_out_what_is_not_supported_however_small_its_risk():
    rng = np.random.default_rng(6)
    risk, confidence = rng.uniform(0.01, 1, 1000), rng.uniform(size=1000)
    selection = select(plan_for(0.5, 1000, floor=0.4), calibration_of(risk, np.zeros(1000), confidence))
    np.testing.assert_array_equal(selection.keeps(risk, confidence), confidence >= 0.4 - 1e-5)
    assert selection.held_out_share == pytest.approx(np.mean(confidence >= 0.4))
    nothing = select(plan_for(0.5, 1000, floor=1.5), calibration_of(risk, np.zeros(1000), confidence))
    assert (nothing.limited_by, nothing.shortfall.n_supported) == (Limit.SUPPORT, 0)
    assert "none of the 1,000 calibration cells is supported" in nothing.sentence
    few = select(plan_for(0.5, 1000, floor=0.99), calibration_of(risk, np.full(1000, 0.4), confidence))
    assert few.empty
    assert few.shortfall.n_supported == np.sum(confidence >= 0.99 - 1e-5)
    assert few.limited_by is Limit.SUPPORT
    assert f"only {few.shortfall.n_supported} of the 1,000 calibration cells have the confidence" in few.sentence


def test_entries_of_equal_risk_go_together_and_risks_beyond_the_population_are_not_kept():
    risk = np.repeat([0.1, 0.5, 0.9], 300)
    loss = np.repeat([0.0, 0.0, 2.0], 300)
    plan = plan_for(0.3, 900, reference=risk)
    selection = select(plan, calibration_of(risk, loss))
    assert selection.threshold == 0.5
    assert selection.held_out_share == pytest.approx(2 / 3)
    assert selection.limited_by is Limit.TOLERANCE
    everything = select(plan, calibration_of(risk, 0 * loss))
    assert not everything.keeps([0.91], [1.0]).any()


def test_too_few_entries_are_told_how_many_would_do_and_what_could_be_promised():
    rng = np.random.default_rng(7)
    risk = rng.uniform(0.01, 1, 40_000)

    def kept(tolerance, n):
        return select(plan_for(tolerance, n), calibration_of(risk[:n], np.full(n, 0.1)))

    few = kept(0.2, 40)
    assert few.empty
    assert few.limited_by is Limit.CALIBRATION
    assert "40 calibration cells are too few to promise 0.2 with probability 0.9" in few.sentence
    shortfall = few.shortfall
    needed = shortfall.needed_observations // 5
    low, high = shortfall.needed_range
    assert low < shortfall.needed_observations
    assert high is None or high > shortfall.needed_observations
    assert not kept(0.2, 2 * needed).empty
    assert kept(0.2, needed // 4).empty
    first = shortfall.reachable[0]
    assert kept(1.03 * first.tolerance, 40).held_out_share == pytest.approx(first.share, abs=0.3)
    assert kept(0.95 * first.tolerance, 40).empty
    assert [each.tolerance for each in shortfall.reachable] == sorted(each.tolerance for each in shortfall.reachable)
    assert "check one with another seed" in few.sentence
    one = kept(0.2, 1)
    assert one.shortfall.reachable == ()
    assert "nothing can be promised at any tolerance" in one.sentence


@given(st.integers(1, 300), st.floats(0.01, 5), st.floats(0.001, 0.5), st.floats(1, 2))
def test_shares_of_the_capital_add_up_to_it_and_bets_leave_some_whatever_is_lost(n, tolerance, delta, G):
    plan = plan_for(tolerance, n, delta=delta, sensitivity=G)
    assert (np.diff(plan.sets.thresholds) > 0).all()
    assert plan.sets.thresholds[-1] == plan.population.risk[-1]
    assert plan.stakes.sum() == pytest.approx(1.0)
    assert (plan.sets.bets * G * (plan.largest_loss - tolerance) < 1).all()


@pytest.mark.parametrize("missing", [2000.0, None])
def test_the_capital_is_on_the_bets_of_the_large_sets(missing):
    risk, size = np.linspace(0.01, 1.0, 2000), 2000
    cells = Population.of(risk, np.full(size, 2.0), np.ones(size), 1.0, np.ones(size, dtype=bool), missing)
    plan = SelectionPlan(0.6, 0.1, 0.0, 999, 999, cells, SQUARED)
    assert set(np.flatnonzero(plan.stakes)) == set(plan.sets.best[plan.sets.target :])


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_sets_tested_at_once_need_a_capital_of_one_over_delta(delta):
    risk, size = np.linspace(0.01, 1.0, 2000), 2000
    cells = Population.of(risk, np.full(size, 2.0), np.ones(size), 1.0, np.ones(size, dtype=bool), float(size))
    plan = SelectionPlan(0.6, delta, 0.0, 999, 999, cells, SQUARED)
    won = np.full((len(plan.sets.thresholds), len(plan.stakes)), np.log(1 / delta))
    assert len(tested_sets.rejected_sets(plan, won + 1e-6)) == len(won)
    assert len(tested_sets.rejected_sets(plan, won - 1e-6)) == 0


@pytest.mark.parametrize("aim", ["unobserved", "all", "observed"])
def test_sets_that_break_the_tolerance_are_promised_with_a_chance_of_at_most_delta(aim):
    """Exactly, over all ways the coins may fall: about filled cells, which depend on them, all cells of a set, or cells
    in proportion to chances that the test does not know."""
    n, delta, chances = 8, 0.8, []
    falls, risk = np.array(list(np.ndindex(*[2] * n)), dtype=bool), np.linspace(0.001, 0.01, n)
    for bad, rarely in product(([1, 2], [1, 4, 7], [5, 6, 7]), (0.15, 0.3)):
        loss, pi = np.zeros(n), np.full(n, 0.3)
        loss[bad], pi[bad] = 1.0, rarely
        weight, missing = (np.ones(n), None) if aim == "observed" else (1 / pi, float(n))
        count = pi.mean() if aim == "observed" else 1.0
        cells = Population.of(risk, weight, np.ones(n), count, np.ones(n, dtype=bool), missing)
        plan = SelectionPlan(0.3, delta, 0.0, n, n, cells, SQUARED, leaves_out_calibration=aim == "unobserved")
        wrong = 0.0
        for held_out in falls:
            ones = np.ones(np.count_nonzero(held_out))
            seen = Calibration(risk[held_out], ones, loss[held_out], ones, weight[held_out])
            rejected = tested_sets.TestedSets.of(plan, seen).rejected(plan, 1.0)
            if any(broken(plan, j, risk, loss, weight, about(aim, pi, held_out)) for j in rejected):
                wrong += np.prod(np.where(held_out, pi, 1 - pi))
        chances.append(wrong)
    assert max(chances) <= delta
    assert max(chances) > delta / 2


def about(aim, pi, held_out):
    """How much each cell counts in what is promised."""
    return {"unobserved": (~held_out).astype(float), "all": np.ones(len(pi)), "observed": pi}[aim]


@pytest.mark.parametrize(("risk", "held_out", "lucky"), [(0.5, 200, True), (0.2, 200, False), (0.2, 20, True)])
def test_nothing_is_promised_where_a_promise_is_less_likely_than_delta(risk, held_out, lucky):
    """All that was held out lost nothing, but of so many cells of such risks that was not to be expected."""
    n, of_each = 4000, np.ones(held_out)
    cells = Population.of(np.full(n, risk), np.full(n, 20.0), np.ones(n), 1.0, np.ones(n, dtype=bool), float(n))
    plan = SelectionPlan(0.3, 0.1, 0.0, held_out, n, cells, SQUARED)
    calibration = Calibration(risk * of_each, of_each, 0 * of_each, of_each, 20 * of_each)
    tested = tested_sets.TestedSets.of(plan, calibration)
    assert tested_sets.rejected_sets(plan, tested.log_capitals(plan, 1.0)).size > 0
    assert select(plan, calibration, advise=False).empty == lucky


def broken(plan, j, risk, loss, weight, counts):
    """Whether the mean loss of set number j, of cells that count so much each, exceeds the tolerance."""
    inside = (risk <= plan.sets.thresholds[j]) & ((1 - plan.tolerance) * weight <= plan.sets.most_exposure)
    return counts[inside].any() and np.average(loss[inside], weights=counts[inside]) > plan.tolerance


def test_what_is_said_to_be_survived_is_promised_when_asked_for():
    """The same bets are made at G whether it was asked for or tried afterwards, on a set that is the same at all G."""
    n = 400
    cells = Population.of(np.full(n, 0.1), np.full(n, 5.0), np.ones(n), 1.0, np.ones(n, dtype=bool), float(n))
    none = Calibration(np.full(60, 0.1), np.ones(60), np.zeros(60), np.ones(60), np.full(60, 5.0))
    plan = SelectionPlan(0.3, 0.1, 0.0, 60, n, cells, SQUARED)
    survived = survived_sensitivity(plan, none, select(plan, none))
    assert 1.1 < survived < MOST_SENSITIVITY
    tested = tested_sets.TestedSets.of(plan, none)
    for factor, expected in ((survived, 1), (survived * 1.02, 0)):
        gains = none.weight * 0.3 / factor
        bets = plan.sets.bets / factor
        assert (bets * factor * plan.sets.most_exposure < 1).all()
        won = np.log1p(np.outer(bets, gains)).sum(axis=1) - 60 * bets * 0.3
        np.testing.assert_allclose(tested.log_capitals(plan, factor)[-1], won)
        assert len(tested.rejected(plan, factor)) == expected


def filled_world(rng, size=20_000, sharpness=1.0):
    """Chances of being held out by a power law, risks that grow where cells are rare, squared normal errors."""
    chance = np.minimum(0.03 * rng.pareto(1.2, size) + 0.03, 0.5)
    risk = rng.uniform(0.05, 1.0, size) * (0.05 / chance) ** 0.2
    return chance, risk, np.minimum(sharpness * risk * rng.chisquare(1, size), 9.0)


def filled_selection(rng, tolerance, chance, risk, loss, seen_chance=None, sensitivity=1.0):
    """(selection, plan, calibration, which cells are filled)."""
    held_out = rng.random(len(chance)) < (chance if seen_chance is None else seen_chance)
    largest = np.full(len(chance), 9.0)
    cells = Population.of(risk, 1 / chance, largest, 1.0, ~held_out, float((~held_out).sum()))
    plan = SelectionPlan(tolerance, 0.1, 0.0, int(held_out.sum()), 10_000, cells, SQUARED, sensitivity)
    calibration = Calibration(
        risk[held_out], np.ones(held_out.sum()), loss[held_out], largest[held_out], 1 / chance[held_out]
    )
    selection = select(plan, calibration)
    exposed = np.maximum(9.0 - tolerance, 0) / chance
    return selection, plan, calibration, selection.keeps(risk, 1.0, exposed) & ~held_out


@pytest.mark.parametrize("sharpness", [0.7, 1.0, 1.6])
def test_the_plain_mean_over_filled_cells_is_kept(sharpness):
    """Each filled cell counts once, however rare; risks may be too low or too high."""
    rng, broken, promised, shares = np.random.default_rng(8), 0, 0, []
    for _ in range(100):
        chance, risk, loss = filled_world(rng, sharpness=sharpness)
        selection, _, _, filled = filled_selection(rng, 0.6, chance, risk, loss)
        promised += not selection.empty
        broken += filled.any() and loss[filled].mean() > 0.6
        shares.append(filled.mean())
        assert selection.n_filled == filled.sum()
    assert broken <= binom.ppf(0.999, max(promised, 1), 0.1)
    assert np.mean(shares) > {0.7: 0.5, 1.0: 0.3, 1.6: 0.02}[sharpness]


def test_cells_too_rare_to_be_promised_about_are_left_out_by_location_alone():
    rng = np.random.default_rng(9)
    chance, risk, loss = filled_world(rng)
    chance[:50] = 1e-7
    selection, plan, _, filled = filled_selection(rng, 0.6, chance, risk, loss)
    assert not selection.empty
    assert not filled[:50].any()
    assert plan.sets.most_exposure < 8.4e7
    assert filled.mean() > 0.3


def test_a_promise_survives_the_sensitivity_asked_for_and_no_more_is_said():
    """What is right is seen G times as often. Asked for, G is survived; the G that is reported is never exceeded."""
    rng, broken, plain, overstated = np.random.default_rng(10), 0, 0, 0
    for _ in range(60):
        chance, risk, loss = filled_world(rng)
        factor = np.where(loss < 0.45, 1.3, 1 / 1.3)
        true = np.minimum(chance * factor, 1.0)
        _, _, _, filled = filled_selection(rng, 0.45, chance, risk, loss, true, sensitivity=1.3)
        broken += filled.any() and loss[filled].mean() > 0.45
        selection, plan, calibration, filled = filled_selection(rng, 0.45, chance, risk, loss, true)
        wrong = filled.any() and loss[filled].mean() > 0.45
        plain += wrong
        overstated += wrong and survived_sensitivity(plan, calibration, selection) >= 1.3
    assert broken <= 6
    assert overstated <= 6
    assert plan.sensitivity == 1
    assert plain > 30


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_rounded_set_is_the_largest_no_larger_than_the_coverage(values):
    matrix = np.array([values])
    threshold = rounding_threshold(DenseConfidence(matrix))
    size = (matrix >= threshold).sum()
    assert size <= matrix.sum() + 1e-6
    below = matrix[matrix < threshold]
    if below.size:
        assert (matrix >= below.max()).sum() > matrix.sum() - 1e-6


def test_rounding_keeps_what_is_certain():
    assert rounding_threshold(DenseConfidence([[1.0, 1.0], [0.0, 0.0]])) == 1.0
    assert rounding_threshold(DenseConfidence([[0.0, 0.0]])) == np.inf
    assert rounding_threshold(DenseConfidence([[1.0, 0.6, 0.5, 0.1]])) == 0.6


def test_rounding_a_huge_matrix_forms_nothing_of_its_size():
    class Half:
        shape = (10**9, 10**9)

        def at(self, rows, cols):
            return np.where(rows % 2 == 0, 1.0, 0.0)

    assert rounding_threshold(Half(), 1000) == 1.0


def test_rounding_by_sampling_is_close():
    matrix = np.random.default_rng(0).uniform(size=(300, 400))
    exact, sampled = (rounding_threshold(DenseConfidence(matrix), n) for n in (200_000, 20_000))
    assert sampled == pytest.approx(exact, abs=0.02)


@given(pairs)
def test_the_risk_curve_falls_and_keeps_the_mean(points):
    confidence, errors = map(np.array, zip(*points, strict=True))
    curve = RiskCurve.fit(confidence, errors, np.ones(len(points)))
    grid = np.linspace(-0.5, 1.5, 101)
    assert np.all(np.diff(curve.at(grid)) <= 1e-12)
    assert np.all(curve.at(grid) >= 0)
    assert curve.at(confidence).mean() == pytest.approx(errors.mean(), abs=1e-6)


def test_the_risk_curve_finds_a_falling_truth():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(size=5000)
    errors = (2 - confidence) * rng.chisquare(1, 5000)
    curve = RiskCurve.fit(confidence, errors, np.ones(5000))
    np.testing.assert_allclose(curve.at([0.2, 0.5, 0.8]), [1.8, 1.5, 1.2], atol=0.25)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 9)), min_size=1, max_size=40))
def test_a_cell_is_refused_for_the_first_limit_that_it_breaks(cells):
    risk, confidence, exposed = np.array(cells).T
    seen = draws(np.random.default_rng(0), 500)
    chosen = replace(select(plan_for(0.4), calibration_of(*seen)), floor=0.5, most_exposure=4.0)
    why = [REFUSALS[code] for code in chosen.refusals(risk, confidence, exposed)]
    np.testing.assert_array_equal(np.array(why) == "", chosen.keeps(risk, confidence, exposed))
    for reason, (r, c, e) in zip(why, cells, strict=True):
        if c < 0.499:
            assert reason == "too little support"
        elif c > 0.501 and e > 4.001:
            assert reason == "cells like it are too rarely observed"
        elif c > 0.501 and e < 3.999 and r > 1.001 * chosen.threshold:
            assert reason == "expected error too large"
    nothing = replace(chosen, threshold=-np.inf)
    assert (nothing.refusals(risk, np.ones(len(cells)), 0.0) == REFUSALS.index(REFUSALS[-1])).all()


def test_no_number_of_cells_is_said_to_do_where_errors_exceed_the_tolerance():
    rng = np.random.default_rng(2)
    rows, cols = np.nonzero(rng.random((250, 60)) < rng.uniform(0.1, 0.7, (250, 1)))
    seen = Observations(rows, cols, rng.integers(10**9, 2 * 10**9, len(rows)), (250, 60))
    shortfall = PartialCompleter(tolerance=0.8, confidence="posterior").fit(seen).result_.selection.shortfall
    assert shortfall.best_error > 0.8
    assert shortfall.needed_observations is None

"""What a report shows: order, squares, colours, trust, shares, curves, examples and outcomes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill import Observations, PartialCompleter
from surefill.datasets import make_blocks, make_low_rank
from surefill.guarantee.selection import REFUSALS
from surefill.plots import co_cluster
from surefill.report import heat_map, render_report
from surefill.report.charts import ticks
from surefill.report.colours import as_png, palette
from surefill.report.contents import order_of, seen_pattern
from surefill.report.error_by_count import errors_by_count
from surefill.report.examples import KEPT_SHOWN, REFUSED_SHOWN, draw_examples
from surefill.report.formats import percent
from surefill.report.heat_map import LONGEST_SIDE, MOST_SQUARES, MapLayer, draw_heat_map, squares_for
from surefill.report.outcomes import risk_coverage
from surefill.report.sentences import map_words
from surefill.report.trust import trust_by_column, trust_by_row

# order


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_shuffled_blocks_come_out_as_blocks(n_groups):
    sim = make_blocks((14, 11), n_groups, n_draws=60 * n_groups, random_state=n_groups)
    m, n = sim.observations.shape
    rng = np.random.default_rng(0)
    rows, cols = order_of(sim.observations, rng.random(m), rng.random(n))
    sequences = [
        groups[np.r_[True, groups[1:] != groups[:-1]]] for groups in (sim.row_groups[rows], sim.col_groups[cols])
    ]
    assert len(sequences[0]) == n_groups
    np.testing.assert_array_equal(*sequences)


def test_without_groups_the_most_trusted_come_first():
    seen = make_low_rank((40, 30), rank=1, n_draws=500, random_state=1).observations
    by_row, by_col = np.random.default_rng(0).random(40), np.random.default_rng(1).random(30)
    rows, cols = order_of(seen, by_row, by_col)
    assert (np.diff(by_row[rows]) <= 0).all()
    assert (np.diff(by_col[cols]) <= 0).all()


def test_a_pair_that_hangs_together_with_nothing_is_no_group():
    seen = make_low_rank((40, 30), rank=1, n_draws=500, random_state=1).observations
    wider = Observations([*seen.rows, 40], [*seen.cols, 30], [*seen.values, 0.5])
    assert not any(groups.any() for groups in co_cluster(seen_pattern(wider)))


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=20))
def test_every_row_and_column_has_its_place(cells):
    rows, cols = zip(*cells, strict=True)
    seen = Observations(rows, cols, np.zeros(len(cells)), shape=(7, 5))
    orders = order_of(seen, np.zeros(7), np.zeros(5))
    assert [sorted(order.tolist()) for order in orders] == [list(range(7)), list(range(5))]


# heat map


@given(st.integers(2, 10**7), st.integers(2, 10**7))
def test_squares_are_few_and_never_more_than_cells(m, n):
    height, width = squares_for(m, n)
    assert height * width <= MOST_SQUARES
    assert max(height, width) <= LONGEST_SIDE
    assert 1 <= height <= m
    assert 1 <= width <= n
    if m * n <= MOST_SQUARES and max(m, n) <= LONGEST_SIDE:
        assert (height, width) == (m, n)


def dense_layers(completer):
    result, seen = completer.result_, completer.observations_
    risk = result.risk_at(*np.indices(seen.shape).reshape(2, -1)).reshape(seen.shape)
    value = np.clip(result.completion.dense(), *result.predicted_range)
    observed = np.isfinite(seen.dense())
    return {
        "confidence": result.confidence.dense(),
        "observed": observed,
        "risk": risk,
        "value": value,
    }


def some_selections(completer):
    """Those of three tolerances, the last one asked for."""
    others = [completer.result_.at_tolerance(tolerance).selection for tolerance in (1e-6, 0.1)]
    return [*others, completer.result_.selection]


@pytest.mark.parametrize("most", [MOST_SQUARES, 75 * 30])
def test_squares_are_the_means_of_their_cells(uneven, monkeypatch, most):
    monkeypatch.setattr(heat_map, "MOST_SQUARES", most)
    rng, selections = np.random.default_rng(0), some_selections(uneven)
    order = rng.permutation(150), rng.permutation(60)
    drawn = draw_heat_map(uneven.result_, uneven.observations_, *order, selections)
    assert drawn.exact
    assert drawn.single == (most == MOST_SQUARES)
    assert sorted(np.concatenate(drawn.rows).tolist()) == list(range(150))

    def by_square(whole, how):
        return [[how(whole[np.ix_(rows, cols)]) for cols in drawn.cols] for rows in drawn.rows]

    for name, whole in dense_layers(uneven).items():
        np.testing.assert_allclose(drawn.layers[name].squares, by_square(whole, np.mean), atol=1e-9)
    for place, selection in enumerate(selections):
        kept = uneven.result_.at_tolerance(selection.tolerance).keeps_dense()
        np.testing.assert_array_equal(drawn.kept[place], by_square(kept, np.sum))
        np.testing.assert_array_equal(drawn.kept_levels(place), np.round(255 * np.array(by_square(kept, np.mean))))
        np.testing.assert_array_equal(drawn.refusal[place] == 0, by_square(kept, np.all))
    assert drawn.kept[-1].any()
    assert not drawn.kept[0].any()


def test_a_square_of_one_cell_tells_the_reason_of_that_cell(uneven):
    drawn = draw_heat_map(
        uneven.result_, uneven.observations_, np.arange(150), np.arange(60), [uneven.result_.selection]
    )
    rows, cols = np.indices((150, 60)).reshape(2, -1)
    told = np.array(REFUSALS)[drawn.refusal[0].ravel()]
    np.testing.assert_array_equal(told, uneven.result_.reasons(rows, cols))
    assert len(set(told)) > 2


def test_large_squares_are_means_of_cells_drawn_from_them(uneven, monkeypatch):
    monkeypatch.setattr(heat_map, "MOST_SQUARES", 9)
    monkeypatch.setattr(heat_map, "CELLS_PER_SQUARE", 60)
    selection = uneven.result_.selection
    drawn = draw_heat_map(uneven.result_, uneven.observations_, np.arange(150), np.arange(60), [selection])
    assert drawn.shape == (3, 3)
    assert not drawn.exact
    whole = dense_layers(uneven) | {"kept": uneven.result_.keeps_dense()}
    squares = {name: layer.squares for name, layer in drawn.layers.items()} | {"kept": drawn.kept[0] / 60}
    for name, found in squares.items():
        blocks = [[whole[name][np.ix_(rows, cols)] for cols in drawn.cols] for rows in drawn.rows]
        means, spreads = (np.array([[how(block) for block in line] for line in blocks]) for how in (np.mean, np.std))
        assert (np.abs(found - means) <= 4 * spreads / 60**0.5 + 1e-9).all()
        if name == "observed":
            np.testing.assert_allclose(found, means)
    assert "a few cells drawn from up to 50 by 20 cells" in map_words(drawn)


def test_levels_span_the_range_and_stand_for_the_nearest_number(contents):
    confidence = contents.heat_map.layers["value"]
    assert (confidence.levels.min(), confidence.levels.max()) == (0, 255)
    step = confidence.scale[1] - confidence.scale[0]
    np.testing.assert_allclose(confidence.scale[confidence.levels], confidence.squares, atol=0.51 * step)
    constant = MapLayer.even("", np.full((2, 3), 7.0), 7.0, 7.0)
    assert (constant.scale[constant.levels] == 7.0).all()


def test_risk_is_coloured_by_quantiles(contents):
    risk = contents.heat_map.layers["risk"]
    sizes = np.bincount(risk.levels.ravel(), minlength=256)
    assert sizes.max() <= 2 * risk.squares.size / 255
    order = np.argsort(risk.squares, axis=None)
    assert (np.diff(risk.levels.ravel()[order].astype(int)) >= 0).all()
    ties = MapLayer.by_quantiles("", np.array([[1.0, 1.0, 1.0, 2.0]]))
    np.testing.assert_array_equal(ties.scale[ties.levels], ties.squares)


def test_the_png_holds_the_colours_of_the_levels(tmp_path):
    from matplotlib.image import imread

    levels = np.random.default_rng(0).integers(0, 256, (7, 11), dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(as_png(levels))
    shown = (imread(tmp_path / "a.png")[..., :3] * 255).round().astype(np.uint8)
    np.testing.assert_array_equal(shown, palette()[levels])


def test_the_palette_is_near_cividis_and_rises_in_lightness():
    from matplotlib import colormaps

    given_colours = np.array([colormaps["cividis"](k)[:3] for k in range(256)]) * 255
    assert np.abs(palette() - given_colours).max() < 16
    lightness = palette() @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) > 0).all()


# numbers


def test_trust_is_the_mean_over_the_line(uneven):
    whole, seen = dense_layers(uneven), uneven.observations_
    for axis, trust in enumerate((trust_by_row(uneven.result_, seen), trust_by_column(uneven.result_, seen))):
        np.testing.assert_allclose(trust.confidence, whole["confidence"].mean(axis=1 - axis))
        np.testing.assert_allclose(trust.kept, uneven.result_.keeps_dense().mean(axis=1 - axis))
        np.testing.assert_array_equal(trust.observed, whole["observed"].sum(axis=1 - axis))
        ranked = trust.ranked()
        assert (np.diff(trust.kept[ranked]) <= 0).all()


def test_trust_in_long_lines_is_estimated(uneven, monkeypatch):
    monkeypatch.setattr("surefill.report.trust.MOST_OTHERS", 15)
    trust = trust_by_row(uneven.result_, uneven.observations_)
    assert trust.n_looked_at == 15
    confidence = dense_layers(uneven)["confidence"]
    standard_error = confidence.std(axis=1) * np.sqrt((1 - 15 / confidence.shape[1]) / 15)
    assert (np.abs(trust.confidence - confidence.mean(axis=1)) < 4 * standard_error).all()
    assert "Estimated from 15 cells of each row" in render_report(uneven)


def test_shares_are_those_of_the_matrix(uneven, contents):
    whole = dense_layers(uneven)
    kept, outcome, missing = uneven.result_.keeps_dense(), contents.outcome, ~whole["observed"]
    assert outcome.kept_share == pytest.approx(kept.mean()) == pytest.approx(uneven.result_.kept_share())
    assert outcome.filled_share == pytest.approx(kept[missing].mean())
    why = uneven.result_.reasons(*np.nonzero(missing))
    np.testing.assert_allclose(outcome.missing_shares, [np.mean(why == reason) for reason in REFUSALS])
    seen = uneven.result_.calibration
    assert contents.overall_error == pytest.approx(np.average(seen.loss, weights=seen.weight))


def test_the_curve_goes_on_dotted_over_what_is_never_kept(uneven):
    result = uneven.result_
    seen, (curve, tail) = result.calibration, risk_coverage(result.plan, result.calibration)
    exposed = seen.exposure(result.plan.tolerance) > result.plan.sets.most_exposure * (1 + 1e-9)
    possible = (seen.confidence >= result.plan.floor) & ~exposed
    order = np.lexsort((seen.risk, ~possible))
    share = np.cumsum(seen.weight[order]) / seen.weight.sum()
    error = np.cumsum((seen.weight * seen.loss)[order]) / np.cumsum(seen.weight[order])
    for part in (curve, tail):
        np.testing.assert_allclose(part.risk, np.interp(part.coverage, share, error))
    assert curve.coverage[-1] <= share[possible.sum() - 1] + 1e-12
    assert (tail.coverage[0], tail.risk[0]) == pytest.approx((curve.coverage[-1], curve.risk[-1]))
    assert (tail.coverage[-1], tail.risk[-1]) == pytest.approx((1.0, seen.mean_loss(np.ones(len(seen), dtype=bool))))


def test_examples_are_missing_cells_with_the_outcome_that_they_have(uneven):
    selections = some_selections(uneven)
    cells = draw_examples(uneven.result_, uneven.observations_, selections)
    assert (uneven.observations_.find(cells.rows, cells.cols) < 0).all()
    for place, selection in enumerate(selections):
        why = uneven.result_.at_tolerance(selection.tolerance).reasons(cells.rows, cells.cols)
        np.testing.assert_array_equal(np.array(REFUSALS)[cells.refusals[place]], why)
        kept, refused = cells.shown(place)
        assert len(kept) == (0 if selection.empty else KEPT_SHOWN)
        assert (cells.refusals[place][kept] == 0).all()
        for reason in set(why) - {""}:
            assert (why[refused] == reason).sum() == min(REFUSED_SHOWN, (why == reason).sum())
    np.testing.assert_array_equal(cells.value, uneven.result_.values_at(cells.rows, cells.cols))


def test_errors_by_count_are_weighted_and_add_up(uneven):
    result, seen = uneven.result_, uneven.observations_
    counts, calibration = np.bincount(seen.cols)[result.calibration_cells[1]], result.calibration
    groups = errors_by_count(calibration, counts, [result.selection])
    assert sum(group.n_cells for group in groups) == len(calibration)
    shares = [group.share for group in groups]
    assert sum(shares) == pytest.approx(1)
    everything = np.ones(len(calibration), dtype=bool)
    assert np.dot(shares, [group.error for group in groups]) == pytest.approx(calibration.mean_loss(everything))
    kept = np.dot(shares, [group.kept_shares[0] for group in groups])
    assert kept == pytest.approx(result.selection.held_out_share)
    for group, following in pairwise(groups):
        assert group.low <= group.high < following.low
    which = (groups[0].low <= counts) & (counts <= groups[0].high)
    assert groups[0].error == pytest.approx(np.average(calibration.loss[which], weights=calibration.weight[which]))


def test_outcomes_are_what_fitting_at_the_tolerance_gives(uneven, contents):
    result, outcomes = uneven.result_, contents.outcomes
    tolerances = [outcome.selection.tolerance for outcome in outcomes]
    assert 15 <= len(outcomes) <= 25
    assert tolerances == sorted(set(tolerances))
    assert outcomes[contents.asked].selection is result.selection
    assert outcomes[0].selection.empty
    assert outcomes[-1].kept_share == max(outcome.kept_share for outcome in outcomes) > 0
    for outcome in outcomes[:: len(outcomes) // 5]:
        other = result.at_tolerance(outcome.selection.tolerance)
        assert replace(outcome.selection, shortfall=None, limited_by=None) == replace(
            other.selection, shortfall=None, limited_by=None
        )
        assert outcome.kept_share == pytest.approx(other.kept_share())
    refitted = PartialCompleter(tolerances[-9], confidence="posterior").fit(uneven.observations_).result_
    assert outcomes[-9].kept_share == pytest.approx(refitted.kept_share())


@given(st.floats(1e-6, 1e6))
def test_ticks_are_few_and_within(most):
    marks = ticks(most)
    assert 3 <= len(marks) <= 9
    assert marks[0] == 0
    assert marks[-1] <= most * (1 + 1e-6)


@given(st.floats(0, 1))
def test_percent_never_says_none_or_all_of_a_part(share):
    assert (percent(share) == "0%") == (share == 0)
    assert (percent(share) == "100%") == (share == 1)

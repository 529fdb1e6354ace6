import base64
import json
import re
import tracemalloc
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill import InputError, Observations, PartialCompleter, write_report
from surefill.datasets import make_blocks, make_low_rank
from surefill.guarantee.selection import REFUSALS
from surefill.guarantee.wording import floored
from surefill.plots import co_cluster
from surefill.report import heat_map, render_report
from surefill.report.charts import ticks
from surefill.report.colours import as_png, palette
from surefill.report.contents import gather, order_of, seen_pattern
from surefill.report.error_by_count import errors_by_count
from surefill.report.examples import KEPT_SHOWN, REFUSED_SHOWN, draw_examples
from surefill.report.formats import percent, script_json
from surefill.report.heat_map import LONGEST_SIDE, MOST_SQUARES, HeatMap, MapLayer, draw_heat_map, squares_for
from surefill.report.outcomes import risk_coverage
from surefill.report.page import render
from surefill.report.sentences import lead, map_words
from surefill.report.summary_tables import figures
from surefill.report.trust import trust_by_column, trust_by_row

NASTY = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><b>", "<!--", "&amp;", "a\u2028b"]


@pytest.fixture(scope="module")
def contents(uneven):
    return gather(uneven)


@pytest.fixture(scope="module")
def nothing_kept():
    seen = make_low_rank((12, 10), rank=1, n_draws=80, noise=0.3, random_state=0).observations
    return PartialCompleter(tolerance=1e-4, confidence="posterior", risk="confidence").fit(seen)


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


# the page


class Page(HTMLParser):
    """Tags and their attributes, and the text of scripts, as a browser would see them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.styles, self.words, self.open = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "img", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        {"script": self.scripts, "style": self.styles}.get(inside, self.words).append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def nasty_completer():
    seen = make_low_rank((12, 10), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    labels = [f"{NASTY[k % len(NASTY)]} {k}" for k in range(12)]
    seen = Observations(
        seen.rows,
        seen.cols,
        seen.values,
        seen.shape,
        row_labels=labels,
        col_labels=labels[:10],
        names=(*NASTY[:2], "v"),
    )
    return PartialCompleter(0.5, confidence="posterior", risk="confidence").fit(seen), labels


def test_labels_are_harmless():
    completer, labels = nasty_completer()
    page = Page(render_report(completer, title=NASTY[0], command=NASTY[2]))
    assert page.open == []
    assert len(page.scripts) == 2
    assert len(page.named("img")) == 1
    assert not page.named("b")
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    data = json.loads(page.scripts[0])
    assert set(data["map"]["rowLabels"]) == {" ".join(label.split()) for label in labels}
    text = "".join(page.words)
    assert NASTY[0] in text
    assert NASTY[2] in text


@given(st.text(alphabet="<>&/!-script\u2028\u2029 a", max_size=20))
def test_json_in_a_script_cannot_close_it(text):
    written = script_json([text])
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == [text]


def test_the_file_needs_nothing_else(uneven, tmp_path):
    write_report(uneven, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest", text, re.IGNORECASE)
    page = Page(text)
    for _, attributes in page.tags:
        for key in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(key, "data:").startswith("data:")
    policy = next(tag["content"] for tag in page.named("meta") if "http-equiv" in tag)
    assert policy.startswith("default-src 'none'")
    assert not any("style" in attributes for _, attributes in page.tags)


def test_headings_go_down_by_one_and_ids_are_unique(uneven):
    page = Page(render_report(uneven))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    (slider,) = [tag for tag in page.named("input") if tag["type"] == "range"]
    assert any(label.get("for") == slider["id"] for label in page.named("label"))


def test_the_page_says_what_was_asked_found_and_promised(uneven, contents):
    text = "".join(Page(render_report(uneven, command="surefill complete x.csv")).words)
    result = uneven.result_
    for sentence in (
        lead(contents), result.guarantee.sentence, result.guarantee.holds_over, result.guarantee.not_promised,
        result.certificate.sentence, result.selection.sentence, "surefill complete x.csv", "scikit-learn",
    ):  # fmt: skip
        assert sentence in text
    assert "mean squared error of at most 0.2" in lead(contents)
    assert "with probability at least 0.95" in lead(contents)
    filled = int((uneven.result_.keeps_dense() & ~dense_layers(uneven)["observed"].astype(bool)).sum())
    assert f"surefill fills {filled:,} of the {contents.n_missing:,} missing cells" in lead(contents)
    assert f"over the {filled:,} filled cells" in result.guarantee.sentence
    factor = floored(result.guarantee.sensitivity)
    assert f"odds of being observed by a factor of more than {factor}." in text


@pytest.mark.parametrize(("factor", "words"), [(1.0, "none"), (1.369, "factor 1.36")])
def test_room_for_hidden_bias_is_a_factor_or_none(contents, factor, words):
    told = "".join(Page(figures(replace(contents, guarantee=replace(contents.guarantee, sensitivity=factor)))).words)
    assert f"Room for hidden bias{words}" in told


INSIDE = (
    "rehears",
    "trial fit",
    "sweep",
    "theta",
    "alpha",
    "exposure",
    "raking",
    "stake",
    "cross-fit",
    "null",
    "e-value",
)


def test_no_word_comes_from_inside(uneven, nothing_kept):
    for completer in (uneven, nothing_kept):
        page = Page(render_report(completer))
        told = [*page.words, *map(str, json.loads(page.scripts[0])["outcomes"])]
        assert not [word for word in INSIDE if word in " ".join(told).lower()]


def test_a_promise_about_cells_like_the_observed_is_never_said_of_those_that_are_filled(uneven):
    other = PartialCompleter(tolerance=0.2, confidence="posterior", aim="observed").fit(uneven.observations_)
    contents = gather(other)
    text = "".join(Page(render_report(other)).words)
    assert other.result_.guarantee.promised
    assert "filled cells" not in other.result_.guarantee.sentence
    assert "kept cells drawn like the observed ones" in lead(contents)
    assert "This is not about the cells that are filled alone" in lead(contents)
    assert "; the promise is not about these" in text
    assert "Room for hidden bias" not in text
    assert "weighted" not in text.partition("Error by how often")[2].partition("Most and least")[0]


def test_parameters_repeat_the_report(uneven):
    assert "PartialCompleter(confidence='posterior', tolerance=0.2)" in "".join(Page(render_report(uneven)).words)


def test_what_keeps_nothing_says_so(nothing_kept):
    contents = gather(nothing_kept)
    assert contents.selection.empty
    assert "keeps nothing and promises nothing: " in lead(contents)
    assert "could be promised with what is there: about" in lead(contents)
    text = "".join(Page(render_report(nothing_kept)).words)
    assert contents.selection.sentence in text
    assert "Nothing is kept at the tolerance asked for" in text
    (layer,) = [tag for tag in Page(render_report(nothing_kept)).named("input") if "checked" in tag]
    assert layer["value"] == "confidence"


def test_a_table_without_missing_cells_says_so():
    full = np.add.outer(np.arange(12.0), np.arange(9.0)) % 5
    page = Page(render_report(PartialCompleter(confidence="posterior", risk="confidence").fit(full)))
    assert "No cell is missing" in "".join(page.words)
    assert json.loads(page.scripts[0])["examples"]["lines"] == []


def test_the_smallest_matrix_has_a_report():
    seen = Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 2.0, 3.0])
    assert Page(render_report(PartialCompleter(confidence="posterior", risk="confidence").fit(seen))).open == []


def test_the_map_in_the_script_is_the_map(contents, uneven):
    data = json.loads(Page(render_report(uneven)).scripts[0])["map"]
    unpacked = {name: zlib.decompress(base64.b64decode(data["layers"][name]["data"])) for name in data["layers"]}
    for name, layer in contents.heat_map.layers.items():
        assert unpacked[name] == layer.levels.tobytes()
        np.testing.assert_allclose(data["layers"][name]["scale"], layer.scale, rtol=1e-3)
    changes = np.frombuffer(zlib.decompress(base64.b64decode(data["kept"])), dtype=np.uint8)
    told = np.cumsum(changes.reshape(len(contents.outcomes), *contents.heat_map.shape), axis=0, dtype=np.uint8)
    np.testing.assert_array_equal(told & 15, contents.heat_map.kept)
    np.testing.assert_array_equal(told >> 4, contents.heat_map.refusal)


def test_no_map_makes_a_large_file(contents):
    rng, side = np.random.default_rng(0), int(MOST_SQUARES**0.5)
    noise = {name: MapLayer.even("", rng.random((side, side)), 0.0, 1.0) for name in contents.heat_map.layers}
    # A cell is kept from some tolerance on, wherever that is, and refused for any reason before.
    first = np.sort(rng.integers(0, len(contents.outcomes), (8, side, side)), axis=0)
    kept = np.stack([(first <= k).sum(axis=0) for k in range(len(contents.outcomes))]).astype(np.uint8)
    refusal = np.where(kept < 8, rng.integers(1, 4, (side, side)), 0).astype(np.uint8)
    groups = tuple(np.array_split(np.arange(1536), side))
    long = np.array(["\u00e9" * 60] * 1536)
    axis = replace(contents.rows, labels=long)
    drawn = HeatMap(groups, groups, noise, kept, refusal, False)
    worst = replace(contents, heat_map=drawn, rows=axis, columns=axis)
    assert len(render(worst, "", "").encode()) < 3_000_000


def test_a_large_matrix_takes_little_memory(monkeypatch):
    monkeypatch.setattr(heat_map, "MOST_SQUARES", 64 * 64)
    monkeypatch.setattr("surefill.report.trust.MOST_CELLS", 100_000)
    seen = make_low_rank((5_000, 2_000), rank=1, n_draws=10_000, noise=0.1, random_state=0).observations
    completer = PartialCompleter(0.5, confidence="posterior", risk="confidence").fit(seen)
    tracemalloc.start()
    render_report(completer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000 * 2_000 * 8 / 2


def test_what_cannot_be_written_is_refused_before_the_work(uneven, tmp_path, monkeypatch):
    monkeypatch.setattr("surefill.report.page.gather", None)
    for path, sentence in (
        (tmp_path / "a.pdf", "must end in .html"),
        (tmp_path / "no" / "a.html", "does not exist"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(InputError, match=sentence):
            write_report(uneven, path)
    with pytest.raises(ValueError, match="not fitted"):
        write_report(PartialCompleter(), tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []


def test_a_result_is_not_a_completer(tmp_path):
    sim = make_low_rank((30, 20), rank=1, n_draws=600, noise=0.1, random_state=0)
    result = PartialCompleter(0.5, confidence="posterior").fit(sim.observations).result_
    with pytest.raises(InputError, match="fitted PartialCompleter; got PartialCompletion"):
        write_report(result, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())

"""The page of the report: harmless, self-contained, and saying what was found."""

import base64
import json
import re
import tracemalloc
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill import InputError, Observations, PartialCompleter, write_report
from surefill.datasets import make_low_rank
from surefill.guarantee.figures import floored
from surefill.report import heat_map, render_report
from surefill.report.contents import gather
from surefill.report.formats import script_json
from surefill.report.heat_map import MOST_SQUARES, HeatMap, MapLayer
from surefill.report.page import render
from surefill.report.sentences import lead
from surefill.report.summary_tables import figures

NASTY = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><b>", "<!--", "&amp;", "a\u2028b"]


@pytest.fixture(scope="module")
def nothing_kept():
    seen = make_low_rank((12, 10), rank=1, n_draws=80, noise=0.3, random_state=0).observations
    return PartialCompleter(tolerance=1e-4, confidence="posterior", risk="confidence").fit(seen)


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
    filled = int((uneven.result_.keeps_dense() & np.isnan(uneven.observations_.dense())).sum())
    assert f"surefill fills {filled:,} of the {contents.n_missing:,} missing cells" in lead(contents)
    assert f"over the {filled:,} filled cells" in result.guarantee.sentence
    factor = floored(result.guarantee.sensitivity)
    assert f"odds of being observed are off by a factor of more than {factor}, be it" in text


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
    assert "This is no promise about the cells that are filled." in lead(contents)
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

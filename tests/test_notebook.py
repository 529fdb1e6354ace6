from html.parser import HTMLParser

import numpy as np
import pytest

import surefill as sf
from surefill.completion import BayesianFactorModel, ExternalCompletion, SoftImpute
from surefill.datasets import make_blocks, make_low_rank

HOSTILE = "<script>alert('a & b')</script>"


class Page(HTMLParser):
    """Tags that are open, and the text; closing what is not open is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.styles = [], set(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.styles += [value for name, value in attrs if name == "style"]
        assert {name for name, _ in attrs} <= {"style"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def shown(thing):
    page = Page(thing._repr_html_())
    assert page.tags <= {"div", "strong", "p", "table", "tbody", "tr", "th", "td"}
    for style in page.styles:
        settings = dict(part.split(":", 1) for part in style.split(";"))
        assert settings.get("color", "inherit") == "inherit"
        assert settings.get("background", "transparent") == "transparent"
    return page.texts


@pytest.fixture(scope="module")
def sim():
    return make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)


def test_a_result_shows_its_promise_first(sim):
    result = sf.PartialCompleter(tolerance=0.05, confidence="posterior").fit(sim.observations).result_
    title, sentence, *rest = shown(result)
    assert title == "PartialCompletion"
    assert sentence == result.guarantee.sentence
    assert result.guarantee.not_promised in rest
    assert result.certificate.sentence in rest
    assert f"{result.kept_share():.1%} of all 60 x 50 cells" in rest
    missing = 3000 - len(sim.observations)
    assert f"{result.selection.n_filled / missing:.1%} of the {missing:,} missing cells" in rest
    assert shown(result.at_tolerance(1e-9))[1].startswith("Nothing is promised, for nothing is kept.")


def test_observations_show_their_first_cells_with_labels_escaped():
    seen = sf.Observations(
        [0, 1, 1, 0], [0, 0, 2, 0], [4.0, 3.0, 5.0, 2.0], bounds=(1, 5), row_labels=[HOSTILE, "b"],
        names=(HOSTILE, "item", "stars"),
    )  # fmt: skip
    assert "<script" not in seen._repr_html_()
    texts = shown(seen)
    assert texts.count(HOSTILE) == 2
    assert texts[1] == "3 of 6 cells were seen, in 4 draws, with values in [1, 5]; repeats differ in 1 of them."
    assert texts[2:6] == [HOSTILE, "item", "stars", "draws"]
    assert texts[6:10] == [HOSTILE, "0", "3", "2"]


def test_of_many_observations_a_few_are_shown(sim):
    texts = shown(sim.observations)
    assert texts[1].endswith("The first 5:")
    assert len(texts) == 2 + 4 + 5 * 4


def test_a_coverage_says_what_is_proved():
    seen = make_blocks((5, 5), n_draws=200).observations
    proved, searched = sf.solve_coverage(seen, K=1, gamma=0.16), sf.solve_coverage(seen, K=1, gamma=0.16, rank=2)
    assert "is proved" in shown(proved)[1]
    assert f"{proved.coverage:,.1f} of 100 cells" in shown(proved)[1]
    assert "is not proved" in shown(searched)[1]
    offline = sf.complete_partially(seen, eps=1.0)
    assert shown(offline)[1] == offline.guarantee.sentence


@pytest.mark.parametrize(
    "algorithm",
    [BayesianFactorModel(rank=2), SoftImpute(penalty=1.0), ExternalCompletion(lambda i, j: np.zeros(len(i)))],
)
def test_completions_promise_nothing(sim, algorithm):
    title, sentence, *facts = shown(algorithm.fit(sim.observations))
    assert title.endswith("Completion")
    assert sentence.endswith("nothing is promised of it.")
    assert facts[:4] == ["rows", "60", "columns", "50"]

import numpy as np
import pytest

from surefill import InputError, PartialCompleter
from surefill.datasets import make_blocks
from surefill.reproduction import CompletionErrors, ConfidenceScores, MovielensOutcome, reproduce_pattern
from surefill.reproduction.figures import (
    _coloured,
    _faded,
    _panels,
    draw_blocks,
    draw_errors_by_confidence,
    draw_pattern,
    level_means,
)
from surefill.reproduction.methods import coverage_program


@pytest.fixture(scope="module")
def fitted_blocks():
    sim = make_blocks((8, 6), n_draws=200, random_state=0)
    return sim, PartialCompleter(1.0, confidence="posterior").fit(sim.observations).result_


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.PDF", b"%PDF")])
def test_pictures_of_every_kind(fitted_blocks, tmp_path, name, magic):
    draw_blocks(*fitted_blocks, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == 1


def test_kept_panel_is_empty_where_nothing_is_kept(fitted_blocks):
    _, completed, _, kept = (panel.matrix for panel in _panels(*fitted_blocks))
    assert np.isnan(kept).any()
    assert np.isfinite(kept).any()
    inside = fitted_blocks[1].keeps_dense()
    np.testing.assert_array_equal(np.isnan(kept), ~inside)
    np.testing.assert_array_equal(kept[inside], completed[inside])


def test_blocks_that_cannot_be_drawn_are_refused(fitted_blocks, tmp_path):
    for path, sentence in ((tmp_path / "a.xls", "must end in one of"), (tmp_path / "no" / "a.png", "does not exist")):
        with pytest.raises(InputError, match=sentence):
            draw_blocks(*fitted_blocks, path)


def test_a_pattern_with_a_row_for_the_data_and_one_per_method(tmp_path):
    outcome = reproduce_pattern("half", size=10, methods=[coverage_program()])
    draw_pattern(outcome, tmp_path / "half.svg")
    drawn = (tmp_path / "half.svg").read_text()
    for words in ("an arbitrary half", "seen, as given", "shuffle undone", "confidence, as given", "the support"):
        assert f"<!-- {words}" in drawn or words in drawn
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(InputError, match="must end in one of"):
        draw_pattern(outcome, tmp_path / "half.xls")


def test_what_is_not_trusted_fades_to_the_grey_of_what_was_not_seen():
    colours = _coloured(np.array([[-1.0, 1.0, np.nan]]), "PuOr", -1.0)
    faded = _faded(colours, np.array([[0.0, 1.0, 0.5]]))
    np.testing.assert_allclose(faded[0, 0], colours[0, 2])
    np.testing.assert_allclose(faded[0, 1], colours[0, 1])
    assert np.abs(colours[0, 0] - colours[0, 1]).max() > 0.3


def test_errors_by_confidence(tmp_path):
    rng = np.random.default_rng(0)
    C = rng.uniform(size=300)
    errors = CompletionErrors("a completion", "", rng.exponential(2 - C), 0.1)
    methods = tuple(ConfidenceScores(name, "", "no bound", C, C, 0.1) for name in ("one way", "another"))
    draw_errors_by_confidence(MovielensOutcome("a part", (30, 20), 100, (errors,), methods), tmp_path / "errors.svg")
    drawn = (tmp_path / "errors.svg").read_text()
    for words in ("one way", "another", "a completion", "tenth by confidence", "MovieLens 100K, a part"):
        assert words in drawn


def test_means_at_levels_of_confidence():
    C = np.repeat([0.0, 0.55, 1.0], [30, 2, 40])
    level, mean = level_means(C, 2 * C)
    np.testing.assert_allclose(level, [0.0, 1.0])
    np.testing.assert_allclose(mean, [0.0, 2.0])
    level, mean = level_means(np.full(3, 0.7), np.arange(3.0))
    np.testing.assert_allclose((level, mean), ([0.7], [1.0]))

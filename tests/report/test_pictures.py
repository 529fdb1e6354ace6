import numpy as np
import pytest

from surefill import InputError, PartialCompleter
from surefill.datasets import make_blocks
from surefill.report import draw_risk_coverage
from surefill.reproduction.figures import _panels, draw_blocks


@pytest.fixture(scope="module")
def fitted():
    sim = make_blocks((8, 6), n_draws=200, random_state=0)
    return sim, PartialCompleter(1.0, confidence="posterior").fit(sim.observations).result_


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.PDF", b"%PDF")])
def test_pictures_of_every_kind(fitted, tmp_path, name, magic):
    draw_blocks(*fitted, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == 1


def test_kept_panel_is_empty_where_nothing_is_kept(fitted):
    _, completed, _, kept = (panel.matrix for panel in _panels(*fitted))
    assert np.isnan(kept).any()
    assert np.isfinite(kept).any()
    inside = fitted[1].keeps_dense()
    np.testing.assert_array_equal(np.isnan(kept), ~inside)
    np.testing.assert_array_equal(kept[inside], completed[inside])


def test_what_cannot_be_drawn_is_refused(fitted, tmp_path):
    for path, sentence in ((tmp_path / "a.xls", "must end in one of"), (tmp_path / "no" / "a.png", "does not exist")):
        with pytest.raises(InputError, match=sentence):
            draw_blocks(*fitted, path)


def test_risk_coverage_curves(tmp_path):
    losses = np.random.default_rng(0).exponential(size=200)
    draw_risk_coverage(losses, {"itself": losses, "nothing": np.zeros(200)}, tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text()
    assert drawn.startswith("<?xml")
    assert "itself, 0.00" in drawn
    assert "nothing, 1.00" in drawn
    with pytest.raises(InputError, match="must end in one of"):
        draw_risk_coverage(losses, {"itself": losses}, tmp_path / "curves.xls")

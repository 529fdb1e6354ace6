import numpy as np
import pytest

from surefill import InputError
from surefill.report import draw_risk_coverage


def test_risk_coverage_curves(tmp_path):
    losses = np.random.default_rng(0).exponential(size=200)
    draw_risk_coverage(losses, {"itself": losses, "nothing": np.zeros(200)}, tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text()
    assert drawn.startswith("<?xml")
    assert "itself, 0.00" in drawn
    assert "nothing, 1.00" in drawn
    with pytest.raises(InputError, match="must end in one of"):
        draw_risk_coverage(losses, {"itself": losses}, tmp_path / "curves.xls")

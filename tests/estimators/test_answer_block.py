"""Answers on a grid, by matrix products, are those given pair by pair."""

from dataclasses import replace

import numpy as np
import pytest

from surefill import PartialCompleter
from surefill.datasets import make_low_rank


def chance(rows, cols):
    return np.where((np.asarray(rows) + np.asarray(cols)) % 2, 0.3, 0.5)


SETTINGS = {
    "default": {},
    "observed": {"aim": "observed"},
    "posterior": {"confidence": "posterior"},
    "matrix": {"propensity": chance(*np.indices((70, 50)))},
    "function": {"propensity": chance},
    "spectral": {"completion": "soft-impute"},
    "confidence": {"confidence": "posterior", "risk": "confidence"},
    "absolute": {"loss": "absolute", "tolerance": 0.3},
    "chance": {"loss": "beyond:0.2", "tolerance": 0.3},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_grid_is_pair_by_pair(setting):
    sim = make_low_rank((70, 50), rank=2, n_draws=1400, noise=0.2, random_state=1)
    seen = sim.observations.select((sim.observations.rows < 66) & (sim.observations.cols < 47))  # some never seen
    result = PartialCompleter(**{"tolerance": 0.1} | SETTINGS[setting]).fit(seen).result_
    rows, cols = np.random.default_rng(0).permutation(70), np.arange(50)
    grid = result.answer_block(rows, cols)
    pairs = result.answer(np.repeat(rows, len(cols)), np.tile(cols, len(rows)))
    for name in ("value", "confidence", "risk", "keep"):
        found = getattr(grid, name)
        assert found.shape == (70, 50)
        np.testing.assert_allclose(found.ravel(), getattr(pairs, name), rtol=1e-5, atol=1e-6)  # single precision
    np.testing.assert_array_equal(grid.keep.ravel(), pairs.keep)


def test_cells_close_to_a_limit_are_asked_alone(monkeypatch):
    sim = make_low_rank((70, 50), rank=2, n_draws=1400, noise=0.2, random_state=1)
    result = PartialCompleter(tolerance=0.1).fit(sim.observations).result_
    everywhere = result.answer_block(np.arange(70), np.arange(50))
    line, place = np.argwhere(everywhere.keep)[0]
    limit = float(everywhere.risk[line, place])  # the limit is this cell's own risk
    at_limit = replace(result, selection=replace(result.selection, threshold=limit / (1 + 1e-10)))
    asked = []
    answer = type(result).answer
    monkeypatch.setattr(type(result), "answer", lambda *at: asked.append(at[1:]) or answer(*at))
    at_limit.answer_block(np.arange(70), np.arange(50))
    ((rows, cols),) = asked
    assert (line, place) in set(zip(rows.tolist(), cols.tolist(), strict=True))

"""Kept cells found by leaving out those that cannot be are those that single questions keep."""

from dataclasses import replace

import numpy as np
import pytest

from surefill import PartialCompleter
from surefill.datasets import make_low_rank
from surefill.estimators import kept_cells
from surefill.estimators.kept_cells import KeptCells
from surefill.risk.lower_bounds import RiskLowerBounds

ROWS, COLS = np.arange(70), np.arange(50)


@pytest.fixture(scope="module", params=[("squared", 0.0), ("beyond:0.2", 0.0), ("squared", -0.5)])
def result(request):
    """With two losses, and with a risk that was learnt from a completion of other noise."""
    loss, shift = request.param
    sim = make_low_rank((70, 50), rank=2, n_draws=1400, noise=0.2, random_state=1)
    seen = sim.observations.select((sim.observations.rows < 66) & (sim.observations.cols < 47))  # some never seen
    found = PartialCompleter(tolerance=0.3, loss=loss, aim="observed").fit(seen).result_
    return replace(found, risk=replace(found.risk, evidence=replace(found.risk.evidence, shift=shift)))


@pytest.fixture(scope="module")
def everywhere(result):
    return result.answer_block(ROWS, COLS)


def at_quantile(result, everywhere, share):
    """The result with a threshold that about this share of risks is below."""
    return replace(result, selection=replace(result.selection, threshold=float(np.quantile(everywhere.risk, share))))


@pytest.mark.parametrize("share", [0.005, 0.05, 0.5, 1.0])
def test_bounds_are_below_all_risks_and_leave_no_cell_out_that_counts(result, everywhere, share):
    limited = at_quantile(result, everywhere, share)
    least, seen = RiskLowerBounds.of(result.risk, limited.selection.threshold), np.s_[:66, :47]
    inside = everywhere.risk[seen] <= limited.selection.threshold
    rows, cols = least.of_rows(ROWS[:66]) <= least.log_limit, least.of_cols(COLS[:47]) <= least.log_limit
    candidates = least.candidates(ROWS[:66], COLS[:47], result.completion.block(ROWS[:66], COLS[:47]))
    assert not (inside & ~(candidates & rows[:, None] & cols)).any()
    assert not candidates.all() or share > 0.05


@pytest.mark.parametrize("share", [0.005, 0.05, 0.5])
@pytest.mark.parametrize("alone", [0.0, 0.3, 1.0])
def test_kept_cells_and_those_asked_for_are_answered_as_ever(result, everywhere, share, alone, monkeypatch):
    monkeypatch.setattr(kept_cells, "FEW_CANDIDATES", alone)
    limited = at_quantile(result, everywhere, share)
    also = np.random.default_rng(0).random((70, 50)) < 0.1
    found = KeptCells(limited).block(ROWS, COLS, also)
    whole = limited.answer_block(ROWS, COLS)
    np.testing.assert_array_equal(found.keep, whole.keep)
    assert 0 < whole.keep.mean() <= share + 0.01
    counts = whole.keep | also
    for name in ("value", "confidence", "risk"):
        np.testing.assert_allclose(getattr(found, name)[counts], getattr(whole, name)[counts], rtol=1e-5, atol=1e-6)


def test_rows_that_hold_no_kept_cell_are_not_multiplied(result, everywhere, monkeypatch):
    noisy = replace(result.risk.rows, factors=np.where(np.arange(67) % 2, 1e6, result.risk.rows.factors))
    limited = replace(at_quantile(result, everywhere, 0.9), risk=replace(result.risk, rows=noisy))
    asked, block = set(), type(result.completion).block

    def counted(completion, rows, cols):
        asked.update(np.asarray(rows).tolist())
        return block(completion, rows, cols)

    assert limited.risk_lower_bounds is not None  # found before products are counted, which makes them others
    monkeypatch.setattr(type(result.completion), "block", counted)
    KeptCells(limited).block(ROWS, COLS, np.zeros((70, 50), bool))
    assert asked
    assert asked <= set(range(0, 66, 2))


def test_of_an_empty_set_only_cells_asked_for_are_looked_at(result, monkeypatch):
    empty = replace(result, selection=replace(result.selection, threshold=-np.inf))
    monkeypatch.setattr(type(result), "answer_block", None)
    also = np.zeros((70, 50), bool)
    also[3, 4] = True
    found = KeptCells(empty).block(ROWS, COLS, also)
    assert not found.keep.any()
    assert found.risk[3, 4] == result.risk_at([3], [4])[0]

"""What a fit costs, in counts: completions fitted, covariance passes, predictions per cell, bytes of a saved model."""

from collections import Counter

import numpy as np
import pytest

from surefill import PartialCompleter, load
from surefill.completion import BayesianFactorCompletion, BayesianFactorModel
from surefill.datasets import make_low_rank
from surefill.estimators import iterate_table

SHAPE = (120, 90)


@pytest.fixture(scope="module")
def sim():
    return make_low_rank(SHAPE, rank=2, n_draws=4000, noise=0.1, random_state=0)


@pytest.fixture
def calls(monkeypatch):
    """How often completions were fitted, by seed, and how many cells they were asked about."""
    counted = Counter()
    fit, at, block = BayesianFactorModel.fit, BayesianFactorCompletion.at, BayesianFactorCompletion.block

    def counting_fit(self, observations, progress=None):
        counted["fits" if self.random_state < 1000 else "restarts"] += 1
        return fit(self, observations, progress)

    def counting_at(self, rows, cols):
        counted["asked"] += np.size(rows)
        return at(self, rows, cols)

    def counting_block(self, rows, cols):
        counted["asked"] += np.size(rows) * np.size(cols)
        return block(self, rows, cols)

    monkeypatch.setattr(BayesianFactorCompletion, "block", counting_block)
    monkeypatch.setattr(BayesianFactorModel, "fit", counting_fit)
    monkeypatch.setattr(BayesianFactorCompletion, "at", counting_at)
    return counted


def test_a_fit_completes_each_fold_and_the_whole_once(sim, calls):
    PartialCompleter(0.05, confidence="posterior").fit(sim.observations)
    assert calls["fits"] == 6
    assert calls["restarts"] == 14


def test_a_written_cell_is_predicted_once(sim, calls):
    completer = PartialCompleter(0.05, confidence="coverage", risk="confidence").fit(sim.observations)
    calls.clear()
    lines = sum(len(block["row"]) for block in iterate_table(completer, entries="all"))
    assert lines == SHAPE[0] * SHAPE[1]
    # A cell so near the threshold that the block's rounding could decide is asked again by itself.
    assert lines <= calls["asked"] <= 1.01 * lines


def test_a_posterior_that_rests_on_the_completion_does_not_ask_it_again(sim, calls):
    completer = PartialCompleter(0.05, confidence="posterior").fit(sim.observations)
    calls.clear()
    completer.result_.answer(np.arange(10), np.arange(10))
    assert calls["asked"] == 10 * (1 + 7)  # once itself, and once for each restart


def test_new_rows_are_folded_in_once(sim, monkeypatch):
    completer = PartialCompleter(0.05, confidence="posterior").fit(sim.observations)
    folded = Counter()
    fold_in = BayesianFactorCompletion.fold_in

    def counting(self, observations):
        folded[id(self)] += 1
        return fold_in(self, observations)

    monkeypatch.setattr(BayesianFactorCompletion, "fold_in", counting)
    completer.transform(sim.observations.dense()[:5] + 0.001)
    assert set(folded.values()) == {1}
    assert folded[id(completer.result_.completion)] == 1


def test_what_was_one_object_is_one_after_loading(sim, tmp_path):
    completer = PartialCompleter(0.05, confidence="posterior").fit(sim.observations)
    completer.save(tmp_path / "model")
    result = load(tmp_path / "model").result_
    assert result.confidence.completion is result.completion
    assert result.risk.evidence.completion is result.completion


def test_a_default_fit_completes_each_fold_the_blocks_and_the_whole_once(sim, calls):
    PartialCompleter(0.05, confidence="game").fit(sim.observations)
    assert calls["fits"] == 7
    assert calls["restarts"] == 0


def test_a_saved_model_holds_each_array_once(sim, tmp_path):
    """The factors, the snapshots of the game, their counts, and the observations: nothing twice, nothing else large."""
    completer = PartialCompleter(0.05, confidence="game").fit(sim.observations)
    completer.save(tmp_path / "model")
    result, lines = completer.result_, sum(SHAPE)
    covariances = (lines + 2) * 11**2 * 8
    snapshots = result.confidence.row_slots.nbytes + result.confidence.col_slots.nbytes
    observed = len(completer.observations_) * 5 * 8
    assert (tmp_path / "model").stat().st_size < 1.3 * (covariances + snapshots + 2 * observed)

"""The cells of largest value in each row, against a full sort of all answers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefill as sf
from surefill.completion import BayesianFactorModel
from surefill.estimators import Answer, PartialCompletion
from surefill.estimators.best_cells import BestCells, _largest, best_cells

SHAPE = (120, 400)


@pytest.fixture(scope="module")
def result():
    """Of a table with noisy and quiet columns, so that a small tolerance keeps a part of each row."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(SHAPE[0], 2)) @ rng.normal(size=(2, SHAPE[1]))
    noise = rng.choice([0.1, 1.0], SHAPE[1]) * rng.normal(size=SHAPE)
    rows, cols = np.nonzero(rng.random(SHAPE) < 0.3)
    seen = sf.Observations(rows, cols, (truth + noise)[rows, cols], SHAPE)
    completer = sf.PartialCompleter(1.0, aim="observed", completion=BayesianFactorModel(rank=2))
    result = completer.fit(seen).result_
    middle = np.median(result.answer_block(np.arange(SHAPE[0]), np.arange(SHAPE[1])).risk)
    return replace(result, selection=replace(result.selection, threshold=float(middle)))


@pytest.fixture(scope="module")
def full(result):
    return result.answer_block(np.arange(SHAPE[0]), np.arange(SHAPE[1]))


@pytest.fixture(scope="module")
def allowed():
    return np.random.default_rng(5).random(SHAPE) < 0.9


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("n", [1, 7, 300, 1000])
def test_these_are_the_largest_values(result, full, allowed, n, kept):
    assert 0.05 < full.keep.mean() < 0.95
    found = best_cells(result, np.arange(SHAPE[0]), np.arange(SHAPE[1]), allowed, n, kept)
    counts = allowed & full.keep if kept else allowed
    assert counts[found.line, found.place].all()
    assert len(set(zip(found.line.tolist(), found.place.tolist(), strict=True))) == len(found.line)
    for i in range(SHAPE[0]):
        best = np.sort(full.value[i, counts[i]])[::-1][:n]
        np.testing.assert_allclose(found.answer.value[found.line == i], best, atol=1e-9)


def test_most_cells_are_asked_for_their_value_alone(result, full, allowed, monkeypatch):
    asked = []
    answer = PartialCompletion.answer
    monkeypatch.setattr(
        PartialCompletion, "answer", lambda self, rows, cols: asked.append(len(rows)) or answer(self, rows, cols)
    )
    monkeypatch.setattr("surefill.estimators.best_cells.FEW_CANDIDATES", 1.0)
    best_cells(result, np.arange(SHAPE[0]), np.arange(SHAPE[1]), allowed, 2)
    assert SHAPE[0] * 2 <= sum(asked) < 0.1 * allowed.sum()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_of_equal_values_the_least_risky_come_first(data):
    m, n, k = (data.draw(st.integers(1, 5)) for _ in range(3))
    few = st.lists(st.integers(0, 2), min_size=m * n, max_size=m * n)
    value, risk, allowed = (np.array(data.draw(few), float).reshape(m, n) for _ in range(3))
    line, place = _largest(np.where(allowed > 0, value, -np.inf), k)
    answer = Answer(value[line, place], risk[line, place], risk[line, place], np.ones(len(line), bool))
    found = BestCells(line, place, answer).first(k)
    for i in range(m):
        ranked = sorted((-value[i, j], risk[i, j], j) for j in range(n) if allowed[i, j] > 0)
        assert found.place[found.line == i].tolist() == [j for _, _, j in ranked[:k]]


def test_of_nothing_kept_there_is_nothing(result, allowed):
    nothing = result.at_tolerance(1e-9)
    assert nothing.selection.empty
    assert len(best_cells(nothing, np.arange(SHAPE[0]), np.arange(SHAPE[1]), allowed, 3).line) == 0

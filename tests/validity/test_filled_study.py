"""The study of filled cells: its tables and scores against brute force, and one draw from start to end."""

import importlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")


@pytest.fixture(scope="module")
def filled():
    sys.path.insert(0, BENCHMARKS)
    yield importlib.import_module("filled")
    sys.path.remove(BENCHMARKS)


@pytest.fixture(scope="module")
def tables(filled):
    return importlib.import_module("filled_tables")


@pytest.mark.parametrize(("share", "exponent"), [(0.03, 0.8), (0.25, 0.4)])
def test_chances_are_capped_products_with_the_share_asked_for(tables, share, exponent):
    chance = tables.power_law(np.random.default_rng(0), (60, 40), share, exponent)
    assert chance.mean() == pytest.approx(share, rel=1e-6)
    assert chance.max() <= tables.MOST_LIKELY
    free = chance < tables.MOST_LIKELY
    rows = free.all(axis=1)
    singular = np.linalg.svd(np.log(chance[rows]) - np.log(chance[rows]).mean(axis=1, keepdims=True), compute_uv=False)
    assert singular[1] < 1e-9 * singular[0]


@pytest.mark.parametrize("direction", ["liked", "extreme", "accurate"])
def test_leaning_multiplies_no_chance_by_more_than_the_factor(tables, direction):
    rng = np.random.default_rng(1)
    table = tables.rank_3(rng, (50, 40))
    chance = tables.power_law(rng, (50, 40), 0.2, 0.3)
    ratio = tables.leaning(table, chance, 2.0, direction) / chance
    assert ratio.max() / ratio.min() == pytest.approx(2.0)
    assert (ratio * chance).mean() == pytest.approx(0.2, rel=1e-6)
    assert np.corrcoef(tables.LEANINGS[direction](table).ravel(), ratio.ravel())[0, 1] > 0.4


def test_the_oracle_takes_the_largest_prefix_within_the_tolerance(filled):
    rng = np.random.default_rng(2)
    risk, loss, allowed = rng.random(60), rng.random(60), rng.random(60) < 0.7
    order = [x for x in np.argsort(risk) if allowed[x]]
    fits = [k for k in range(1, len(order) + 1) if loss[order[:k]].mean() <= 0.45]
    assert filled.oracle(risk, loss, allowed, 0.45) == pytest.approx(max(fits, default=0) / 60)
    assert filled.oracle(risk, loss + 1, allowed, 0.45) == 0


def test_errors_weighted_to_the_filled_cells(filled):
    real = importlib.import_module("filled_real")
    observations = importlib.import_module("surefill").Observations
    seen = observations([0, 0, 0, 1], [0, 1, 2, 0], [1.0, 2.0, 3.0, 4.0], (2, 4))
    kept, filled_cells = (np.array([0, 1]), np.array([0, 1])), (np.array([0, 1, 1, 1]), np.array([0, 1, 2, 3]))
    mean, _, unmatched = real.reweighted(seen, np.array([1.0, 4.0]), kept, filled_cells)
    assert mean == pytest.approx((1 * 1.0 + 2 * 4.0) / 3)
    assert unmatched == pytest.approx(1 / 4)


def test_one_draw_goes_into_the_log_once_and_is_summed_up(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(filled, "ProcessPoolExecutor", lambda jobs, _: ThreadPoolExecutor(jobs))
    for variable in filled.ONE_THREAD:
        monkeypatch.setenv(variable, "1")
    setting = filled.Setting("digits", 0.3, 0.3)
    log = tmp_path / "log.jsonl"
    found = filled.study([setting], 1, 1, log)
    first = log.read_text()
    log.write_text(first + '{"setting": "digi')
    assert filled.study([setting], 1, 1, log) == found
    at = filled.study([setting], 2, 1, log)[setting.name, 0.8]
    assert log.read_text().startswith(first)
    assert at["draws"] == 2
    assert 0 < at["filled"] <= at["oracle"] <= at["oracle_of_all"] <= 1
    assert len(at["others"]) == 6


def test_a_draw_that_fails_ends_the_study_at_once(filled, tmp_path, monkeypatch):
    begun = []

    def second_fails(setting, seed):
        begun.append(seed)
        if seed == 1:
            raise FileNotFoundError("no such table")
        time.sleep(0.05)
        return {"setting": setting.name, "seed": seed}

    monkeypatch.setattr(filled, "ProcessPoolExecutor", lambda jobs, _: ThreadPoolExecutor(jobs))
    monkeypatch.setattr(filled, "run_draw", second_fails)
    for variable in filled.ONE_THREAD:
        monkeypatch.setenv(variable, "1")
    with pytest.raises(FileNotFoundError, match="no such table"):
        filled.run([filled.KNOWN[0]], 5000, 1, tmp_path / "log.jsonl")
    assert len(begun) < 5000

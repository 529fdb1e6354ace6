"""A small version of ``make test-validity``: the promise against known truths, in every setting of the study."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

spec = importlib.util.spec_from_file_location("validity", Path(__file__).parents[2] / "benchmarks" / "validity.py")
validity = importlib.util.module_from_spec(spec)
sys.modules["validity"] = validity
spec.loader.exec_module(validity)

DRAWS = 3


@pytest.mark.parametrize("name", validity.SETTINGS)
def test_the_promise_holds_and_most_of_what_an_oracle_would_keep_is_kept(name):
    found = validity.study(name, DRAWS)
    assert found["broken"] * DRAWS <= binom.ppf(0.999, DRAWS, validity.DELTA)
    assert found["of_oracle"] > 0.6


@pytest.mark.parametrize("name", validity.SETTINGS)
def test_a_setting_knows_its_means_and_variances(name):
    world = validity.SETTINGS[name].make(np.random.default_rng(0))
    draws = np.array([world.draw() for _ in range(400)])
    assert ((draws >= world.bounds[0]) & (draws <= world.bounds[1])).all()
    noise = np.sqrt(world.variance.max() / 400)
    np.testing.assert_allclose(draws.mean(axis=0), world.mean, atol=5.5 * noise)
    assert draws.var(axis=0).mean() == pytest.approx(world.variance.mean(), rel=0.02)
    assert ((world.chance >= 0) & (world.chance <= 1)).all()


def test_the_oracle_against_brute_force():
    rng = np.random.default_rng(1)
    risk, weight = rng.random((3, 4)), rng.random((3, 4))
    order = np.argsort(risk.ravel())
    kept = [
        order[:k] for k in range(1, 13) if np.average(risk.ravel()[order[:k]], weights=weight.ravel()[order[:k]]) <= 0.4
    ]
    expected = weight.ravel()[kept[-1]].sum() / weight.sum()
    assert validity.oracle_coverage(risk, weight, 0.4) == pytest.approx(expected)

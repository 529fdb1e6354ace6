"""Shared by the tests of the estimator."""

from __future__ import annotations

import numpy as np
import pytest

from surefill import PartialCompleter
from surefill.confidence import Certificate, CoverageProgram
from surefill.datasets import make_blocks, make_low_rank
from surefill.spaces import DenseConfidence


class Everywhere:
    """Confidence 1 in every entry: what is kept is up to the risk, and tests are quick."""

    sets_floor = True

    def chosen_for(self, observations, completion, tolerance, held_out_error):
        return self

    def fit(self, observations, completion, progress=None):
        certificate = Certificate("heuristic", None, None, None, "Every entry has confidence 1.", floor=0.5)
        return DenseConfidence(np.ones(observations.shape)), certificate


@pytest.fixture(scope="session")
def everywhere():
    """A confidence algorithm that trusts every entry."""
    return Everywhere()


@pytest.fixture(scope="session")
def sim():
    return make_low_rank((60, 50), rank=2, n_draws=2500, noise=0.2, random_state=0)


@pytest.fixture(scope="session")
def fitted(sim):
    return PartialCompleter(tolerance=0.08, confidence="posterior").fit(sim.observations)


@pytest.fixture(scope="session")
def blocks():
    sim = make_blocks((15, 15), n_draws=1000, rank=2, noise=0.1, random_state=1)
    return sim, PartialCompleter(tolerance=0.5, confidence=CoverageProgram(K=1.0, gamma=0.3)).fit(sim.observations)

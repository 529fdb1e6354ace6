"""Shared by the tests of completion algorithms."""

import pytest

from surefill.completion import BayesianFactorModel
from surefill.datasets import make_low_rank


@pytest.fixture(scope="session")
def sim():
    return make_low_rank((60, 50), rank=3, n_draws=2500, noise=0.05, random_state=0)


@pytest.fixture(scope="session")
def fitted(sim):
    return BayesianFactorModel(rank=3).fit(sim.observations)

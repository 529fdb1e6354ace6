"""Every confidence algorithm of ours keeps the contract that is shipped for those of others."""

from surefill.confidence import CoverageGame, CoverageProgram, PosteriorVariance
from surefill.registry import CONFIDENCES
from surefill.testing import ConfidenceContract


class TestCoverageProgram(ConfidenceContract):
    algorithm = CoverageProgram()
    bad_parameters = {"K": 0, "gamma": -1, "beta": -1, "rank": 0, "time_limit": 0}


class TestCoverageProgramWithRank(ConfidenceContract):
    algorithm = CoverageProgram(K=1.0, gamma=0.3, rank=4)


class TestCoverageGame(ConfidenceContract):
    algorithm = CoverageGame()
    bad_parameters = {"false_support": 0.0, "rank": 0, "random_state": -1}


class TestPosteriorVariance(ConfidenceContract):
    algorithm = PosteriorVariance()
    bad_parameters = {"n_restarts": -1, "random_state": -1}


def test_every_named_confidence_is_under_contract():
    under_contract = {type(suite.algorithm).__name__ for suite in ConfidenceContract.__subclasses__()}
    assert {entry.cls for entry in CONFIDENCES.values()} <= under_contract

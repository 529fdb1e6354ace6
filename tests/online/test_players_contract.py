from __future__ import annotations

import math

from surefill.online.players import CubePlayer, EntropyPlayer, MatrixMultiplicativeWeights
from surefill.testing import ConfidencePlayerContract, MatrixPlayerContract


class TestEntropyPlayer(ConfidencePlayerContract):
    player = EntropyPlayer((4, 3), alpha=2.0)
    violation = staticmethod(lambda C: max(abs(C.sum() - 1), -C.min()))
    bad_parameters = {"alpha": 0.0, "shape": (4, 0)}


class TestCubePlayer(ConfidencePlayerContract):
    player = CubePlayer((4, 3), alpha=2.0)
    violation = staticmethod(lambda C: max(C.max() - 7**-1.5, -C.min()))
    bad_parameters = {"alpha": math.inf, "shape": (4, 3, 2)}


class TestMatrixMultiplicativeWeights(MatrixPlayerContract):
    player = MatrixMultiplicativeWeights((4, 3), K=1.4, theta=0.5, observations="values")
    bad_parameters = {"K": -1.0, "theta": 0.0, "tol": math.nan, "observations": "all", "shape": (0, 3)}


class TestMatrixMultiplicativeWeightsOnZeros(MatrixPlayerContract):
    player = MatrixMultiplicativeWeights((4, 3), K=0.8, theta=0.5)
    zero_observations = True

"""Every completion algorithm of ours keeps the contract that is shipped for those of others."""

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.impute import KNNImputer
from sklearn.linear_model import Ridge

from surefill.completion import (
    BayesianFactorModel,
    ExternalCompletion,
    FactorModel,
    IterativeSVD,
    MaxNormCompletion,
    SoftImpute,
    TraceNormCompletion,
)
from surefill.data import Observations
from surefill.testing import CompletionContract
from surefill.testing.completion_contract import additive_and_low_rank


class TestFactorModel(CompletionContract):
    algorithm = FactorModel(rank=3)
    bad_parameters = {"rank": 0, "penalty": -1, "max_sweeps": 0, "tol": -1, "random_state": -1}


class TestBayesianFactorModel(CompletionContract):
    algorithm = BayesianFactorModel(rank=3)
    bad_parameters = {"rank": 0, "max_sweeps": 0, "tol": -1, "random_state": -1}


class TestMaxNormCompletion(CompletionContract):
    algorithm = MaxNormCompletion(K=1.0, centre=True, tol=1e-2)
    bad_parameters = {"K": 0, "rank": 0, "tol": -1, "method": "x", "random_state": -1}


class TestSoftImpute(CompletionContract):
    algorithm = SoftImpute(tol=1e-2)
    bad_parameters = {
        "penalty": 0, "rank": 0, "method": "x", "centre": "x", "max_steps": 0, "tol": -1, "random_state": -1
    }  # fmt: skip


class TestSoftImputeAlternating(CompletionContract):
    algorithm = SoftImpute(method="als", centre="mean", rank=5, tol=1e-2, max_steps=50)


class TestTraceNormCompletion(CompletionContract):
    algorithm = TraceNormCompletion(tol=1e-2)
    bad_parameters = {
        "tau": 0, "penalty": -1, "method": "x", "centre": "x", "max_steps": 0, "tol": -1, "random_state": -1
    }  # fmt: skip


class TestIterativeSVD(CompletionContract):
    algorithm = IterativeSVD()
    bad_parameters = {"rank": 0, "centre": "x", "max_steps": 0, "tol": np.inf, "random_state": -1}


class TestRegressor(CompletionContract):
    algorithm = ExternalCompletion(Ridge(alpha=0.1))
    bad_parameters = {"source": 3, "kind": "x", "features": "x"}
    iterative = storable = False


class TestTrees(CompletionContract):
    algorithm = ExternalCompletion(ExtraTreesRegressor(20, random_state=0), features="ids")
    iterative = storable = equivariant = False


class TestImputer(CompletionContract):
    algorithm = ExternalCompletion(KNNImputer(keep_empty_features=True), kind="imputer")
    iterative = storable = False


class TestPredictions(CompletionContract):
    algorithm = ExternalCompletion(Observations.from_matrix(0.7 * additive_and_low_rank().truth))
    iterative = equivariant = False

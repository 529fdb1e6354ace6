"""Fitted completers on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefill.completion import (
    BayesianFactorCompletion,
    BayesianFactorModel,
    ExternalCompletion,
    FactorCompletion,
    FactorModel,
    IterativeSVD,
    LowRankCompletion,
    MaxNormCompletion,
    MaxNormFit,
    OptimalityGap,
    SoftImpute,
    TableCompletion,
    TraceNormCompletion,
)
from surefill.completion.bayes.noise_precision import Quietness
from surefill.completion.bayes.variational import Belief
from surefill.confidence.algorithms import Certificate, CoverageProgram, PosteriorVariance, SeenRows
from surefill.confidence.new_rows import FittedRows
from surefill.confidence.posterior import PosteriorConfidence
from surefill.coverage.linear.factored_confidence import FactoredConfidence
from surefill.data import Observations, UnitMap
from surefill.estimators.partial_completer import PartialCompleter
from surefill.estimators.result import PartialCompletion
from surefill.guarantee import Calibration, Guarantee, Selection, SelectionPlan, TargetWeights
from surefill.guarantee.target_weights import GivenPropensity, MarginalPropensity
from surefill.io.archive import read_archive, write_archive
from surefill.loop import Status
from surefill.risk import ConfidenceRisk, FittedRisk, RiskCurve, RiskModel
from surefill.risk.cross_fitting import CountVariance, Evidence
from surefill.risk.noise_factors import NoiseFactors

FORMAT, VERSION = "surefill model", 3
PARAMETERS = ("tolerance", "delta", "completion", "confidence", "risk", "aim", "propensity", "random_state")
STORABLE: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        BayesianFactorCompletion, BayesianFactorModel, Belief, Calibration, Certificate, ConfidenceRisk,
        CountVariance, CoverageProgram, Evidence, ExternalCompletion, FactorCompletion, FactoredConfidence, FactorModel,
        FittedRisk, FittedRows, GivenPropensity, Guarantee, IterativeSVD, LowRankCompletion, MarginalPropensity,
        MaxNormCompletion, MaxNormFit, NoiseFactors, Observations, OptimalityGap, PartialCompletion,
        PosteriorConfidence, PosteriorVariance, Quietness, RiskCurve, RiskModel, SeenRows, Selection, SelectionPlan,
        SoftImpute, Status, TableCompletion, TargetWeights, TraceNormCompletion, UnitMap,
    )
}  # fmt: skip
"""Every kind of object that a model file may hold; nothing else is ever built from a file."""


def save(completer: PartialCompleter, path: str | Path) -> None:
    """Write a fitted completer; the file appears only when it is complete.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.05, confidence="posterior").fit(sim.observations)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(completer, Path(folder) / "model.surefill")
    ...     [file.name for file in Path(folder).iterdir()]
    ['model.surefill']
    """
    content = {
        "parameters": {name: getattr(completer, name) for name in PARAMETERS},
        "result": completer._fitted(),
        "observations": completer.observations_,
        "feature_names": getattr(completer, "feature_names_in_", None),
    }
    write_archive(Path(path), FORMAT, VERSION, content, STORABLE)


def load(path: str | Path) -> PartialCompleter:
    """Read a fitted completer written by :meth:`PartialCompleter.save`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.05, confidence="posterior").fit(sim.observations)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     again = sf.load(Path(folder) / "model.surefill")
    >>> bool((again.predict([0], [3]) == completer.predict([0], [3])).all())
    True
    """
    return read_archive(Path(path), FORMAT, VERSION, _rebuilt, STORABLE)


def _rebuilt(content: dict[str, Any]) -> PartialCompleter:
    completer = PartialCompleter(**content["parameters"])
    completer._validate()
    completer.result_, completer.observations_ = content["result"], content["observations"]
    if not (isinstance(completer.result_, PartialCompletion) and isinstance(completer.observations_, Observations)):
        raise TypeError
    if completer.result_.completion.shape != completer.observations_.shape:
        raise ValueError
    completer.n_features_in_ = completer.observations_.shape[1]
    if content["feature_names"] is not None:
        completer.feature_names_in_ = content["feature_names"].astype(object)
    return completer

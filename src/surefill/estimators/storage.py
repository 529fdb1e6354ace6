"""Models on disk: numpy arrays and one JSON text in a zip file, never pickle."""

from __future__ import annotations

import dataclasses
import enum
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.completion import (
    BayesianFactorCompletion,
    BayesianFactorModel,
    FactorCompletion,
    FactorModel,
    MaxNormCompletion,
    MaxNormFit,
)
from surefill.completion.offsets import Offsets
from surefill.completion.variational import Belief
from surefill.coverage.algorithms import Certificate, CoverageProgram, PosteriorVariance, SeenRows
from surefill.coverage.factored_confidence import FactoredConfidence
from surefill.coverage.new_rows import FittedRows
from surefill.coverage.posterior import PosteriorConfidence
from surefill.data import Observations, UnitMap
from surefill.data.files import check_folder, replacing
from surefill.errors import InputError
from surefill.estimators.partial_completer import PartialCompleter
from surefill.estimators.result import PartialCompletion
from surefill.loop import Status
from surefill.risk import (
    ConfidenceRisk,
    ConformalScores,
    FittedRisk,
    Guarantee,
    RiskCurve,
    RiskModel,
    Selection,
    TargetWeights,
)
from surefill.risk.count_variance import CountVariance
from surefill.risk.cross_fitting import Evidence
from surefill.risk.noise_factors import NoiseFactors
from surefill.risk.propensity import GivenPropensity, MarginalPropensity

FORMAT, VERSION = "surefill model", 2
HEADER = "surefill.json"
PARAMETERS = ("tolerance", "delta", "completion", "confidence", "risk", "aim", "propensity", "random_state")
STORABLE: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        BayesianFactorCompletion, BayesianFactorModel, Belief, Certificate, ConfidenceRisk, ConformalScores,
        CountVariance, CoverageProgram, Evidence, FactorCompletion, FactoredConfidence, FactorModel, FittedRisk,
        FittedRows, GivenPropensity, Guarantee, MarginalPropensity, MaxNormCompletion, MaxNormFit, NoiseFactors,
        Observations, Offsets, PartialCompletion, PosteriorConfidence, PosteriorVariance, RiskCurve, RiskModel,
        SeenRows, Selection, Status, TargetWeights, UnitMap,
    )
}  # fmt: skip
"""Every kind of object that a model file may hold; nothing else is ever built from a file."""

UNREADABLE = (
    OSError, ValueError, LookupError, EOFError, TypeError, AttributeError, RuntimeError, MemoryError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a damaged, foreign or forged file may raise."""

Arrays = dict[str, NDArray[Any]]


def save(completer: PartialCompleter, path: str | Path) -> None:
    """Write a fitted completer; the file appears only when it is complete."""
    arrays: Arrays = {}
    content = {
        "parameters": {name: getattr(completer, name) for name in PARAMETERS},
        "result": completer._fitted(),
        "observations": completer.observations_,
        "feature_names": getattr(completer, "feature_names_in_", None),
    }
    header = {"format": FORMAT, "version": VERSION, "content": _pack(content, arrays)}
    arrays[HEADER] = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    target = Path(path)
    check_folder(target)
    with replacing(target) as partial, open(partial, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load(path: str | Path) -> PartialCompleter:
    """Read a fitted completer written by :meth:`PartialCompleter.save`."""
    target = Path(path)
    try:
        with open(target, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop(HEADER).tobytes())
        known = header["format"] == FORMAT and header["version"] == VERSION
    except FileNotFoundError:
        raise InputError(f"{target} does not exist.") from None
    except UNREADABLE:
        raise InputError(f"{target} is not a surefill model, or it is damaged.") from None
    if not known:
        raise InputError(f"{target} was written by another version of surefill; this one reads version {VERSION}.")
    try:
        return _rebuilt(_unpack(header["content"], arrays))
    except UNREADABLE:
        raise InputError(f"{target} is a damaged surefill model.") from None


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


def _pack(value: Any, arrays: Arrays) -> Any:
    """A JSON tree for ``value``; its arrays go to ``arrays`` and leave their key behind."""
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        key = f"array{len(arrays)}"
        arrays[key] = value.astype(str) if value.dtype == object else value
        return {"array": key}
    if isinstance(value, list | tuple):
        return {"tuple": [_pack(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": {name: _pack(item, arrays) for name, item in value.items()}}
    kind = type(value).__name__
    if STORABLE.get(kind) is not type(value):
        raise InputError(f"a {kind} cannot be saved; only models made of surefill's own parts can.")
    if isinstance(value, enum.Enum):
        return {"kind": kind, "name": value.name}
    fields = {field.name: _pack(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
    return {"kind": kind, "fields": fields}


def _unpack(tree: Any, arrays: Arrays) -> Any:
    """The inverse of :func:`_pack`."""
    if not isinstance(tree, dict):
        return tree
    if "float" in tree:
        return float(tree["float"])
    if "array" in tree:
        return arrays[tree["array"]]
    if "tuple" in tree:
        return tuple(_unpack(item, arrays) for item in tree["tuple"])
    if "dict" in tree:
        return {name: _unpack(item, arrays) for name, item in tree["dict"].items()}
    kind = STORABLE[tree["kind"]]
    if "name" in tree:
        return kind[tree["name"]]
    values = {name: _unpack(item, arrays) for name, item in tree["fields"].items()}
    made_at_start = {field.name: values[field.name] for field in dataclasses.fields(kind) if field.init}
    result = kind(**made_at_start)
    for name in values.keys() - made_at_start.keys():
        object.__setattr__(result, name, values[name])
    return result

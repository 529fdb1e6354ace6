"""surefill fills in the part of a matrix that can be trusted, says how far, and leaves the rest empty.

It implements "Partial Matrix Completion" (Hazan, Kalai, Kanade, Mohri, Sun, NeurIPS 2023).

>>> import surefill as sf
>>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, random_state=0)
>>> pc = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
>>> bool(pc.keep([0], [0])[0])
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefill import completion as completion
    from surefill import datasets as datasets
    from surefill import metrics as metrics
    from surefill import theory as theory
    from surefill.completion import BayesianFactorModel as BayesianFactorModel
    from surefill.completion import ExternalCompletion as ExternalCompletion
    from surefill.completion import FactorModel as FactorModel
    from surefill.completion import IterativeSVD as IterativeSVD
    from surefill.completion import MaxNormCompletion as MaxNormCompletion
    from surefill.completion import SoftImpute as SoftImpute
    from surefill.completion import TraceNormCompletion as TraceNormCompletion
    from surefill.confidence import CoverageProgram as CoverageProgram
    from surefill.confidence import PosteriorVariance as PosteriorVariance
    from surefill.coverage import Coverage as Coverage
    from surefill.coverage import CoverageBracket as CoverageBracket
    from surefill.coverage import round_confidence as round_confidence
    from surefill.coverage import solve_coverage as solve_coverage
    from surefill.coverage import solve_quadratic_coverage as solve_quadratic_coverage
    from surefill.data import Observations as Observations
    from surefill.data import UnitMap as UnitMap
    from surefill.data import split_entries as split_entries
    from surefill.data import split_folds as split_folds
    from surefill.data import split_rows as split_rows
    from surefill.errors import InputError as InputError
    from surefill.errors import MissingExtraError as MissingExtraError
    from surefill.estimators import PartialCompleter as PartialCompleter
    from surefill.estimators import PartialCompletion as PartialCompletion
    from surefill.estimators import iterate_table as iterate_table
    from surefill.estimators import load as load
    from surefill.io import read_observations as read_observations
    from surefill.io import write_table as write_table
    from surefill.online import FactoredGame as FactoredGame
    from surefill.online import OnlineDualDescent as OnlineDualDescent
    from surefill.online import SimplifiedODD as SimplifiedODD
    from surefill.report import write_report as write_report
    from surefill.risk import RiskModel as RiskModel
    from surefill.spaces import MaxNorm as MaxNorm
    from surefill.spaces import TraceNorm as TraceNorm
    from surefill.spaces import VersionSpace as VersionSpace
    from surefill.spaces import max_norm as max_norm
    from surefill.spaces import trace_norm as trace_norm
    from surefill.stream import StreamingCompleter as StreamingCompleter
    from surefill.stream import StreamMetrics as StreamMetrics
    from surefill.theory import OfflineCompletion as OfflineCompletion
    from surefill.theory import complete_partially as complete_partially

__version__ = "0.1.0"

_HOME = {
    "completion": [
        "BayesianFactorModel", "ExternalCompletion", "FactorModel", "IterativeSVD", "MaxNormCompletion", "SoftImpute",
        "TraceNormCompletion",
    ],
    "confidence": ["CoverageProgram", "PosteriorVariance"],
    "coverage": ["Coverage", "CoverageBracket", "round_confidence", "solve_coverage", "solve_quadratic_coverage"],
    "data": ["Observations", "UnitMap", "split_entries", "split_folds", "split_rows"],
    "datasets": [],
    "errors": ["InputError", "MissingExtraError"],
    "estimators": ["PartialCompleter", "PartialCompletion", "iterate_table", "load"],
    "io": ["read_observations", "write_table"],
    "metrics": [],
    "online": ["FactoredGame", "OnlineDualDescent", "SimplifiedODD"],
    "report": ["write_report"],
    "risk": ["RiskModel"],
    "spaces": ["MaxNorm", "TraceNorm", "VersionSpace", "max_norm", "trace_norm"],
    "stream": ["StreamMetrics", "StreamingCompleter"],
    "theory": ["OfflineCompletion", "complete_partially"],
}  # fmt: skip
"""Public names by module; each module is imported when one of its names is first used, so that ``import surefill``
and the command line's help stay quick."""

_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted([*_MODULE_OF, "completion", "datasets", "metrics", "theory"])


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"surefill.{_MODULE_OF[name]}"), name)
    if name in _HOME:
        return importlib.import_module(f"surefill.{name}")
    raise AttributeError(f"module 'surefill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

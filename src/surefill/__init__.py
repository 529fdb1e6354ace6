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
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefill import active as active
    from surefill import cluster as cluster
    from surefill import completion as completion
    from surefill import confidence as confidence
    from surefill import data as data
    from surefill import datasets as datasets
    from surefill import losses as losses
    from surefill import metrics as metrics
    from surefill import online as online
    from surefill import theory as theory
    from surefill.coverage import round_confidence as round_confidence
    from surefill.coverage import solve_coverage as solve_coverage
    from surefill.coverage import solve_quadratic_coverage as solve_quadratic_coverage
    from surefill.data import Observations as Observations
    from surefill.errors import InputError as InputError
    from surefill.estimators import PartialCompleter as PartialCompleter
    from surefill.estimators import load as load
    from surefill.io import read_observations as read_observations
    from surefill.online import OnlineDualDescent as OnlineDualDescent
    from surefill.online import SimplifiedODD as SimplifiedODD
    from surefill.report import write_report as write_report
    from surefill.spaces import MaxNorm as MaxNorm
    from surefill.spaces import TraceNorm as TraceNorm
    from surefill.spaces import VersionSpace as VersionSpace
    from surefill.spaces import max_norm as max_norm
    from surefill.spaces import trace_norm as trace_norm
    from surefill.stream import StreamingCompleter as StreamingCompleter
    from surefill.theory import complete_partially as complete_partially

__version__ = "0.1.0"

_MODULE_OF = {
    "InputError": "errors",
    "MaxNorm": "spaces",
    "Observations": "data",
    "OnlineDualDescent": "online",
    "PartialCompleter": "estimators",
    "SimplifiedODD": "online",
    "StreamingCompleter": "stream",
    "TraceNorm": "spaces",
    "VersionSpace": "spaces",
    "complete_partially": "theory",
    "load": "estimators",
    "max_norm": "spaces",
    "read_observations": "io",
    "round_confidence": "coverage",
    "solve_coverage": "coverage",
    "solve_quadratic_coverage": "coverage",
    "trace_norm": "spaces",
    "write_report": "report",
}
"""Where each public name lives; its module is imported when the name is first used, so that ``import surefill`` and
the command line's help stay quick."""

_MODULES = (
    "active",
    "cluster",
    "completion",
    "confidence",
    "data",
    "datasets",
    "losses",
    "metrics",
    "online",
    "theory",
)
"""Modules that people reach as attributes, such as ``sf.completion.SoftImpute``."""

__all__ = sorted([*_MODULE_OF, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"surefill.{_MODULE_OF[name]}"), name)
    if not name.startswith("_") and importlib.util.find_spec(f"surefill.{name}") is not None:
        return importlib.import_module(f"surefill.{name}")
    raise AttributeError(f"module 'surefill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

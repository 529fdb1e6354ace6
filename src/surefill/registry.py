"""Algorithms by name, and the kinds of objects that a file may hold: the one place where either is looked up.

The command line, :class:`surefill.PartialCompleter`, its error sentences and the reference read the tables below; they
name modules instead of importing them, so that help stays quick. A kind of object is storable once it says so where it
is defined (``@storable``).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class Entry:
    """An algorithm that can be had by name: where its class lives, and what it is in a few words."""

    module: str
    cls: str
    summary: str

    def make(self, **parameters: Any) -> Any:
        """A new instance, its module imported now."""
        return getattr(importlib.import_module(self.module), self.cls)(**parameters)


COMPLETIONS = {
    "auto": Entry("surefill.completion", "BayesianFactorModel", "the Bayesian factor model"),
    "factor-model": Entry("surefill.completion", "FactorModel", "factors by alternating least squares"),
    "soft-impute": Entry("surefill.completion", "SoftImpute", "a penalty on the singular values"),
    "trace-norm": Entry("surefill.completion", "TraceNormCompletion", "the trace-norm ball"),
    "max-norm": Entry("surefill.completion", "MaxNormCompletion", "the max-norm ball, the paper's full completion"),
    "iterative-svd": Entry("surefill.completion", "IterativeSVD", "a given number of singular values"),
}
"""Completion algorithms; what is not given to one is chosen from the data."""

CONFIDENCES = {
    "game": Entry(
        "surefill.confidence", "CoverageGame", "the paper's game at any size, tested on cells hidden on purpose"
    ),
    "coverage": Entry(
        "surefill.confidence",
        "CoverageProgram",
        "the paper's coverage program, proved, minutes where the table is large",
    ),
    "posterior": Entry("surefill.confidence", "PosteriorVariance", "a factor model's posterior variance, a heuristic"),
}
"""Confidence algorithms."""

AUTO = "auto"
"""The name that leaves the choice among the confidence algorithms to the data."""

STORABLE: dict[str, Any] = {}
"""Every kind of object that an archive may hold; nothing else is ever built from a file."""


def storable(kind: Kind) -> Kind:
    """Let archives hold objects of this dataclass or enum; its name stands for it in the file."""
    known = STORABLE.get(kind.__name__)
    # the same module again is a reload, as notebooks do
    if known is not None and known.__module__ != kind.__module__:
        raise TypeError(f"two kinds of objects are called {kind.__name__}, and an archive could not tell them apart")
    STORABLE[kind.__name__] = kind
    return kind

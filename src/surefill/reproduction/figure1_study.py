"""The paper's Figure 1: people who rate only comedies or only horror, and harder patterns beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from surefill.arrays import Array, Indices
from surefill.completion import BayesianFactorModel
from surefill.datasets import Simulation, make_pattern
from surefill.loop import ProgressCallback
from surefill.reproduction.methods import (
    Method,
    MethodRun,
    coverage_program,
    exact_descent,
    run_method,
    simplified_descent,
)

RANK = 2
"""Of the simulated truth."""

NOISE = 0.1
"""Largest deviation of a rating, of values in [-1, 1]."""

DRAWS_PER_CELL = 2
"""Ratings per cell of the pattern: 1 - exp(-2) = 86% of its cells are seen."""

PATTERNS = {
    "blocks": "two groups, each rates only its own films",
    "overlapping": "two groups, three in ten people and films belong to both",
    "half": "an arbitrary half of the matrix, without groups",
}
"""The patterns shown, and what they are."""

METHODS = (
    coverage_program(),
    coverage_program(rank=2 * RANK),
    exact_descent("entropy"),
    exact_descent("cube"),
    simplified_descent(),
)
"""MP 2 for the paper's class and for differences of matrices of the truth's rank, ODD in both settings, and what the
paper's experiments ran."""


@dataclass(frozen=True, eq=False)
class PatternOutcome:
    """A simulated truth seen in one pattern, its full completion, and every method's confidence."""

    pattern: str
    simulation: Simulation
    completion: Array
    runs: tuple[MethodRun, ...]

    def undone(self) -> tuple[Indices, Indices]:
        """Orders of rows and columns that undo the shuffle: by group, then by taste (the angle of the factors)."""
        sim, groups = self.simulation, len(self.simulation.allowed) < self.simulation.observations.shape[0]
        rows, cols = (
            np.lexsort((np.arctan2(factors[:, 1], factors[:, 0]), group if groups else np.zeros(len(group))))
            for factors, group in ((sim.left, sim.row_groups), (sim.right, sim.col_groups))
        )
        return rows, cols

    def errors(self) -> dict[str, float]:
        """Mean squared error of the completion on the support and off it."""
        error, support = (self.completion - self.simulation.truth) ** 2, self.simulation.support
        return {"on": float(error[support].mean()), "off": float(error[~support].mean())}

    def table(self) -> list[dict[str, Any]]:
        """One row of plain numbers per method."""
        return [self._measured(run) for run in self.runs]

    def _measured(self, run: MethodRun) -> dict[str, Any]:
        C, support = run.found.confidence.dense(), self.simulation.support
        error, every = (self.completion - self.simulation.truth) ** 2, [i.ravel() for i in np.indices(C.shape)]
        return {
            "pattern": self.pattern,
            "method": run.method.name,
            "settings": run.method.settings,
            "standing": run.found.standing,
            "gap": run.found.gap,
            "confidence_on": float(C[support].mean()),
            "confidence_off": float(C[~support].mean()),
            "auc": float(roc_auc_score(support.ravel(), run.found.order_at(*every))),
            "error_over_confidence": float((C * error).sum() / C.sum()),
            "seconds": run.seconds,
        }


def reproduce_pattern(
    pattern: str,
    *,
    size: int = 40,
    methods: Sequence[Method] = METHODS,
    random_state: int = 0,
    progress: ProgressCallback | None = None,
) -> PatternOutcome:
    """Draw a size x size matrix of rank 2 twice as often as the pattern has cells, and ask every method about it."""
    shape = (size, size)
    cells = int(make_pattern(pattern, shape, RANK, 1, random_state=random_state).support.sum())
    sim = make_pattern(pattern, shape, RANK, DRAWS_PER_CELL * cells, noise=NOISE, random_state=random_state)
    completion = BayesianFactorModel(rank=RANK, random_state=random_state).fit(sim.observations, progress)
    runs = tuple(run_method(method, sim.observations, random_state, progress) for method in methods)
    return PatternOutcome(pattern, sim, completion.dense(), runs)

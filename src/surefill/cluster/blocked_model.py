"""The Bayesian factor model fitted on row blocks, wherever these are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayes.bayesian_model import FIRST_RANK, GROWTH_SWEEPS
from surefill.completion.bayes.blocked_solver import BlockedSolver
from surefill.data import Observations
from surefill.errors import InputError
from surefill.loop import ProgressCallback
from surefill.parallel import one_blas_thread


@dataclass(frozen=True)
class BlockedFactorModel:
    """The completion of :class:`surefill.completion.BayesianFactorModel`, fitted on the row blocks of a backend.

    The result is that of ``model`` to 1e-6 and does not depend on the number of workers. What is fitted on a sample of
    at most two million cells, which is how a rank is chosen, is fitted here. Times and side tables are refused.

    Parameters
    ----------
    model : what is fitted.
    backend : where: :class:`LocalBackend` or :class:`RayBackend`.
    fewest_cells : tables of at most so many cells are fitted here, without blocks.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((40, 30), rank=2, n_draws=900, random_state=0).observations
    >>> model = BlockedFactorModel(sf.completion.BayesianFactorModel(rank=2), sf.cluster.LocalBackend())
    >>> model.fit(seen).rank
    2
    """

    model: BayesianFactorModel
    backend: Any
    fewest_cells: int = 0

    def chosen_for(self, observations: Observations, progress: ProgressCallback | None = None) -> Self:
        """The same with the rank that was given, or with one chosen on a sample."""
        _refuse_more(observations)
        return replace(self, model=self.model.chosen_for(observations, progress))

    def with_few_factors(self, most: int) -> Self:
        """The same with at most so many factors; itself where it has no more."""
        few = self.model.with_few_factors(most)
        return self if few is self.model else replace(self, model=few)

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> BayesianFactorCompletion:
        """Complete the whole matrix."""
        if len(observations) <= self.fewest_cells:
            return self.model.fit(observations, progress)
        chosen = self.chosen_for(observations, progress).model
        assert chosen.rank != "auto"
        target = min(int(chosen.rank), *observations.shape)
        with self.backend.opened(observations, *self._about("fit", observations)) as (blocks, runs):
            about = observations.shape, observations.unit, min(target, FIRST_RANK), chosen.tol, chosen.random_state
            solver = BlockedSolver.of(blocks, *about, runs)
            *_, outcome = chosen.grow(solver, target, progress)
            return solver.completion(outcome, observations.shape[0]).with_covariances(observations)

    def fit_from(
        self, start: BayesianFactorCompletion, observations: Observations, progress: ProgressCallback | None = None
    ) -> BayesianFactorCompletion:
        """Complete the whole matrix from the posterior of another fit, at most a few sweeps."""
        if len(observations) <= self.fewest_cells:
            return self.model.fit_from(start, observations, progress)
        _refuse_more(observations)
        if observations.unit != start.unit:
            raise InputError("a fit goes on from one of the same bounds only; give both the same 'bounds'.")
        about = observations.shape, observations.unit, start.rank, self.model.tol, self.model.random_state
        with self.backend.opened(observations, *self._about("whole", observations)) as (blocks, runs):
            solver = BlockedSolver.of(blocks, *about, runs, start.mean)
            with one_blas_thread():
                steps = min(GROWTH_SWEEPS, self.model.max_sweeps)
                outcome = solver.adopting_completion(start).run(steps, progress)
            return solver.completion(outcome, observations.shape[0]).with_covariances(observations)

    def _about(self, name: str, observations: Observations) -> tuple[str, dict[str, Any]]:
        """What the fit is called, and what a checkpoint must agree with."""
        table = {
            "shape": list(observations.shape),
            "number of cells": len(observations),
            "bounds": list(observations.bounds),
            "sum of values": float(np.sum(observations.values, dtype=np.float64)),
        }
        return name, table | asdict(self.model)


def _refuse_more(observations: Observations) -> None:
    """Refuse what rows are not split by."""
    if observations.times is not None:
        raise InputError("times are not fitted on a cluster yet: leave them out, or fit on this machine.")
    if observations.row_features is not None or observations.col_features is not None:
        raise InputError("side tables are not fitted on a cluster yet: leave them out, or fit on this machine.")

"""Everything that a report says, as plain numbers and sentences, before any of it becomes a page.

:func:`gather` asks a fitted completer; :func:`order_of` puts rows and columns in an order in which blocks show.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefill import __version__
from surefill.arrays import Array, Indices
from surefill.confidence import Certificate
from surefill.data import Observations
from surefill.estimators import PartialCompleter, PartialCompletion
from surefill.estimators.fitting import POPULATION
from surefill.guarantee import Guarantee, Selection
from surefill.guarantee.wording import TARGETS, counted
from surefill.metrics import CalibrationTable, RiskCoverageCurve, calibration_by_decile
from surefill.plots import co_cluster, order_by_group
from surefill.report.heat_map import HeatMap, draw_heat_map
from surefill.report.outcomes import (
    ToleranceOutcome,
    Trust,
    outcomes_by_tolerance,
    risk_coverage,
    trust_by_column,
    trust_by_row,
)
from surefill.spaces.confidence_matrix import some_cells

CELLS_DRAWN = 200_000
"""Cells that shares of the whole matrix are estimated from; the standard error is then at most 0.5 / sqrt(n) = 0.1%."""

N_GROUPS = 10
"""Groups of calibration entries by predicted risk; tenths, as is usual for calibration tables."""

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
"""Packages whose version a result may depend on."""


@dataclass(frozen=True, eq=False)
class AxisSummary:
    """The rows, or the columns: what they are called, their labels where they have any, and the trust in each."""

    name: str
    labels: NDArray[Any] | None
    trust: Trust

    def label(self, index: int) -> str:
        """The name of one row or column; its number from 0 where it has none."""
        return str(index if self.labels is None else self.labels[index])

    def __len__(self) -> int:
        return len(self.trust.kept)


@dataclass(frozen=True, eq=False)
class ReportContents:
    """What was asked and found.

    Attributes
    ----------
    value_name : what values are called.
    n_observed : how many cells were seen.
    about_filled : whether the promise is about the cells that are filled.
    target : which cells the promise is about.
    kept_share, filled_share : share of all cells that are kept, and of those not observed, as in the promise where
        that is about these; estimated unless ``exact``.
    outcomes : what other tolerances would keep, in rising order of the tolerance, and the one asked for.
    curve : the sets that could be kept.
    overall_error : mean loss of all calibration entries, kept or not.
    deciles : predicted risk and seen error of the calibration entries.
    parameters : how the completer was asked, as Python.
    """

    rows: AxisSummary
    columns: AxisSummary
    value_name: str
    n_observed: int
    exact: bool
    about_filled: bool
    target: str
    kept_share: float
    filled_share: float
    selection: Selection
    guarantee: Guarantee
    certificate: Certificate
    curve: RiskCoverageCurve
    outcomes: tuple[ToleranceOutcome, ...]
    overall_error: float
    deciles: CalibrationTable
    heat_map: HeatMap
    timings: dict[str, float]
    versions: dict[str, str]
    parameters: str

    @property
    def n_cells(self) -> int:
        """Rows times columns."""
        return len(self.rows) * len(self.columns)

    @property
    def filled(self) -> str:
        """How many cells are filled, or about how many where that was found on a sample."""
        return counted(self.filled_share * (self.n_cells - self.n_observed), self.exact)

    @property
    def asked(self) -> int:
        """Position of the tolerance asked for among the outcomes."""
        return [outcome.selection for outcome in self.outcomes].index(self.selection)


def gather(completer: PartialCompleter) -> ReportContents:
    """Ask a fitted completer everything that a report says; memory per row, column and square, never m x n."""
    result, seen = completer.result_, completer.observations_
    by_row, by_column = trust_by_row(result, seen), trust_by_column(result, seen)
    order = order_of(seen, by_row.confidence, by_column.confidence)
    cells = some_cells(seen.shape, CELLS_DRAWN)
    answer, missing = result.answer(*cells), seen.find(*cells) < 0
    calibration, everything = result.calibration, np.ones(len(result.calibration), dtype=bool)
    return ReportContents(
        rows=AxisSummary(seen.names[0], seen.row_labels, by_row),
        columns=AxisSummary(seen.names[1], seen.col_labels, by_column),
        value_name=seen.names[2],
        n_observed=len(seen),
        exact=seen.shape[0] * seen.shape[1] <= POPULATION,
        about_filled=result.weights.aim == "unobserved",
        target=TARGETS[result.weights.aim],
        kept_share=float(answer.keep.mean()),
        filled_share=_filled_share(result, answer.keep, missing),
        selection=result.selection,
        guarantee=result.guarantee,
        certificate=result.certificate,
        curve=risk_coverage(result),
        outcomes=outcomes_by_tolerance(result, answer, *cells),
        overall_error=calibration.mean_loss(everything),
        deciles=calibration_by_decile(calibration.loss, calibration.risk, min(N_GROUPS, len(calibration))),
        heat_map=draw_heat_map(result, seen, *order),
        timings=dict(result.timings),
        versions=_versions(),
        parameters=_parameters(completer),
    )


def _filled_share(result: PartialCompletion, keep: NDArray[np.bool_], missing: NDArray[np.bool_]) -> float:
    """Share of the cells not observed that are kept: the promise's own, or else as found on the cells drawn."""
    if result.selection.filled_share is not None:
        return result.selection.filled_share
    return float(keep[missing].mean()) if missing.any() else 0.0


def order_of(observations: Observations, by_row: Array, by_col: Array) -> tuple[Indices, Indices]:
    """Rows and columns in the order to show them, given the mean confidence of each."""
    row_groups, col_groups = co_cluster(seen_pattern(observations))
    return order_by_group(row_groups, by_row), order_by_group(col_groups, by_col)


def seen_pattern(observations: Observations) -> sparse.coo_array:
    """1 at each observed cell."""
    return sparse.coo_array((np.ones(len(observations)), (observations.rows, observations.cols)), observations.shape)


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in PACKAGES}
    return {"surefill": __version__, "Python": platform.python_version()} | packages


def _parameters(completer: PartialCompleter) -> str:
    """The completer as it was asked for, with the seed it used, without what changes no result."""
    asked = {**completer.get_params(deep=False), "random_state": completer.random_state_}
    asked |= {"progress": None, "n_jobs": None}
    return " ".join(repr(PartialCompleter(**asked)).split())

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
from surefill.data import Dominance, Observations
from surefill.estimators import PartialCompleter
from surefill.estimators.fitting import POPULATION
from surefill.guarantee import Guarantee, Selection
from surefill.guarantee.figures import counted
from surefill.guarantee.propensity import Aim
from surefill.metrics import CalibrationTable, calibration_by_decile
from surefill.plots import co_cluster, order_by_group
from surefill.report.asked_cells import AskedCells
from surefill.report.error_by_count import CountGroup, errors_by_count
from surefill.report.examples import Examples, draw_examples
from surefill.report.heat_map import HeatMap, draw_heat_map
from surefill.report.outcomes import ToleranceOutcome, outcomes_by_tolerance
from surefill.report.trust import Trust, trust_by_column, trust_by_row
from surefill.spaces.confidence_matrix import some_cells

CELLS_DRAWN = 200_000
"""Cells that shares of the whole matrix are estimated from; the standard error is then at most 0.5 / sqrt(n) = 0.1%."""

N_GROUPS = 10
"""Groups of calibration cells by predicted risk; tenths, as is usual for calibration tables."""

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
"""Packages whose version a result may depend on."""


@dataclass(frozen=True, eq=False)
class AxisSummary:
    """The rows, or the columns: their name, their labels where they have any, trust in each, errors by count."""

    name: str
    labels: NDArray[Any] | None
    trust: Trust
    by_count: tuple[CountGroup, ...]

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
    dominance : the few values that decide errors; None where there are no such.
    exact : whether numbers of cells were counted, not estimated on a sample.
    aim : which cells the promise is about: "unobserved" are those that are filled.
    outcomes : what other tolerances would keep, in rising order of the tolerance, and the one asked for.
    overall_error : mean loss of all calibration cells, kept or not.
    completed_by : what gave the values, such as "Bayesian factors of rank 20".
    deciles : predicted risk and seen error of the calibration cells.
    parameters : how the completer was asked, as Python.
    """

    rows: AxisSummary
    columns: AxisSummary
    value_name: str
    n_observed: int
    dominance: Dominance | None
    exact: bool
    aim: Aim
    guarantee: Guarantee
    certificate: Certificate
    completed_by: str
    outcomes: tuple[ToleranceOutcome, ...]
    asked: int
    overall_error: float
    deciles: CalibrationTable
    heat_map: HeatMap
    examples: Examples
    timings: dict[str, float]
    versions: dict[str, str]
    parameters: str

    @property
    def n_cells(self) -> int:
        """Rows times columns."""
        return len(self.rows) * len(self.columns)

    @property
    def n_missing(self) -> int:
        """Cells that were not observed."""
        return self.n_cells - self.n_observed

    @property
    def about_filled(self) -> bool:
        """Whether the promise is about the cells that are filled."""
        return self.aim == "unobserved"

    @property
    def outcome(self) -> ToleranceOutcome:
        """What the tolerance asked for keeps."""
        return self.outcomes[self.asked]

    @property
    def selection(self) -> Selection:
        """The set kept at the tolerance asked for."""
        return self.outcome.selection

    @property
    def opens_on(self) -> str:
        """The layer of the map shown first: what is kept, or confidence where that is nothing."""
        return "confidence" if self.selection.empty else "kept"

    def filled(self, outcome: ToleranceOutcome) -> str:
        """How many cells are filled, or about how many where that was found on a sample."""
        return counted(outcome.filled_share * self.n_missing, self.exact)


def gather(completer: PartialCompleter) -> ReportContents:
    """Ask a fitted completer everything that a report says; memory per row, column and square, never m x n."""
    result, seen = completer.result_, completer.observations_
    by_row, by_column = trust_by_row(result, seen), trust_by_column(result, seen)
    order = order_of(seen, by_row.confidence, by_column.confidence)
    cells = some_cells(seen.shape, CELLS_DRAWN)
    outcomes = outcomes_by_tolerance(result, AskedCells.of(result, *cells), seen.find(*cells) < 0)
    selections = [outcome.selection for outcome in outcomes]
    calibration, everything = result.calibration, np.ones(len(result.calibration), dtype=bool)
    counts = [
        errors_by_count(calibration, trust.observed[lines], selections)
        for trust, lines in zip((by_row, by_column), result.calibration_cells, strict=True)
    ]
    return ReportContents(
        rows=AxisSummary(seen.names[0], seen.row_labels, by_row, counts[0]),
        columns=AxisSummary(seen.names[1], seen.col_labels, by_column, counts[1]),
        value_name=seen.names[2],
        n_observed=len(seen),
        dominance=seen.dominance,
        exact=seen.shape[0] * seen.shape[1] <= POPULATION,
        aim=result.weights.aim,
        guarantee=result.guarantee,
        certificate=result.certificate,
        completed_by=result.completed_by,
        outcomes=outcomes,
        asked=selections.index(result.selection),
        overall_error=calibration.mean_loss(everything),
        deciles=calibration_by_decile(calibration.loss, calibration.risk, min(N_GROUPS, len(calibration))),
        heat_map=draw_heat_map(result, seen, *order, selections),
        examples=draw_examples(result, seen, selections),
        timings=dict(result.timings),
        versions=_versions(),
        parameters=_parameters(completer),
    )


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

"""The rows' part in promise and writing: value, confidence, risk and weight of the block's cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surefill.arrays import Indices
from surefill.completion.bayes.row_block import WHOLE
from surefill.confidence import Certificate
from surefill.data import Observations
from surefill.distributed.game_block import GAME, GameBlock
from surefill.distributed.parts_block import Part
from surefill.distributed.playing import GameColumns
from surefill.distributed.risk_block import FitColumns, RiskBlock, RiskColumns
from surefill.distributed.split_block import SplitBlock
from surefill.distributed.target_columns import TargetColumns
from surefill.estimators import PartialCompleter, PartialCompletion
from surefill.estimators.estimates import Estimates, EstimatesAt
from surefill.guarantee import ConformalScores, Guarantee, Selection
from surefill.io.parquet_writer import parquet_file, part_name
from surefill.jobs.completed_table import RowBlockTable, column_names
from surefill.jobs.write_options import WriteOptions
from surefill.losses import ClippedLoss
from surefill.registry import storable
from surefill.risk import FittedRisk, PriorRisk
from surefill.risk.chance import ChanceOfLargeError
from surefill.risk.cross_fitting import Evidence
from surefill.risk.noise_factors import NoiseFactors
from surefill.risk.risk_model import SupportFactor

TRAIN, CALIBRATION = "train", "calibration"
"""The tables of cells that were learnt from, and of those that were set aside."""

POPULATION_COINS = 151
"""A stream of random numbers."""


@storable
@dataclass(frozen=True, eq=False)
class EstimateColumns:
    """What values, confidences, risks and weights need of columns.

    ``shift``, ``unsupported``, ``floor`` and ``chance`` are those of the risk, ``prior`` the risk of lines never seen,
    of no rows.
    """

    fit: FitColumns
    game: GameColumns
    risk: RiskColumns
    target: TargetColumns
    prior: PriorRisk
    shift: float
    unsupported: float | None
    floor: float
    chance: ChanceOfLargeError | None


@dataclass(frozen=True, eq=False)
class Settled:
    """The kept set and what is promised of it, and how cells are written."""

    selection: Selection
    certificate: Certificate
    guarantee: Guarantee
    loss: ClippedLoss
    scores: ConformalScores
    options: WriteOptions
    names: tuple[str, str, str]
    col_labels: Any


class MainBlock(SplitBlock, GameBlock, RiskBlock):
    """A block that takes part in the whole main job."""

    def _estimates(self, columns: EstimateColumns) -> Estimates:
        """Value, confidence and risk of the block's rows."""
        completion, shape = self._completion(columns.fit), (self._m, self._n)
        confidence = columns.game.confidence(self._parts[GAME], shape)
        support = None
        if columns.unsupported is not None:
            support = SupportFactor(confidence, columns.floor, columns.unsupported)
        curve, noise = columns.risk, self._row_noise()
        evidence = Evidence(completion, None, columns.shift)
        factors = noise, curve.cols, curve.slope, curve.knots, curve.heights
        risk = FittedRisk(evidence, *factors, support, columns.chance, curve.part_powers)
        seen = self._cells[TRAIN].row_ids
        return Estimates(
            completion, confidence, risk, replace(columns.prior, row_ids=seen, of_rows=self._hidden_noise())
        )

    def _hidden_noise(self) -> NoiseFactors:
        return self._row_noise("hidden_")

    def calibration_cells(self, columns: EstimateColumns, loss: ClippedLoss) -> Part:
        """The cells that were set aside: estimates, losses and weights, in the order of :class:`Calibration`."""
        names = ("risk", "confidence", "loss", "largest_loss", "weight", "error")
        seen = self._observations(CALIBRATION, loss.bounds if loss.bounds_from.name == "GIVEN" else None)
        if seen is None:
            return dict.fromkeys(names, np.zeros(0))
        at = self._estimates(columns).at(seen.rows, seen.cols)
        error = np.sqrt(seen.squared_errors(np.clip(at.predicted, *loss.predicted_range)))
        weight = self._weights(columns.target).at(seen.rows, seen.cols)
        losses = loss.at(seen, at.predicted), loss.largest_at(at.predicted)
        return dict(zip(names, (at.risk, at.confidence, *losses, weight, error), strict=True))

    def population_outside(self, columns: EstimateColumns, loss: ClippedLoss, rows: Indices, cols: Indices) -> Part:
        """Of these cells those whose row is here and that were not learnt from: estimates, weights, whether missing."""
        here = (rows >= self._first) & (rows < self._first + self._m)
        i, j = rows[here] - self._first, cols[here]
        outside = ~self._has(TRAIN, i, j)
        i, j = i[outside], j[outside]
        weight = self._weights(columns.target).at(i, j)
        missing = ~self._has(CALIBRATION, i, j)
        return _estimated(self._estimates(columns).at(i, j), loss) | {"weight": weight, "missing": missing}

    def population_trained(self, columns: EstimateColumns, loss: ClippedLoss, share: float) -> Part:
        """Estimates at a share of the training cells."""
        cells = self._cells[TRAIN]
        some = self._coins(POPULATION_COINS, TRAIN) < share
        return _estimated(self._estimates(columns).at(self._rows(cells)[some], cells.cols[some]), loss)

    def write_cells(self, columns: EstimateColumns, settled: Settled, folder: str) -> tuple[int, int, int]:
        """Write the block's lines to a part of the folder; lines, missing cells that are kept, and cells observed."""
        seen = self._labelled(settled)
        if seen is None:
            return 0, 0, 0
        table = RowBlockTable(self._completer(columns, settled, seen), settled.options, np.arange(self._m))
        path, names = Path(folder) / part_name(self._index), column_names(seen, settled.options.level is not None)
        lines = 0
        with parquet_file(path.with_suffix(".part")) as sink:
            for block in table.all_blocks():
                named = {names.get(name, name): column for name, column in block.items()}
                sink.write(named)
                lines += len(block["value"])
        path.with_suffix(".part").replace(path)
        return lines, table.kept, len(self._cells[WHOLE])

    def _labelled(self, settled: Settled) -> Observations | None:
        """All of the block's cells, with labels."""
        cells = self._cells[WHOLE]
        if not len(cells):
            return None
        counts, scatter = (np.broadcast_to(each, len(cells)) for each in (cells.counts, cells.scatter))
        labels = {"row_labels": self._row_labels(), "col_labels": settled.col_labels, "names": settled.names}
        shape = self._m, self._n
        return Observations(
            self._rows(cells), cells.cols, cells.values, shape, counts=counts, scatter=scatter, **labels
        )

    def _completer(self, columns: EstimateColumns, settled: Settled, seen: Observations) -> PartialCompleter:
        """What answers about the block's rows; its plan and its calibration cells are elsewhere."""
        completer = PartialCompleter()
        elsewhere: Any = None
        completer.result_ = PartialCompletion(
            **vars(self._estimates(columns)),
            selection=settled.selection,
            certificate=settled.certificate,
            guarantee=settled.guarantee,
            plan=elsewhere,
            calibration=elsewhere,
            calibration_cells=elsewhere,
            weights=self._weights(columns.target),
            loss=settled.loss,
            scores=settled.scores,
            timings={},
        )
        completer.observations_ = seen
        return completer


def _estimated(at: EstimatesAt, loss: ClippedLoss) -> Part:
    return {"risk": at.risk, "confidence": at.confidence, "largest_loss": loss.largest_at(at.predicted)}

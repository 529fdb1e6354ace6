"""The rows' part in completion and risk: the block's completion, losses of a fold that was left out, noise of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefill.arrays import Array, Indices
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion, PosteriorCovariances
from surefill.completion.bayes.factor_posterior import FactorPosterior
from surefill.completion.bayes.row_block import BlockTable
from surefill.data import UnitMap
from surefill.distributed.merging import Least
from surefill.distributed.parts_block import Part, PartsBlock
from surefill.loop import Status
from surefill.losses import Loss
from surefill.registry import storable
from surefill.risk.cross_fitting import Evidence
from surefill.risk.noise_factors import TINY, NoiseFactors, NoisePrior, NoiseSide

FOLD = "fold"
"""The table of training cells that were left out of a fit, and the part with their losses; also whether a training
cell is one of them."""

REST = "rest"
"""The table of the other training cells."""

NOISE = "noise"
"""The part with the noise factors of rows."""

FOLD_COINS, FOLD_ROWS = 141, 142
"""Streams of random numbers."""


@storable
@dataclass(frozen=True, eq=False)
class FitColumns:
    """What a completion needs of columns: their posterior and its covariances, the mean, the noise and the units.

    ``state`` is the name under which blocks have the rows.
    """

    state: str
    cols: FactorPosterior
    covariances: Array
    mean: float
    noise: float
    status: Status
    unit: UnitMap


@storable
@dataclass(frozen=True, eq=False)
class RiskColumns:
    """What expected losses need of columns and curves: :class:`FittedRisk` and :class:`PriorRisk` but for rows.

    The priors and ``least`` are for blocks that learn the factors of their own rows.
    """

    slope: float
    knots: Array
    heights: Array
    cols: NoiseFactors
    row_prior: NoisePrior | None = None
    hidden_prior: NoisePrior | None = None
    least: float = 0.0
    part_powers: tuple[float, float] = (0.0, 0.0)


class RiskBlock(PartsBlock):
    """A block that completes its rows and measures its losses."""

    def set_fold(self, table: str, share: float) -> tuple[int]:
        """Leave a ``share`` of the cells of ``table`` out by coins; how many."""
        fold = self._coins(FOLD_COINS, table) < share
        self._parts[FOLD] = {"cells": fold.astype(np.uint8)}
        return (int(fold.sum()),)

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._last_completion: tuple[Any, BayesianFactorCompletion] | None = None

    def _completion(self, fit: FitColumns) -> BayesianFactorCompletion:
        """The completion of the block's rows; the last one is kept, for its covariances take a pass over the cells."""
        if self._last_completion is None or self._last_completion[0] != (fit.state, fit.noise):
            self._last_completion = (fit.state, fit.noise), self._completed(fit)
        return self._last_completion[1]

    def _completed(self, fit: FitColumns) -> BayesianFactorCompletion:
        state = self._states[fit.state]
        nothing = np.broadcast_to(np.zeros(1, fit.cols.mean.dtype), fit.cols.mean.shape)
        rows = replace(state.posterior, implicit=nothing)
        cols = replace(fit.cols, implicit=np.vstack([state.implicit, state.common]))
        if state.table not in self._tables:  # in a job that was resumed after the fit
            about = fit.cols.ids, fit.mean, fit.unit, fit.cols.mean.dtype.type
            self._tables[state.table] = BlockTable.of(self._cells[state.table], *about)
        of_rows = self._tables[state.table].rows.covariances(rows, cols, fit.noise)
        given = PosteriorCovariances(of_rows), PosteriorCovariances(fit.covariances)
        shape = self._m, self._n
        return BayesianFactorCompletion(shape, fit.unit, fit.mean, fit.noise, fit.status, rows, cols, *given)

    def measure_fold(self, fit: FitColumns, loss: Loss) -> None:
        """Losses of the cells left out: as predicted, and with their row, their column or both hidden."""
        cells = self._observations(FOLD, (fit.unit.low, fit.unit.high))
        part = {"cells": self._parts[FOLD]["cells"]}
        if cells is None:
            empty = np.zeros(0)
            part |= dict.fromkeys(("rows", "cols", "counts"), empty.astype(np.int64))
            names = ("loss", "size_loss", "predicted", "log_variance", "from_col", "from_row", "from_none")
            self._parts[FOLD] = part | dict.fromkeys(names, empty) | dict.fromkeys(_LOSSES, empty)
            return
        completion = self._completion(fit)
        evidence, (m, n) = Evidence(completion, None), completion.shape
        predicted = completion.at(cells.rows, cells.cols)
        larger = completion.extended((m + 1, n + 1))
        row, col = np.full(len(cells), m), np.full(len(cells), n)
        hidden = larger.at(row, cells.cols), larger.at(cells.rows, col), larger.at(row, col)
        part |= {"rows": cells.rows, "cols": cells.cols, "counts": np.array(cells.counts)}
        part |= {"loss": loss.at(cells, predicted), "size_loss": loss.size_loss.at(cells, predicted)}
        part |= {"predicted": predicted, "log_variance": evidence.log_variance(cells.rows, cells.cols)}
        part |= dict(zip(("from_col", "from_row", "from_none"), hidden, strict=True))
        part |= {name: loss.at(cells, each) for name, each in zip(_LOSSES, hidden, strict=True)}
        self._parts[FOLD] = part

    def fold_sample(self, share: float) -> Part:
        """What was measured in rows that are drawn with probability ``share``, by their numbers among all."""
        part = self._parts[FOLD]
        taken = (self._row_coins(FOLD_ROWS, 0) < share)[part["rows"].astype(np.int64)]
        sample = {name: table[taken] for name, table in part.items() if name != "cells"}
        return sample | {"rows": self._first + sample["rows"].astype(np.int64)}

    def learn_row_noise(self, risk: RiskColumns) -> None:
        """The noise factors of the block's rows, given the curve and the columns', and those of rows' own losses where
        their columns are hidden."""
        assert risk.row_prior is not None
        assert risk.hidden_prior is not None
        part = self._parts[FOLD]
        rows, counts, predicted = part["rows"], part["counts"], part["predicted"]
        log_expected = risk.slope * part["log_variance"] + np.interp(predicted, risk.knots, risk.heights)
        ratio = (part["size_loss"] + risk.least) / np.exp(log_expected + risk.cols.log_at(part["cols"], predicted))
        hidden = np.maximum(part["loss_from_row"], TINY)
        noise: Part = {}
        for name, at, each, prior in (
            ("", predicted, ratio, risk.row_prior), ("hidden_", part["from_row"], hidden, risk.hidden_prior),
        ):  # fmt: skip
            found = NoiseSide.of(rows, counts, at).given(each, prior) if len(rows) else NoiseFactors.none(rows)
            noise |= {name + field: table for field, table in vars(found).items() if not field.startswith("_")}
        self._parts[NOISE] = noise
        self._parts[FOLD] = {"cells": part["cells"]}

    def take_row_noise(self, noise: Part) -> None:
        """Of the noise factors of all rows, by their numbers among all, those of the block's."""
        own: Part = {}
        for name in ("", "hidden_"):
            ids = noise[f"{name}ids"]
            here = (ids >= self._first) & (ids < self._first + self._m)
            own[f"{name}ids"] = ids[here] - self._first
            own |= {name + field: noise[name + field][np.append(here, True)] for field in _NOISE}
        self._parts[NOISE] = own

    def _row_noise(self, name: str = "") -> NoiseFactors:
        part = self._parts[NOISE]
        ids = part[f"{name}ids"].astype(np.int64)
        return NoiseFactors(ids, *(part[name + each] for each in _NOISE))

    def row_noise_of(self, numbers: Indices) -> tuple[Array, Array, Array]:
        """Noise factors of those of these rows, numbers among all, that are here."""
        here = numbers[(numbers >= self._first) & (numbers < self._first + self._m)] - self._first
        found = self._row_noise()
        place = np.searchsorted(found.ids, here)
        known = place < len(found.ids)
        known[known] = found.ids[place[known]] == here[known]
        at = np.where(known, place, -1)
        return found.factors[at], found.slopes[at], found.centres[at]

    def predicted_range(self, fit: FitColumns, table: str) -> tuple[Least]:
        """The least prediction at the cells of a table, and minus the largest."""
        cells, completion = self._cells[table], self._completion(fit)
        predicted = completion.at(self._rows(cells), cells.cols)
        return (Least(np.array([predicted.min(initial=np.inf), (-predicted).min(initial=np.inf)])),)


_NOISE = ("factors", "slopes", "centres")
"""Tables of noise factors, with a last line for rows without any."""

_LOSSES = ("loss_from_col", "loss_from_row", "loss_from_none")
"""Losses where the row, the column or both are hidden."""

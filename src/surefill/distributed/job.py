"""The main job on row blocks, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surefill.blocks import Blocks
from surefill.cluster import ShardedTable
from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.bayesian_completion import BayesianFactorCompletion
from surefill.completion.bayes.bayesian_model import SAMPLED_CELLS
from surefill.completion.bayes.blocked_solver import Runs
from surefill.completion.bayes.row_block import WHOLE
from surefill.confidence import Certificate, CoverageGame
from surefill.data import BoundsSource, UnitMap
from surefill.distributed import learning
from surefill.distributed.answer_block import CALIBRATION, TRAIN, EstimateColumns, Settled
from surefill.distributed.few_cells import are_few, learn_risk
from surefill.distributed.game_block import GAME
from surefill.distributed.playing import play_game
from surefill.distributed.promising import Asked, CalibratedSelection, make_promise
from surefill.distributed.risk_block import FOLD, NOISE, REST, FitColumns
from surefill.distributed.seen_values import SeenValues
from surefill.distributed.split_block import SPLIT
from surefill.distributed.splitting import split_cells
from surefill.errors import InputError
from surefill.estimators import costs
from surefill.estimators.fitting import LEAST_FLOOR, known_bound
from surefill.guarantee import Calibration, ConformalScores
from surefill.guarantee.calibration_split import share_set_aside
from surefill.guarantee.propensity import Aim
from surefill.io.durable import replacing_folder
from surefill.jobs.complete import CompletedFile, plain_shortfall
from surefill.jobs.digits import LOOKED_AT, choose_digits
from surefill.jobs.stages import WRITING_PER_CELL
from surefill.jobs.write_options import WriteOptions
from surefill.loop import ProgressCallback
from surefill.losses import ClippedLoss, Loss, SquaredError
from surefill.risk.cross_fitting import ENOUGH_RESIDUALS
from surefill.waiting import Part, part, plan


@dataclass(frozen=True, eq=False)
class SettledJob:
    """What a job has come to before anything is written: all values, what is known of columns, and the promise."""

    values: SeenValues
    columns: EstimateColumns
    certificate: Certificate
    loss: ClippedLoss
    promise: CalibratedSelection


@dataclass(frozen=True)
class FolderJob:
    """The main job on the row blocks of a folder, in the stages of :class:`surefill.estimators.fitting.Fitting`."""

    table: ShardedTable
    given_bounds: tuple[float, float] | None
    model: BayesianFactorModel
    game: CoverageGame
    loss: Loss
    tolerance: float | None
    delta: float
    aim: Aim
    sensitivity: float
    random_state: int
    progress: ProgressCallback | None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        table = {"number of cells": self.table.n_cells, "shape": list(self.table.shape), "aim": self.aim}
        table |= {"share set aside": self._share, "loss": self.loss.mean_name, "seed": self.random_state}
        return table | asdict(self.model)

    @property
    def _share(self) -> float:
        """The share of the cells that is set aside for calibration."""
        bound = known_bound(self.loss, self.given_bounds, self.tolerance, self.delta)
        return share_set_aside(self.table.n_cells, sum(self.table.shape), self.aim, bound)

    def run(self, blocks: Blocks, runs: Runs, options: WriteOptions, output: Path) -> CompletedFile:
        """All stages; what was promised and written."""
        plan(self.progress, self._parts())
        found = self.settle(blocks, runs)
        with self._timed("writing"):
            digits = self._digits(blocks, found) if options.digits is None else options.digits
            options = WriteOptions(options.entries, options.top_n, None, digits, options.level, "long")
            promise = found.promise
            kept = promise.selection, found.certificate, promise.guarantee, found.loss, promise.scores
            settled = Settled(*kept, options, self.table.names, self.table.col_labels)
            written = _write(blocks, found.columns, settled, output)
            repeats = blocks.total("repeats", WHOLE)
        return self._summary(found, options, repeats, written, output)

    def settle(self, blocks: Blocks, runs: Runs) -> SettledJob:
        """All stages but writing: which cells are kept, and what is promised of them."""
        shape, seed = self.table.shape, self.random_state
        self._place(blocks)
        with self._timed("setting aside"):
            counts = shape, self.table.n_cells
            target = runs.stage(SPLIT, lambda: split_cells(blocks, *counts, self.aim, self._share, seed), [SPLIT])
            for table, value in ((TRAIN, 0), (CALIBRATION, 1)):
                blocks.each("select_cells", table, WHOLE, SPLIT, value)
            everything, train = runs.stage("values", lambda: self._values(blocks))
        tolerance = self._tolerance(train)
        columns, certificate = self._learn(blocks, runs, train, target)
        with self._timed("promise"):
            loss = self._bounded_loss(blocks, everything, train, columns.fit)
            asked = Asked(tolerance, self.delta, self.sensitivity, columns.floor, seed)
            promise = make_promise(blocks, columns, loss, asked, shape, self.table.n_cells, train.n_cells)
        return SettledJob(everything, columns, certificate, loss, promise)

    def _place(self, blocks: Blocks) -> None:
        """Tell all blocks which of all rows are theirs."""
        rows = [m for m, _ in blocks.each("rows_and_cells", WHOLE)]
        first = np.cumsum([0, *rows[:-1]]).tolist()
        blocks.each("place", self.random_state, self.table.shape[1], own=first)

    def _values(self, blocks: Blocks) -> tuple[SeenValues, SeenValues]:
        everything, train = (SeenValues.of(blocks, table, self.given_bounds) for table in (WHOLE, TRAIN))
        return everything, train

    def _tolerance(self, train: SeenValues) -> float:
        if self.tolerance is not None:
            return self.tolerance
        if not isinstance(self.loss, SquaredError) or not train.half_variance > 0:
            raise InputError("a tolerance must be given for this loss, or where all values are equal.")
        return train.half_variance

    def _learn(self, blocks: Blocks, runs: Runs, train: SeenValues, target: Any) -> tuple[EstimateColumns, Certificate]:
        """Rank, completion, confidence and risk: all that is learnt, from training cells alone."""
        shape, unit = self.table.shape, train.unit
        with self._timed("choice"):
            rank, n_fold = runs.stage("choice", lambda: self._choose(blocks, train), [FOLD])
        model = _with_rank(self.model, rank)
        few = are_few(train.n_cells, model)
        before = None if few else self._try(blocks, runs, unit, model)
        with self._timed("fit"):
            fit = runs.stage("whole", lambda: self._fit(blocks, runs, unit, model, before))
            game, certificate = runs.stage(
                GAME, lambda: play_game(blocks, TRAIN, shape, self.game, self.progress), [GAME]
            )
        with self._timed("risk"):
            if before is None:
                learnt = runs.stage("risk", lambda: self._learn_risk_here(blocks, train, model), [NOISE])
            else:
                about = fit, before[1], train, n_fold, model
                learnt = runs.stage("risk", lambda: self._learn_risk(blocks, *about), [NOISE, FOLD])
        risk, prior, chance, shift, unsupported = learnt
        floor = max(certificate.floor or 0.0, LEAST_FLOOR)
        return EstimateColumns(fit, game, risk, target, prior, shift, unsupported, floor, chance), certificate

    def _try(self, blocks: Blocks, runs: Runs, unit: UnitMap, model: BayesianFactorModel) -> Any:
        """The completion without one fold, which the losses of that fold are measured on."""
        for table, value in ((REST, 0), (FOLD, 1)):
            blocks.each("select_cells", table, TRAIN, FOLD, value)
        with self._timed("trial fit"):
            before = runs.stage("rest", lambda: self._fit_rest(blocks, runs, unit, model), [FOLD])
            for table in (REST, f"{REST}-sample", FOLD):
                blocks.each("forget", table)
        return before

    def _fit(self, blocks: Blocks, runs: Runs, unit: UnitMap, model: BayesianFactorModel, before: Any) -> FitColumns:
        """The completion of all training cells, gone on with from that without a fold where there is one."""
        shape, progress = self.table.shape, self.progress
        if before is None:
            return learning.fit_rest(blocks, runs, shape, unit, model, progress, TRAIN)[1]
        return learning.fit_whole(blocks, runs, shape, TRAIN, before, model, progress)

    def _learn_risk_here(self, blocks: Blocks, train: SeenValues, model: BayesianFactorModel) -> tuple[Any, ...]:
        """The risk of few cells, which are gathered: of several folds, as of one table."""
        gathered = self._sample(blocks, train)
        risk, prior, chance, unsupported = learn_risk(blocks, gathered, model, self.loss, self.progress)
        return risk, prior, chance, 0.0, unsupported

    def _choose(self, blocks: Blocks, train: SeenValues) -> tuple[int, int]:
        """The rank, chosen on the cells of some rows, and how many cells are left out of the first fit."""
        model = self.model
        if model.rank == "auto":
            _, sample = self._sample(blocks, train)
            assert sample is not None
            model = model.chosen_for(sample, self.progress)
        (n_fold,) = blocks.total("set_fold", TRAIN, learning.fold_share(train.n_cells))
        if not 0 < n_fold < train.n_cells:
            raise InputError(f"{train.n_cells:,} training cells are too few to leave some out of a fit.")
        assert model.rank != "auto"
        return int(model.rank), int(n_fold)

    def _sample(self, blocks: Blocks, train: SeenValues) -> Any:
        return learning.sampled_rows(blocks, TRAIN, train.n_cells, self.table.shape[1], train.bounds)

    def _fit_rest(self, blocks: Blocks, runs: Runs, unit: UnitMap, model: BayesianFactorModel) -> Any:
        """The completion without the fold, and the losses of the fold."""
        found = learning.fit_rest(blocks, runs, self.table.shape, unit, model, self.progress)
        blocks.each("measure_fold", found[1], self.loss)
        return found

    def _learn_risk(
        self,
        blocks: Blocks,
        fit: FitColumns,
        rest: FitColumns,
        train: SeenValues,
        n_fold: int,
        model: BayesianFactorModel,
    ) -> tuple[Any, ...]:
        risk, prior, chance = learning.learn_risk(blocks, rest, self.loss, n_fold, fit.cols.ids, self.progress)
        sample = self._sample(blocks, train)
        unsupported = learning.measure_unsupported(blocks, risk, sample, model, self.loss, self.progress)
        return risk, prior, chance, float(np.log(rest.noise / fit.noise)), unsupported

    def _bounded_loss(self, blocks: Blocks, everything: SeenValues, train: SeenValues, fit: FitColumns) -> ClippedLoss:
        """The loss, clipped at what bounds and predictions of the training cells allow."""
        agrees = (train.bounds, train.source) == (everything.bounds, everything.source)
        (ends,) = blocks.total("predicted_range", fit, TRAIN)
        low, high = np.clip([ends.numbers[0], -ends.numbers[1]], *train.bounds)
        source = train.source if agrees else BoundsSource.SEEN
        return ClippedLoss(self.loss, train.bounds, source, (float(low), float(high)))

    def _digits(self, blocks: Blocks, found: SettledJob) -> int:
        values = np.concatenate(blocks.each("some_values", min(1.0, LOOKED_AT / self.table.n_cells)))
        scored = _Scored(found.loss, found.promise.calibration, found.promise.scores)
        return choose_digits(values, scored)  # type: ignore[arg-type]

    def _summary(
        self,
        found: SettledJob,
        options: WriteOptions,
        repeats: tuple[int, int],
        written: tuple[int, int],
        output: Path,
    ) -> CompletedFile:
        (m, n), (lines, filled), (draws, differing) = self.table.shape, written, repeats
        everything, selection, guarantee = found.values, found.promise.selection, found.promise.guarantee
        if options.top_n is not None:  # most kept cells are not written then, and not counted
            filled = max(filled, round(selection.n_filled or 0))
        missing = m * n - self.table.n_cells
        return CompletedFile(
            rows=m,
            columns=n,
            columns_read=self.table.names,
            observed_cells=self.table.n_cells,
            draws=draws,
            skipped_lines=self.table.skipped,
            cells_with_differing_repeats=differing,
            bounds=everything.bounds,
            bounds_from=everything.source.name.lower(),
            about_bounds=everything.words,
            dominance=None,
            loss=self.loss.mean_name,
            tolerance=selection.tolerance,
            delta=guarantee.delta,
            aim=self.aim,
            n_filled=selection.n_filled if guarantee.promised else None,
            sensitivity=guarantee.sensitivity,
            kept_share=filled / max(1, missing),
            held_out_error=selection.held_out_error,
            held_out_entries=selection.n_held_out,
            limited_by=selection.limited_by.name.lower(),
            shortfall=None if selection.shortfall is None else plain_shortfall(selection.shortfall),
            completed_by=f"{BayesianFactorCompletion.kind} of rank {found.columns.fit.cols.mean.shape[1] - 1}",
            selection=selection.sentence,
            confidence_standing=found.certificate.standing,
            certificate=found.certificate.sentence,
            promised=guarantee.promised,
            guarantee=guarantee.sentence,
            holds_over=guarantee.holds_over,
            not_promised=guarantee.not_promised,
            seconds=dict(self.seconds),
            rows_written=m,
            missing_in_rows=missing,
            filled_cells=filled,
            output=output,
            lines=lines,
            cells_looked_at=m * n,
            writing_seconds=self.seconds["writing"],
            layout="long",
            digits=options.digits or 0,
            rounded=options.digits is not None,
            top_n=options.top_n,
            backend="cluster",
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        with part(self.progress, stage):
            yield
        self.seconds[stage] = time.perf_counter() - start

    def _parts(self) -> list[Part]:
        """About how long stages take on one core; who waits is told by what is done how far that is off."""
        (m, n), cells = self.table.shape, self.table.n_cells
        sweep, of_games = costs.STEP_PER_CELL * cells, costs.GAME + costs.GAME_PER_LINE * (m + n)
        return [
            Part("setting aside", 0.1 + costs.ASIDE_PER_CELL_BEYOND * cells),
            Part("choice", 0.1 + costs.COMPLETION_STEPS * costs.STEP_PER_CELL * min(cells, SAMPLED_CELLS)),
            Part("trial fit", 0.1 + costs.COMPLETION_STEPS * sweep, costs.COMPLETION_STEPS, "completion"),
            Part("fit", 0.1 + costs.SWEEPS_FROM_START * sweep + of_games),
            Part("risk", 0.1 + costs.RISK_PER_CELL * min(cells, ENOUGH_RESIDUALS)),
            Part("promise", 0.1 + costs.PROMISE_PER_CELL * cells),
            Part("writing", 0.1 + WRITING_PER_CELL * m * n),
        ]


class _Scored(NamedTuple):
    """What the number of digits is chosen by."""

    loss: ClippedLoss
    calibration: Calibration
    scores: ConformalScores


def _with_rank(model: BayesianFactorModel, rank: int) -> BayesianFactorModel:
    return replace(model, rank=rank)


def _write(blocks: Blocks, columns: EstimateColumns, settled: Settled, output: Path) -> tuple[int, int]:
    """A part for each block, written where its rows are; lines, and missing cells that are kept."""
    with replacing_folder(output) as temporary:
        lines, filled, _ = blocks.total("write_cells", columns, settled, str(Path(temporary).absolute()))
    return int(lines), int(filled)

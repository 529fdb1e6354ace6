"""Folds held out in turn: how well risk, confidence and other orders rank errors, and what was promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill import metrics
from surefill.arrays import Array, Indices
from surefill.completion import BayesianFactorModel, FactorModel
from surefill.confidence.posterior import PosteriorConfidence
from surefill.data import Observations
from surefill.errors import InputError, few
from surefill.estimators.costs import seconds_of_comparison, seconds_of_fit
from surefill.estimators.partial_completer import PartialCompleter
from surefill.estimators.result import PartialCompletion
from surefill.estimators.seeds import choose_seed
from surefill.guarantee import BaselineOutcome, Candidates, HeldOut, compare_baselines
from surefill.guarantee.plan import within
from surefill.losses import Loss, choose_loss
from surefill.parallel import using_jobs
from surefill.spaces.confidence_matrix import some_cells
from surefill.waiting import Part, Watcher, part, plan, watched

LEVEL = 0.9
"""Probability that intervals are asked for."""

CANDIDATES = 50_000
"""Cells drawn to compare what is kept of those that were not observed: the error of a share is below half a percent."""

ORDERS = ("risk", "confidence", "interval", "variance", "ensemble", "leverage", "counts")
"""Ways to rank entries, described in :class:`Evaluation`."""

COLUMNS = ("losses", "values", "low", "high", *ORDERS)
"""What is known of each entry held out."""

ENSEMBLE = 5
"""Members of the ensemble whose variance is one of the orders: five is the usual small ensemble."""


@dataclass(frozen=True, eq=False)
class FoldOutcome:
    """What was promised for one fold, and what came of it; ``ways`` are this and other ways to choose the kept set."""

    fold: int
    promised: bool
    kept: float
    error: float | None
    ways: tuple[Way, ...]


@dataclass(frozen=True, eq=False)
class ColdEntries:
    """Entries held out whose row or column has none in the past (a cold start): their losses, and which were kept."""

    losses: Array
    kept: NDArray[np.bool_]

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        n = len(self.losses)
        error, kept = (float(each.mean()) if n else None for each in (self.losses, self.kept))
        return {"entries": n, "error": error, "kept": kept}


@dataclass(frozen=True)
class Way:
    """A way to choose a kept set, what it promises, and the share that it keeps of the entries that this is about."""

    name: str
    promise: str
    kept: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Held-out entries of all folds: their losses, scores by each order (low is trusted), intervals and promises.

    The orders, all of the same predictions:
    ``risk`` and ``confidence`` are ours; ``interval`` is the width of the interval at level 0.9, within the bounds;
    ``variance`` that of a new draw under :class:`BayesianFactorModel`; ``ensemble`` the variance among five factor
    models, each fitted on a resampled four fifths of the cells; ``leverage`` the part of a factor model's prior
    variance that its row and column leave; ``counts`` the product of cells seen in the row and the column. Where the
    loss is a chance, intervals all have one width but for the bounds: a chance does not say how large errors are.
    ``cold`` are entries apart from these where folds are in order of time, and None where they are not; ``skipped`` are
    lines without a value that were left out while reading. ``dated_losses`` are those of values at each entry's time,
    None where times are not known.
    """

    loss: Loss
    tolerance: float
    losses: Array
    scores: dict[str, Array]
    values: Array
    low: Array
    high: Array
    outcomes: tuple[FoldOutcome, ...]
    cold: ColdEntries | None = None
    skipped: int = 0
    dated_losses: Array | None = None

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        n, width = len(self.losses), metrics.interval_width(self.low, self.high)
        deciles = metrics.calibration_by_decile(self.losses, self.scores["risk"], min(10, n))
        return {
            "entries": n,
            "loss": self.loss.mean_name,
            "folds": len(self.outcomes),
            "error": float(self.losses.mean()),
            "dated_error": None if self.dated_losses is None else float(self.dated_losses.mean()),
            "tolerance": self.tolerance,
            "orders": {name: self._of_order(score) for name, score in self.scores.items()},
            "calibration": {"predicted": deciles.predicted.tolist(), "seen": deciles.seen.tolist()},
            "intervals": {
                "level": LEVEL,
                "coverage": metrics.interval_coverage(self.values, self.low, self.high),
                "width": width if np.isfinite(width) else None,
            },
            "promises": [
                {"fold": each.fold, "promised": each.promised, "kept": each.kept, "error": each.error}
                for each in self.outcomes
            ],
            "ways": self._ways(),
            "skipped_lines": self.skipped,
            "cold": None if self.cold is None else self.cold.summary(),
        }

    def _ways(self) -> list[dict[str, Any]]:
        """Each way, with the mean over folds of the share that it keeps."""
        by_fold = zip(*(outcome.ways for outcome in self.outcomes), strict=True)
        return [asdict(replace(ways[0], kept=float(np.mean([way.kept for way in ways])))) for ways in by_fold]

    def _of_order(self, score: Array) -> dict[str, float]:
        ranked = self.losses[np.argsort(score, kind="stable")]
        return {
            "best_tenth": float(ranked[: max(1, len(ranked) // 10)].mean()),
            "best_half": float(ranked[: max(1, len(ranked) // 2)].mean()),
            "aurc": metrics.aurc(self.losses, score),
            "normalized_aurc": metrics.normalized_aurc(self.losses, score),
            "coverage_at_tolerance": metrics.coverage_at_risk(self.losses, score, self.tolerance),
        }


@watched
def evaluate_folds(
    observations: Observations,
    folds: ArrayLike,
    *,
    only: Sequence[int] | None = None,
    ordered: bool = False,
    tolerance: float | None = None,
    delta: float = 0.05,
    confidence: Any = "auto",
    loss: Any = "squared",
    bounds: tuple[float, float] | None = None,
    random_state: int | None = 0,
    progress: Watcher = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Hold out each fold in turn, or those named in ``only``, and fit on the others; ``folds`` has one per cell.

    Where folds are ``ordered`` in time, fit on those before it instead; the first is then never held out, and held-out
    entries whose row or column does not come before are put apart. The other parameters are those of
    :class:`PartialCompleter`.
    """
    fold = np.asarray(folds)
    present = np.unique(fold)
    if len(present) < 2:
        raise InputError(f"all cells are in fold {present[0]}; at least 2 folds are needed to hold one out.")
    present = present[1:] if ordered else present
    wanted = present if only is None else np.unique(np.asarray(only))
    unknown = wanted[~np.isin(wanted, present)]
    if unknown.size:
        raise InputError(f"there is no fold {unknown[0]}; the folds are {few(present.tolist())}.")
    measure = choose_loss(loss, "evaluate_folds")
    bounded = observations if bounds is None else observations.with_bounds(bounds)
    target = measure.default_tolerance(observations) if tolerance is None else tolerance
    completer = PartialCompleter(
        target,
        delta,
        confidence=confidence,
        loss=measure,
        random_state=choose_seed("evaluate_folds", random_state),
        progress=progress,
    )
    seconds = seconds_of_fit(observations) + seconds_of_comparison(observations)
    plan(progress, [Part(f"fold {k}", seconds, kind="fold") for k in wanted])
    with using_jobs(n_jobs):
        parts = [_one_fold(completer, bounded, fold, int(k), ordered) for k in wanted]
    columns = {name: np.concatenate([part[name] for part, *_ in parts]) for name in parts[0][0]}
    losses, values, low, high = (columns.pop(name) for name in ("losses", "values", "low", "high"))
    dated = columns.pop("dated", None)
    if not len(losses):
        raise InputError("every entry held out is of a row or column without any before it: none can be ranked.")
    apart = [cold for *_, cold in parts]
    cold = ColdEntries(*(np.concatenate(each) for each in zip(*((c.losses, c.kept) for c in apart), strict=True)))
    outcomes = tuple(outcome for _, outcome, _ in parts)
    apart_from = cold if ordered else None
    told = apart_from, observations.skipped, dated
    return Evaluation(measure, target, losses, columns, values, low, high, outcomes, *told)


def _one_fold(
    completer: PartialCompleter, observations: Observations, folds: NDArray[Any], fold: int, ordered: bool
) -> tuple[dict[str, Array], FoldOutcome, ColdEntries]:
    train = observations.select(folds < fold if ordered else folds != fold)
    held_out = observations.select(folds == fold)
    is_cold = _is_cold(train, held_out) if ordered else np.zeros(len(held_out), dtype=bool)
    watcher = completer.progress
    with part(watcher, f"fold {fold}"):
        plan(watcher, [Part("fitting", seconds_of_fit(train)), Part("comparing", seconds_of_comparison(train))])
        completer.fit(train)
        with part(watcher, "comparing"):
            cold = _cold_entries(completer, held_out, is_cold)
            columns, outcome = _warm_entries(completer, train, held_out, np.flatnonzero(~is_cold), fold)
    return columns, outcome, cold


def _is_cold(train: Observations, held_out: Observations) -> NDArray[np.bool_]:
    """Which of the entries held out are of a row or a column that has none to learn from."""
    m, n = train.shape
    rows, cols = np.bincount(train.rows, minlength=m), np.bincount(train.cols, minlength=n)
    return np.asarray((rows[held_out.rows] == 0) | (cols[held_out.cols] == 0))


def _cold_entries(completer: PartialCompleter, held_out: Observations, is_cold: NDArray[np.bool_]) -> ColdEntries:
    if not is_cold.any():
        return ColdEntries(np.empty(0), np.empty(0, dtype=bool))
    test = held_out.select(is_cold)
    answer = completer.result_.answer(test.rows, test.cols)
    return ColdEntries(completer.loss.at(test, answer.value), answer.keep)


def _warm_entries(
    completer: PartialCompleter, train: Observations, held_out: Observations, which: Indices, fold: int
) -> tuple[dict[str, Array], FoldOutcome]:
    i, j = held_out.rows[which], held_out.cols[which]
    result = completer.result_
    promised, ways = result.guarantee.promised, _ways(result, train, i, j)
    if not len(which):
        none = dict.fromkeys((*COLUMNS, *([] if held_out.times is None else ["dated"])), np.empty(0))
        return none, FoldOutcome(fold, promised, 0.0, None, ways)
    test = held_out.select(which)
    answer, (low, high) = result.answer(i, j), result.interval_at(i, j, LEVEL)
    losses, kept = completer.loss.at(test, answer.value), answer.keep
    error = float(losses[kept].mean()) if kept.any() else None
    outcome = FoldOutcome(fold, promised, float(kept.mean()), error, ways)
    columns = {"losses": losses, "values": test.values, "low": low, "high": high}
    if test.times is not None:
        columns["dated"] = completer.loss.at(test, result.values_at(i, j, test.times))
    columns |= {"risk": answer.risk, "confidence": -answer.confidence, "interval": high - low}
    return columns | _baselines(train, i, j, completer.random_state_), outcome


def _ways(result: PartialCompletion, train: Observations, i: NDArray[Any], j: NDArray[Any]) -> tuple[Way, ...]:
    """What is kept by this library and by others, of the entries held out or of entries that were not observed.

    Which of the two is as the promise is aimed: other ways need candidates drawn as it says.
    """
    if result.weights.aim != "observed":
        i, j = some_cells(train.shape, CANDIDATES)
        i, j = i[unseen := train.find(i, j) < 0], j[unseen]
    others = baselines_at(result, i, j)
    ours = Way("this library", others[0].promise, float(result.keeps(i, j).mean()))
    return (ours, *(Way(way.name, way.promise, way.share) for way in others))


def baselines_at(result: PartialCompletion, rows: ArrayLike, cols: ArrayLike) -> tuple[BaselineOutcome, ...]:
    """What other ways to choose a set keep of some cells, by the same risks, floor, weights and calibration cells."""
    seen, floor = result.calibration, result.selection.floor
    answer = result.answer(rows, cols)
    observed = 1.0 if result.weights.leaves_out_calibration else 0.0  # 1 / pi stands for itself and 1 / pi - 1 others
    tested, supported = (within(0.0, confidence, 0.0, floor) for confidence in (seen.confidence, answer.confidence))
    found = compare_baselines(
        HeldOut(seen.risk[tested], seen.loss[tested], seen.weight[tested] - observed),
        Candidates(answer.risk[supported], result.weights.at(rows, cols)[supported] - observed),
        tolerance=result.plan.tolerance,
        delta=result.plan.delta,
        largest_loss=result.plan.largest_loss,
    )
    return tuple(replace(way, kept=_among(supported, way.kept)) for way in found)


def _among(which: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``chosen`` of those that ``which`` names, as a choice from all."""
    whole = np.zeros(len(which), dtype=bool)
    whole[which] = chosen
    return whole


def _baselines(train: Observations, i: NDArray[Any], j: NDArray[Any], random_state: int) -> dict[str, Array]:
    m, n = train.shape
    bayesian = BayesianFactorModel(random_state=random_state).fit(train.with_times(None))
    factors = FactorModel(random_state=random_state).fit(train)
    rng, members = np.random.default_rng(random_state), []
    for seed in range(ENSEMBLE):
        part = train.select(np.sort(rng.permutation(len(train))[: max(1, 4 * len(train) // 5)]))
        members.append(FactorModel(penalty=factors.penalty, random_state=seed).fit(part).at(i, j))
    rows, cols = np.bincount(train.rows, minlength=m), np.bincount(train.cols, minlength=n)
    return {
        "variance": bayesian.variance(i, j),
        "ensemble": np.var(members, axis=0),
        "leverage": -PosteriorConfidence.of(factors, train).at(i, j),
        "counts": -(rows[i] * cols[j]).astype(np.float64),
    }

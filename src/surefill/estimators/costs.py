"""About how long the parts of a fit take, for whoever waits.

Seconds of one core, measured once on simulated tables of 1,500 to ten million cells and on MovieLens 100K and 1M,
to a factor of two or so. Where they are wrong, because of the machine or the data or another algorithm, parts
that are done correct those to come (:mod:`surefill.waiting.estimate`).
"""

from __future__ import annotations

from collections.abc import Sequence

from surefill.confidence import ConfidenceAlgorithm, CoverageGame, CoverageProgram, PosteriorVariance
from surefill.data import COMPACT_CELLS, Observations
from surefill.parallel import MIN_RANGE_ENTRIES, n_workers
from surefill.risk.cross_fitting import ENOUGH_RESIDUALS, LEAST_SHARE, MANY_CELLS, MOST_IN_BLOCKS, folds_for
from surefill.waiting import Part

COMPLETION_STEPS = 20
"""Sweeps of a completion, both starts included."""

STEP, STEP_PER_CELL = 1e-3, 7e-8
"""Seconds of a sweep, and for each of its cells."""

SWEEPS_FROM_START = 8
"""Sweeps of a completion that goes on from another."""

GAME, GAME_PER_LINE = 0.05, 1.5e-4
"""Seconds of the coverage game, and for each row and column."""

PROGRAM_PER_CELL = 2e-4
"""Seconds of the coverage program for each cell of the matrix: it varies most."""

SETTING_ASIDE_PER_CELL, ASIDE_PER_CELL_BEYOND, RISK_PER_CELL, PROMISE_PER_CELL = 3e-6, 5e-7, 6e-6, 2e-7
"""Seconds for each observed cell: fitting chances of being observed, up to the first two million cells and beyond,
learning the risk, and the promise."""

TRAINING = 0.8
"""Share of the cells that is trained on, and share of these in four of five folds."""


def parts_of_fit(
    observations: Observations, confidences: Sequence[ConfidenceAlgorithm], trial: bool, learns_risk: bool
) -> list[Part]:
    """The parts of :class:`surefill.estimators.fitting.Fitting`, in their order."""
    cells, train = len(observations), TRAINING * len(observations)
    supports = [_support(each, observations.shape, train) for each in confidences]
    trials = [_completion("trial fit", TRAINING * train), *(_named("trial support", *each) for each in supports)]
    slowest = max(supports)
    aside = SETTING_ASIDE_PER_CELL * min(cells, MANY_CELLS) + ASIDE_PER_CELL_BEYOND * max(cells - MANY_CELLS, 0)
    thinned = train > MANY_CELLS
    parts = [
        Part("setting aside", 0.01 + aside),
        _completion("choice", train),
        *(trials if trial else []),
        _completion("fit", train, sweeps=COMPLETION_STEPS + (SWEEPS_FROM_START if train >= COMPACT_CELLS else 0)),
        _named("support", *slowest),
    ]
    if learns_risk:
        residuals = max(LEAST_SHARE * train, ENOUGH_RESIDUALS) if thinned else train
        parts += [
            *([] if thinned else [_folds(train, folds_for(int(train)) - trial)]),
            Part("risk", 0.01 + RISK_PER_CELL * min(residuals, train)),
            _completion("hidden blocks", TRAINING * min(train, MOST_IN_BLOCKS) / 2),
        ]
    return [*parts, Part("promise", 0.01 + PROMISE_PER_CELL * cells)]


def _folds(train: float, folds: int) -> Part:
    together = min(n_workers(), folds) if train < 2 * MIN_RANGE_ENTRIES else 1  # large fits use all cores each
    return _completion("cross-fitting", TRAINING * train, folds, together)


def seconds_of_fit(observations: Observations) -> float:
    """The whole of a fit with default settings."""
    return sum(part.seconds for part in parts_of_fit(observations, [CoverageGame()], False, True))


def seconds_of_comparison(observations: Observations) -> float:
    """The other ways to order entries that an evaluation compares with: about seven completions."""
    return 7 * _completion("", len(observations)).seconds


def _completion(name: str, cells: float, times: int = 1, together: int = 1, sweeps: int = COMPLETION_STEPS) -> Part:
    seconds = times * sweeps * (STEP + STEP_PER_CELL * cells)
    return Part(name, seconds / together, times * sweeps, "completion")


def _support(algorithm: ConfidenceAlgorithm, shape: tuple[int, int], cells: float) -> tuple[float, str]:
    """Seconds, and the kind."""
    if isinstance(algorithm, CoverageProgram):
        return PROGRAM_PER_CELL * shape[0] * shape[1], "program"
    if isinstance(algorithm, PosteriorVariance):
        return algorithm.n_restarts * _completion("", cells).seconds, "restarts"
    return GAME + GAME_PER_LINE * sum(shape), "game"


def _named(name: str, seconds: float, kind: str) -> Part:
    return Part(name, seconds, kind=kind)

"""Calibration cells, set aside before anything is learnt, and their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.data import COMPACT_CELLS, Observations
from surefill.data.compact import piecewise
from surefill.data.splits import Seed, bernoulli_mask
from surefill.errors import InputError
from surefill.guarantee.propensity import Aim, MarginRaking, calibrate, choose_propensity
from surefill.guarantee.target_weights import LARGEST_RATE, HeldOutRate, TargetWeights

CALIBRATION, LEAST_CALIBRATION, ENOUGH_CALIBRATION = 0.2, 0.1, 20_000
"""Shares of the cells set aside, and how many are enough: the sampling error of a mean over 20,000 is 1%, with weights
that make them count half."""

MOST_CALIBRATION = 500_000
"""Most cells set aside: the sampling error of a mean over them is 0.2%, far below the precision of any tolerance."""

CELLS_PER_BOUND = 40
"""Calibration cells for each (L / tolerance) log(1 / delta), without which no method promises anything: ten times that
where the mean loss leaves a quarter of the tolerance and sets hold half of the cells, and four for unequal weights."""

LARGEST_SHARE = 1 / 3
"""Largest share set aside for a large L / tolerance."""

LEAST_TRAINING = 20
"""Training cells for each row and column that are left all the same: twice the factors that models begin with."""

ENOUGH_CHANCES = 1_000_000
"""Cells from whose propensities the rate of holding out is chosen: the share is then met to a thousandth."""

HALVES, HELD_OUT = 1, 2
"""Streams of coins apart from what ``random_state`` alone begins: a table simulated with the same number, as examples
often are, would share its random numbers with the coins, and a promise needs coins that know nothing of the table."""

ENOUGH_TO_RAKE = 5_000
"""With fewer cells in the second half the sampling error of a mean, some 3%, hides what raking would mend."""


def calibration_share(n_cells: int) -> float:
    """The share of the cells set aside: a fifth, of more than 100,000 cells 20,000 of them, but at least a tenth.

    Of more than five million cells it is 500,000 of them.
    """
    least = min(LEAST_CALIBRATION, MOST_CALIBRATION / n_cells)
    return max(least, min(CALIBRATION, ENOUGH_CALIBRATION / n_cells))


def larger_share(n_cells: int, n_lines: int, loss_over_tolerance: float, delta: float) -> float:
    """The share of the cells set aside where losses may be far above the tolerance: 40 (L / tolerance) log(1 / delta).

    At most a third, and so that twenty training cells are left for each of ``n_lines`` rows and columns; never less
    than :func:`calibration_share`.

    Examples
    --------
    >>> [round(larger_share(5000, 150, ratio, 0.1), 2) for ratio in (2, 15, 100)]
    [0.2, 0.28, 0.33]
    """
    wanted = CELLS_PER_BOUND * loss_over_tolerance * float(np.log(1 / delta)) / n_cells
    spare = 1 - LEAST_TRAINING * n_lines / n_cells
    return max(calibration_share(n_cells), min(wanted, spare, LARGEST_SHARE))


def share_set_aside(n_cells: int, n_lines: int, aim: Aim, bound: tuple[float, float] | None) -> float:
    """The share of the cells set aside; ``bound`` is (L / tolerance, delta) where these are known beforehand."""
    if bound is None or aim == "observed":
        return calibration_share(n_cells)
    return larger_share(n_cells, n_lines, *bound)


@dataclass(frozen=True, eq=False)
class CalibrationSplit:
    """Training cells, calibration cells, and the weights that make the second stand for what is promised.

    For cells drawn like the observed ones the second are held out by coins of one chance. For all cells, or those never
    observed:

    1. a fair coin for each observed cell; one half goes to training, and its locations alone teach the chances p;
    2. of the other half, a cell of modelled chance p becomes a calibration cell with probability q(p) / (1/2), the
       others go to training;
    3. the modelled chances are corrected by how many cells of the second half there are among cells of like chances,
       and, of 5,000 or more, so that its weights add up to the cells there are in every row and column
       (:class:`MarginRaking`).

    Given the training cells, every other cell is then a calibration cell by a coin of its own, of probability
    q p / (1 - (1 - q) p). Values play no part in any of this. Cells that were asked for since are trained on: they were
    chosen, not drawn, and stand for no others. They were chosen among the cells that are not calibration cells, which
    the test allows for by their number.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=1000, random_state=0).observations
    >>> split = CalibrationSplit.of(seen, "unobserved", None, random_state=0)
    >>> len(split.train) + len(split.calibration) == len(seen)
    True
    """

    train: Observations
    calibration: Observations
    weights: TargetWeights
    asked: NDArray[np.bool_]

    @property
    def n_asked(self) -> int:
        """Cells asked for, of the rows and columns that the promise is about."""
        m, n = self.weights.shape or self.train.shape
        return int(np.count_nonzero(self.asked & (self.train.rows < m) & (self.train.cols < n)))

    @property
    def drawn(self) -> Observations:
        """The training cells that were not asked for."""
        return self.train.select(~self.asked) if self.asked.any() else self.train

    @classmethod
    def of(
        cls,
        observations: Observations,
        aim: Aim,
        propensity: Any,
        random_state: int,
        asked: NDArray[np.bool_] | None = None,
        shape: tuple[int, int] | None = None,
        bound: tuple[float, float] | None = None,
    ) -> Self:
        """Split at random; ``propensity`` is what the user gave, if anything, ``asked`` tells which cells were asked.

        Whatever was asked since a first fit, the calibration cells are those of that fit, if aim and ``bound`` are;
        ``shape`` is what the table had then, where it has grown since. ``bound`` is (L / tolerance, delta) where these
        are known beforehand.
        """
        asked = np.zeros(len(observations), dtype=bool) if asked is None else asked
        drawn = observations.select(~asked) if asked.any() else observations
        drawn = drawn.in_shape(observations.shape if shape is None else shape)
        share = share_set_aside(len(drawn), sum(drawn.shape), aim, bound)
        calibration, weights = _held_out(drawn, aim, propensity, random_state, share)
        training = np.ones(len(observations), dtype=bool)
        training[observations.find(calibration.rows, calibration.cols)] = False
        train, asked = observations.select(training), asked[training]
        if len(train) >= COMPACT_CELLS and not train.by_row.in_order:
            # Sorted by row, the cells need not be copied for the regressions per row.
            order = train.by_row.order
            train, asked = train.select(order), asked[order]
        return cls(train, calibration, weights, asked)


def _held_out(
    observations: Observations, aim: Aim, propensity: Any, random_state: int, share: float
) -> tuple[Observations, TargetWeights]:
    """A share of the cells as calibration cells, and their weights."""
    if aim == "observed":
        choose_propensity(propensity, aim, observations, share, random_state)
        if len(observations) < 2:
            raise InputError("setting some aside needs at least 2 observed cells; there is 1.")
        held_out = _bernoulli(np.full(len(observations), share), (random_state, HELD_OUT), len(observations) - 1)
        return observations.select(held_out), TargetWeights(aim, shape=observations.shape)
    first, second = _halves(observations, (random_state, HALVES))
    model = choose_propensity(propensity, aim, first, 1 - LARGEST_RATE, random_state)
    assert model is not None
    some = slice(None, None, max(1, len(first) // ENOUGH_CHANCES))
    rate = HeldOutRate.of(model.at(first.rows[some], first.cols[some]), share)
    modelled = piecewise(model.at, second.rows, second.cols)
    held_out = _bernoulli(rate.at(modelled) / LARGEST_RATE, (random_state, HELD_OUT), len(second))
    calibrated = calibrate(model, first, second, 1 - LARGEST_RATE, random_state)
    if len(second) >= ENOUGH_TO_RAKE:
        corrected = piecewise(calibrated.corrected, modelled, second.rows, second.cols)
        del modelled
        calibrated = replace(calibrated, raking=MarginRaking.of(corrected, first, second, 1 - LARGEST_RATE))
    correction = calibrated if propensity is None else None
    weights = TargetWeights(aim, model, rate, correction, calibrated.misfit, observations.shape)
    return second.select(held_out), weights


def _halves(observations: Observations, seed: Seed) -> tuple[Observations, Observations]:
    """Two halves by a fair coin for each cell; neither is empty, and of three cells or more two are in the first."""
    n_cells = len(observations)
    second = bernoulli_mask(n_cells, LARGEST_RATE, seed)
    n_second = int(np.clip(np.count_nonzero(second), 1, max(1, n_cells - 2)))
    if n_second != np.count_nonzero(second):
        second = np.random.default_rng(seed).permutation(n_cells) < n_second
    return observations.select(~second), observations.select(second)


def _bernoulli(chances: Array, seed: Seed, most: int) -> NDArray[np.bool_]:
    """True independently with these probabilities; at least one is, and at most ``most``."""
    tossed = np.random.default_rng(seed).random(len(chances)) / chances
    mask = np.asarray(tossed < 1)
    number = int(np.clip(np.count_nonzero(mask), 1, most))
    if number != np.count_nonzero(mask):
        mask = np.argsort(np.argsort(tossed)) < number
    return mask

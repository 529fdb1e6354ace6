"""Which model of the pattern: the margins alone, unless factors predict held-out locations clearly better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from surefill.arrays import Array
from surefill.data import Observations, split_entries
from surefill.data.splits import bernoulli_mask
from surefill.errors import InputError
from surefill.guarantee.propensity.base import GivenPropensity, Propensity, PropensityFunction
from surefill.guarantee.propensity.factors import (
    Contrast,
    FactorPropensity,
    Interactions,
    InteractionScaling,
    factor_path,
    random_start,
)
from surefill.guarantee.propensity.marginal import MarginalPropensity

Aim = Literal["observed", "unobserved", "all"]
AIMS = ("observed", "unobserved", "all")
"""Entries that a promise may be about."""

MOST_LINES = 20_000_000
"""Rows and columns at most of a table whose chances are modelled: a few dozen numbers for each are some gigabytes."""

HELD_OUT = 0.2
"""Share of the locations that choose the model."""

MOST_HELD_OUT = 50_000
"""Held-out locations at most: so many tell gains of a hundredth of a nat per cell from none."""

MOST_LOCATIONS = 500_000
"""Most locations that factors are fitted on, while margins use all: each takes a few dozen numbers of memory, and some
dozen locations are enough for the seven coefficients of a row or column."""

FEWEST_HELD_OUT = 50
"""Held-out locations without which no choice is made."""

CLEARLY = 2.0
"""Standard errors by which the held-out log likelihood must be better with factors."""

PENALTIES = [8.0, 8 / 2**0.5, 4.0, 8 / 2**1.5]
"""From one at which little but noise-free blocks is found to one that is too weak on all patterns measured."""

SWEEPS = [4, 2, 2, 2]
"""Each penalty starts where the one before it ended."""

MIDDLE = 0.98
"""Slopes change between the 2% and the 98% point of the held-out cells' marginal log odds, and no further."""

NEWTON_STEPS = 12
"""For the five numbers by which interactions are scaled; they are settled to 1e-6 after eight."""

LONGEST_STEP = 1.0
"""Largest change of each in one step."""

LEAST_INFORMATION = 1e-3
"""Precision of a prior at 0 for them: less than one cell's, and enough where no interaction was found."""


def fit_propensity(locations: Observations, share: float, random_state: int = 0) -> Propensity:
    """P(cell is observed) from the locations of a random ``share`` of the observed cells; values are never used.

    :class:`MarginalPropensity`, or :class:`FactorPropensity` where the log likelihood of a fifth of the locations, held
    out, is better by more than two standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> rows, cols = np.divmod(np.flatnonzero(np.random.default_rng(0).random(2000) < 0.2), 40)
    >>> seen = Observations(rows, cols, np.zeros(len(rows)), shape=(50, 40))
    >>> propensity = fit_propensity(seen, share=0.5)
    >>> type(propensity).__name__, propensity.at([0, 1], [2, 3]).round(1)
    ('MarginalPropensity', array([0.4, 0.4]))
    """
    marginal = MarginalPropensity.of(locations, share)
    if len(locations) * HELD_OUT < FEWEST_HELD_OUT:
        return marginal
    if len(locations) > MOST_LOCATIONS:
        taken = bernoulli_mask(len(locations), MOST_LOCATIONS / len(locations), random_state)
        share *= np.count_nonzero(taken) / len(taken)
        locations = locations.select(taken)
    found = fit_interactions(locations, marginal, share, random_state)
    return marginal if found is None else FactorPropensity(marginal, *found.interactions, found.scaling)


class FittedInteractions(NamedTuple):
    """Interactions, how they are scaled, and what other rows are fitted to the columns with: the penalty and the mean
    number of cells of a row, drawn ones included, that it is relative to."""

    interactions: Interactions
    scaling: InteractionScaling
    penalty: float
    mean_size: float


def fit_interactions(
    locations: Observations, marginal: MarginalPropensity, share: float, random_state: int
) -> FittedInteractions | None:
    """Interactions of these locations on top of the margins; None unless held-out locations are clearly likelier."""
    if len(locations) * HELD_OUT < FEWEST_HELD_OUT:
        return None
    rng = np.random.default_rng(random_state)
    trial = _best_trial(locations, share, rng)
    if trial.gain <= CLEARLY * trial.standard_error:
        return None
    contrast = Contrast.of(locations, marginal, share, share, rng)
    # In proportion to the cells, so that factors are shrunk as they were when their slope was found.
    penalty = trial.penalty * len(locations) / trial.n_cells
    (interactions,) = factor_path(contrast, [penalty], [SWEEPS[-1]], trial.interactions)
    mean_size = len(contrast.rows) / len(np.unique(contrast.rows))
    return FittedInteractions(interactions, trial.scaling, penalty, mean_size)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Interactions fitted without the held-out locations, and what they gained on these over the margins alone."""

    interactions: Interactions
    n_cells: int
    penalty: float
    scaling: InteractionScaling
    gain: float
    standard_error: float


def _best_trial(locations: Observations, share: float, rng: np.random.Generator) -> _Trial:
    """Along the penalties until the held-out log likelihood falls."""
    part = min(HELD_OUT, MOST_HELD_OUT / len(locations))
    train, held_out = split_entries(locations, part, int(rng.integers(2**31)))
    looked_at = share * len(train) / len(locations)
    marginal = MarginalPropensity.of(train, looked_at)
    contrast = Contrast.of(train, marginal, looked_at, looked_at, rng)
    unseen = Contrast.of(held_out, marginal, share - looked_at, share, rng, train)
    constant = np.ones((len(unseen.rows), 1))
    margins_alone = unseen.log_likelihood(unseen.base + constant @ _coefficients(unseen, constant))
    low, high = np.quantile(unseen.base[unseen.found > 0], [1 - MIDDLE, MIDDLE])
    best: _Trial | None = None
    path = factor_path(contrast, PENALTIES, SWEEPS, random_start(locations.shape, rng))
    for penalty, interactions in zip(PENALTIES, path, strict=False):
        x = interactions.at(unseen.rows, unseen.cols)
        features = InteractionScaling(np.zeros(5), float(low), float(high)).features(unseen.base, x)
        scaling = InteractionScaling(_coefficients(unseen, features), float(low), float(high))
        better = unseen.log_likelihood(unseen.base + scaling.of(unseen.base, x)) - margins_alone
        error = float(better.std() * np.sqrt(len(better)))
        trial = _Trial(interactions, len(train), penalty, scaling, float(better.sum()), error)
        if best is not None and trial.gain < best.gain:
            break
        best = trial
    assert best is not None
    return best


def _coefficients(unseen: Contrast, features: Array) -> Array:
    """The coefficients with which base + features coefficients is likeliest on the held-out locations.

    Interactions that fit their own cells too well have slopes below 1 on others.
    """
    solution, ridge = np.zeros(features.shape[1]), LEAST_INFORMATION * np.eye(features.shape[1])
    for _ in range(NEWTON_STEPS):
        first, second = unseen.derivatives(unseen.base + features @ solution)
        step = np.linalg.solve((features.T * second) @ features + ridge, features.T @ first - ridge @ solution)
        solution += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    return solution


def choose_propensity(
    given: Any, aim: Aim, locations: Observations, share: float, random_state: int = 0
) -> Propensity | None:
    """What the user gave for P(observed), or a model of a ``share`` of the locations where the aim needs one.

    Examples
    --------
    >>> import numpy as np
    >>> seen = Observations([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0])
    >>> choose_propensity(np.full((2, 2), 0.5), "unobserved", seen, 0.5).at([0], [1])
    array([0.5])
    """
    if aim == "observed":
        if given is not None:
            raise InputError(
                "propensities aim a promise at other entries than those seen: add aim='unobserved' or 'all'."
            )
        return None
    if given is None:
        if sum(locations.shape) > MOST_LINES:
            raise InputError(
                f"chances of being observed are modelled for up to {MOST_LINES:,} rows and columns together; this "
                f"table has {sum(locations.shape):,}. Leave out those without observations, give propensity=, or "
                "take aim='observed'."
            )
        return fit_propensity(locations, share, random_state)
    if callable(given):
        return PropensityFunction(given)
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.shape != locations.shape:
        expected = f"None, a function of rows and columns, or an array of shape {locations.shape}"
        raise InputError(
            f"The 'propensity' parameter of PartialCompleter must be {expected}. Got shape {matrix.shape}."
        )
    return GivenPropensity(matrix)

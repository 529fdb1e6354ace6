"""Tables whose every value is known, and patterns by which some of their cells are seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_digits

from data_folder import DATA
from risk_data import read_gdsc

MOST_LIKELY = 0.95
"""No cell is seen for certain."""


@dataclass(frozen=True, eq=False)
class Table:
    """A complete matrix, the range of its values, and what of each value no model of low rank could know."""

    values: np.ndarray
    bounds: tuple[float, float]
    residual: np.ndarray


def jester(rng):
    """3,000 of the people who rated all jokes."""
    values = _jester()
    return _with_residual(values[rng.choice(len(values), 3000, replace=False)], (-10, 10))


def digits(rng):
    """600 handwritten digits, 8 x 8 pixels of 0 to 16; those that are always the same are left out."""
    values = load_digits().data
    values = values[rng.choice(len(values), 600, replace=False)]
    return _with_residual(values[:, values.var(axis=0) > 0], (0, 16))


def gdsc(rng):
    """Responses of cell lines to drugs, the part of the table where all are known."""
    return _with_residual(_gdsc(), (-10, 13))


def gdsc_centred(rng):
    """The same less each drug's mean, which is three quarters of the variance and easily learnt."""
    values = _gdsc()
    return _with_residual(values - values.mean(axis=0), (-9, 7))


def rank_3(rng, shape=(600, 300)):
    """Rank 3 plus normal noise whose size differs between rows, clipped."""
    mean = _low_rank(rng, shape)
    noise = 0.5 * np.exp(0.5 * rng.normal(size=(shape[0], 1))) * rng.normal(size=shape)
    values = np.clip(mean + noise, -4, 4)
    return Table(values, (-4, 4), np.abs(values - mean))


def long_tailed(rng, shape=(800, 1600)):
    """Stars from 1 to 5, rank 2; columns further down the list are worse liked and noisier. They stay in order."""
    place = np.linspace(0, 1, shape[1])
    mean = 3.6 - 0.8 * place + 0.7 * _low_rank(rng, shape, rank=2)
    values = np.clip(np.round(mean + (0.5 + 0.5 * place) * rng.normal(size=shape)), 1, 5)
    return Table(values, (1, 5), np.abs(values - mean))


def _low_rank(rng, shape, rank=3):
    left, right = (rng.normal(size=(size, rank)) for size in shape)
    return left @ right.T / np.sqrt(rank)


@cache
def _jester():
    return np.loadtxt(DATA / "jester" / "jester-full-7200x100.csv.gz", delimiter=",")


@cache
def _gdsc():
    """Rows and columns are dropped, the one with the largest share of holes first, until no hole is left."""
    observed = read_gdsc(DATA)
    values = np.full(observed.shape, np.nan)
    values[observed.rows, observed.cols] = observed.values
    while (holes := np.isnan(values)).any():
        by_row, by_col = holes.mean(axis=1), holes.mean(axis=0)
        axis = 0 if by_row.max() > by_col.max() else 1
        values = np.delete(values, int((by_row, by_col)[axis].argmax()), axis)
    return values


def _with_residual(values, bounds, rank=5):
    """The distance from the best approximation of rank 5, about what a good model would miss."""
    centre = values.mean(axis=0)
    U, s, Vt = np.linalg.svd(values - centre, full_matrices=False)
    return Table(values, bounds, np.abs(values - centre - (U[:, :rank] * s[:rank]) @ Vt[:rank]))


def power_law(rng, shape, share, exponent, shuffled=True):
    """Chances c r_i^-a s_j^-a, r and s ranks, capped, with mean ``share``; columns in order if not shuffled."""
    rows, cols = (np.arange(1, size + 1.0) ** -exponent for size in shape)
    return scaled_to(np.outer(rng.permutation(rows), rng.permutation(cols) if shuffled else cols), share)


def scaled_to(weight, share):
    """min(c w, 0.95) with c such that the mean is ``share``, by bisection."""
    low, high = 0.0, 1 / weight.min()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * weight, MOST_LIKELY).mean() < share else (low, middle)
    return np.minimum(high * weight, MOST_LIKELY)


LEANINGS: dict[str, Callable[[Table], np.ndarray]] = {
    "liked": lambda table: table.values,
    "extreme": lambda table: np.abs(table.values - np.median(table.values)),
    "accurate": lambda table: -table.residual,
}
"""What makes a value more likely to be seen; the last is an adversary who shows what a model gets right."""


def leaning(table, chance, factor, direction):
    """Chances with those of the lower half of the values, in the order of the leaning, divided by ``factor``."""
    score = LEANINGS[direction](table)
    return scaled_to(np.where(score >= np.median(score), chance, chance / factor), chance.mean())

"""The additive part that is taken off before a low-rank fit: nothing, a mean, or a mean and row and column effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.completion.grouped_regression import GroupedRegression
from surefill.data import Observations
from surefill.errors import invalid_parameter

Centre = Literal["none", "mean", "effects"]

SHRINKAGE = 5.0
"""Pseudo-draws of an effect of zero: a row seen five times gets half of its own mean. A convention of recommenders."""

MAX_SWEEPS = 100
"""Most sweeps over columns and rows; shrinkage makes each a contraction."""

EFFECTS_TOL = 1e-10
"""Stop once no effect moves by more than this share of the largest residual."""


@dataclass(frozen=True, eq=False)
class Effects:
    """y_x ~ offset + b_i + c_j for the present rows and columns; the last item of each stands for all others, 0."""

    offset: float
    rows: Array
    cols: Array

    @classmethod
    def of(
        cls, observations: Observations, centre: Centre, owner: str, zero: float = 0.0, values: Array | None = None
    ) -> Effects:
        """min  sum_S c_x (y_x - offset - b_i - c_j)^2 + 5 sum b_i^2 + 5 sum c_j^2  for "effects".

        "mean" leaves the effects zero and takes the mean of the draws, "none" takes ``zero`` for it. ``values`` stand
        in for those observed, such as the same on [-1, 1].
        """
        if centre not in ("none", "mean", "effects"):
            raise invalid_parameter(owner, "centre", "'none', 'mean' or 'effects'", centre)
        b, c = np.zeros(len(observations.by_row) + 1), np.zeros(len(observations.by_col) + 1)
        if centre == "none":
            return cls(zero, b, c)
        y = observations.values.astype(np.float64) if values is None else values
        offset = float(np.average(y, weights=observations.counts))
        return cls(offset, b, c) if centre == "mean" else cls(offset, *_additive(observations, y - offset))

    def with_factors(self, left: NDArray[Any], right: NDArray[Any]) -> tuple[Array, Array]:
        """(b_i, left_i) of each row and (c_j, right_j) of each column, both with a last line of zeros."""
        return _join(self.rows, left), _join(self.cols, right)

    def at(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Array:
        """The common part at pairs of positions."""
        return self.offset + self.rows[rows] + self.cols[cols]


def _join(effects: Array, factors: NDArray[Any]) -> Array:
    return np.column_stack([effects, np.vstack([factors, np.zeros(factors.shape[1])])])


def _additive(observations: Observations, r: Array) -> tuple[Array, Array]:
    """Columns, then rows, until neither moves: each is a shrunken mean of what the other leaves."""
    i, j = positions(observations)
    b, c = np.zeros(len(observations.by_row) + 1), np.zeros(len(observations.by_col) + 1)
    counts, scale = observations.counts, float(np.abs(r).max())
    for _ in range(MAX_SWEEPS):
        before = b
        c = shrunken_means(j, r - b[i], counts, len(c))
        b = shrunken_means(i, r - c[j], counts, len(b))
        if np.abs(b - before).max() <= EFFECTS_TOL * scale:
            break
    return b, c


def subtract_effects(regression: GroupedRegression, fixed: Array, has_effects: bool) -> tuple[Array, Array]:
    """The groups' own effects, given the others' in ``fixed``, and the targets less both."""
    target, effects = regression.target - fixed[regression.other, 0], np.zeros(len(regression.groups) + 1)
    if not has_effects:
        return effects, target
    group = np.repeat(np.arange(len(regression.groups)), regression.groups.sizes)
    effects = shrunken_means(group, target, regression.weight, len(effects))
    return effects, target - effects[group]


def shrunken_means(group: NDArray[np.int64], values: Array, counts: NDArray[Any], size: int) -> Array:
    """sum c y / (sum c + 5) of each group."""
    draws = np.bincount(group, counts, size)
    return np.asarray(np.bincount(group, counts * values, size) / (draws + SHRINKAGE))


def positions(observations: Observations) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each observed cell's row and column stand among those present."""
    return observations.by_row.locate(observations.rows), observations.by_col.locate(observations.cols)

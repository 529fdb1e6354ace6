"""Features of rows or columns from a side table, such as people's ages or the genres of films."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.errors import InputError, few
from surefill.registry import storable

MOST_CATEGORIES = 200
"""Different texts that a column may have, each of which becomes a feature; a column of more likely holds names."""


@storable
@dataclass(frozen=True, eq=False)
class Features:
    """An m x d table of d features for each of the m rows (or columns), NaN where one is missing.

    Examples
    --------
    >>> features = Features.of({"age": [20.0, 40.0, np.nan], "sex": ["f", "m", "f"]})
    >>> features.names, features.table.shape
    (('age', 'sex=f', 'sex=m'), (3, 3))
    """

    names: tuple[str, ...]
    table: Array

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or self.table.shape[1] != len(self.names) or np.isinf(self.table).any():
            raise InputError("features need a name for each column of a table of finite numbers, NaN where unknown.")

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> Self:
        """From the columns of a table: numbers unchanged, text one-hot encoded."""
        names: list[str] = []
        tables: list[Array] = []
        for name, column in columns.items():
            for each, numbers in _numbers(name, np.asarray(column)):
                names.append(each)
                tables.append(numbers)
        if not tables:
            raise InputError("a side table needs a column beside the labels; there is none.")
        return cls(tuple(names), np.column_stack(tables))

    def placed(self, positions: NDArray[np.int64], size: int) -> Self:
        """A table of ``size`` rows with these features at ``positions`` and NaN elsewhere."""
        if len(np.unique(positions)) < len(positions):
            raise InputError("a side table must have one line for each label; some occur twice.")
        table = np.full((size, len(self.names)), np.nan)
        table[positions] = self.table
        return type(self)(self.names, table)

    def in_size(self, size: int) -> Self:
        """The first ``size`` rows, padded with NaN."""
        table = np.full((size, len(self.names)), np.nan)
        known = min(size, len(self.table))
        table[:known] = self.table[:known]
        return type(self)(self.names, table)


@storable
@dataclass(frozen=True, eq=False)
class FeatureScale:
    """The mean and the standard deviation of each feature, for standardising.

    Examples
    --------
    >>> features = Features.of({"age": [20.0, 40.0, np.nan]})
    >>> FeatureScale.of(features).standardised(features).ravel()
    array([-1.,  1.,  0.])
    """

    names: tuple[str, ...]
    mean: Array
    deviation: Array

    @classmethod
    def of(cls, features: Features) -> Self:
        """Learn them; the deviation of a constant or missing feature is infinite, so that it has no effect."""
        known = ~np.isnan(features.table)
        count = np.maximum(known.sum(axis=0), 1)
        filled = np.where(known, features.table, 0.0)
        mean = filled.sum(axis=0) / count
        deviation = np.sqrt((np.where(known, features.table - mean, 0.0) ** 2).sum(axis=0) / count)
        return cls(features.names, mean, np.where(deviation > 0, deviation, np.inf))

    def standardised(self, features: Features) -> Array:
        """(f - mean) / deviation, 0 where missing; features are matched by name, unknown ones are ignored."""
        if not set(self.names) & set(features.names):
            raise InputError(f"none of the features {few(features.names)} is one of the fit's, {few(self.names)}.")
        place = {name: k for k, name in enumerate(features.names)}
        table = np.full((len(features.table), len(self.names)), np.nan)
        for k, name in enumerate(self.names):
            if name in place:
                table[:, k] = features.table[:, place[name]]
        return np.nan_to_num((table - self.mean) / self.deviation, nan=0.0)


def _numbers(name: str, column: NDArray[Any]) -> list[tuple[str, Array]]:
    if column.dtype.kind in "biuf":
        return [(name, column.astype(np.float64))]
    texts = column.astype(str)
    kinds, codes = np.unique(texts, return_inverse=True)
    if len(kinds) > MOST_CATEGORIES:
        raise InputError(
            f"column {name!r} of a side table has {len(kinds):,} different texts; at most {MOST_CATEGORIES} are taken "
            "as kinds: leave it out, or put them into fewer."
        )
    return [(f"{name}={kind}", (codes == k).astype(np.float64)) for k, kind in enumerate(kinds)]

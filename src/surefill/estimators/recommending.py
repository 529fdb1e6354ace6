"""The best columns for a row, and the rows most like it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Indices, records, row_blocks
from surefill.completion.factored_completion import BiasedProduct
from surefill.errors import InputError, MissingPackageError, invalid_parameter, is_seed
from surefill.estimators.best_cells import BLOCK_CELLS, best_cells
from surefill.notebook import table as html_table
from surefill.parallel import ahead

if TYPE_CHECKING:
    from surefill.estimators.partial_completer import PartialCompleter

SHOWN = 10
"""Labels that a ranking shows of itself."""

BACKENDS = ("pandas", "polars", "pyarrow")
"""Where a frame is made, the first that is installed unless one is named."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Labels in the order of their rank, and what is known of each: named columns, the labels first.

    Examples
    --------
    >>> best = Ranking({"item": np.array(["Alien", "Brazil"]), "rating": np.array([4.5, 4.25])})
    >>> best.labels, len(best), best.as_records()[0]
    (['Alien', 'Brazil'], 2, {'item': 'Alien', 'rating': 4.5})
    """

    table: dict[str, NDArray[Any]]

    @property
    def labels(self) -> list[Any]:
        """What was ranked, the best first."""
        found: list[Any] = next(iter(self.table.values())).tolist()
        return found

    def __len__(self) -> int:
        return len(self.labels)

    def as_records(self) -> list[dict[str, Any]]:
        """One mapping per line, of plain values."""
        return records(self.table)

    def to_frame(self, backend: str | None = None) -> Any:
        """A pandas, polars or pyarrow table; the first of these that is installed when no ``backend`` is named."""
        if backend is not None and backend not in BACKENDS:
            raise invalid_parameter("to_frame", "backend", "'pandas', 'polars' or 'pyarrow'", backend)
        installed = [name for name in BACKENDS if backend in (None, name) and find_spec(name) is not None]
        if not installed:
            raise MissingPackageError("a table in memory", "pandas")
        columns = {name: column.tolist() for name, column in self.table.items()}
        return nw.from_dict(columns, backend=cast(Any, installed[0])).to_native()

    def __repr__(self) -> str:
        more = ", ..." if len(self) > SHOWN else ""
        return f"Ranking({next(iter(self.table))}: {', '.join(map(str, self.labels[:SHOWN]))}{more})"

    def _repr_html_(self) -> str:
        lines = [tuple(_shown(value) for value in record.values()) for record in self.as_records()]
        return html_table("Ranking", "The best first.", tuple(self.table), lines)


def recommend(
    completer: PartialCompleter, row: Any, n: int, exclude: ArrayLike | None, include: ArrayLike | None, trusted: bool
) -> Ranking:
    """:meth:`surefill.PartialCompleter.recommend`."""
    if np.ndim(row) != 0:
        raise invalid_parameter("recommend", "row", "one label; iterate_recommendations takes many", row)
    (block,) = iterate_recommendations(completer, [row], n, exclude, include, trusted)
    return Ranking({name: column for place, (name, column) in enumerate(block.items()) if place > 0})


def iterate_recommendations(
    completer: PartialCompleter,
    rows: ArrayLike | None = None,
    n: int = 10,
    exclude: ArrayLike | None = None,
    include: ArrayLike | None = None,
    trusted: bool = True,
) -> Iterator[dict[str, NDArray[Any]]]:
    """:meth:`PartialCompleter.recommend` for many rows, or all: blocks of row, column, value, confidence and risk.

    Nothing of the size of the matrix is in memory: some rows are ranked at a time, each by a partition of its values.
    A row of which no column is kept has no line.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> (block,) = sf.estimators.iterate_recommendations(completer, n=2)
    >>> list(block), len(block["row"])
    (['row', 'column', 'value', 'confidence', 'risk'], 120)
    """
    result, seen = completer._fitted(), completer.observations_
    if not (is_seed(n) and n >= 1):
        raise invalid_parameter("recommend", "n", "a whole number of at least 1", n)
    wanted = np.arange(seen.shape[0]) if rows is None else seen.row_index(rows)
    cols = np.arange(seen.shape[1]) if include is None else np.unique(seen.col_index(include))
    if exclude is not None:
        cols = np.setdiff1d(cols, seen.col_index(exclude))
    if not len(cols):
        raise InputError("no column is left to recommend: those to include are all excluded.")
    names = _names(completer, *([] if trusted else ["keep"]))

    def ranked(i: Indices) -> dict[str, NDArray[Any]]:
        allowed = np.ones((len(i), seen.shape[1]), dtype=np.bool_)
        line, entries = seen.in_rows(i)
        allowed[line, seen.cols[entries]] = False
        allowed = allowed[:, cols]
        line, place, answer = best_cells(result, i, cols, allowed, int(n), trusted)
        columns = answer.value, answer.confidence, answer.risk, answer.keep
        return dict(zip(names, [seen.row_names(i[line]), seen.col_names(cols[place]), *columns], strict=False))

    yield from ahead(ranked, [wanted[part] for part in row_blocks(len(wanted), len(cols), BLOCK_CELLS)])


def similar(completer: PartialCompleter, row: Any, n: int) -> Ranking:
    """:meth:`surefill.PartialCompleter.similar`.

        d_ik^2 = mean_j (u_ij - u_kj)^2 = (x_i - x_k)' G (x_i - x_k),   G = mean_j f_j f_j',

    with x_i = (b_i, p_i) and f_j = (1, q_j): the mean over all columns costs no more than the factors.
    """
    result, seen = completer._fitted(), completer.observations_
    if np.ndim(row) != 0:
        raise invalid_parameter("similar", "row", "one label", row)
    if not (is_seed(n) and n >= 1):
        raise invalid_parameter("similar", "n", "a whole number of at least 1", n)
    if not isinstance(result.completion, BiasedProduct):
        raise InputError(f"a {type(result.completion).__name__} has no factors to compare rows by.")
    (own,) = seen.row_index([row])
    ids, x = result.completion.row_table()
    f = result.completion.col_table()[1][:-1].copy()
    f[:, 0] = 1.0
    place = np.flatnonzero(ids == own)
    if not place.size:
        raise InputError(f"nothing was learnt of row {row!r}, so that no row can be called like it.")
    away = x[:-1] - x[place[0]]
    squares = np.sum(away @ (f.T @ f / len(f)) * away, axis=1)
    others = np.flatnonzero(ids != own)
    order = others[np.argsort(squares[others], kind="stable")[: int(n)]]
    distance = result.completion.scale * np.sqrt(np.maximum(squares[order], 0.0))
    name = seen.names[0] if seen.names[0] != "distance" else "row"
    return Ranking({name: seen.row_names(ids[order]), "distance": distance})


def _names(completer: PartialCompleter, *more: str) -> list[str]:
    """The data's own names of row, column and value, unless they clash with those of the other columns."""
    others, own = ["confidence", "risk", *more], list(completer.observations_.names)
    return [*(own if not {*others, "keep"} & set(own) else ("row", "column", "value")), *others]


def _shown(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value

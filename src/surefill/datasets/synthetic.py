"""Matrices whose truth is known, sampled in ways that leave part of them unknowable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter

Support = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]
"""Groups of the rows, groups of the columns, and which pairs of groups are drawn."""

SECOND_GROUP = 0.3
"""Share of the rows and columns of overlapping groups that belong to two of them."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """A low-rank truth M* = left right' in [-1, 1], and noisy draws of some of its entries.

    Every row and every column belongs to a group, ``row_groups`` and ``col_groups``, and ``allowed`` (row groups x
    column groups) says which pairs of groups are ever drawn: one pair where all entries can be, the diagonal for
    blocks, and as many groups as rows and columns for a pattern without structure.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((5, 5), n_groups=2, n_draws=200, random_state=0)
    >>> sim.truth.shape, int(sim.support.sum())
    ((10, 10), 50)
    """

    observations: Observations
    left: Array
    right: Array
    row_groups: NDArray[np.int64]
    col_groups: NDArray[np.int64]
    allowed: NDArray[np.bool_]

    @property
    def truth(self) -> Array:
        """The whole m x n matrix M*."""
        return np.asarray(self.left @ self.right.T)

    def truth_at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """M* at the pairs (rows[t], cols[t]), nothing m x n formed."""
        return np.asarray((self.left[np.asarray(rows)] * self.right[np.asarray(cols)]).sum(axis=1))

    @property
    def support(self) -> NDArray[np.bool_]:
        """m x n: True where an entry is drawn with positive probability."""
        return np.asarray(self.allowed[np.ix_(self.row_groups, self.col_groups)])

    def support_at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Whether the entries (rows[t], cols[t]) are ever drawn, nothing m x n formed."""
        return np.asarray(self.allowed[self.row_groups[np.asarray(rows)], self.col_groups[np.asarray(cols)]])


def make_blocks(
    group_shape: tuple[int, int] = (10, 10),
    n_groups: int = 2,
    n_draws: int | None = None,
    *,
    rank: int = 1,
    noise: float = 0.0,
    permute: bool = True,
    random_state: int = 0,
) -> Simulation:
    """Groups of rows that see only their own group of columns (the paper's Figure 1).

    Entries are drawn uniformly, with replacement, from the blocks where row and column groups agree; what a
    comedy watcher thinks of horror films leaves no trace in the data. Rows and columns are shuffled, so that
    the blocks do not show. ``n_draws`` defaults to as many draws as the blocks have cells.

    >>> sim = make_blocks((10, 10), n_groups=2, n_draws=200)
    >>> sim.observations.shape, int(sim.support.sum())
    ((20, 20), 200)
    """
    if n_groups < 1:
        raise invalid_parameter("make_blocks", "n_groups", "a whole number of at least 1", n_groups)
    if min(group_shape) < 1:
        raise invalid_parameter("make_blocks", "group_shape", "two whole numbers of at least 1", group_shape)
    rng = np.random.default_rng(random_state)
    rows_each, cols_each = group_shape
    m, n = n_groups * rows_each, n_groups * cols_each
    n_draws = rows_each * n if n_draws is None else n_draws
    row_order, col_order = (rng.permutation(m), rng.permutation(n)) if permute else (np.arange(m), np.arange(n))
    group = rng.integers(n_groups, size=n_draws)
    rows = row_order[group * rows_each + rng.integers(rows_each, size=n_draws)]
    cols = col_order[group * cols_each + rng.integers(cols_each, size=n_draws)]
    row_groups, col_groups = np.empty(m, np.int64), np.empty(n, np.int64)
    row_groups[row_order] = np.arange(m) // rows_each
    col_groups[col_order] = np.arange(n) // cols_each
    allowed = np.eye(n_groups, dtype=bool)
    return _simulate((rows, cols), (row_groups, col_groups, allowed), (m, n), rank, noise, rng, "make_blocks")


def make_low_rank(
    shape: tuple[int, int] = (60, 40),
    rank: int = 2,
    n_draws: int | None = None,
    *,
    sampling: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    noise: float = 0.0,
    random_state: int = 0,
) -> Simulation:
    """Draws, with replacement, from a truth of rank ``rank`` with entries in [-1, 1].

    Parameters
    ----------
    n_draws : defaults to half as many draws as there are cells.
    sampling : where draws fall. None for uniform; an m x n array of weights for any distribution; a pair (row
        weights, column weights) for a product distribution, which needs nothing of size m x n.
    noise : each draw is y = M*_x + e, e uniform on [-noise, noise]; the truth is scaled to [noise - 1, 1 - noise]
        so that values stay in [-1, 1] and E[y | x] = M*_x exactly.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 40), rank=2, n_draws=1000, random_state=0)
    >>> sim.observations.shape, sim.observations.n_draws
    ((60, 40), 1000)
    """
    rng = np.random.default_rng(random_state)
    m, n = shape
    n_draws = (m * n + 1) // 2 if n_draws is None else n_draws
    rows, cols = _draw_cells(shape, n_draws, sampling, rng)
    return _simulate((rows, cols), _support(shape, sampling), shape, rank, noise, rng, "make_low_rank")


def make_pattern(
    pattern: str,
    shape: tuple[int, int] = (40, 40),
    rank: int = 2,
    n_draws: int | None = None,
    *,
    n_groups: int = 2,
    noise: float = 0.0,
    random_state: int = 0,
) -> Simulation:
    """Draws, uniform and with replacement, from a part U of a low-rank truth; U is ``support`` of the result.

    Then mu_max = 1/|U|, and the paper's theorems promise a coverage of |U| (its Corollaries 2 and 3).

    Parameters
    ----------
    pattern : what U is. "blocks": groups of rows that see their own group of columns (the paper's Figure 1);
        "overlapping": the same, where three in ten rows and columns belong to two groups; "half": any half of the
        cells, without structure; "idiosyncratic": each row sees a stretch, of its own place and length, of the
        columns in one random order.
    n_draws : defaults to as many draws as U has cells.
    n_groups : number of groups of the first two patterns.
    noise : as in :func:`make_low_rank`.

    >>> sim = make_pattern("half", (10, 6), n_draws=50)
    >>> sim.observations.n_draws, int(sim.support.sum())
    (50, 30)
    """
    if pattern not in PATTERN_SUPPORTS:
        raise invalid_parameter("make_pattern", "pattern", " or ".join(map(repr, PATTERN_SUPPORTS)), pattern)
    if min(shape) < 1 or not 1 <= n_groups <= min(shape):
        expected = "at least 1 and no more than there are rows and columns"
        raise invalid_parameter("make_pattern", "n_groups", expected, n_groups)
    rng = np.random.default_rng(random_state)
    support = PATTERN_SUPPORTS[pattern](shape, n_groups, rng)
    return _simulate(_draw_uniformly(support, n_draws, rng), support, shape, rank, noise, rng, "make_pattern")


def _simulate(
    cells: tuple[NDArray[np.int64], NDArray[np.int64]],
    support: Support,
    shape: tuple[int, int],
    rank: int,
    noise: float,
    rng: np.random.Generator,
    owner: str,
) -> Simulation:
    """Draws of a random low-rank truth at ``cells``; ``owner`` is named where a parameter is wrong."""
    left, right = _low_rank_truth(shape, rank, noise, rng, owner)
    return Simulation(_observe(*cells, left, right, noise, rng), left, right, *support)


def _support(shape: tuple[int, int], sampling: ArrayLike | tuple[ArrayLike, ArrayLike] | None) -> Support:
    """Where the weights are positive: one group, two on each side for a product, or one for each row and column."""
    m, n = shape
    if sampling is None:
        return np.zeros(m, np.int64), np.zeros(n, np.int64), np.ones((1, 1), dtype=bool)
    if isinstance(sampling, tuple):
        rows, cols = ((np.asarray(weights) > 0).astype(np.int64) for weights in sampling)
        return rows, cols, np.array([[False, False], [False, True]])
    return np.arange(m), np.arange(n), np.asarray(sampling) > 0


def _draw_cells(
    shape: tuple[int, int],
    n_draws: int,
    sampling: ArrayLike | tuple[ArrayLike, ArrayLike] | None,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    m, n = shape
    if sampling is None:
        return rng.integers(m, size=n_draws), rng.integers(n, size=n_draws)
    if isinstance(sampling, tuple):
        rows, cols = (_probabilities(weights, (size,)) for weights, size in zip(sampling, shape, strict=True))
        return rng.choice(m, n_draws, p=rows), rng.choice(n, n_draws, p=cols)
    cells = rng.choice(m * n, n_draws, p=_probabilities(sampling, shape).ravel())
    return cells // n, cells % n


def _probabilities(weights: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all() or array.min() < 0 or array.sum() == 0:
        raise InputError(f"sampling weights must be finite, at least 0, not all 0, and of shape {shape}.")
    return np.asarray(array / array.sum())


def _low_rank_truth(
    shape: tuple[int, int], rank: int, noise: float, rng: np.random.Generator, owner: str
) -> tuple[Array, Array]:
    """Rows of norm at most 1 on both sides, so |M*_x| <= 1 by Cauchy-Schwarz; then room is left for the noise."""
    if rank < 1:
        raise invalid_parameter(owner, "rank", "a whole number of at least 1", rank)
    if not 0 <= noise < 1:
        raise invalid_parameter(owner, "noise", "at least 0 and below 1", noise)
    left, right = (rng.normal(size=(size, rank)) for size in shape)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    return (1 - noise) * rng.uniform(0.5, 1, (shape[0], 1)) * left, right


def _observe(
    rows: NDArray[np.int64],
    cols: NDArray[np.int64],
    left: Array,
    right: Array,
    noise: float,
    rng: np.random.Generator,
) -> Observations:
    values = np.einsum("ta,ta->t", left[rows], right[cols]) + rng.uniform(-noise, noise, len(rows))
    return Observations(rows, cols, np.clip(values, -1, 1), (len(left), len(right)), (-1.0, 1.0))


def _blocks(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    """Groups of sizes that differ by at most one, in random order."""
    rows, cols = (rng.permutation(np.arange(size) % n_groups) for size in shape)
    return rows, cols, np.eye(n_groups, dtype=bool)


def _overlapping(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    """A group for each set of one or two memberships; two such are drawn together if they share one."""
    memberships = [{g} for g in range(n_groups)] + [set(pair) for pair in combinations(range(n_groups), 2)]
    allowed = np.array([[bool(one & other) for other in memberships] for one in memberships])
    axes = []
    for size in shape:
        groups = np.arange(size) % n_groups
        if n_groups > 1:
            n_double = round(SECOND_GROUP * size)
            groups[size - n_double :] = rng.integers(n_groups, len(memberships), size=n_double)
        axes.append(rng.permutation(groups))
    return axes[0], axes[1], allowed


def _half(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    m, n = shape
    chosen = rng.permutation(np.arange(m * n) < (m * n + 1) // 2)
    return np.arange(m), np.arange(n), chosen.reshape(shape)


def _idiosyncratic(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    """Row i sees the columns whose place on a circle lies within its length from its start."""
    m, n = shape
    length, start = rng.integers(1, n + 1, size=(m, 1)), rng.integers(n, size=(m, 1))
    return np.arange(m), np.arange(n), (rng.permutation(n) - start) % n < length


PATTERN_SUPPORTS: dict[str, Callable[[tuple[int, int], int, np.random.Generator], Support]] = {
    "blocks": _blocks,
    "overlapping": _overlapping,
    "half": _half,
    "idiosyncratic": _idiosyncratic,
}
"""The part of the matrix that each pattern of :func:`make_pattern` draws from."""


def _draw_uniformly(
    support: Support, n_draws: int | None, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A pair of groups by how many cells it has, then a row and a column of them."""
    row_groups, col_groups, allowed = support
    row_sizes, col_sizes = (np.bincount(g, minlength=k) for g, k in zip(support[:2], allowed.shape, strict=True))
    cells = (np.outer(row_sizes, col_sizes) * allowed).ravel()
    n_draws = int(cells.sum()) if n_draws is None else n_draws
    pairs = rng.choice(cells.size, n_draws, p=cells / cells.sum())
    of_row, of_col = pairs // allowed.shape[1], pairs % allowed.shape[1]
    return _draw_members(row_groups, row_sizes, of_row, rng), _draw_members(col_groups, col_sizes, of_col, rng)


def _draw_members(
    groups: NDArray[np.int64], sizes: NDArray[np.int64], wanted: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A member of each wanted group, uniformly."""
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(groups, kind="stable")
    return np.asarray(order[starts[wanted] + rng.integers(sizes[wanted])])

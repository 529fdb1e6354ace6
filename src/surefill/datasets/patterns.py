"""Patterns of where a matrix is ever looked at: groups, overlapping groups, any half of it, a habit for each row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from surefill.datasets.synthetic import Simulation, Support, simulate
from surefill.errors import invalid_parameter

SECOND_GROUP = 0.3
"""Share of the rows and columns of overlapping groups that belong to two of them."""


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
    if pattern not in PATTERNS:
        raise invalid_parameter("make_pattern", "pattern", " or ".join(map(repr, PATTERNS)), pattern)
    if min(shape) < 1 or not 1 <= n_groups <= min(shape):
        expected = "at least 1 and no more than there are rows and columns"
        raise invalid_parameter("make_pattern", "n_groups", expected, n_groups)
    rng = np.random.default_rng(random_state)
    support = PATTERNS[pattern](shape, n_groups, rng)
    return simulate(_draw_uniformly(support, n_draws, rng), support, shape, rank, noise, rng, "make_pattern")


def _blocks(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    """Groups of sizes that differ by at most one, in random order."""
    rows, cols = (rng.permutation(np.arange(size) % n_groups) for size in shape)
    return rows, cols, np.eye(n_groups, dtype=bool)


def _overlapping(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    """A group for each set of one or two memberships; two such are drawn together if they share one."""
    memberships = [{g} for g in range(n_groups)] + [set(pair) for pair in combinations(range(n_groups), 2)]
    allowed = np.array([[bool(one & other) for other in memberships] for one in memberships])
    sides = []
    for size in shape:
        side = np.arange(size) % n_groups
        if n_groups > 1:
            n_double = round(SECOND_GROUP * size)
            side[size - n_double :] = rng.integers(n_groups, len(memberships), size=n_double)
        sides.append(rng.permutation(side))
    return sides[0], sides[1], allowed


def _half(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    m, n = shape
    chosen = rng.permutation(np.arange(m * n) < (m * n + 1) // 2)
    return np.arange(m), np.arange(n), chosen.reshape(shape)


def _idiosyncratic(shape: tuple[int, int], n_groups: int, rng: np.random.Generator) -> Support:
    """Row i sees the columns whose place on a circle lies within its length from its start."""
    m, n = shape
    length, start = rng.integers(1, n + 1, size=(m, 1)), rng.integers(n, size=(m, 1))
    return np.arange(m), np.arange(n), (rng.permutation(n) - start) % n < length


PATTERNS: dict[str, Callable[[tuple[int, int], int, np.random.Generator], Support]] = {
    "blocks": _blocks,
    "overlapping": _overlapping,
    "half": _half,
    "idiosyncratic": _idiosyncratic,
}


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

"""Tables of which only two groups are shown, so that what lies between the groups has no support."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from data_folder import DATA
from risk_data import read_gdsc
from surefill import Observations
from surefill.datasets import load_movielens, make_hidden_digits, make_low_rank

HELD_OUT = 0.1
"""Share of the cells within the groups that is held out of everything."""

DRAWN = 100_000
"""Cells drawn to look at where no observation is needed."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Places (rows[t], cols[t]) of a table, and the values there where they are known."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None = None

    def __len__(self):
        return len(self.rows)

    def within(self, chosen):
        return Cells(self.rows[chosen], self.cols[chosen], None if self.values is None else self.values[chosen])


@dataclass(frozen=True, eq=False)
class Table:
    """All that was observed, the groups of rows and columns, and the truth of any cell where it is known.

    The group of a row and that of a column are the same where the two may be shown together.
    """

    observations: Observations
    row_groups: np.ndarray
    col_groups: np.ndarray
    truth_at: Callable | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """What is shown, and four kinds of cells to ask about.

    ``held_out`` are cells drawn like those shown; ``inside`` are cells within the groups that nobody observed;
    ``withheld`` are observed cells between the groups, not shown; ``between`` are any cells between the groups.
    """

    shown: Observations
    held_out: Cells
    inside: Cells
    withheld: Cells
    between: Cells


def split(table, leak, seed):
    """Show what lies within the groups but a tenth, and a share ``leak`` of the observed cells between them."""
    obs, rng = table.observations, np.random.default_rng(100 + seed)
    i, j, values = obs.rows, obs.cols, obs.values
    within = table.row_groups[i] == table.col_groups[j]
    held_out = within & (rng.random(len(i)) < HELD_OUT)
    leaked = ~within & (rng.random(len(i)) < leak)
    shown = (within & ~held_out) | leaked
    a, b = rng.integers(obs.shape[0], size=DRAWN), rng.integers(obs.shape[1], size=DRAWN)
    new = obs.find(a, b) < 0
    drawn = Cells(a[new], b[new], None if table.truth_at is None else table.truth_at(a[new], b[new]))
    tied = table.row_groups[drawn.rows] == table.col_groups[drawn.cols]
    cells = Cells(i, j, values)
    return Split(
        Observations(i[shown], j[shown], values[shown], obs.shape, obs.bounds),
        held_out=cells.within(held_out),
        inside=drawn.within(tied),
        withheld=cells.within(~within & ~leaked),
        between=drawn.within(~tied),
    )


def digits(seed):
    """Images of which half is hidden; seven in ten pixels of either half count as observed."""
    hidden = make_hidden_digits(400, random_state=seed)
    seen = hidden.seen | (~hidden.shown & (np.random.default_rng(seed).random(hidden.truth.shape) < 0.7))
    rows, cols = np.nonzero(seen)
    obs = Observations(rows, cols, hidden.truth[rows, cols], hidden.truth.shape, hidden.observations.bounds)
    lower = np.arange(hidden.truth.shape[1]) >= hidden.truth.shape[1] // 2
    return Table(obs, ~hidden.upper, lower, lambda i, j: hidden.truth[i, j])


@cache
def movielens(edition):
    return load_movielens(edition, DATA)


def at_random(obs, seed):
    """Two groups of rows and of columns, at random."""
    rng = np.random.default_rng(seed)
    return rng.random(obs.shape[0]) < 0.5, rng.random(obs.shape[1]) < 0.5


def by_popularity(obs, seed):
    """Busy people with popular films, the others with the others."""
    counts = np.bincount(obs.rows, minlength=obs.shape[0]), np.bincount(obs.cols, minlength=obs.shape[1])
    return tuple(count > np.median(count) for count in counts)


def by_harshness(obs, seed):
    """Generous people with films of low ratings, harsh ones with films of high ratings."""
    means = [
        np.bincount(lines, obs.values, size) / np.maximum(np.bincount(lines, minlength=size), 1)
        for lines, size in zip((obs.rows, obs.cols), obs.shape, strict=True)
    ]
    return means[0] > np.median(means[0]), means[1] < np.median(means[1])


def grouped(load, how, truth_at=None):
    """A function of the seed: the table that ``load`` gives, in the groups that ``how`` makes."""

    def make(seed):
        obs = load()
        return Table(obs, *how(obs, seed), truth_at)

    return make


@cache
def jester():
    """Ratings of jokes in a table without holes; three in ten count as observed."""
    X = np.loadtxt(DATA / "jester" / "jester-full-7200x100.csv.gz", delimiter=",")
    rows, cols = np.nonzero(np.random.default_rng(5).random(X.shape) < 0.3)
    return Observations(rows, cols, X[rows, cols], X.shape, (-10, 10)), X


def jester_groups(seed):
    obs, X = jester()
    return Table(obs, *at_random(obs, seed), lambda i, j: X[i, j])


@cache
def gdsc():
    return read_gdsc(DATA)


def simulated(shape, share):
    """Rank 3 with a little noise, ``share`` of the cells drawn, in two groups at random."""

    def make(seed):
        n_draws = round(share * shape[0] * shape[1])
        sim = make_low_rank(shape, 3, n_draws, noise=0.1, random_state=seed)
        return Table(sim.observations, *at_random(sim.observations, seed), sim.truth_at)

    return make


def long_tailed(seed, shape=(610, 9724), n_cells=100_836):
    """Cells of a table of which most columns are seen a few times: every column once, then by a power law."""
    rng = np.random.default_rng(7)
    m, n = shape
    row_chance, col_chance = np.exp(rng.normal(0, 1.1, m)), (np.arange(n) + 20.0) ** -1.15
    row_chance, col_chance = row_chance / row_chance.sum(), col_chance / col_chance.sum()
    cells = rng.choice(m, n, p=row_chance) * n + np.arange(n)
    while len(cells) < n_cells:
        more = n_cells - len(cells)
        drawn = rng.choice(m, more, p=row_chance) * n + rng.choice(n, more, p=col_chance)
        cells = np.unique(np.concatenate([cells, drawn]))
    obs = Observations(cells // n, cells % n, rng.normal(size=len(cells)), shape)
    return Table(obs, *at_random(obs, seed))


def overlapping(m, n, n_groups, per_row, second, seed):
    """Shown cells, held-out cells and cells without support of groups of sizes 1, 1/2, 1/3, ...; values are zero.

    Every row sees columns of its own group, and a share ``second`` of the rows also those of a second one.
    """
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, n_groups + 1)
    chance /= chance.sum()
    first, col_groups = rng.choice(n_groups, m, p=chance), rng.choice(n_groups, n, p=chance)
    other = np.where(rng.random(m) < second, rng.choice(n_groups, m, p=chance), first)
    order = np.argsort(col_groups, kind="stable")
    starts = np.searchsorted(col_groups[order], np.arange(n_groups + 1))
    parts = []
    for rows in np.array_split(np.arange(m), max(1, m * per_row // 2_000_000)):
        i = np.repeat(rows, per_row)
        group = np.where(rng.random(len(i)) < 0.5, first[i], other[i])
        place = starts[group] + (rng.random(len(i)) * (starts[group + 1] - starts[group])).astype(np.int64)
        parts.append(np.unique(i * n + order[np.minimum(place, n - 1)]))
    cells = np.concatenate(parts)
    del parts
    held_out = rng.random(len(cells)) < HELD_OUT / 10
    a, b = rng.integers(m, size=DRAWN), rng.integers(n, size=DRAWN)
    free = (first[a] != col_groups[b]) & (other[a] != col_groups[b])
    shown = cells[~held_out]
    obs = Observations(shown // n, shown % n, np.zeros(len(shown)), (m, n), (-1, 1))
    return obs, Cells(cells[held_out] // n, cells[held_out] % n), Cells(a[free], b[free])

"""The data on which risks are compared, each as (seen, test)."""

from __future__ import annotations

import csv
import gzip

import numpy as np

from surefill.data import Observations, split_entries


def coat(folder):
    """Seen where people chose, tested where chance chose; test cells that were also seen are left out."""
    seen, test = (np.loadtxt(folder / "coat" / f"{part}.ascii.gz") for part in ("train", "test"))
    return _observed(seen, seen > 0, (1, 5)), _observed(test, (test > 0) & (seen == 0), (1, 5))


def jester_blocks(folder, n_tested=40_000):
    """A third of the people and a third of the jokes never meet, three times; a quarter of the other cells is seen.

    Tested on cells drawn from all that were not seen.
    """
    X = np.loadtxt(folder / "jester" / "jester-full-7200x100.csv.gz", delimiter=",")
    rng = np.random.default_rng(0)
    people, jokes = rng.permutation(len(X)) % 3, rng.permutation(X.shape[1]) % 3
    seen = (rng.random(X.shape) < 0.25) & (people[:, None] != jokes)
    asked = np.zeros(X.size, dtype=bool)
    asked[rng.choice(np.flatnonzero(~seen), n_tested, replace=False)] = True
    return _observed(X, seen, (-10, 10)), _observed(X, asked.reshape(X.shape), (-10, 10))


def gdsc(folder):
    """Drug responses of cell lines, a random fifth held out."""
    return split_entries(read_gdsc(folder), 0.2, 0)


def read_gdsc(folder):
    """All drug responses of cell lines."""
    with gzip.open(folder / "gdsc" / "IC50_v17.csv.gz", "rt") as file:
        lines = list(csv.reader(file))[1:]
    X = np.array([[float(cell) if cell else np.nan for cell in line[1:]] for line in lines])
    return Observations.from_matrix(X)


def _observed(matrix, where, bounds):
    i, j = np.nonzero(where)
    return Observations(i, j, matrix[i, j], matrix.shape, bounds)

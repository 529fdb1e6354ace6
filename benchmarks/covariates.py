"""Dates and side tables: RMSE and processor seconds with and without them, on cells held out.

folds    the five official folds of MovieLens 100K, with the dates of their cells
large    MovieLens 1M, a random tenth held out, three seeds, with the dates of the held-out cells
cold     a tenth of the films hidden whole, and a tenth of the other cells: with and without kinds and years of films

Give the studies wanted as arguments; all when none is named. ``--rank`` is that of the factors, "auto" by default.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from data_folder import DATA
from surefill.completion import BayesianFactorModel
from surefill.data import Features, Observations, split_entries
from surefill.data.side_tables import join_features
from surefill.io import read_observations

FILES = {"ml-100k": "ml-100k/u.data.gz", "ml-1m": "ml-1m/ratings.dat.gz"}


def ratings(name: str) -> Observations:
    """All ratings with their times."""
    return read_observations(DATA / FILES[name], row=0, col=1, value=2, header=False, bounds=(1, 5), time=3)


def rmse(cells: Observations, predicted: np.ndarray) -> float:
    return float(np.sqrt(np.mean(cells.squared_errors(predicted))))


def show_dates(what: str, train: Observations, test: Observations, rank: int | str) -> tuple[float, float]:
    """Errors of values at no date in particular, and at the dates of the cells."""
    started = time.process_time()
    fitted = BayesianFactorModel(rank=rank).fit(train)
    seconds = time.process_time() - started
    undated, dated = (rmse(test, fitted.at(test.rows, test.cols, times)) for times in (None, test.times))
    print(f"{what}: without dates {undated:.4f}, with {dated:.4f}; rank {fitted.rank}, {seconds:.1f} s", flush=True)
    return undated, dated


def folds(rank: int | str) -> None:
    whole, found = ratings("ml-100k"), []
    for fold in range(5):
        in_test = np.arange(len(whole)) // 20_000 == fold
        found.append(show_dates(f"ml-100k u{fold + 1}", whole.select(~in_test), whole.select(in_test), rank))
    print("ml-100k, mean of five folds: {:.4f} and {:.4f}".format(*np.mean(found, axis=0)))


def large(rank: int | str) -> None:
    whole = ratings("ml-1m")
    found = [show_dates(f"ml-1m, seed {seed}", *split_entries(whole, 0.1, seed), rank) for seed in range(3)]
    print("ml-1m, mean of three seeds: {:.4f} and {:.4f}".format(*np.mean(found, axis=0)))


def films(name: str) -> tuple[np.ndarray, Features]:
    """Ids of the films, and their kinds and years."""
    if name == "ml-100k":
        lines = [line.split("|") for line in (DATA / "ml-100k/u.item").read_text("latin-1").splitlines()]
        kinds = np.array([line[5:24] for line in lines], dtype=float)
        years = [float(line[2][-4:]) if line[2] else np.nan for line in lines]
    else:
        lines = [line.split("::") for line in (DATA / "ml-1m/movies.dat").read_text("latin-1").splitlines()]
        names = sorted({kind for line in lines for kind in line[2].split("|")})
        kinds = np.array([[float(kind in line[2].split("|")) for kind in names] for line in lines])
        years = [float(line[1][-5:-1]) for line in lines]
    ids = np.array([int(line[0]) for line in lines])
    return ids, Features.of({f"kind {k}": kind for k, kind in enumerate(kinds.T)} | {"year": np.array(years)})


def cold(rank: int | str) -> None:
    for name in FILES:
        whole, rng = ratings(name).with_times(None), np.random.default_rng(0)
        hidden = np.isin(whole.cols, rng.choice(whole.shape[1], whole.shape[1] // 10, replace=False))
        held_out = ~hidden & (rng.random(len(whole)) < 0.1)
        train, *tests = whole.select(~hidden & ~held_out), whole.select(held_out), whole.select(hidden)
        ids, features = films(name)
        known = np.isin(ids, whole.col_labels)
        told = join_features(train, 1, ids[known], Features(features.names, features.table[known]))
        for what, cells in (("without", train), ("with", told)):
            started = time.process_time()
            fitted = BayesianFactorModel(rank=rank).fit(cells)
            seconds, errors = time.process_time() - started, [rmse(t, fitted.at(t.rows, t.cols)) for t in tests]
            print(f"{name} {what} a side table: films seen {errors[0]:.4f}, unseen {errors[1]:.4f}; {seconds:.1f} s")


STUDIES = {"folds": folds, "large": large, "cold": cold}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help=f"any of {', '.join(STUDIES)}; all when none is named")
    parser.add_argument("--rank", default="auto")
    given = parser.parse_args()
    for study in given.studies or STUDIES:
        STUDIES[study]("auto" if given.rank == "auto" else int(given.rank))


if __name__ == "__main__":
    main()

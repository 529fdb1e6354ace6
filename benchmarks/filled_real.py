"""The promise on real tables that were seen by choice: Coat, scored at random, and the long tail of MovieLens 100K.

Coat: people rated what they chose; the test is of coats drawn for them at random, so that it measures all cells. The
promise aims at all cells; test cells that were also seen are left out. Ten seeds at three tolerances.

MovieLens 100K: a tenth of the ratings is held out; each kept one counts in proportion to how many cells of its row's
and its column's number of ratings are filled per kept rating held out, which makes their mean one over the filled
cells. "unmatched" is the share of these in whose bands of numbers no rating was held out.

    python benchmarks/filled_real.py --seeds 10
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import risk_data
from data_folder import DATA
from filled import conclude
from surefill import PartialCompleter
from surefill.data import split_entries
from surefill.datasets import load_movielens

DELTA = 0.1
COAT_TOLERANCES = (0.9, 1.1, 1.3)
LEAST_KEPT = 0.3
"""Of Coat at a tolerance of 1.1."""

MOVIELENS_TOLERANCES = (0.6, 0.8, 1.0)
BANDS = 16
"""Rows and columns with 0, 1, 2 to 3, 4 to 7, ... ratings: more than there are."""

ERROR_BARS = 2.0


def coat(seeds):
    """Kept share and error of the random test, for each seed and tolerance."""
    seen, test = risk_data.coat(DATA)
    for seed in range(seeds):
        result = PartialCompleter(COAT_TOLERANCES[0], DELTA, aim="all", random_state=seed).fit(seen).result_
        for tolerance in COAT_TOLERANCES:
            answer = result.at_tolerance(tolerance).answer(test.rows, test.cols)
            loss = test.squared_errors(answer.value)[answer.keep]
            yield tolerance, float(answer.keep.mean()), float(loss.mean()) if len(loss) else 0.0


def movielens(seeds):
    """Filled share, plain and re-weighted error of kept held-out ratings and its standard error."""
    ratings = load_movielens("ml-100k", DATA)
    for seed in range(seeds):
        seen, test = split_entries(ratings, 0.1, 100 + seed)
        result = PartialCompleter(MOVIELENS_TOLERANCES[0], DELTA, aim="unobserved", random_state=seed).fit(seen).result_
        i, j = np.indices(seen.shape).reshape(2, -1)
        unseen = seen.find(i, j) < 0
        i, j = i[unseen], j[unseen]
        for tolerance in MOVIELENS_TOLERANCES:
            at = result.at_tolerance(tolerance)
            filled, answer = at.keeps(i, j), at.answer(test.rows, test.cols)
            loss = test.squared_errors(answer.value)[answer.keep]
            kept = (test.rows[answer.keep], test.cols[answer.keep])
            plain = float(loss.mean()) if len(loss) else 0.0
            yield tolerance, float(filled.mean()), plain, *reweighted(seen, loss, kept, (i[filled], j[filled]))


def reweighted(seen, loss, kept, filled):
    """Mean loss of kept cells, weighted to the filled ones by bands of counts, its error, and the share unmatched."""
    if len(loss) == 0:
        return 0.0, 0.0, 0.0
    counts = (np.bincount(lines, minlength=n) for lines, n in zip((seen.rows, seen.cols), seen.shape, strict=True))
    bands = [np.ceil(np.log2(count + 1)).astype(int) for count in counts]

    def band(cells):
        return bands[0][cells[0]] * BANDS + bands[1][cells[1]]

    held_out, target = (np.bincount(band(cells), minlength=BANDS**2) for cells in (kept, filled))
    weight = (target / np.maximum(held_out, 1))[band(kept)]
    mean = np.average(loss, weights=weight)
    bar = np.sqrt(np.sum((weight * (loss - mean)) ** 2)) / weight.sum()
    return float(mean), float(bar), float(target[held_out == 0].sum() / max(target.sum(), 1))


def report_coat(seeds):
    """Print, and say what was not shown."""
    found = np.array(list(coat(seeds)))
    columns = ("empty", "kept", "least", "error", "largest", "broken")
    print(f"{'Coat, random test':20}{'tol':>6}" + "".join(f"{column:>8}" for column in columns))
    for tolerance in COAT_TOLERANCES:
        _, kept, error = found[found[:, 0] == tolerance].T
        print(
            f"{'':20}{tolerance:6g}{np.mean(kept == 0):8.0%}{kept.mean():8.1%}{kept.min():8.1%}"
            f"{error.sum() / max(np.count_nonzero(kept), 1):8.3f}{error.max():8.3f}{np.mean(error > tolerance):8.0%}"
        )
        if (error > tolerance).any():
            yield f"Coat at {tolerance:g}: broken in {np.mean(error > tolerance):.0%} of the seeds."
        if tolerance == 1.1 and kept.mean() < LEAST_KEPT:
            yield f"Coat at 1.1: {kept.mean():.1%} kept."


def report_movielens(seeds):
    """Print, and say what was not shown."""
    found = np.array(list(movielens(seeds)))
    print(f"\n{'MovieLens 100K':20}{'tol':>6}{'filled':>8}{'plain':>8}{'error of filled':>18}{'unmatched':>11}")
    for tolerance in MOVIELENS_TOLERANCES:
        _, filled, plain, error, bar, unmatched = found[found[:, 0] == tolerance].T
        print(
            f"{'':20}{tolerance:6g}{filled.mean():8.1%}{plain.mean():8.3f}{error.mean():9.3f} +- {bar.mean():.3f}"
            f"{unmatched.mean():11.1%}"
        )
        if (error > tolerance + ERROR_BARS * bar).any():
            yield f"MovieLens 100K at {tolerance:g}: error of the filled {error.max():.3f}, beyond its error bar."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--movielens-seeds", type=int, default=3)
    options = parser.parse_args()
    return conclude([*report_coat(options.seeds), *report_movielens(options.movielens_seeds)])


if __name__ == "__main__":
    sys.exit(main())

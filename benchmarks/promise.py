"""The promise end to end on MovieLens: what was kept, what was promised, and what came of it on the test ratings.

MovieLens 100K with its first official fold, and MovieLens 1M with a random tenth held out.

    python benchmarks/promise.py [--tolerance 0.5] [--only ml-100k]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from surefill import PartialCompleter, metrics
from surefill.data import split_entries
from surefill.datasets import load_movielens

BESIDE = Path(__file__).parents[2] / "shared" / "data"


def load(name):
    folder = os.environ.get("SUREFILL_DATA") or (BESIDE if BESIDE.is_dir() else None)
    if name == "ml-100k":
        return load_movielens(name, folder, fold=1)
    return split_entries(load_movielens(name, folder), 0.1, random_state=0)


def report(name, tolerance, delta):
    base, test = load(name)
    start = time.perf_counter()
    completer = PartialCompleter(tolerance=tolerance, delta=delta).fit(base)
    seconds = time.perf_counter() - start
    i, j = test.rows, test.cols
    result = completer.result_
    answer, (low, high) = result.answer(i, j), result.interval_at(i, j, 0.9)
    errors, kept, risk = test.squared_errors(answer.value), answer.keep, answer.risk
    print(f"{name}, {len(base):,} ratings, tolerance {tolerance:g}, delta {delta:g}: {seconds:.1f} s")
    print(f"  {result.selection.sentence}\n  {result.guarantee.sentence}\n  {result.guarantee.holds_over}")
    error = f"{errors[kept].mean():.4f}" if kept.any() else "none"
    hindsight = metrics.coverage_at_risk(errors, risk, tolerance)
    print(
        f"  on {len(test):,} test ratings: {kept.mean():.1%} kept with mean squared error {error}, all "
        f"{errors.mean():.4f}; the same order, stopped by hindsight, keeps {hindsight:.1%}"
    )
    print(
        f"  area {metrics.normalized_aurc(errors, risk):.3f}; intervals at 0.9 hold "
        f"{metrics.interval_coverage(test.values, low, high):.1%}, mean width {metrics.interval_width(low, high):.2f}"
    )
    print(f"  seconds: {', '.join(f'{stage} {spent:.1f}' for stage, spent in result.timings.items())}", flush=True)
    return float(np.mean(kept))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tolerance", type=float, default=0.5)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--only", choices=["ml-100k", "ml-1m"])
    options = parser.parse_args()
    for edition in [options.only] if options.only else ["ml-100k", "ml-1m"]:
        report(edition, options.tolerance, options.delta)

"""The online game: what a step costs, how regret grows, what one pass over the paper's MovieLens square shows.

    SUREFILL_DATA=... python benchmarks/online.py steps | regret | blocks | movielens [--rounds N]

``movielens`` is users 1..250 x movies 1..250 of ml-100k's u1.base, 5189 ratings, in a random order, as in the paper.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from scipy.stats import spearmanr

from coverage_program import movielens_square
from surefill import FactorModel
from surefill.online import OnlineDualDescent


def decile_errors(confidence: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Mean squared error in each tenth of the cells by rising confidence."""
    order = np.argsort(confidence, kind="stable")
    return np.array([errors[part].mean() for part in np.array_split(order, 10)])


def report_deciles(name: str, confidence: np.ndarray, errors: np.ndarray) -> None:
    deciles = decile_errors(confidence, errors)
    rank = spearmanr(np.arange(10), deciles).statistic
    print(f"{name}: squared error by tenth of confidence {np.round(deciles, 3)}, Spearman {rank:.3f}", flush=True)


def movielens(arguments: argparse.Namespace) -> None:
    base, test = (movielens_square(os.environ["SUREFILL_DATA"], part) for part in (0, 1))
    print(f"{len(base)} ratings to learn from, {len(test)} to test on", flush=True)
    errors = (FactorModel(rank=3).fit(base).at(test.rows, test.cols) - test.values) ** 2
    order = np.random.default_rng(0).permutation(len(base))[: arguments.rounds]
    values = base.unit.to_unit(base.values)
    cap = sum(base.shape) ** -1.5
    game = OnlineDualDescent(
        base.shape, K=0.7, alpha=2.0, theta=1.0, confidence="cube", observations=arguments.observations,
        eta_confidence=0.02 * cap, eta_matrix=1.0, tolerance=1e-6,
    )  # fmt: skip
    start = time.perf_counter()
    for part in np.array_split(order, max(1, len(order) // 250)):
        game.learn_many(base.rows[part], base.cols[part], values[part])
        seconds = time.perf_counter() - start
        print(f"{game.rounds} rounds, {seconds:.0f} s, {seconds / game.rounds:.3f} s a round", flush=True)
        report_deciles("  so far", game.average[test.rows, test.cols], errors)
    counts = np.zeros(base.shape)
    counts[base.rows, base.cols] = 1
    seen = counts.sum(axis=1)[:, None] + counts.sum(axis=0)
    report_deciles("ratings of the row and of the column, for comparison", seen[test.rows, test.cols], errors)
    print(f"mean of the test errors {errors.mean():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["movielens"])
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--observations", choices=["zero", "values"], default="zero")
    arguments = parser.parse_args()
    globals()[arguments.what](arguments)


if __name__ == "__main__":
    main()

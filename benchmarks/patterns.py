"""Simulated truths seen on part of the matrix: does the confidence cover what can be known, and only that?

Rank 3, 200 x 200, as many draws as the support has cells. Coverage against the support's size, the squared error over C
against the tolerance, and the completion's error outside the support, over seeds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from surefill import solve_coverage
from surefill.completion import FactorModel
from surefill.datasets import make_pattern

PATTERNS = ("blocks", "overlapping", "half", "idiosyncratic")
SIZE, RANK, NOISE, TOLERANCE, GAMMA = 200, 3, 0.1, 0.05, 0.3


def run(pattern: str, seed: int) -> dict[str, float]:
    cells = int(make_pattern(pattern, (SIZE, SIZE), rank=RANK, n_draws=10, random_state=seed).support.sum())
    sim = make_pattern(pattern, (SIZE, SIZE), rank=RANK, n_draws=cells, noise=NOISE, random_state=seed)
    start = time.perf_counter()
    found = solve_coverage(sim.observations, gamma=GAMMA, rank=2 * RANK, gap=0.05, random_state=seed)
    seconds = time.perf_counter() - start
    C, support = found.confidence.dense(), sim.support
    error = (FactorModel(rank=RANK).fit(sim.observations).dense() - sim.truth) ** 2
    return {
        "support": cells,
        "coverage": found.coverage / cells,
        "inside": C[support].mean(),
        "outside": C[~support].mean(),
        "error over C": (C * error).sum() / C.sum(),
        "error inside": error[support].mean(),
        "error outside": error[~support].mean(),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    print(f"tolerance {TOLERANCE}, gamma {GAMMA}, rank {2 * RANK}; mean over {seeds} seeds, and the worst")
    failures = 0
    for pattern in PATTERNS:
        table = [run(pattern, seed) for seed in range(seeds)]
        failures += sum(row["coverage"] < 0.9 or row["error over C"] > TOLERANCE for row in table)
        means = {name: float(np.mean([row[name] for row in table])) for name in table[0]}
        print(f"{pattern:>14}  " + "  ".join(f"{name} {value:.3g}" for name, value in means.items()), flush=True)
        lowest, highest = min(row["coverage"] for row in table), max(row["error over C"] for row in table)
        print(f"{'':>14}  least coverage {lowest:.3f} of the support, largest error over C {highest:.4f}", flush=True)
    print(f"{failures} of {seeds * len(PATTERNS)} fell short")


if __name__ == "__main__":
    main()

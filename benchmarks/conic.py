"""Seconds and certified gap of the two conic solvers on two observed blocks with 60% of their cells drawn.

Run with ``python benchmarks/conic.py``. Clarabel is left out where it would take minutes.
"""

from __future__ import annotations

import time

import numpy as np

from surefill.coverage.linear.conic_dual import solve_conic
from surefill.data.observations import Observations
from surefill.spaces import MaxNorm, VersionSpace
from surefill.spaces.conic_model import Attempt, load_cvxpy

GAMMA = 0.16
ATTEMPTS: tuple[Attempt, ...] = (
    ("clarabel", 1e-10),
    ("clarabel", 1e-8),
    ("scs", 1e-5),
    ("scs", 1e-6),
    ("scs", 1e-7),
)


def observe_blocks(size: int, share: float = 0.6, seed: int = 0) -> Observations:
    """Two diagonal blocks of a size x size matrix, with ``share`` of their cells seen once."""
    half = np.arange(size) < size // 2
    cells = np.argwhere(half[:, None] == half[None, :])
    seen = np.random.default_rng(seed).choice(len(cells), round(share * len(cells)), replace=False)
    return Observations(cells[seen, 0], cells[seen, 1], np.zeros(len(seen)), (size, size))


def main() -> None:
    """Print one line per size, solver and accuracy."""
    load_cvxpy()  # its import is not the solvers' time
    print(f"{'rows':>5} {'solver':>9} {'accuracy':>9} {'seconds':>8} {'coverage':>9} {'gap':>9}")
    for size in (10, 20, 40, 60):
        space = VersionSpace(observe_blocks(size), GAMMA**2 / 2, MaxNorm(1.0))
        for solver, accuracy in ATTEMPTS:
            if solver == "clarabel" and size > 40:
                continue
            start = time.perf_counter()
            answer = next(solve_conic(space, GAMMA, ((solver, accuracy),)))
            seconds = time.perf_counter() - start
            coverage = answer.C.sum()
            print(f"{size:5d} {solver:>9} {accuracy:9.0e} {seconds:8.2f} {coverage:9.2f} {answer.gap:9.1e}")


if __name__ == "__main__":
    main()

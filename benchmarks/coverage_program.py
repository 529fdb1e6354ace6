"""Seconds, coverage and certified gap of the factored solver, beside the conic one where that still answers.

Run with ``python benchmarks/coverage_program.py convex square ranks rounds path whole``; MovieLens is looked for at
SUREFILL_DATA, else in shared/data beside the project. All but ``whole``, which takes long, when nothing is named.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from conic import GAMMA, observe_blocks
from data_folder import DATA
from surefill import Observations, solve_coverage
from surefill.completion import FactorModel
from surefill.coverage import Coverage
from surefill.coverage.linear.conic_dual import solve_conic
from surefill.coverage.linear.factored_dual import DualIterate
from surefill.coverage.linear.mixture import FIRST_ADVERSARIES, MixtureSolver
from surefill.datasets import load_movielens
from surefill.reproduction import load_square
from surefill.spaces import MaxNorm, VersionSpace
from surefill.spaces.augmented_lagrangian import Multipliers
from surefill.spaces.separation_oracle import best_responses

MOVIELENS = {"gamma": 0.3, "beta": 0.045}


def convex(sizes: tuple[int, ...] = (40, 60, 100, 160, 250)) -> None:
    """Blocks with 60% of their cells drawn: the factored solver to a gap of 1%, and SCS at its first accuracy."""
    print(
        f"{'rows':>5} {'K':>4} {'factored':>9} {'coverage':>9} {'upper':>9} {'gap':>7} {'SCS':>8} {'coverage':>9} ratio"
    )
    for size in sizes:
        for K in (1.0, 1.5):
            obs = observe_blocks(size)
            start = time.perf_counter()
            found = solve_coverage(obs, K, gamma=GAMMA, method="factored", gap=0.01)
            seconds = time.perf_counter() - start
            line = f"{size:5d} {K:4.1f} {seconds:9.2f} {found.coverage:9.1f} {found.upper_bound:9.1f} {found.gap:7.4f}"
            start = time.perf_counter()
            conic = next(solve_conic(VersionSpace(obs, GAMMA**2 / 2, MaxNorm(K)), GAMMA, (("scs", 1e-5),)))
            slower = time.perf_counter() - start
            print(f"{line} {slower:8.2f} {conic.C.sum():9.1f} {slower / seconds:5.1f}", flush=True)


def square() -> None:
    """The paper's MovieLens square, certified to 2% and to 1%."""
    for gap in (0.02, 0.01):
        start = time.perf_counter()
        found = solve_coverage(load_square(DATA)[0], method="factored", gap=gap, **MOVIELENS)
        print(f"square, gap {gap}: {time.perf_counter() - start:.1f} s {found}", flush=True)


def search(name: str, obs: Observations, rank: int, starts: int, gap: float) -> Coverage:
    """Solve with a rank, then try to break the answer from fresh starts."""
    start, busy = time.perf_counter(), time.process_time()
    found = solve_coverage(obs, rank=rank, gap=gap, **MOVIELENS)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    space = VersionSpace(obs, MOVIELENS["beta"], MaxNorm(1.0, rank))
    rng = np.random.default_rng(12345)
    means = [one.mean for _ in range(starts // 5) for one in best_responses(space, found.confidence, starts=5, rng=rng)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name} rank {rank}: {seconds:.1f} s ({busy:.1f} of one core), {found}, "
        f"{found.status.name}, {found.confidence.count} adversaries; "
        f"{starts} fresh starts reach {max(means) / found.gamma:.4f} gamma; peak {peak:.2f} GB",
        flush=True,
    )
    return found


def ranks() -> None:
    """The square at several ranks: coverage falls towards that of the convex class, and error falls with C."""
    base, test = load_square(DATA)
    errors = test.squared_errors(FactorModel().fit(base).at(test.rows, test.cols))
    for rank in (12, 4):
        C = search("square", base, rank, 50, 0.01).confidence.at(test.rows, test.cols)
        sure, unsure = errors[C > 0.5].mean(), errors[C < 0.1].mean()
        print(f"  squared error on u1.test: {sure:.3f} where C > 0.5, {unsure:.3f} where C < 0.1", flush=True)


SIZES, RANKS = ((200, 300), (400, 600), (1000, 1500), (2000, 3000), (4000, 6000)), (2, 4, 8, 16, 32)


def rounds() -> None:
    """Seconds and a picture of one evaluation of the smoothed dual by cells and rank: 12 adversaries, 5% of cells."""
    print(f"{'cells':>10} {'rank':>5} {'seconds':>9} {'ns per cell and rank':>21}")
    seconds = {}
    for m, n in SIZES:
        rng = np.random.default_rng(0)
        cells = rng.choice(m * n, m * n // 20, replace=False)
        obs = Observations(cells // n, cells % n, np.zeros(len(cells)), (m, n))
        for rank in RANKS:
            seconds[m * n, rank] = evaluation_seconds(VersionSpace(obs, 0.045, MaxNorm(1.0, rank)), rng)
            each = 1e9 * seconds[m * n, rank] / (m * n * rank * 12)
            print(f"{m * n:10d} {rank:5d} {seconds[m * n, rank]:9.4f} {each:21.3f}", flush=True)
    draw_costs(seconds)


def evaluation_seconds(space: VersionSpace, rng: np.random.Generator) -> float:
    """The median of five evaluations with their gradients."""
    solver = MixtureSolver(space, 0.3, 0.01, rng, np.inf, None)
    stage = solver.stage(FIRST_ADVERSARIES)
    iterate = DualIterate(stage.spheres.random(rng), Multipliers.zeros(FIRST_ADVERSARIES))
    point, dual = stage.spheres.point(iterate.variables), solver.dual(iterate)
    taken = []
    for _ in range(6):
        start = time.perf_counter()
        stage.value_of_many(iterate.multipliers, dual, point)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken[1:]))


def draw_costs(seconds: dict[tuple[int, int], float], path: str = "docs/cost_per_round.png") -> None:
    """Both scalings on logarithmic axes, with a line of slope 1 beside each."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = np.array([m * n for m, n in SIZES])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for rank, mark in zip(RANKS, "osD^v", strict=True):
        left.loglog(cells, [seconds[c, rank] for c in cells], marker=mark, label=f"rank {rank}")
    for c, mark in zip(cells, "osD^v", strict=True):
        right.loglog(RANKS, [seconds[c, rank] for rank in RANKS], marker=mark, label=f"{c:,} cells")
    left.loglog(cells, seconds[cells[2], 16] * 2 * cells / cells[2], "k:", label="slope 1")
    right.loglog(RANKS, seconds[cells[2], 16] / 8 * np.array(RANKS), "k:", label="slope 1")
    left.set(xlabel="cells", ylabel="seconds per evaluation", title="linear in cells")
    right.set(xlabel="rank of the 12 adversaries", title="linear in rank beyond a fixed part")
    right.set_xticks(RANKS, map(str, RANKS))
    right.minorticks_off()
    left.set_ylim(top=40 * max(seconds.values()))
    for axes in (left, right):
        axes.legend(fontsize=7, loc="upper left", ncols=2)
        axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=110)
    slope = np.polyfit(np.log(cells), np.log([seconds[c, 16] for c in cells]), 1)[0]
    print(f"log-log slope in cells at rank 16: {slope:.2f}; picture in {path}", flush=True)


def path(gammas: tuple[float, ...] = (0.24, 0.26, 0.28, 0.3, 0.32, 0.34, 0.36, 0.4)) -> None:
    """The square over a path of tolerances, each answer starting from the last, beside the first one alone."""
    obs, _ = load_square(DATA)
    for rank, gap in ((None, 0.02), (12, 0.02)):
        seconds, answers, last = [], [], None
        for gamma in gammas:
            start = time.perf_counter()
            last = solve_coverage(obs, gamma=gamma, beta=0.045, rank=rank, method="factored", gap=gap, warm_start=last)
            seconds.append(time.perf_counter() - start)
            answers.append(f"{last.coverage / 62500:.3f}")
        start = time.perf_counter()
        solve_coverage(obs, gamma=gammas[-1], beta=0.045, rank=rank, method="factored", gap=gap)
        cold = time.perf_counter() - start
        print(f"path, rank {rank}: coverage {' '.join(answers)}; seconds {' '.join(f'{s:.1f}' for s in seconds)}")
        print(
            f"  {len(gammas)} answers {sum(seconds):.1f} s, the first alone {seconds[0]:.1f} s, the last from nothing "
            f"{cold:.1f} s",
            flush=True,
        )


def whole() -> None:
    """MovieLens 100K whole at rank 12, then 1M whole at rank 8."""
    path = DATA
    search("ml-100k", load_movielens("ml-100k", path, fold=1)[0], 12, 10, 0.02)
    search("ml-1m", load_movielens("ml-1m", path), 8, 5, 0.03)


def main() -> None:
    """Run what was named."""
    parts = {"convex": convex, "square": square, "ranks": ranks, "rounds": rounds, "path": path, "whole": whole}
    for name in sys.argv[1:] or list(parts)[:-1]:
        parts[name]()


if __name__ == "__main__":
    main()

"""The strongest adversary that three factored oracles find in the same time, on the paper's MovieLens square.

Run with ``SUREFILL_DATA=... python benchmarks/oracle.py``. All three treat the ball by the same multipliers. L-BFGS on
spheres is what the package uses; the two others live here only, to be beaten.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from coverage_program import MOVIELENS
from data_folder import DATA
from surefill import solve_coverage
from surefill.reproduction import load_square
from surefill.spaces import MaxNorm, VersionSpace
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.spheres import Point, Spheres
from surefill.spaces.stage import LinearObjective, Stage, one_core_if

SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0)


def member_mean(lagrangian: AugmentedLagrangian, point: Point, C: np.ndarray) -> float:
    """The mean under C of the point, scaled into the version space."""
    left, right = lagrangian.members(point)
    return float(np.sum((C @ right) * left) / C.sum())


def by_lbfgs(stage: Stage, objective: LinearObjective, x: np.ndarray, report: Callable[[Point], bool]) -> None:
    """Stages of L-BFGS on the spheres."""
    multipliers = Multipliers.zeros(1)
    while True:
        x, multipliers, point = stage.run(x, multipliers, objective, 25)
        if report(point):
            return


def by_accelerated_gradient(
    stage: Stage, objective: LinearObjective, x: np.ndarray, report: Callable[[Point], bool]
) -> None:
    """Nesterov's steps with restarts, each followed by the projection that the spheres make trivial."""
    spheres, lagrangian, step, before, best = stage.spheres, stage.lagrangian, 1.0, x, np.inf
    multipliers, momentum, rounds = Multipliers.zeros(1), 1.0, 0
    x = spheres.point(x).on_sphere.ravel()
    before = x
    while True:
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        point = spheres.point(x + (momentum - 1) / following * (x - before))
        value, d_left, d_right = objective(point.left, point.right)
        value = (value + lagrangian.add(multipliers, point, d_left, d_right)) / lagrangian.cells
        if value > best:
            momentum, step = 1.0, step / 2
        else:
            momentum, step = following, step * 1.1
        best = value
        gradient = point.pull_back(d_left, d_right) / lagrangian.cells
        before, x = x, spheres.point(point.on_sphere.ravel() - step * len(gradient) * gradient).on_sphere.ravel()
        rounds += 1
        if rounds % 25 == 0:
            multipliers = lagrangian.update(multipliers, spheres.point(x))
            best = np.inf
            if report(spheres.point(x)):
                return


def solve_rows(gains: np.ndarray, normal: np.ndarray, K: float) -> np.ndarray:
    """max c.u - u'H u / 2 over |u|^2 <= K for every row: eigenvectors of H, then the secular equation by bisection."""
    values, vectors = np.linalg.eigh(normal)
    turned = np.einsum("iab,ia->ib", vectors, gains)
    low, high = np.full(len(gains), 1e-9), np.linalg.norm(gains, axis=1) / np.sqrt(K) + 1e-9
    for _ in range(40):
        middle = (low + high) / 2
        long = np.sum((turned / (np.maximum(values, 0) + middle[:, None])) ** 2, axis=1) > K
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    return np.einsum("iab,ib->ia", vectors, turned / (np.maximum(values, 0) + high[:, None]))


def by_rows(stage: Stage, objective: LinearObjective, x: np.ndarray, report: Callable[[Point], bool]) -> None:
    """Exact row updates in turn (the mixing method): all rows given the columns, then all columns given the rows."""
    spheres, lagrangian, C = stage.spheres, stage.lagrangian, objective.C.astype(float)
    shape, K = spheres.shape, spheres.K
    point = spheres.point(x)
    U, V, ball = point.left.astype(float), point.right.astype(float), 0.0
    beta, stiffness = lagrangian.space.beta, lagrangian.ball_stiffness(1)
    rows, cols, w = lagrangian.rows, lagrangian.cols, lagrangian.weights
    while True:
        for _ in range(3):
            H = np.zeros((shape[0], U.shape[1], U.shape[1]))
            np.add.at(H, rows, 2 * ball * w[:, None, None] * V[cols, :, None] * V[cols, None, :])
            U = solve_rows(objective.factor * C @ V, H, K)
            H = np.zeros((shape[1], U.shape[1], U.shape[1]))
            np.add.at(H, cols, 2 * ball * w[:, None, None] * U[rows, :, None] * U[rows, None, :])
            V = solve_rows(objective.factor * C.T @ U, H, K)
            q = float(w @ np.einsum("xk,xk->x", U[rows], V[cols]) ** 2)
            ball = max(0.0, ball + 0.3 * stiffness * beta * (q / beta - 1))
        if report(spheres.point(spheres.variables(U, V))):
            return


def main() -> None:
    """Print the best mean over gamma against the time given, for a confidence near the optimum."""
    obs, _ = load_square(DATA)
    C = solve_coverage(obs, rank=12, gap=0.1, **MOVIELENS).confidence.dense().astype(np.float32)
    methods = {"L-BFGS on spheres": by_lbfgs, "accelerated": by_accelerated_gradient, "exact rows": by_rows}
    print(f"{'rank':>5} {'oracle':>18} " + " ".join(f"{s:>6.2f} s" for s in SECONDS))
    for rank in (4, 12):
        space = VersionSpace(obs, MOVIELENS["beta"], MaxNorm(1.0, rank))
        for name, method in methods.items():
            print(
                f"{rank:5d} {name:>18} " + " ".join(f"{mean:8.4f}" for mean in race(space, C, rank, method)), flush=True
            )


def race(space: VersionSpace, C: np.ndarray, rank: int, method: Callable[..., None]) -> list[float]:
    """The best mean over gamma that one method has reached at each of the times."""
    stage = Stage(Spheres(space.shape, 1.0, 1, rank, np.float32), AugmentedLagrangian(space))
    objective = LinearObjective(C, space.shape, C.size / float(C.sum()), 1, np.float32)
    start, best, reached = time.perf_counter(), 0.0, []

    def report(point: Point) -> bool:
        nonlocal best
        while len(reached) < len(SECONDS) and time.perf_counter() - start > SECONDS[len(reached)]:
            reached.append(best / MOVIELENS["gamma"])
        best = max(best, member_mean(stage.lagrangian, point, C))
        return len(reached) == len(SECONDS)

    with one_core_if(True):
        method(stage, objective, stage.spheres.random(np.random.default_rng(0)), report)
    return reached


if __name__ == "__main__":
    main()

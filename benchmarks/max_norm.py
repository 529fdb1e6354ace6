"""MaxNormCompletion measured: against the conic program, on MovieLens 100K, and against the trace norm.

Run ``python benchmarks/max_norm.py conic movielens samples``; the last writes ``docs/max_norm_samples.png``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from data_folder import DATA
from surefill import Observations
from surefill.completion import FactorModel, MaxNormCompletion
from surefill.datasets import load_movielens, make_low_rank
from surefill.errors import InputError

SIDE = 200
DENSE_SIDE = round(SIDE ** (2 / 3))
LEVEL = 0.5
DENSE_SHARE = 0.9
DRAWS_PER_ROW = (1, 2, 4, 8, 16, 32, 64)
SEEDS = 2
PICTURE = Path(__file__).parents[1] / "docs" / "max_norm_samples.png"


def conic() -> None:
    """Objective and certified gap next to the semidefinite program, random 30 x 25 problems."""
    print(f"{'noise':>6}{'K':>6}{'factored':>12}{'gap':>10}{'s':>7}{'conic':>12}{'gap':>10}{'s':>7}{'difference':>12}")
    for noise in (0.3, 0.6, 0.9):
        seen = make_low_rank((30, 25), rank=3, n_draws=700, noise=noise, random_state=1).observations
        for K in (0.25, 0.5, 1.0, 1.5):
            found = []
            for method in ("factored", "conic"):
                start = time.perf_counter()
                fit = MaxNormCompletion(K=K, method=method, tol=1e-4).fit(seen)
                found.append((fit.objective, fit.relative_gap, time.perf_counter() - start))
            (a, gap, seconds), (b, *reference) = found
            print(
                f"{noise:6.1f}{K:6.2f}{a:12.3e}{gap:10.1e}{seconds:7.2f}"
                f"{b:12.3e}{reference[0]:10.1e}{reference[1]:7.2f}{(a - b) / b:12.1e}"
            )


def movielens() -> None:
    """Test error and gap on the first fold of MovieLens 100K, next to FactorModel."""
    folder = DATA
    try:
        base, test = load_movielens("ml-100k", folder, fold=1)
    except InputError as error:
        print(f"skipped: {error}")
        return
    models = {
        "FactorModel": FactorModel(),
        "K = 0.5": MaxNormCompletion(K=0.5),
        "K = 1": MaxNormCompletion(K=1.0),
        "K = 1.5": MaxNormCompletion(K=1.5, time_limit=90),
        "K chosen": MaxNormCompletion(time_limit=120),
        "K = 1, rank 10": MaxNormCompletion(K=1.0, rank=10),
        "K = 0.5, centred": MaxNormCompletion(K=0.5, centre=True),
        "K chosen, centred": MaxNormCompletion(centre=True, time_limit=120),
    }
    print(f"{'model':>18}{'K':>7}{'RMSE':>9}{'seconds':>9}{'objective':>11}{'gap':>10}{'width':>7}  status")
    for name, model in models.items():
        start = time.perf_counter()
        fit = model.fit(base)
        seconds = time.perf_counter() - start
        rmse = float(np.sqrt(np.mean((fit.at(test.rows, test.cols) - test.values) ** 2)))
        if isinstance(model, FactorModel):
            print(f"{name:>18}{'':>7}{rmse:9.4f}{seconds:9.1f}")
        else:
            print(
                f"{name:>18}{fit.K:7.2f}{rmse:9.4f}{seconds:9.1f}{fit.objective:11.5f}{fit.relative_gap:10.1e}"
                f"{fit.left.shape[1]:7d}  {fit.status.name}",
                flush=True,
            )


def trace_ball_completion(seen: Observations, tau: float, steps: int = 250) -> np.ndarray:
    """min sum_S w_x (u_x - M_x)^2 over trace-norm(M) <= tau, dense: accelerated projected gradient."""
    weights, values = np.zeros(seen.shape), np.zeros(seen.shape)
    weights[seen.rows, seen.cols], values[seen.rows, seen.cols] = seen.weights, seen.values
    M = before = np.zeros(seen.shape)
    momentum, length = 1.0, 1 / (2 * weights.max())
    for _ in range(steps):
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = M + (momentum - 1) / following * (M - before)
        U, s, Vt = np.linalg.svd(ahead - length * 2 * weights * (ahead - values), full_matrices=False)
        before, M, momentum = M, (U * onto_simplex(s, tau)) @ Vt, following
    return M


def onto_simplex(s: np.ndarray, tau: float) -> np.ndarray:
    """The nearest non-negative vector whose sum is at most tau; ``s`` falls."""
    if s.sum() <= tau:
        return s
    shifts = (np.cumsum(s) - tau) / np.arange(1, len(s) + 1)
    return np.maximum(s - shifts[np.flatnonzero(s > shifts)[-1]], 0)


def max_ball_completion(seen: Observations, K: float) -> np.ndarray:
    return MaxNormCompletion(K=K, tol=3e-3).fit(seen).dense()


def draw_constant(n_draws: int, seed: int) -> Observations:
    """Signs with mean 0.5 everywhere; nine draws of ten fall on the first 34 rows and columns, the others anywhere."""
    rng = np.random.default_rng(seed)
    side = np.where(rng.uniform(size=n_draws) < DENSE_SHARE, DENSE_SIDE, SIDE)
    rows, cols = rng.integers(side), rng.integers(side)
    values = np.where(rng.uniform(size=n_draws) < (1 + LEVEL) / 2, 1.0, -1.0)
    return Observations(rows, cols, values, (SIDE, SIDE), (-1, 1))


def errors(M: np.ndarray) -> tuple[float, float]:
    """Mean squared error over the sampling distribution, and over all cells."""
    misses = (M - LEVEL) ** 2
    dense, everywhere = float(misses[:DENSE_SIDE, :DENSE_SIDE].mean()), float(misses.mean())
    return DENSE_SHARE * dense + (1 - DENSE_SHARE) * everywhere, everywhere


def samples() -> None:
    """The paper's comparison of max-norm and trace norm: a constant truth, each class just large enough for it."""
    methods = {
        "max-norm": lambda seen: max_ball_completion(seen, LEVEL),
        "trace norm": lambda seen: trace_ball_completion(seen, LEVEL * SIDE),
    }
    found = {name: [] for name in methods}
    print(f"{'draws':>7}" + "".join(f"{name + ' (mu)':>18}{'(all cells)':>14}" for name in methods))
    for per_row in DRAWS_PER_ROW:
        for name, complete in methods.items():
            runs = [errors(complete(draw_constant(per_row * SIDE, seed))) for seed in range(SEEDS)]
            found[name].append(np.mean(runs, axis=0))
        print(f"{per_row * SIDE:7d}" + "".join(f"{e[-1][0]:18.4f}{e[-1][1]:14.4f}" for e in found.values()), flush=True)
    draw_picture({name: np.array(e) for name, e in found.items()})


def draw_picture(found: dict[str, np.ndarray]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    draws = np.array(DRAWS_PER_ROW) * SIDE
    for panel, column, title in zip(panels, (0, 1), ("over the sampling distribution", "over all cells"), strict=True):
        for (name, e), style in zip(found.items(), ("o-", "s--"), strict=True):
            panel.loglog(draws, e[:, column], style, label=name)
        panel.set(xlabel="draws", title=title)
        panel.grid(True, which="both", alpha=0.3)
    panels[0].set_ylabel("mean squared error")
    panels[0].legend()
    where = f"{DENSE_SHARE:.0%} of the draws on {DENSE_SIDE} x {DENSE_SIDE}"
    figure.suptitle(f"A constant {SIDE} x {SIDE} matrix seen through noisy signs, {where}")
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    parts = {"conic": conic, "movielens": movielens, "samples": samples}
    for part in sys.argv[1:] or parts:
        parts[part]()

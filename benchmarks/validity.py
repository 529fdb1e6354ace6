"""Does the promise hold? Many draws of truths whose expected squared errors are known, six settings.

Each draw makes a truth, draws cells and values, fits ``PartialCompleter`` and compares its kept set with the truth:
the mean over the kept cells that the model was not fitted on, each weighted by its chance of being held out, of the
expected squared error. The promise is broken where that exceeds the tolerance. Coverage is the weight of the kept
cells among all of these. The oracle has the same predictions and the same cells, knows the expected squared error of
each, and keeps the largest set, in this order, whose mean is at most the tolerance. "plain" is how often a rule without
protection is broken, which keeps as much as the mean over the same calibration cells allows: where it is 0, no rule
could fail, and that the promise holds there says little. A factor below 1 lowers all tolerances, so that it says more.

    python benchmarks/validity.py --draws 500 --jobs 2
    python benchmarks/validity.py --draws 500 --jobs 2 --factor 0.8
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import binom, norm

from surefill import Observations, PartialCompleter
from surefill.completion import BayesianFactorModel
from surefill.guarantee import CalibrationSplit
from surefill.guarantee.calibration_split import calibration_share

SHAPE = (120, 80)
DELTA = 0.1
MOST_BROKEN = 0.13
LEAST_OF_ORACLE = 0.8


@dataclass(frozen=True)
class World:
    """Each cell's chance of being seen, the mean and variance of its values, and a sampler of them."""

    chance: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    draw: Callable[[], np.ndarray]
    bounds: tuple[float, float]


@dataclass(frozen=True)
class Setting:
    make: Callable[[np.random.Generator], World]
    tolerance: float


def low_rank(rng, scale=1.0, rank=2):
    """Entries in [-scale, scale]."""
    left, right = (rng.normal(size=(size, rank)) for size in SHAPE)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    return scale * left @ right.T


def uniform(rng, share=0.7):
    return np.full(SHAPE, share)


def power_law(rng, share=0.6):
    rows, cols = (rng.permutation(np.arange(1, size + 1.0) ** -0.6) for size in SHAPE)
    weight = np.outer(rows, cols)
    return np.minimum(weight * share / weight.mean(), 0.95)


def blocks(rng, share=0.9):
    groups = (rng.integers(2, size=size) for size in SHAPE)
    rows, cols = groups
    return np.where(rows[:, None] == cols[None, :], share, 0.0)


def gaussian_clipped(rng, chance, noise=0.4):
    """y = clip(M + e, -1, 1), e normal."""
    M = low_rank(rng, 0.8)
    sd = np.broadcast_to(noise, SHAPE)
    a, b = (-1 - M) / sd, (1 - M) / sd
    inside = norm.cdf(b) - norm.cdf(a)
    first = norm.cdf(-b) - norm.cdf(a) + M * inside + sd * (norm.pdf(a) - norm.pdf(b))
    second = norm.cdf(-b) + norm.cdf(a) + (M**2 + sd**2) * inside
    second += 2 * M * sd * (norm.pdf(a) - norm.pdf(b)) + sd**2 * (a * norm.pdf(a) - b * norm.pdf(b))
    return World(
        chance(rng), first, second - first**2, lambda: np.clip(M + sd * rng.normal(size=SHAPE), -1, 1), (-1.0, 1.0)
    )


def noise_by_row(rng, chance):
    """y = M + a_i u, u uniform on [-1, 1]; rows differ in a_i."""
    M, a = low_rank(rng, 0.4), rng.uniform(0.1, 0.9, (SHAPE[0], 1))
    return World(
        chance(rng), M, np.broadcast_to(a**2 / 3, SHAPE), lambda: M + a * rng.uniform(-1, 1, SHAPE), (-1.3, 1.3)
    )


def heavy(rng, chance, astray=0.1):
    """y = M + a little noise, but one time in ten anything in the range."""
    M = low_rank(rng, 0.8)

    def draw():
        near = M + rng.uniform(-0.2, 0.2, SHAPE)
        return np.where(rng.random(SHAPE) < astray, rng.uniform(-1, 1, SHAPE), near)

    first = (1 - astray) * M
    second = (1 - astray) * (M**2 + 0.2**2 / 3) + astray / 3
    return World(chance(rng), first, second - first**2, draw, (-1.0, 1.0))


def ratings(rng, chance=None, taste=lambda stars: 0.7):
    """y = 1 + Binomial(4, t), t rising with M; with ``taste``, the chance of being seen depends on the value itself."""
    t = 0.5 + 0.47 * low_rank(rng, 1.0)
    stars = np.arange(1, 6)
    seen = np.array([taste(s) for s in stars])
    given_cell = np.stack([binom.pmf(s - 1, 4, t) for s in stars]) * seen[:, None, None]
    total = given_cell.sum(axis=0)
    mean = np.tensordot(stars, given_cell, 1) / total
    variance = np.tensordot(stars**2, given_cell, 1) / total - mean**2
    steps = np.cumsum(given_cell / total, axis=0)

    def draw():
        return 1.0 + (rng.random(SHAPE)[None] > steps[:4]).sum(axis=0)

    return World(total if chance is None else chance(rng), mean, variance, draw, (1.0, 5.0))


def liked(stars):
    """Five stars are seen nearly always, one star seldom."""
    return 0.15 + 0.2 * (stars - 1)


SETTINGS = {
    "normal noise, cut; uniform": Setting(partial(gaussian_clipped, chance=uniform), 0.16),
    "noise by row; uniform": Setting(partial(noise_by_row, chance=uniform), 0.08),
    "noise by row; blocks": Setting(partial(noise_by_row, chance=blocks), 0.1),
    "heavy; power law": Setting(partial(heavy, chance=power_law), 0.13),
    "ratings; power law": Setting(partial(ratings, chance=power_law), 0.7),
    "ratings; seen if liked": Setting(partial(ratings, taste=liked), 0.6),
}


@dataclass(frozen=True)
class Found:
    """One draw: the mean expected loss of the kept cells, their share, the oracle's, and the loss of the plain rule."""

    error: float
    coverage: float
    oracle: float
    plain_error: float


def run_draw(name: str, factor: float, seed: int) -> Found:
    rng = np.random.default_rng([seed, *name.encode()])
    tolerance, world = factor * SETTINGS[name].tolerance, SETTINGS[name].make(rng)
    rows, cols = np.nonzero(rng.random(SHAPE) < world.chance)
    values = world.draw()[rows, cols]
    seen = Observations(rows, cols, values, SHAPE, world.bounds)
    completer = PartialCompleter(
        tolerance,
        DELTA,
        completion=BayesianFactorModel(rank=3),
        confidence="game",
        aim="observed",
        random_state=seed,
    ).fit(seen)
    share = calibration_share(len(seen))
    train = CalibrationSplit.of(seen, "observed", None, seed).train
    weight = share * world.chance / (1 - (1 - share) * world.chance)
    weight[train.rows, train.cols] = 0.0
    i, j = np.indices(SHAPE).reshape(2, -1)
    risk = (completer.predict(i, j).reshape(SHAPE) - world.mean) ** 2 + world.variance
    kept = completer.keep(i, j).reshape(SHAPE)
    plain = plain_rule(completer.result_).keeps(completer.predict_risk(i, j), completer.predict_confidence(i, j))
    return Found(
        mean_loss(risk, weight, kept),
        float(weight[kept].sum() / weight.sum()),
        oracle_coverage(risk, weight, tolerance),
        mean_loss(risk, weight, plain.reshape(SHAPE)),
    )


def mean_loss(risk, weight, kept):
    """Weighted mean over the kept cells; 0 where there are none."""
    return float(np.average(risk[kept], weights=weight[kept])) if weight[kept].sum() > 0 else 0.0


def plain_rule(result):
    """The selection that keeps as many calibration cells, in order of risk, as have a mean within the tolerance."""
    cells, selection = result.calibration, result.selection
    order = np.argsort(cells.risk, kind="stable")
    order = order[cells.confidence[order] >= selection.floor]
    within = np.flatnonzero(np.cumsum(cells.loss[order]) <= selection.tolerance * np.arange(1, len(order) + 1))
    threshold = cells.risk[order[within[-1]]] if within.size else -np.inf
    return replace(selection, threshold=float(threshold))


def oracle_coverage(risk, weight, tolerance):
    order = np.argsort(risk, axis=None)
    total = np.cumsum(weight.ravel()[order])
    mean = np.cumsum((risk * weight).ravel()[order]) / np.maximum(total, 1e-300)
    allowed = total[(mean <= tolerance) & (total > 0)]
    return float(allowed.max(initial=0.0) / total[-1])


def study(name: str, n_draws: int, pool=None, factor: float = 1.0) -> dict[str, float]:
    draws = list((pool.map if pool else map)(partial(run_draw, name, factor), range(n_draws)))
    tolerance = factor * SETTINGS[name].tolerance
    coverage, oracle = (np.array([getattr(found, field) for found in draws]) for field in ("coverage", "oracle"))
    return {
        "draws": n_draws,
        "broken": float(np.mean([found.error > tolerance for found in draws])),
        "plain": float(np.mean([found.plain_error > tolerance for found in draws])),
        "error": float(np.sum([found.error for found in draws])) / (tolerance * max(np.count_nonzero(coverage), 1)),
        "coverage": float(coverage.mean()),
        "oracle": float(oracle.mean()),
        "of_oracle": float(coverage.mean() / max(oracle.mean(), 1e-300)),
        "empty": float(np.mean(coverage == 0)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", choices=list(SETTINGS), default=list(SETTINGS))
    options = parser.parse_args()
    columns = ("draws", "broken", "plain", "error/tol", "kept", "oracle", "share", "empty", "s")
    print(f"{'setting':28}" + "".join(f"{column:>10}" for column in columns))
    failed = False
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in options.only:
            start = time.perf_counter()
            found = study(name, options.draws, pool, options.factor)
            failed |= found["broken"] > MOST_BROKEN or (options.factor == 1 and found["of_oracle"] < LEAST_OF_ORACLE)
            print(
                f"{name:28}{found['draws']:10d}{found['broken']:10.1%}{found['plain']:10.1%}{found['error']:10.2f}"
                f"{found['coverage']:10.1%}{found['oracle']:10.1%}{found['of_oracle']:10.0%}{found['empty']:10.1%}"
                f"{time.perf_counter() - start:10.0f}",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

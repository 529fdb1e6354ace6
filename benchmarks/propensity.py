"""Models of the chance of being observed: unseen locations, calibration by strata, weighted sums, seconds.

A random 15% of the observed cells, J, is put aside for judging and is seen by no model and no calibration. Of the
others, whose chances p are 0.85 of the true ones, 0.7 / 0.85 go to O1, on which models are fitted, the rest to O2, on
which they are calibrated. Cells outside O1 and O2 are in J with probability (.15 / .85) p / (1 - p).

"nats" is the gain in log likelihood per cell of J over one chance for all; "off" the root mean square of
found / expected - 1 over strata of like chances, the coins' part taken off; "rare" found / expected in columns with at
most two cells in O1. "sum" is the error of the mean over cells outside O1 and O2 from O2 with weights (1 - p) / p,
capped at 50 times their median: of the log odds of the true chance, in its standard deviations, or for Coat of the
rating, whose mean the random test tells. Means over draws; seconds of one.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from data_folder import DATA
from surefill import Observations
from surefill.arrays import Array
from surefill.guarantee import GivenPropensity, MarginalPropensity, calibrate, fit_propensity
from surefill.guarantee.propensity import MOST_LIKELY, Propensity
from surefill.guarantee.propensity.cell_sample import CellSample, CellSampler

JUDGED = 0.15
SHARE = 0.7 / (1 - JUDGED)
LARGEST_WEIGHT = 50.0


class Pattern(NamedTuple):
    name: str
    seen: Observations
    chance: Array | None = None
    published: Array | None = None
    everywhere: float | None = None


def simulated(rng: np.random.Generator, form: str, density: float, shape: tuple[int, int] = (600, 500)) -> Pattern:
    rows, cols = (rng.permutation(1.0 + np.arange(size)) ** -e for size, e in zip(shape, (0.5, 0.9), strict=True))
    logs = np.log(np.outer(rows, cols))
    if form == "factors":
        logs += 0.8 * (rng.standard_normal((shape[0], 3)) @ rng.standard_normal((shape[1], 3)).T)
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = np.minimum(np.exp(middle + logs), MOST_LIKELY) if form == "product" else expit(middle + logs)
        low, high = (middle, high) if chance.mean() < density else (low, middle)
    i, j = np.nonzero(rng.random(shape) < chance)
    return Pattern(f"{form}, {density:.0%}", Observations(i, j, np.zeros(len(i)), shape, (-1, 1)), chance)


def coat() -> Pattern:
    train, test, published = (
        np.loadtxt(DATA / "coat" / f"{part}.ascii.gz") for part in ("train", "test", "propensities")
    )
    (i, j), unseen = np.nonzero(train), (test > 0) & (train == 0)
    return Pattern("Coat", Observations(i, j, train[i, j]), published=published, everywhere=test[unseen].mean())


def movielens(name: str) -> Pattern:
    file, separator = {"ml-100k": ("u.data.gz", "\t"), "ml-1m": ("ratings.dat.gz", "::")}[name]
    with gzip.open(DATA / name / file, "rt") as lines:
        ids = np.array([line.split(separator)[:2] for line in lines], dtype=np.int64)
    rows, cols = (np.unique(column, return_inverse=True)[1] for column in ids.T)
    return Pattern(name, Observations(rows, cols, np.zeros(len(rows))))


def rates_plus_one(first: Observations) -> Propensity:
    """(r_i + 1) (c_j + 1) / (N s), capped: the product of rates."""
    (m, n), size = first.shape, len(first)
    rows, cols = np.bincount(first.rows, minlength=m) + 1, np.bincount(first.cols, minlength=n) + 1
    return GivenPropensity(np.minimum(np.outer(rows / (size + m), cols / (size + n)) * size / SHARE, MOST_LIKELY))


def models(pattern: Pattern, first: Observations, second: Observations) -> Iterator[tuple[str, Propensity, float]]:
    """(name, model, seconds)."""
    yield "product of rates + 1", rates_plus_one(first), 0.0
    for name, fit in (
        ("margins", lambda: MarginalPropensity.of(first, SHARE)),
        ("chosen", lambda: fit_propensity(first, SHARE)),
    ):
        start = time.perf_counter()
        model: Propensity = fit()
        middle = time.perf_counter()
        yield name, model, middle - start
        yield f"{name}, calibrated", calibrate(model, first, second, SHARE), time.perf_counter() - middle
    if pattern.published is not None:
        yield "published", GivenPropensity((1 - JUDGED) * np.minimum(pattern.published, 1.0)), 0.0
    if pattern.chance is not None:
        yield "true chances", GivenPropensity((1 - JUDGED) * pattern.chance), 0.0


def cells_outside(*seen: Observations) -> CellSample:
    m, n = seen[0].shape
    if m * n < 3_000_000:
        return CellSample.whole((m, n), *seen)
    rows, cols = np.bincount(seen[0].rows, minlength=m) + 0.5, np.bincount(seen[0].cols, minlength=n) + 0.5
    return CellSampler.of(rows, cols, 0.5).draw(3_000_000, np.random.default_rng(9)).outside(*seen)


def score(
    model: Propensity, pattern: Pattern, first: Observations, second: Observations, judged: Observations
) -> Array:
    """(nats, off, rare, sum), nan where there is none."""
    cells = cells_outside(first, second)
    count, h, at = 1 / cells.rates, _chance(model, cells.rows, cells.cols), _chance(model, judged.rows, judged.cols)
    mean = len(judged) / count.sum()
    nats = (np.log(at / (1 - at)).sum() + count @ np.log1p(-h)) / len(judged)
    nats -= np.log(mean / (1 - mean)) + count.sum() * np.log1p(-mean) / len(judged)
    edges = np.unique(np.append(np.quantile(at, np.linspace(0, 1, 13)[1:-1]), np.quantile(h, [0.2, 0.4, 0.6, 0.8])))
    expected = np.bincount(np.searchsorted(edges, h), count * h, len(edges) + 1)
    found = np.bincount(np.searchsorted(edges, at), minlength=len(edges) + 1)
    kept = expected > 20
    square = np.average((found[kept] / expected[kept] - 1) ** 2 - 1 / expected[kept], weights=expected[kept])
    rare = np.bincount(first.cols, minlength=first.shape[1]) <= 2
    in_rare = (count * h)[rare[cells.cols]].sum()
    ratio = rare[judged.cols].sum() / in_rare if in_rare > 20 else np.nan
    return np.array([nats, square, ratio, _weighted_sum(model, pattern, first, second)])


def _chance(model: Propensity, rows: Array, cols: Array) -> Array:
    p = model.at(rows, cols)
    return np.minimum(JUDGED / (1 - JUDGED) * p / (1 - p), MOST_LIKELY)


def _weighted_sum(model: Propensity, pattern: Pattern, first: Observations, second: Observations) -> float:
    p = model.at(second.rows, second.cols)
    weights = (1 - p) / p
    weights = np.minimum(weights, LARGEST_WEIGHT * np.median(weights))
    if pattern.chance is not None:
        f, unseen = logit(pattern.chance), np.ones(pattern.chance.shape, dtype=bool)
        for part in (first, second):
            unseen[part.rows, part.cols] = False
        error = np.average(f[second.rows, second.cols], weights=weights) - f[unseen].mean()
        return float(error / f[unseen].std())
    if pattern.everywhere is not None:
        return float(np.average(second.values, weights=weights) - pattern.everywhere)
    return np.nan


def run(draw: Callable[[int], Pattern], seeds: int) -> None:
    """One table: every model on ``seeds`` draws."""
    scores: dict[str, list[Array]] = {}
    times: dict[str, float] = {}
    for seed in range(seeds):
        pattern, rng = draw(seed), np.random.default_rng(1000 + seed)
        part = rng.random(len(pattern.seen))
        judged, second, first = (
            pattern.seen.select(which) for which in (part < JUDGED, (part >= JUDGED) & (part < 0.3), part >= 0.3)
        )
        for name, model, seconds in models(pattern, first, second):
            scores.setdefault(name, []).append(score(model, pattern, first, second, judged))
            times[name] = seconds
    print(f"\n{pattern.name}: {first.shape[0]} x {first.shape[1]}, {len(pattern.seen):,} observed, {seeds} draws")
    print(f"{'model':24}{'nats':>8}  {'off':>6}  {'rare':>5}  {'sum':>7}  seconds")
    for name, found in scores.items():
        nats, square, rare, total = np.mean(found, axis=0)
        off = np.sqrt(max(square, 0))
        print(f"{name:24}{nats:8.3f}  {off:6.1%}  {rare:5.2f}  {total:+7.3f}  {times[name]:7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="coat, ml-100k, ml-1m or simulated")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    forms = [(form, density) for form in ("odds", "product", "factors") for density in (0.03, 0.1, 0.25, 0.6)]
    for name in ("simulated", "coat", "ml-100k", "ml-1m"):
        if options.only not in (None, name):
            continue
        if name == "simulated":
            for form, density in forms:
                run(partial(_draw, form=form, density=density), options.seeds)
        else:
            pattern = coat() if name == "coat" else movielens(name)
            run(lambda _, pattern=pattern: pattern, options.seeds)


def _draw(seed: int, form: str, density: float) -> Pattern:
    return simulated(np.random.default_rng(seed), form, density)


if __name__ == "__main__":
    main()

"""Which cells to ask next: what is kept and how large errors are after batches that each strategy chose.

jester: 500 people drawn from a table without holes; a twentieth of it is seen at first, then 20 batches of a hundredth
of the cells are asked. A quarter of the cells is never shown nor asked, and everything is measured there: "kept" is the
largest share of these cells, in the order of their predicted risks, whose true mean squared error is within the
tolerance that "coverage" was given; "promised" is the share that the library keeps under its own promise at a wider
tolerance, calibrated on cells of the first twentieth alone, which were drawn at random. gdsc: the same with 300 cell
lines; only cells that somebody measured can be asked. "most uncertain" asks the cells of the largest posterior
variance, a whole batch at once. Areas are means over the start and all batches, with the standard error over seeds.

movielens: 150 people of MovieLens 100K whom the model has not met are asked about 10 films each, of a random half of
those that they rated, and their ratings of the other half predicted. "most popular" asks about the films rated most.

speed: 1,000 suggestions on MovieLens 1M; processor seconds, since another job on the machine does not change them.

picture: docs/active.png, a simulated screen in which some cell lines are measured with far less noise than others.

    python benchmarks/active.py [jester gdsc movielens speed picture] [--seeds 10] [--jobs 2]
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from data_folder import DATA
from risk_data import read_gdsc
from surefill import Observations, PartialCompleter
from surefill.completion import BayesianFactorModel
from surefill.datasets import load_movielens

BATCHES, BATCH, START, TEST = 20, 0.01, 0.05, 0.25
TOLERANCES = {"jester": (10.0, 17.0), "gdsc": (0.6, 3.0)}
CAMPAIGNS = ("random", "coverage", "variance", "most uncertain")
STRATEGIES = ("coverage", "variance", "risk", "random", "most uncertain")
NEW_PEOPLE, QUESTIONS, FEWEST_RATINGS = 150, 10, 40


def jester(rng):
    X = np.loadtxt(DATA / "jester" / "jester-full-7200x100.csv.gz", delimiter=",")
    return X[rng.choice(len(X), 500, replace=False)], (-10.0, 10.0)


def gdsc(rng):
    seen = read_gdsc(DATA)
    return seen.dense()[rng.choice(seen.shape[0], 300, replace=False)], seen.bounds


def kept_share(risk, loss, tolerance):
    """The largest share, in the order of the risks, whose mean loss is within the tolerance."""
    mean = np.cumsum(loss[np.argsort(risk, kind="stable")]) / np.arange(1, len(loss) + 1)
    within = np.flatnonzero(mean <= tolerance)
    return 0.0 if len(within) == 0 else (within[-1] + 1) / len(loss)


def ask(completer, strategy, candidates, n):
    if strategy != "most uncertain":
        return completer.suggest(n, candidates, strategy)
    chosen = np.argsort(-completer.result_.completion.variance(*candidates), kind="stable")[:n]
    return tuple(side[chosen] for side in candidates)


def campaign(table, strategy, seed):
    """What :func:`measure` says of the start and of each batch."""
    rng = np.random.default_rng(seed)
    truth, bounds = {"jester": jester, "gdsc": gdsc}[table](rng)
    known, draw = np.isfinite(truth), rng.random(truth.shape)
    seen, test = known & (draw < START), known & (draw >= 1 - TEST)
    n, cells = round(BATCH * known.sum()), np.nonzero(test)
    model = BayesianFactorModel(rank=5, max_sweeps=30, random_state=seed)
    completer = PartialCompleter(TOLERANCES[table][0], completion=model, random_state=seed)
    completer.fit(Observations(*np.nonzero(seen), truth[seen], truth.shape, bounds))
    found = [measure(completer, truth, cells, table)]
    for _ in range(BATCHES):
        rows, cols = ask(completer, strategy, np.nonzero(known & ~seen & ~test), n)
        seen[rows, cols] = True
        completer.observe(rows, cols, truth[rows, cols]).refit()
        found.append(measure(completer, truth, cells, table))
    return np.array(found)


def measure(completer, truth, cells, table):
    """Kept, error, promised."""
    result, (tolerance, wide) = completer.result_, TOLERANCES[table]
    answer = result.answer(*cells)
    loss = (answer.value - truth[cells]) ** 2
    promised = result.at_tolerance(wide).selection.keeps(answer.risk, answer.confidence)
    return kept_share(answer.risk, loss, tolerance), loss.mean(), promised.mean()


def campaigns(table, seeds, pool):
    tolerance, wide = TOLERANCES[table]
    print(f"{table}: {BATCHES} batches, {seeds} seeds, tolerance {tolerance:g} for kept and {wide:g} for promised")
    print(
        f"{'':16}" + "".join(f"{name + ', area':>24}{'midway':>9}{'end':>9}" for name in ("kept", "error", "promised"))
    )
    for strategy in CAMPAIGNS:
        found = np.array(list(pool.map(partial(campaign, table, strategy), range(seeds))))
        area, curve = found.mean(axis=1), found.mean(axis=0)
        spread = area.std(axis=0, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.zeros(3)
        line = f"{strategy:16}"
        for k in range(3):
            line += f"{area[:, k].mean():14.4f} +-{spread[k]:7.4f}{curve[BATCHES // 2, k]:9.4f}{curve[-1, k]:9.4f}"
        print(line, flush=True)


def new_people(seed):
    """The squared error, per strategy, of people who were asked 10 films each; None is before any question."""
    rng = np.random.default_rng(seed)
    ratings = load_movielens("ml-100k", DATA)
    counts = np.bincount(ratings.rows, minlength=ratings.shape[0])
    new = np.sort(rng.choice(np.flatnonzero(counts >= FEWEST_RATINGS), NEW_PEOPLE, replace=False))
    theirs = np.isin(ratings.rows, new)
    asked = theirs & (rng.random(len(ratings)) < 0.5)
    pool, test = ratings.select(asked), ratings.select(theirs & ~asked)
    completer = PartialCompleter(0.8, random_state=seed).fit(ratings.select(~theirs))
    popularity = np.bincount(ratings.cols[~theirs], minlength=ratings.shape[1])
    fitted = completer.result_, completer.observations_, completer.asked_
    errors = {"no question": error_of(completer, test)}
    for strategy in (*STRATEGIES, "most popular"):
        if strategy in ("most uncertain", "most popular"):
            variance = completer.result_.completion.variance(pool.rows, pool.cols)
            score = popularity[pool.cols].astype(float) if strategy == "most popular" else variance
            chosen = np.concatenate([best(score, np.flatnonzero(pool.rows == row)) for row in new])
        else:
            candidates = pool.row_names(pool.rows), pool.col_names(pool.cols)
            rows, cols = completer.suggest(QUESTIONS, candidates, strategy, rows=pool.row_names(new))
            chosen = pool.find(pool.row_index(rows), pool.col_index(cols))
        asked_rows, asked_cols = pool.row_names(pool.rows[chosen]), pool.col_names(pool.cols[chosen])
        completer.observe(asked_rows, asked_cols, pool.values[chosen])
        errors[strategy] = error_of(completer, test)
        completer.result_, completer.observations_, completer.asked_ = fitted
    return errors


def best(score, places):
    return places[np.argsort(-score[places], kind="stable")[:QUESTIONS]]


def error_of(completer, test):
    return float(np.mean((completer.result_.values_at(test.rows, test.cols) - test.values) ** 2))


def movielens(seeds, pool):
    found = list(pool.map(new_people, range(seeds)))
    print(f"MovieLens 100K: {NEW_PEOPLE} new people, {QUESTIONS} films each, squared error on the rest, {seeds} seeds")
    against = np.array([errors["random"] for errors in found])
    for name in found[0]:
        errors = np.array([errors[name] for errors in found])
        wins = f"below random's in {int((errors < against).sum())} of {seeds}"
        print(f"{name:20}{errors.mean():8.4f} +-{errors.std(ddof=1) / np.sqrt(seeds):6.4f}  {wins}")


def speed():
    ratings = load_movielens("ml-1m", DATA)
    model = BayesianFactorModel(max_sweeps=2)  # what is suggested then is of no use; what it costs is the same
    completer = PartialCompleter(0.7, completion=model).fit(ratings)
    completer.suggest(1)
    for strategy in ("coverage", "variance", "risk", "random"):
        wall, processor = time.perf_counter(), time.process_time()
        completer.suggest(1000, strategy=strategy)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print(f"1,000 suggestions on MovieLens 1M, {strategy}: {processor:.1f} processor s, {wall:.1f} s", flush=True)


def simulated(seed):
    """A screen of 90 cell lines and 60 drugs, its first batch, and what is never shown."""
    rng = np.random.default_rng(seed)
    lines, drugs = 90, 60
    effect = rng.normal(0, 1, (lines, 3)) @ rng.normal(0, 1, (3, drugs)) / np.sqrt(3) + rng.normal(0, 1, drugs)
    truth = effect + rng.normal(0, 1, (lines, drugs)) * np.where(np.arange(lines) < 30, 0.2, 1.0)[:, None]
    draw = rng.random(truth.shape)
    return np.clip(truth, -5, 5), draw < 0.1, draw >= 0.75


def screen(strategy, batches=8, n=100, tolerance=0.35, seed=0):
    """Kept share and error after each batch, and the batch that each cell was asked in, -1 for those seen at first."""
    truth, seen, test = simulated(seed)
    when, cells = np.where(seen, 0.0, np.nan), np.nonzero(test)
    completer = PartialCompleter(tolerance, confidence="game").fit(
        Observations(*np.nonzero(seen), truth[seen], truth.shape, (-5, 5))
    )
    curve = []
    for batch in range(batches + 1):
        loss = (completer.predict(*cells) - truth[cells]) ** 2
        curve.append((seen.sum(), kept_share(completer.predict_risk(*cells), loss, tolerance), loss.mean()))
        if batch < batches:
            rows, cols = ask(completer, strategy, np.nonzero(~seen & ~test), n)
            seen[rows, cols], when[rows, cols] = True, batch + 1
            completer.observe(rows, cols, truth[rows, cols]).refit()
    return np.array(curve), when


def picture(path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colors = {"coverage": "#1b7837", "variance": "#2166ac", "most uncertain": "#b2182b", "random": "#777777"}
    figure, (table, kept, error) = plt.subplots(1, 3, figsize=(12, 4.2), width_ratios=(1.1, 1, 1))
    for strategy, color in colors.items():
        curve, when = screen(strategy)
        for axes, column in ((kept, 1), (error, 2)):
            axes.plot(curve[:, 0], curve[:, column], color=color, label=strategy, marker="o", markersize=3)
        if strategy == "coverage":
            shown = plt.get_cmap("viridis_r", 9).with_extremes(bad="#f2f2f2")
            image = table.imshow(when, cmap=shown, vmin=-0.5, vmax=8.5, aspect="auto", interpolation="nearest")
            figure.colorbar(image, ax=table, label="batch (0: seen at first)")
    table.axhline(29.5, color="black", linewidth=0.8)
    table.set(title='asked by "coverage"', xlabel="drug", ylabel="cell line (the first 30: little noise)")
    kept.set(title="kept at the tolerance", xlabel="cells observed", ylabel="share of cells", ylim=(0, None))
    error.set(title="error everywhere", xlabel="cells observed", ylabel="mean squared error")
    kept.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", default=["jester", "gdsc", "movielens", "speed"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        for study in options.studies:
            if study in TOLERANCES:
                campaigns(study, options.seeds, pool)
            elif study == "movielens":
                movielens(options.seeds, pool)
            elif study == "picture":
                picture(Path(__file__).parents[1] / "docs" / "active.png")
            else:
                speed()
            print()


if __name__ == "__main__":
    main()

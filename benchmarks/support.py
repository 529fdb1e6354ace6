"""How much is kept where the observations say nothing: tables shown in two groups, and nothing between the groups.

For each table: the share of cells between the groups that are called supported (C at least the floor), without and with
the rule that C is 0 between components of the graph of observed cells; the share that ``PartialCompleter`` with default
settings keeps of observed cells withheld between the groups ("withheld") and of any cells there ("between"), with the
error of the former; and what it keeps of cells held out within the groups ("held out", those in columns shown at least
20 times "often", and "inside", cells that nobody observed). Beside it the same with ``confidence="posterior"``. Shares
are means over seeds, in brackets the largest. ``leak`` is the share of the observed cells between the groups that is
shown after all.

    python benchmarks/support.py [digits movielens-100k movielens-1m jester gdsc simulated auc same times] [--seeds 10]
    python benchmarks/support.py --large        # or: large cost

The posterior takes a minute for each seed of MovieLens 1M and gets 2 seeds there unless --posterior-seeds says
otherwise. Data are looked for at SUREFILL_DATA, else in shared/data beside the project.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.stats import rankdata

import support_tables as tables
from surefill import PartialCompleter
from surefill.confidence import CoverageGame

LEAK = 0.005
OFTEN = 20


@dataclass(frozen=True)
class Setting:
    """A table by seed, and the tolerance: about the error of a full completion, so that support is what limits."""

    name: str
    make: object
    tolerance: float
    posterior_seeds: int | None = None


def movielens_settings(edition, posterior_seeds=None):
    ways = {
        "random groups": tables.at_random,
        "popularity": tables.by_popularity,
        "harshness": tables.by_harshness,
    }
    load = partial(tables.movielens, edition)
    return [Setting(f"{edition} {name}", tables.grouped(load, how), 1.0, posterior_seeds) for name, how in ways.items()]


STUDIES = {
    "digits": [Setting("digits, halves", tables.digits, 8.0)],
    "movielens-100k": movielens_settings("ml-100k"),
    "movielens-1m": movielens_settings("ml-1m", posterior_seeds=2),
    "jester": [Setting("jester random groups", tables.jester_groups, 20.0)],
    "gdsc": [Setting("gdsc random groups", tables.grouped(tables.gdsc, tables.at_random), 2.0)],
    "simulated": [
        Setting("rank 3, 300 x 300", tables.simulated((300, 300), 0.2), 0.05),
        Setting("rank 3, 3000 x 2000", tables.simulated((3000, 2000), 0.02), 0.05),
    ],
}

SHARES = ("withheld", "between", "held_out", "often", "inside")


def kept_shares(keeps, parts, predict=None):
    """The share of each kind of cells that ``keeps`` holds, and the error of the withheld ones among them."""
    shares = {name: mean(keeps(cells.rows, cells.cols)) for name, cells in parts.items()}
    if predict is not None:
        wrong = parts["withheld"].within(keeps(parts["withheld"].rows, parts["withheld"].cols))
        shares["error"] = mean((predict(wrong.rows, wrong.cols) - wrong.values) ** 2) if len(wrong) else np.nan
    return shares


def mean(values):
    return float(np.mean(values)) if len(values) else np.nan


def cells_asked_about(part):
    counts = np.bincount(part.shown.cols, minlength=part.shown.shape[1])
    often = part.held_out.within(counts[part.held_out.cols] >= OFTEN)
    inside = part.inside if part.inside.values is not None else part.inside.within(slice(0, 0))
    return {"withheld": part.withheld, "between": part.between, "held_out": part.held_out, "often": often,
            "inside": inside}  # fmt: skip


def untied(confidence):
    """The same confidence without the rule about components."""
    rows, cols = (np.zeros_like(ids) for ids in (confidence.row_components, confidence.col_components))
    return replace(confidence, row_components=rows, col_components=cols)


def supports(confidence, floor):
    return lambda rows, cols: confidence.at(rows, cols) >= floor


def look(setting, leak, seed, posterior):
    """Shares by method: support without components, support, kept, and kept with the posterior."""
    part = tables.split(setting.make(seed), leak, seed)
    parts = cells_asked_about(part)
    start = time.perf_counter()
    completer = PartialCompleter(setting.tolerance, random_state=seed).fit(part.shown)
    seconds = time.perf_counter() - start
    result = completer.result_
    confidence, floor = result.confidence, result.certificate.floor
    found = {
        "support, components aside": kept_shares(supports(untied(confidence), floor), parts),
        "support": kept_shares(supports(confidence, floor), parts),
        "kept": kept_shares(completer.result_.keeps, parts, completer.result_.values_at) | {"seconds": seconds},
    }
    if posterior:
        start = time.perf_counter()
        other = PartialCompleter(setting.tolerance, confidence="posterior", random_state=seed).fit(part.shown)
        seconds = time.perf_counter() - start
        found["kept, posterior"] = kept_shares(other.result_.keeps, parts, other.result_.values_at) | {
            "seconds": seconds
        }
    return found


def study(settings, options):
    """One line for each table, leak and method."""
    for setting in settings:
        for leak in (0.0, LEAK):
            posterior_seeds = options.posterior_seeds or setting.posterior_seeds or options.seeds
            by_method = {}
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                posterior = seed - options.first_seed < min(posterior_seeds, options.seeds) and not leak
                for method, shares in look(setting, leak, seed, posterior).items():
                    by_method.setdefault(method, []).append(shares)
            for method, runs in by_method.items():
                print(line(setting.name, leak, method, runs), flush=True)


HEADER = (
    f"{'table':<23} {'leak':>5} {'method':<25} {'seeds':>5} {'withheld':>16} {'error':>6} {'between':>16} "
    f"{'held out':>8} {'often':>6} {'inside':>6} {'seconds':>7}"
)


def line(name, leak, method, runs):
    def over(key):
        return np.array([run[key] for run in runs if not np.isnan(run.get(key, np.nan))])

    def share(key):
        values = over(key)
        return "" if not len(values) else f"{values.mean():.1%}"

    def worst(key):
        values = over(key)
        return "" if not len(values) else f"{values.mean():.2%} ({values.max():.2%})"

    def number(key, digits):
        values = over(key)
        return "" if not len(values) else f"{values.mean():.{digits}f}"

    supported = " ".join(f"{share(key):>{width}}" for key, width in (("held_out", 8), ("often", 6), ("inside", 6)))
    return (
        f"{name:<23} {leak:5.1%} {method:<25} {len(runs):5d} {worst('withheld'):>16} {number('error', 2):>6} "
        f"{worst('between'):>16} {supported} {number('seconds', 1):>7}"
    )


def auc(high, low):
    """The chance that a value of the first kind exceeds one of the second, ties counted half."""
    ranks = rankdata(np.concatenate([high, low]))
    return (ranks[: len(high)].sum() - len(high) * (len(high) + 1) / 2) / (len(high) * len(low))


def auc_study(options):
    """Held-out cells against cells between two random groups, ranked by C with and without the rule of components."""
    shown = tables.split(tables.long_tailed(options.first_seed), 0.0, options.first_seed).shown
    seen = np.bincount(shown.cols, minlength=shown.shape[1])
    print(
        f"\nAUC, held out against between (long tail: {np.mean(seen <= 3):.0%} of the columns are seen at most 3 times)"
    )
    print(f"{'table':<23} {'seeds':>5} {'components aside':>16} {'least':>7} {'C':>7} {'least':>7} {'seconds':>7}")
    makers = {
        "ml-100k": tables.grouped(partial(tables.movielens, "ml-100k"), tables.at_random),
        "ml-1m": tables.grouped(partial(tables.movielens, "ml-1m"), tables.at_random),
        "long tail": tables.long_tailed,
    }
    for name, make in makers.items():
        found, seconds = [], []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            part = tables.split(make(seed), 0.0, seed)
            start = time.perf_counter()
            confidence, _ = CoverageGame(random_state=seed).fit(part.shown)
            seconds.append(time.perf_counter() - start)
            found.append([
                auc(each.at(part.held_out.rows, part.held_out.cols), each.at(part.between.rows, part.between.cols))
                for each in (untied(confidence), confidence)
            ])  # fmt: skip
        (aside, tied), least = np.mean(found, axis=0), np.min(found, axis=0)
        print(
            f"{name:<23} {options.seeds:5d} {aside:16.4f} {least[0]:7.4f} {tied:7.4f} {least[1]:7.4f} "
            f"{np.median(seconds):7.2f}",
            flush=True,
        )


def same_study(options, runs=10):
    """Runs with one seed, equal to the bit or not."""
    obs = tables.movielens("ml-100k")
    digests = set()
    for _ in range(runs):
        confidence, _ = CoverageGame().fit(obs)
        digests.add(hashlib.sha256(confidence.dense().tobytes()).hexdigest())
    print(f"\n{runs} runs on ml-100k with one seed: {len(digests)} different result(s)", flush=True)


def times_study(options):
    """Seconds of the confidence alone and of everything, on whole tables."""
    CoverageGame().fit(tables.movielens("ml-100k"))  # compiles
    print("\nseconds on whole tables, tolerance 0.5")
    for edition in ("ml-100k", "ml-1m"):
        obs = tables.movielens(edition)
        alone = []
        for _ in range(3):
            start = time.perf_counter()
            CoverageGame().fit(obs)
            alone.append(time.perf_counter() - start)
        start = time.perf_counter()
        result = PartialCompleter(0.5).fit(obs).result_
        seconds = time.perf_counter() - start
        stages = ", ".join(f"{stage} {spent:.1f}" for stage, spent in result.timings.items())
        print(f"{edition:<8} confidence alone {np.median(alone):.2f}, end to end {seconds:.1f} ({stages})", flush=True)


def large_study(options):
    """100,000 x 100,000 with ten million observations in ten overlapping groups: seconds, memory, AUC."""
    obs, held_out, free = tables.overlapping(100_000, 100_000, 10, 101, 0.2, options.first_seed)
    CoverageGame().fit(tables.movielens("ml-100k"))
    before = peak_gigabytes()
    start, cpu = time.perf_counter(), time.process_time()
    confidence, certificate = CoverageGame(random_state=options.first_seed).fit(obs)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    C = [confidence.at(cells.rows, cells.cols) for cells in (held_out, free)]
    print(
        f"\n100,000 x 100,000, {len(obs):,} observations, 10 groups of sizes 1, 1/2, ..., a fifth of the rows in two: "
        f"{seconds:.0f} s, {cpu:.0f} s of processor time; peak memory {peak_gigabytes():.2f} GB, {before:.2f} GB "
        f"before; AUC {auc(*C):.4f}; supported {np.mean(C[0] >= certificate.floor):.1%} of held-out cells, "
        f"{np.mean(C[1] >= certificate.floor):.1%} of cells in no group of their row",
        flush=True,
    )


def cost_study(options, path="docs/support_cost.png"):
    """Seconds per row and column, 20 observations per row, from 10^4 to 10^6 rows and columns."""
    print(f"\n{'rows + columns':>14} {'observations':>12} {'seconds':>8} {'processor':>9} {'us per line':>11}")
    CoverageGame().fit(tables.movielens("ml-100k"))
    sizes, wall, work = (10_000, 31_600, 100_000, 316_000, 1_000_000), [], []
    for size in sizes:
        obs, *_ = tables.overlapping(size // 2, size // 2, 10, 20, 0.2, options.first_seed)
        start, cpu = time.perf_counter(), time.process_time()
        CoverageGame(random_state=options.first_seed).fit(obs)
        wall.append(time.perf_counter() - start)
        work.append(time.process_time() - cpu)
        print(f"{size:14,} {len(obs):12,} {wall[-1]:8.2f} {work[-1]:9.2f} {1e6 * wall[-1] / size:11.1f}", flush=True)
    draw_cost(np.array(sizes), np.array(wall), np.array(work), path)


def draw_cost(sizes, wall, work, path):
    """Seconds over rows plus columns on logarithmic axes, with a line of slope 1."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    axes.loglog(sizes, work, "s-", label="processor time, all cores")
    axes.loglog(sizes, wall, "o-", label="seconds")
    axes.loglog(sizes, work[0] * sizes / sizes[0], "k:", label="slope 1")
    axes.set(xlabel="rows plus columns, 20 observations per row", ylabel="seconds", title="Cost of CoverageGame")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    slopes = [np.polyfit(np.log(sizes), np.log(each), 1)[0] for each in (wall, work)]
    print(f"log-log slope {slopes[0]:.2f} in seconds, {slopes[1]:.2f} in processor time; picture in {path}", flush=True)


def peak_gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


OTHERS = {"auc": auc_study, "same": same_study, "times": times_study}
LARGE = {"large": large_study, "cost": cost_study}


def main():
    """Run what was named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="study", help=", ".join([*STUDIES, *OTHERS, *LARGE]))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--posterior-seeds", type=int, help="when left out, 2 for MovieLens 1M, else all")
    parser.add_argument("--large", action="store_true", help="also large and cost, some minutes and 3 GB")
    options = parser.parse_args()
    wanted = options.studies or [*STUDIES, *OTHERS]
    wanted += [name for name in LARGE if options.large and name not in wanted]
    unknown = set(wanted) - {*STUDIES, *OTHERS, *LARGE}
    if unknown:
        parser.error(
            f"no study is called {', '.join(sorted(unknown))}; there are {', '.join([*STUDIES, *OTHERS, *LARGE])}"
        )
    # the compilers' seconds belong to no study
    PartialCompleter(1.0).fit(tables.simulated((200, 160), 0.2)(0).observations)
    if any(name in STUDIES for name in wanted):
        seeds = f"{options.first_seed} to {options.first_seed + options.seeds - 1}"
        print(f"seeds {seeds}; shares: mean over seeds (largest)\n{HEADER}", flush=True)
    for name in wanted:
        if name in STUDIES:
            study(STUDIES[name], options)
        else:
            (OTHERS | LARGE)[name](options)


if __name__ == "__main__":
    main()

"""Does the promise about filled cells hold, and how much is filled? Many draws of tables whose every value is known.

Cells of a table are seen with chances by row and column (power laws), or also by value; a ``PartialCompleter`` sees
these alone. The promise is broken where the plain mean of the squared errors of the filled cells, kept and never seen,
exceeds the tolerance. "filled" is their share of the cells never seen; the oracle keeps, in the same order of risks and
with the same predictions, the largest set of true mean within the tolerance, among cells of enough confidence
("oracle") or among all ("of all"). Tolerances are 0.4, 0.6 and 0.8 of the variance. The other ways to choose a set
(:mod:`surefill.guarantee.baselines`) get the same calibration cells, weights and candidates.

    python benchmarks/filled.py --draws 200 --jobs 2 --log build/filled.jsonl

One line per draw is appended to the log; a run that was cut off goes on from there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import filled_tables as tables
from data_folder import DATA
from surefill import Observations, PartialCompleter
from surefill.estimators.evaluation import baselines_at
from surefill.guarantee.plan import exposure

DELTA = 0.1
TOLERANCES = (0.4, 0.6, 0.8)
MOST_BROKEN = 0.13
"""delta and what 200 draws may differ from it: with a chance of 0.1 each, more are broken one time in ten."""

LEAST_OF_ORACLE = 0.6
GAIN = 1.1
"""What is filled, over the best of the other ways at the same promise, in most settings and tolerances."""

BASELINE_DRAWS = 20
"""First draws in which the other ways choose, too, where values play no part in being seen: their means are compared,
and they take half of a draw's time."""

AS_MUCH = 0.002
"""Shares that differ by less are the same: sets that are tested lie half a percent of the cells apart."""


ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Each process computes on one core."""


@dataclass(frozen=True)
class Setting:
    """A table, the share of its cells seen, the exponent of the power laws, and how chances lean towards values."""

    table: str
    share: float
    exponent: float
    factor: float = 1.0
    direction: str = "liked"
    sensitivity: float = 1.0

    @property
    def name(self):
        leaning = "" if self.factor == 1 else f", {self.direction} x{self.factor:g}"
        asked = "" if self.sensitivity == 1 else f", G {self.sensitivity:g}"
        return f"{self.table} {self.share:.0%} ^{self.exponent:g}{leaning}{asked}"


KNOWN = [
    Setting("jester", 0.25, 0.4),
    Setting("jester", 0.1, 0.6),
    Setting("digits", 0.25, 0.4),
    Setting("digits", 0.15, 0.6),
    Setting("gdsc", 0.15, 0.6),
    Setting("gdsc_centred", 0.25, 0.4),
    Setting("rank_3", 0.15, 0.6),
    Setting("rank_3", 0.05, 0.4),
    Setting("long_tailed", 0.03, 0.8),
    Setting("long_tailed", 0.08, 0.6),
]
"""Chances by row and column alone."""


def draw_table(setting, rng):
    """The table, and each cell's chance of being seen."""
    table = getattr(tables, setting.table)(rng)
    shuffled = setting.table != "long_tailed"
    chance = tables.power_law(rng, table.values.shape, setting.share, setting.exponent, shuffled)
    return table, tables.leaning(table, chance, setting.factor, setting.direction)


def run_draw(setting: Setting, seed: int) -> dict:
    """One line of the log."""
    rng = np.random.default_rng([seed, *setting.name.encode()])
    table, chance = draw_table(setting, rng)
    seen = rng.random(chance.shape) < chance
    rows, cols = np.nonzero(seen)
    variance = float(table.values.var())
    observations = Observations(rows, cols, table.values[seen], seen.shape, table.bounds)
    asked = {"sensitivity": setting.sensitivity, "random_state": seed}
    result = PartialCompleter(TOLERANCES[0] * variance, DELTA, **asked).fit(observations).result_
    cells = Unseen.of(result, table.values, ~seen)
    compare = setting.factor == 1 and seed < BASELINE_DRAWS
    found = [score(result.at_tolerance(part * variance), cells, compare) for part in TOLERANCES]
    return {"setting": setting.name, "seed": seed, "seen": len(rows), "at": dict(zip(TOLERANCES, found, strict=True))}


@dataclass(frozen=True, eq=False)
class Unseen:
    """The cells never seen in rising order of risk, with what does not depend on the tolerance, computed once."""

    i: np.ndarray
    j: np.ndarray
    risk: np.ndarray
    confidence: np.ndarray
    loss: np.ndarray
    weight: np.ndarray
    largest_loss: np.ndarray

    @classmethod
    def of(cls, result, values, unseen):
        i, j = np.nonzero(unseen)
        answer = result.answer(i, j)
        loss, largest = (answer.value - values[i, j]) ** 2, result.loss.largest_at(answer.value)
        columns = i, j, answer.risk, answer.confidence, loss, result.weights.at(i, j), largest
        order = np.argsort(answer.risk, kind="stable")
        return cls(*(column[order] for column in columns))


def score(result, cells, compare):
    """What was filled at one tolerance, against the truth, beside the oracle and, to ``compare``, the other ways."""
    risk, confidence, loss, selection = cells.risk, cells.confidence, cells.loss, result.selection
    tolerance = selection.tolerance
    kept = selection.keeps(risk, confidence, exposure(cells.weight, cells.largest_loss, tolerance))
    supported = confidence >= selection.floor - 1e-5
    others = {}
    for outcome in baselines_at(result, cells.i, cells.j) if compare else ():
        name = outcome.name.replace("learn-then-test", "LTT").replace("conformal risk control", "CRC")
        others[name + ("" if outcome.same_promise else " own")] = [
            outcome.share,
            relative_error(loss, outcome.kept, tolerance),
        ]
    return {
        "promised": bool(result.guarantee.promised),
        "survives": result.guarantee.sensitivity,
        "filled": float(kept.mean()),
        "error": relative_error(loss, kept, tolerance),
        "oracle": oracle(risk, loss, supported, tolerance),
        "oracle_of_all": oracle(risk, loss, np.ones(len(loss), bool), tolerance),
        "others": others,
    }


def relative_error(loss, kept, tolerance):
    """Mean over the kept cells as a share of the tolerance; 0 where there are none."""
    return float(loss[kept].mean() / tolerance) if kept.any() else 0.0


def oracle(risk, loss, allowed, tolerance):
    """Largest share, in the order of the risks, whose true mean is within the tolerance."""
    lost = loss[allowed][np.argsort(risk[allowed], kind="stable")]
    within = np.flatnonzero(np.cumsum(lost) <= tolerance * np.arange(1, len(lost) + 1))
    return (within[-1] + 1) / len(loss) if within.size else 0.0


def read_log(path: Path) -> list[dict]:
    """All whole lines."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def run(settings, n_draws, jobs, path):
    """Do what the log does not hold yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(line["setting"], line["seed"]) for line in read_log(path)}
    todo = [(s, seed) for seed in range(n_draws) for s in settings if (s.name, seed) not in done]
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    if path.exists() and not path.read_text().endswith("\n"):
        path.write_text(path.read_text() + "\n")
    with path.open("a") as log, ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        draws = [pool.submit(run_draw, *each) for each in todo]
        try:
            for finished in as_completed(draws):
                log.write(json.dumps(finished.result()) + "\n")
                log.flush()
        finally:
            # A draw that failed is told now, not after all the others.
            pool.shutdown(wait=False, cancel_futures=True)


def summarise(lines, tolerance):
    """Means over the draws of a setting at one tolerance."""
    found = [line["at"][str(tolerance)] for line in lines]
    promised = [each for each in found if each["promised"]]
    filled, oracle_, of_all = (np.mean([each[key] for each in found]) for key in ("filled", "oracle", "oracle_of_all"))
    compared = [each["others"] for each in found if each["others"]]
    others = {
        name: {
            "filled": float(np.mean([each[name][0] for each in compared])),
            "broken": float(np.mean([each[name][1] > 1 for each in compared])),
        }
        for name in (compared[0] if compared else {})
    }
    return {
        "draws": len(found),
        "promised": len(promised),
        "broken": float(np.mean([each["error"] > 1 for each in promised])) if promised else 0.0,
        "error": float(np.mean([each["error"] for each in promised])) if promised else 0.0,
        "filled": float(filled),
        "oracle": float(oracle_),
        "oracle_of_all": float(of_all),
        "of_oracle": float(filled / oracle_) if oracle_ > 0 else 1.0,
        "compared": float(np.mean([each["filled"] for each in found if each["others"]])) if compared else 0.0,
        "others": others,
    }


HEAD = "".join(f"{name:>8}" for name in ("draws", "empty", "broken", "err/tol", "filled", "oracle", "share", "of all"))


def print_known(summaries):
    print(f"{'setting':32}{'tol':>5}{HEAD}")
    for (name, tolerance), s in summaries.items():
        print(
            f"{name:32}{tolerance:5g}{s['draws']:8d}{1 - s['promised'] / s['draws']:8.0%}{s['broken']:8.1%}"
            f"{s['error']:8.2f}{s['filled']:8.1%}{s['oracle']:8.1%}{s['of_oracle']:8.0%}{s['oracle_of_all']:8.1%}"
        )


def print_others(summaries):
    names = list(max((s["others"] for s in summaries.values()), key=len))
    print(
        f"\nFilled share and, in brackets, how often the tolerance was exceeded, in the first {BASELINE_DRAWS} draws.\n"
        "LTT is learn-then-test, CRC conformal risk control; 'own' is at a weaker promise of their own, others at ours."
    )
    print(f"{'setting':32}{'tol':>5}{'ours':>8}" + "".join(f"{name:>15}" for name in names))
    for (name, tolerance), s in summaries.items():
        cells = (f"{s['others'][other]['filled']:.1%} ({s['others'][other]['broken']:.0%})" for other in s["others"])
        print(f"{name:32}{tolerance:5g}{s['compared']:8.1%}" + "".join(f"{cell:>15}" for cell in cells))


def failures(summaries):
    """What had to be shown and was not, a sentence each."""
    gains = []
    for (name, tolerance), s in summaries.items():
        where = f"{name} at {tolerance:g}"
        if s["broken"] > MOST_BROKEN:
            yield f"{where}: broken in {s['broken']:.1%} of the draws that promise."
        if s["of_oracle"] < LEAST_OF_ORACLE:
            yield f"{where}: {s['of_oracle']:.0%} of what the oracle keeps is filled."
        if not s["others"]:
            continue
        best = max(other["filled"] for other_name, other in s["others"].items() if "own" not in other_name)
        if s["compared"] < best - AS_MUCH:
            yield f"{where}: another way fills {best:.1%} at the same promise, this library {s['compared']:.1%}."
        gains.append(0 < s["compared"] >= GAIN * best)
    if gains and np.mean(gains) <= 0.5:
        yield f"10% more than the best of the other ways is filled in {np.mean(gains):.0%} of the settings only."


def study(settings, n_draws, jobs, path):
    """Run what the log lacks; for each setting and tolerance, what all draws came to."""
    run(settings, n_draws, jobs, path)
    lines = [line for line in read_log(path) if line["seed"] < n_draws]
    by_setting = {setting.name: [line for line in lines if line["setting"] == setting.name] for setting in settings}
    return {(name, part): summarise(found, part) for name, found in by_setting.items() for part in TOLERANCES}


def parsed(description, draws, settings):
    """Options that all studies with a log have, and the settings asked for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=draws)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path, default=Path("build/filled.jsonl"))
    parser.add_argument("--only", nargs="*", choices=[setting.name for setting in settings])
    options = parser.parse_args()
    if not DATA.is_dir():
        parser.error(f"there is no folder {DATA}: name the one that holds the data sets in SUREFILL_DATA.")
    return options, [setting for setting in settings if not options.only or setting.name in options.only]


def conclude(failed):
    """Print what was not shown; the exit code."""
    print("\n" + "\n".join(failed or ["All that had to be shown was."]))
    return int(bool(failed))


def main() -> int:
    options, chosen = parsed(__doc__, 200, KNOWN)
    summaries = study(chosen, options.draws, options.jobs, options.log)
    print_known(summaries)
    print_others(summaries)
    return conclude(list(failures(summaries)))


if __name__ == "__main__":
    sys.exit(main())

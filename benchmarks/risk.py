"""Which predictions can be trusted: the risk model against other ways to order them, all data in one run.

Every way orders the squared errors of the same predictions, BayesianFactorModel's of rank 20. AURC is the mean, over
k = 1 .. n, of the mean squared error of the k most trusted test entries; beside it the error of the most trusted tenth.
SMURFF lives in an environment of its own: give its Python by ``--smurff``. About a quarter of an hour on one core.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from data_folder import DATA
from risk_baselines import als_risks, conformal_risks, count_risks, ensemble_risk, smurff_risk
from risk_data import coat, gdsc, jester_blocks
from surefill.completion import BayesianFactorModel
from surefill.data import split_entries
from surefill.datasets import load_movielens
from surefill.risk import CrossFit, RiskModel

ALGORITHM = BayesianFactorModel(rank=20)
OURS, RANDOM = "RiskModel", "random order"


def scores(errors, risk):
    """(AURC, error of the most trusted tenth); entries of equal risk are each given their mean error."""
    _, level = np.unique(risk, return_inverse=True)
    mean = (np.bincount(level, errors) / np.bincount(level))[np.sort(level)]
    curve = np.cumsum(mean) / np.arange(1, len(mean) + 1)
    return float(curve.mean()), float(curve[len(mean) // 10 - 1])


def our_risk(base, test):
    """(completion, its squared errors, their risk, seconds to complete and to learn the risk)."""
    start = time.perf_counter()
    completion = ALGORITHM.fit(base)
    fitted = time.perf_counter()
    risk = RiskModel().fit(base, completion, CrossFit(base, ALGORITHM))
    seconds = fitted - start, time.perf_counter() - fitted
    return completion, test.squared_errors(completion.at(test.rows, test.cols)), risk.at(test.rows, test.cols), seconds


def compare(base, test, smurff):
    """Scores by name, and the deciles of our risk."""
    completion, errors, risk, _ = our_risk(base, test)
    risks = {OURS: risk, RANDOM: np.zeros(len(errors)), **count_risks(base, test), **als_risks(base, test)}
    risks["ensemble of 20, variance"] = ensemble_risk(base, test)
    risks |= conformal_risks(base, test, ALGORITHM, completion)
    risks["Bayesian variance"] = completion.variance(test.rows, test.cols)
    by_smurff, own = smurff_risk(smurff, base, test), {}
    if by_smurff is not None:
        predicted, risks["SMURFF variance"] = by_smurff
        own["SMURFF variance, its own predictions"] = scores(test.squared_errors(predicted), by_smurff[1])
    return {name: scores(errors, risk) for name, risk in risks.items()} | own, deciles(errors, risk)


def deciles(errors, risk):
    """Mean risk predicted and mean squared error seen, by tenth of the predicted risk."""
    tenths = np.array_split(np.argsort(risk, kind="stable"), 10)
    return np.array([(risk[t].mean(), errors[t].mean()) for t in tenths])


def show(title, results):
    """Means over the splits of one data set, best first."""
    tables, calibrations = zip(*results, strict=True)
    mean = {name: np.mean([table[name] for table in tables], axis=0) for name in tables[0]}
    print(f"\n{title}\n{'':>40}{'AURC':>10}{'tenth':>10}")
    for name, (area, tenth) in sorted(mean.items(), key=lambda item: item[1][0]):
        print(f"{name:>40}{area:10.4f}{tenth:10.4f}")
    if len(tables) > 1:
        print(f"{'RiskModel by fold':>40}  " + "  ".join("{:.4f}, {:.4f}".format(*table[OURS]) for table in tables))
    best = min(area for name, (area, _) in mean.items() if name != OURS)
    print(f"{OURS} is {1 - mean[OURS][0] / best:.1%} below the best of the others")
    show_deciles(np.mean(calibrations, axis=0))


def show_deciles(table):
    for name, column in zip(("predicted", "seen", "ratio"), (*table.T, table[:, 0] / table[:, 1]), strict=True):
        print(f"{name:>12}" + "".join(f"{number:8.3f}" for number in column), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smurff", help="Python of the environment that has SMURFF")
    smurff = parser.parse_args().smurff
    folder = DATA
    if not folder.is_dir():
        print(f"skipped: there is no {folder}")
        return
    for title, load in (("Coat", coat), ("GDSC", gdsc), ("Jester, blocks hidden", jester_blocks)):
        show(title, [compare(*load(folder), smurff)])
    folds = [load_movielens("ml-100k", folder, fold=fold) for fold in range(1, 6)]
    show("MovieLens 100K, the five official folds", [compare(*fold, smurff) for fold in folds])
    _, errors, risk, seconds = our_risk(*split_entries(load_movielens("ml-1m", folder), 0.1, 0))
    print("\nMovieLens 1M, a random tenth held out: AURC {:.4f}, tenth {:.4f}".format(*scores(errors, risk)))
    print(f"random order {errors.mean():.4f}; {seconds[0]:.1f} s to complete, {seconds[1]:.1f} s to learn the risk")
    show_deciles(deciles(errors, risk))


if __name__ == "__main__":
    main()

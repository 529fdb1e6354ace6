"""The factor models against scikit-surprise's SVD and SVD++, each data set in one run.

MovieLens 100K on its five official folds, and MovieLens 1M with a random tenth held out. Seconds are for training, what
is chosen or searched included. The peer lives in an environment of its own: give its Python by ``--peer``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from data_folder import DATA
from surefill.completion import BayesianFactorModel, FactorModel
from surefill.data import split_entries
from surefill.datasets import load_movielens
from surefill.errors import InputError

PEER = """
import json, sys, time
import numpy as np
import surprise
with np.load(sys.argv[1]) as fold:
    train, test = fold["train"], fold["test"]
data = surprise.Dataset(surprise.Reader(rating_scale=(1, 5)))
trainset = data.construct_trainset([(int(i), int(j), r, None) for i, j, r in train])
start = time.perf_counter()
model = getattr(surprise, sys.argv[2])(random_state=0).fit(trainset)
seconds = time.perf_counter() - start
errors = [model.predict(int(i), int(j)).est - r for i, j, r in test]
print(json.dumps([float(np.sqrt(np.mean(np.square(errors)))), seconds]))
"""

OURS = {
    "FactorModel": FactorModel(),
    "Bayesian": BayesianFactorModel(),
    "Bayesian, rank 20": BayesianFactorModel(rank=20),
}


def triples(observations):
    return np.column_stack([observations.rows, observations.cols, observations.values])


def score_peer(python, name, base, test):
    """(RMSE, seconds) of a peer's model, nothing without a peer."""
    if not python:
        return np.nan, np.nan
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fold.npz"
        np.savez(path, train=triples(base), test=triples(test))
        done = subprocess.run([python, "-c", PEER, str(path), name], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def score(model, base, test):
    """(RMSE, seconds) of one of our models."""
    start = time.perf_counter()
    completion = model.fit(base)
    seconds = time.perf_counter() - start
    return float(np.sqrt(np.mean((completion.at(test.rows, test.cols) - test.values) ** 2))), seconds


def show(title, table):
    print(f"{title:>10}" + "".join(f"{rmse:11.4f}{seconds:9.2f}" for rmse, seconds in table), flush=True)


def compare(title, splits, peer, peer_names):
    """A line for each split and their mean: RMSE and seconds of every model."""
    print(f"\n{title}\n" + " " * 10 + "".join(f"{name:>20}" for name in (*OURS, *peer_names)))
    tables = []
    for number, (base, test) in enumerate(splits, 1):
        ours = [score(model, base, test) for model in OURS.values()]
        tables.append([*ours, *(score_peer(peer, name, base, test) for name in peer_names)])
        show(str(number), tables[-1])
    show("mean", np.mean(tables, axis=0))


def calibrate(base, test):
    """Mean of squared error over predicted variance, overall and in quarters of the variance."""
    completion = BayesianFactorModel().fit(base)
    variance = completion.variance(test.rows, test.cols)
    errors = (completion.at(test.rows, test.cols) - test.values) ** 2
    quarters = np.array_split(np.argsort(variance), 4)
    seen = ", ".join(f"{variance[q].mean():.3f} and {errors[q].mean():.3f}" for q in quarters)
    print(f"variance predicted and squared error seen, by quarter: {seen}; ratio {np.mean(errors / variance):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="Python of the environment that has scikit-surprise")
    peer = parser.parse_args().peer
    folder = DATA
    try:
        folds = [load_movielens("ml-100k", folder, fold=fold) for fold in range(1, 6)]
        large = split_entries(load_movielens("ml-1m", folder), 0.1, 0)
    except InputError as error:
        print(f"skipped: {error}")
        return
    start = time.perf_counter()
    score(BayesianFactorModel(), *folds[0])
    print(f"The first fit in this process, kernels loaded or compiled: {time.perf_counter() - start:.2f} s")
    score(FactorModel(), *folds[0])
    compare("MovieLens 100K, the five official folds: RMSE and seconds", folds, peer, ["SVD"])
    calibrate(*folds[0])
    compare("MovieLens 100K, the first fold", folds[:1], peer, ["SVDpp"])
    compare("MovieLens 1M, a random tenth held out", [large], peer, ["SVD"])
    calibrate(*large)


if __name__ == "__main__":
    main()

"""FactorModel against scikit-surprise's SVD on the five official folds of MovieLens 100K, in one run.

The peer lives in an environment of its own: give its Python by ``--peer``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

import numpy as np

from surefill.completion import FactorModel
from surefill.datasets import load_movielens
from surefill.errors import InputError

PEER = """
import json, sys, time
import numpy as np
from surprise import SVD, Dataset, Reader
with np.load(sys.argv[1]) as fold:
    train, test = fold["train"], fold["test"]
data = Dataset(Reader(rating_scale=(1, 5)))
trainset = data.construct_trainset([(int(i), int(j), r, None) for i, j, r in train])
start = time.perf_counter()
model = SVD(random_state=0).fit(trainset)
seconds = time.perf_counter() - start
errors = [model.predict(int(i), int(j)).est - r for i, j, r in test]
print(json.dumps([seconds, float(np.sqrt(np.mean(np.square(errors))))]))
"""


def triples(observations):
    return np.column_stack([observations.rows, observations.cols, observations.values])


def time_peer(python, base, test, scratch):
    np.savez(scratch, train=triples(base), test=triples(test))
    done = subprocess.run([python, "-c", PEER, str(scratch)], capture_output=True, text=True, check=True)
    scratch.unlink()
    return json.loads(done.stdout)


def time_ours(base, test):
    start = time.perf_counter()
    completion = FactorModel().fit(base)
    seconds = time.perf_counter() - start
    return seconds, float(np.sqrt(np.mean((completion.at(test.rows, test.cols) - test.values) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="Python of the environment that has scikit-surprise")
    peer = parser.parse_args().peer
    folder = os.environ.get("SUREFILL_DATA", Path(__file__).parents[2] / "shared" / "data")
    try:
        folds = [load_movielens("ml-100k", folder, fold=fold) for fold in range(1, 6)]
    except InputError as error:
        print(f"skipped: {error}")
        return
    start = time.perf_counter()
    time_ours(*folds[0])
    print(f"FactorModel's first fit in this process, kernels loaded or compiled: {time.perf_counter() - start:.2f} s")
    print(f"{'fold':>5}{'FactorModel':>14}{'seconds':>9}{'SVD':>9}{'seconds':>9}{'ratio':>7}")
    table = []
    for number, (base, test) in enumerate(folds, 1):
        ours = time_ours(base, test)
        theirs = time_peer(peer, base, test, Path(f".fold{number}.npz")) if peer else (np.nan, np.nan)
        table.append([ours[1], ours[0], theirs[1], theirs[0], theirs[0] / ours[0]])
        print(
            f"{number:>5}{table[-1][0]:14.4f}{table[-1][1]:9.2f}{table[-1][2]:9.4f}{table[-1][3]:9.2f}{table[-1][4]:7.2f}"
        )
    mean = np.mean(table, axis=0)
    print(f"{'mean':>5}{mean[0]:14.4f}{mean[1]:9.2f}{mean[2]:9.4f}{mean[3]:9.2f}{mean[4]:7.2f}")


if __name__ == "__main__":
    main()

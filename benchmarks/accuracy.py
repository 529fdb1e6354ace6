"""Accuracy of the default completion: RMSE and processor seconds next to our own single algorithms and to peers.

tables      eight tables: ``completion="auto"`` and each single algorithm; auto's error and time over the best one's
folds       the five official folds of MovieLens 100K, next to peers
large       MovieLens 1M, a random tenth held out, three seeds, next to peers on the first
gdsc        drug responses, a random tenth held out, next to peers
alike       simulated tables with the shapes, numbers of ratings and scales of Douban and Flixster as usually cut
            (3,000 x 3,000), a random tenth held out, next to our own single algorithms and peers

Peers live in environments of their own: give the Python of one that has myFM by ``--myfm`` and of one that has
scikit-surprise by ``--surprise``. myFM gets one-hot rows and columns and both implicit links, which cells were seen by
rows and by columns, as its examples have them; ``--iterations`` of its Gibbs sampler, rank 16 on MovieLens 100K and 32
elsewhere. Seconds are those of the processor, of training and of all that is chosen in it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from data_folder import DATA
from risk_data import coat, read_gdsc
from scan import power_law_ratings
from surefill.completion import BayesianFactorModel, FactorModel, IterativeSVD, SoftImpute
from surefill.completion.base import completion_words
from surefill.data import Observations, split_entries
from surefill.datasets import load_movielens, make_low_rank

SINGLES = {
    "rank 10": BayesianFactorModel(rank=10),
    "rank 20": BayesianFactorModel(rank=20),
    "rank 40": BayesianFactorModel(rank=40),
    "rank 80": BayesianFactorModel(rank=80),
    "FactorModel": FactorModel(),
    "SoftImpute": SoftImpute(),
    "IterativeSVD": IterativeSVD(),
}
"""The single algorithms: the Bayesian model with a rank given, and the others with what they choose."""

SLOW = {"MovieLens 1M": ("SoftImpute", "IterativeSVD")}
"""Left out where they take ten minutes: with the penalty chosen SoftImpute needs 556 s on MovieLens 1M."""

MYFM = """
import json, resource, sys
import numpy as np, scipy.sparse as sp, myfm
with np.load(sys.argv[1]) as fold:
    train, test = fold["train"], fold["test"]
kind, rank, iterations = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
m, n = (int(max(train[:, k].max(), test[:, k].max())) + 1 for k in (0, 1))
seen = sp.csr_matrix((np.ones(len(train)), (train[:, 0].astype(int), train[:, 1].astype(int))), shape=(m, n))
def scaled(pattern):
    return sp.diags(1 / np.sqrt(np.maximum(np.asarray(pattern.sum(axis=1)).ravel(), 1))) @ pattern
blocks = sp.hstack([sp.eye(m), scaled(seen)], "csr"), sp.hstack([sp.eye(n), scaled(seen.T.tocsr())], "csr")
def relations(cells):
    return [myfm.RelationBlock(cells[:, k].astype(np.int64), block) for k, block in enumerate(blocks)]
shapes = [m, n, n, m]
before = resource.getrusage(resource.RUSAGE_SELF)
if kind == "probit":
    levels = np.unique(train[:, 2])
    model = myfm.MyFMOrderedProbit(rank=rank, random_seed=0)
    y = np.searchsorted(levels, train[:, 2])
else:
    model, y = myfm.MyFMGibbsRegressor(rank=rank, random_seed=0), train[:, 2]
model.fit(None, y, relations(train), n_iter=iterations, n_kept_samples=iterations * 9 // 10, group_shapes=shapes)
after = resource.getrusage(resource.RUSAGE_SELF)
if kind == "probit":
    predicted = model.predict_proba(None, relations(test)) @ levels
else:
    predicted = model.predict(None, relations(test))
low, high = float(sys.argv[5]), float(sys.argv[6])
seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps([float(np.sqrt(np.mean((np.clip(predicted, low, high) - test[:, 2]) ** 2))), seconds]))
"""

SURPRISE = """
import json, sys, time
import numpy as np, surprise
with np.load(sys.argv[1]) as fold:
    train, test = fold["train"], fold["test"]
data = surprise.Dataset(surprise.Reader(rating_scale=(float(sys.argv[5]), float(sys.argv[6]))))
trainset = data.construct_trainset([(int(i), int(j), r, None) for i, j, r in train])
start = time.process_time()
model = getattr(surprise, sys.argv[2])(random_state=0).fit(trainset)
seconds = time.process_time() - start
errors = [model.predict(int(i), int(j)).est - r for i, j, r in test]
print(json.dumps([float(np.sqrt(np.mean(np.square(errors)))), seconds]))
"""


def processor_seconds() -> float:
    """Of this process and all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def score(algorithm, train, test):
    """(RMSE, processor seconds, completion) of one of our algorithms."""
    start = processor_seconds()
    completion = algorithm.fit(train)
    seconds = processor_seconds() - start
    errors = test.squared_errors(completion.at(test.rows, test.cols))
    return float(np.sqrt(np.average(errors, weights=test.counts))), seconds, completion


def score_peer(python, code, arguments, train, test):
    """(RMSE, processor seconds) of a peer, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fold.npz"
        cells = (np.column_stack([each.rows, each.cols, each.values]) for each in (train, test))
        np.savez(path, **dict(zip(("train", "test"), cells, strict=True)))
        command = [python, "-c", code, str(path), *map(str, arguments), *map(str, train.bounds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def hidden(matrix, share, bounds):
    """(seen, test): a random share of a complete matrix is seen, all else is tested."""
    seen = np.random.default_rng(0).random(matrix.shape) < share
    return tuple(Observations(*np.nonzero(part), matrix[part], matrix.shape, bounds) for part in (seen, ~seen))


def simulated(shape, rank, n_draws, noise):
    """A matrix of low rank, tested against its truth at every cell that was not drawn."""
    sim = make_low_rank(shape, rank=rank, n_draws=n_draws, noise=noise, random_state=0)
    i, j = np.nonzero(np.ones(shape))
    i, j = (each[sim.observations.find(i, j) < 0] for each in (i, j))
    return sim.observations, Observations(i, j, sim.truth[i, j], shape, (-1, 1))


def eight_tables():
    """Each as (name, seen, test), made when its turn comes."""
    jester = DATA / "jester" / "jester-full-7200x100.csv.gz"
    yield "MovieLens 100K, fold 1", *load_movielens("ml-100k", DATA, fold=1)
    yield "MovieLens 1M", *split_entries(load_movielens("ml-1m", DATA), 0.1, 0)
    yield "Coat", *coat(DATA)
    yield "Jester, a quarter seen", *hidden(np.loadtxt(jester, delimiter=","), 0.25, (-10, 10))
    yield "drug responses", *split_entries(read_gdsc(DATA), 0.1, 0)
    yield "digits, 30% seen", *hidden(load_digits().data, 0.3, (0, 16))
    yield "simulated, noisy", *simulated((400, 300), 5, 20_000, 0.1)
    yield "simulated, clear", *simulated((500, 400), 3, 40_000, 0.02)


def tables(_):
    """Every choice is made in the fit, on cells held out of the seen ones."""
    BayesianFactorModel().fit(make_low_rank((60, 50), rank=2, n_draws=2000, random_state=0).observations)
    for name, train, test in eight_tables():
        error, seconds, completion = score(BayesianFactorModel(), train, test)
        print(f"\n{name}\n{'auto':>16}{error:10.4f}{seconds:9.2f} s  {completion_words(completion)}", flush=True)
        singles = {}
        for single, algorithm in SINGLES.items():
            if single not in SLOW.get(name, ()):
                singles[single] = score(algorithm, train, test)[:2]
                print(f"{single:>16}{singles[single][0]:10.4f}{singles[single][1]:9.2f} s", flush=True)
        best = min(singles, key=lambda single: singles[single][0])
        ratio, times = error / singles[best][0], seconds / singles[best][1]
        print(f"{'over the best':>16}{ratio:10.4f}{times:9.2f} times, {best}", flush=True)


def against_peers(train, test, rank, given):
    """Ours by default, and the peers that there are."""
    scores = {"surefill": score(BayesianFactorModel(), train, test)[:2]}
    if given.myfm:
        for kind in ("gibbs", "probit") if len(np.unique(train.values)) <= 10 else ("gibbs",):
            arguments = kind, rank, given.iterations
            scores[f"myFM {kind}"] = score_peer(given.myfm, MYFM, arguments, train, test)
    if given.surprise:
        scores["Surprise SVD"] = score_peer(given.surprise, SURPRISE, ("SVD", 0, 0), train, test)
    return scores


def show(title, scores):
    cells = (f"{name} {error:.4f} ({seconds:.1f} s)" for name, (error, seconds) in scores.items())
    print(f"{title:>10}  " + "   ".join(cells), flush=True)


def show_mean(found):
    everywhere = [name for name in found[0] if all(name in scores for scores in found)]
    show("mean", {name: np.mean([scores[name] for scores in found], axis=0) for name in everywhere})


def folds(given):
    found = []
    for fold in range(1, 6):
        found.append(against_peers(*load_movielens("ml-100k", DATA, fold=fold), 16, given))
        show(f"u{fold}", found[-1])
    show_mean(found)


def large(given):
    alone = argparse.Namespace(myfm=None, surprise=None)
    found = []
    for seed in range(3):
        split = split_entries(load_movielens("ml-1m", DATA), 0.1, seed)
        found.append(against_peers(*split, 32, given if seed == 0 else alone))
        show(f"seed {seed}", found[-1])
    show_mean(found)


def gdsc(given):
    show("gdsc", against_peers(*split_entries(read_gdsc(DATA), 0.1, 0), 32, given))


ALIKE = {"Douban": (136_891, 1.0, 1.0), "Flixster": (26_173, 0.5, 0.5)}
"""Ratings of each table of 3,000 x 3,000 cells, the lowest rating and the step of its scale; the highest is 5."""


def alike(given):
    for name, (n_ratings, low, step) in ALIKE.items():
        i, j, score_of = power_law_ratings(3000, 3000, n_ratings, rounded=False)
        values = np.clip(low + step * np.round((score_of - low) / step), low, 5)
        split = split_entries(Observations(i, j, values, (3000, 3000), (low, 5)), 0.1, 0)
        found = against_peers(*split, 16, given)
        found |= {single: score(SINGLES[single], *split)[:2] for single in ("rank 10", "rank 20", "FactorModel")}
        show(name, found)


STUDIES = {"tables": tables, "folds": folds, "large": large, "gdsc": gdsc, "alike": alike}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help=f"any of {', '.join(STUDIES)}; all when none is named")
    parser.add_argument("--myfm", help="Python of the environment that has myFM")
    parser.add_argument("--surprise", help="Python of the environment that has scikit-surprise")
    parser.add_argument("--iterations", type=int, default=200, help="of myFM's sampler, a tenth of them not kept")
    given = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: real data are not at {DATA}; set SUREFILL_DATA")
        return
    for name in given.studies or STUDIES:
        print(f"\n== {name}", flush=True)
        STUDIES[name](given)


if __name__ == "__main__":
    main()

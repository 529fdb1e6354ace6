"""Full completion next to its peers, in one run each.

soft        SoftImpute against fancyimpute's at the same penalty on MovieLens 100K; fancyimpute lives in an
            environment of its own, give its Python by ``--peer``
large       time and peak memory of SoftImpute on MovieLens 1M
conic       TraceNormCompletion against the conic reference on random 30 x 25 problems
gdsc        all algorithms on held-out drug responses, against additive means and scikit-learn's imputers
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from data_folder import DATA
from surefill.completion import (
    BayesianFactorModel,
    ExternalCompletion,
    FactorModel,
    IterativeSVD,
    SoftImpute,
    TraceNormCompletion,
    sample_loss,
)
from surefill.data import Observations, split_entries
from surefill.datasets import load_movielens, make_low_rank

FOLDER = DATA

PEER = """
import json, sys, time
import numpy as np
from fancyimpute import SoftImpute
X = np.load(sys.argv[1])
penalty, threshold, limit = float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
seen = ~np.isnan(X)
model = SoftImpute(penalty, threshold, limit, verbose=False)
start = time.perf_counter()
filled = model.fit_transform(X)
seconds = time.perf_counter() - start
U, s, Vt = np.linalg.svd(filled, full_matrices=False)
s = np.maximum(s - penalty, 0)
M = (U * s) @ Vt
print(json.dumps([seconds, 0.5 * float(np.sum((X - M)[seen] ** 2)) + penalty * float(s.sum()), int((s > 0).sum())]))
"""


def timed(work):
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def soft(peer):
    """fancyimpute keeps no factors: its objective is that of one more of its own steps, which only lowers it.

    It decomposes the whole matrix in every step. Its defaults suffice at penalty 100; at 40 its steps end too early.
    """
    seen = load_movielens("ml-100k", FOLDER)
    SoftImpute(100.0, centre="none").fit(seen)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "ml-100k.npy"
        np.save(scratch, seen.dense())
        compare_soft(seen, scratch, peer)


def compare_soft(seen, scratch, peer):
    print(f"{'penalty':>8} {'solver':<34}{'seconds':>9}{'objective':>14}{'rank':>6}  certified gap, or distance")
    for penalty, peers in ((100.0, [(1e-3, 100)]), (40.0, [(1e-3, 100)]), (20.0, [])):
        found, ours = timed(lambda penalty=penalty: SoftImpute(penalty, centre="none", tol=1e-4).fit(seen))
        best, gap = found.gap.objective, found.gap.relative
        print(
            f"{penalty:8g} {'surefill svd, gap 1e-4':<34}{ours:9.2f}{best:14.3f}{found.rank:6}  {gap:.1e}", flush=True
        )
        for method in ("svd", "als"):
            found, seconds = timed(lambda p=penalty, m=method: SoftImpute(p, method=m, centre="none").fit(seen))
            name = f"surefill {method}, gap 1e-3"
            objective, gap = found.gap.objective, found.gap.relative
            print(f"{penalty:8g} {name:<34}{seconds:9.2f}{objective:14.3f}{found.rank:6}  {gap:.1e}", flush=True)
        for threshold, limit in peers if peer else ():
            arguments = [peer, "-c", PEER, str(scratch), str(penalty), str(threshold), str(limit)]
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
            seconds, objective, rank = json.loads(done.stdout)
            name = f"fancyimpute, {threshold:g}, {limit} steps"
            print(
                f"{penalty:8g} {name:<34}{seconds:9.2f}{objective:14.3f}{rank:6}  "
                f"{objective / best - 1:+.1e} from ours, {seconds / ours:.1f} times as long",
                flush=True,
            )


def large(_):
    """Peak memory is the process's own, measured in a process of its own, the data included."""
    code = (
        "import time, resource, sys\n"
        "from surefill.completion import SoftImpute\nfrom surefill.datasets import load_movielens\n"
        "seen = load_movielens('ml-1m', sys.argv[1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for parameters in ({'penalty': 40.0}, {}):\n"
        "    start = time.perf_counter()\n"
        "    found = SoftImpute(**parameters).fit(seen)\n"
        "    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    print(f'SoftImpute({parameters}) on ml-1m: {time.perf_counter() - start:.1f} s, penalty '\n"
        "          f'{found.penalty:.3g}, rank {found.rank}, gap {found.gap.relative:.1e} ({found.gap.standing}), '\n"
        "          f'peak {peak / 2**20:.2f} GB ({before / 2**20:.2f} GB with the data loaded)', flush=True)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(FOLDER)], check=True)


def conic(_):
    print(
        f"{'seed':>5}{'tau':>6}{'objective':>13}{'conic':>13}{'relative':>10}{'gap':>10}{'seconds':>9}{'conic, s':>9}"
    )
    for seed in range(5):
        seen = make_low_rank((30, 25), rank=2, n_draws=400, noise=0.2, random_state=seed).observations
        for tau in (6.0, 12.0):
            ours, seconds = timed(lambda s=seen, t=tau: TraceNormCompletion(t).fit(s))
            theirs, conic_seconds = timed(lambda s=seen, t=tau: TraceNormCompletion(t, method="conic").fit(s))
            difference = ours.gap.objective / theirs.gap.objective - 1
            print(
                f"{seed:5}{tau:6g}{ours.gap.objective:13.8f}{theirs.gap.objective:13.8f}{difference:10.1e}"
                f"{ours.gap.relative:10.1e}{seconds:9.2f}{conic_seconds:9.2f}"
            )


def read_gdsc():
    with gzip.open(FOLDER / "gdsc" / "IC50_v17.csv.gz", "rt") as file:
        header = file.readline().rstrip("\n").split(",")
        drugs = [k for k, name in enumerate(header) if name.lower().startswith("drug")]
        lines = [line.rstrip("\n").split(",") for line in file]
    matrix = np.array([[float(line[k]) if line[k] not in ("", "NA") else np.nan for k in drugs] for line in lines])
    return Observations.from_matrix(matrix)


def additive_means(seen):
    """Row mean + column mean - mean, each a plain mean of what was seen."""
    i, j, (m, n), mean = seen.rows, seen.cols, seen.shape, seen.values.mean()
    row, col = (
        np.bincount(k, seen.values - mean, size) / np.maximum(np.bincount(k, minlength=size), 1)
        for k, size in ((i, m), (j, n))
    )
    return lambda rows, cols: mean + row[rows] + col[cols]


def gdsc(_):
    """IterativeImputer regresses each column on its 30 (100) nearest for 5 (10) rounds; its default is all 264 others.

    Limits for its time, the second of which is generous.
    """
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    warnings.simplefilter("ignore")
    train, test = split_entries(read_gdsc(), 0.1, 0)
    print(f"{train}, {len(test)} held out")
    imputers = {
        "KNNImputer(5)": KNNImputer(keep_empty_features=True),
        "KNNImputer(20, distance)": KNNImputer(n_neighbors=20, weights="distance", keep_empty_features=True),
        "IterativeImputer(30 nearest, 5)": IterativeImputer(
            n_nearest_features=30, max_iter=5, random_state=0, keep_empty_features=True
        ),
        "IterativeImputer(100 nearest, 10)": IterativeImputer(
            n_nearest_features=100, max_iter=10, random_state=0, keep_empty_features=True
        ),
    }
    algorithms = {
        "row mean + column mean": ExternalCompletion(additive_means, kind="fit"),
        **{name: ExternalCompletion(imputer, kind="imputer") for name, imputer in imputers.items()},
        "surefill FactorModel": FactorModel(),
        "surefill BayesianFactorModel(80)": BayesianFactorModel(rank=80),
        "surefill SoftImpute": SoftImpute(),
        "surefill TraceNormCompletion": TraceNormCompletion(),
        "surefill IterativeSVD": IterativeSVD(),
    }
    for name, algorithm in algorithms.items():
        found, seconds = timed(lambda a=algorithm: a.fit(train))
        chosen = getattr(found, "chosen", "")
        print(f"{name:<34} RMSE {np.sqrt(sample_loss(found, test)):.4f}{seconds:9.2f} s  {chosen}", flush=True)


STUDIES = {"soft": soft, "large": large, "conic": conic, "gdsc": gdsc}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", help=f"any of {', '.join(STUDIES)}; all when none is named")
    parser.add_argument("--peer", help="Python of the environment that has fancyimpute")
    given = parser.parse_args()
    for name in given.studies or STUDIES:
        if name != "conic" and not FOLDER.is_dir():
            print(f"{name} skipped: real data are not at {FOLDER}; set SUREFILL_DATA")
            continue
        print(f"== {name}")
        STUDIES[name](given.peer)


if __name__ == "__main__":
    main()

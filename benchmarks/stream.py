"""Streams: confidence on the paper's square, progressive errors on MovieLens, speed, memory, and kills.

    python benchmarks/stream.py blocks square progressive speed kills

Every observation is scored before it is learnt. The peer of the completion is plain stochastic gradient descent.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np
from scipy.stats import rankdata, spearmanr

from surefill import Observations, StreamingCompleter
from surefill.completion import FactorModel
from surefill.datasets import load_movielens, make_blocks, make_pattern
from surefill.online.factored_game import FactoredGame

STEPS = (0.02, 0.05, 0.1)
DATA = Path(__file__).parents[2] / "shared" / "data"
FILES = {"ml-100k": "u.data.gz", "ml-1m": "ratings.dat.gz"}


def ratings(name: str) -> tuple[np.ndarray, ...]:
    """Users, films, ratings and times, in the order of the file."""
    with gzip.open(DATA / name / FILES[name], "rt") as file:
        text = file.read().replace("::", "\t")
    table = np.array(text.split(), dtype=np.int64).reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2].astype(float), table[:, 3]


def orders(name: str) -> dict[str, tuple[np.ndarray, ...]]:
    users, films, stars, times = ratings(name)
    by = {
        "time": np.argsort(times, kind="stable"),
        "random": np.random.default_rng(0).permutation(len(stars)),
        "file": np.arange(len(stars)),
    }
    return {order: (users[index], films[index], stars[index]) for order, index in by.items()}


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    ranks, count = rankdata(score.ravel())[positive.ravel()], positive.sum()
    return float((ranks.sum() - count * (count + 1) / 2) / (count * (~positive).sum()))


def by_decile(confidence: np.ndarray, error: np.ndarray) -> tuple[float, np.ndarray]:
    """Spearman correlation of confidence decile and mean squared error, and the ten errors."""
    parts = np.array_split(np.argsort(confidence, kind="stable"), 10)
    means = np.array([error[part].mean() for part in parts])
    return float(spearmanr(np.arange(10), means)[0]), means.round(3)


def blocks() -> None:
    print("AUC of the confidence, support against the rest; least of ten seeds")
    cases = {
        "Figure 1, two blocks of 10 x 10, 200 draws": lambda s: make_blocks((10, 10), 2, 200, random_state=s),
        "three blocks of 20 x 20": lambda s: make_blocks((20, 20), 3, random_state=s),
        "two blocks of 100 x 100": lambda s: make_pattern("blocks", (200, 200), random_state=s),
        "idiosyncratic stretches, 100 x 100": lambda s: make_pattern("idiosyncratic", (100, 100), random_state=s),
    }
    for name, make in cases.items():
        found = []
        for seed in range(10):
            sim = make(seed)
            seen = sim.observations
            draws = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(seen)), seen.counts))
            for index in (draws, draws[np.argsort(seen.rows[draws], kind="stable")]):
                game = FactoredGame(seen.shape, random_state=seed)
                game.learn(seen.rows[index], seen.cols[index])
                found.append(auc(game.confidence().dense(), sim.support))
        print(f"  {name}: random order {min(found[::2]):.4f}, sorted by row {min(found[1::2]):.4f}")


def square() -> None:
    base, test = load_movielens("ml-100k", DATA, fold=1)
    inside = []
    for part in (base, test):
        users, films = part.row_labels[part.rows], part.col_labels[part.cols]
        chosen = (users <= 250) & (films <= 250)
        inside.append((users[chosen] - 1, films[chosen] - 1, part.values[chosen]))
    (rows, cols, values), (at_rows, at_cols, truth) = inside
    print(f"the paper's square: {len(values)} ratings, {len(truth)} held out")
    fitted = FactorModel().fit(Observations(rows, cols, values, (250, 250), (1, 5)))
    fitted_error = (fitted.at(at_rows, at_cols) - truth) ** 2
    for order in ("file", *range(5)):
        index = np.arange(len(values)) if order == "file" else np.random.default_rng(order).permutation(len(values))
        start = time.perf_counter()
        stream = StreamingCompleter(bounds=(1, 5), random_state=0 if order == "file" else order)
        stream.learn_many(rows[index], cols[index], values[index])
        seconds = time.perf_counter() - start
        confidence = stream.confidence(at_rows, at_cols)
        own = (stream.predict(at_rows, at_cols) - truth) ** 2
        one, means = by_decile(confidence, fitted_error)
        two, own_means = by_decile(confidence, own)
        print(
            f"  order {order}: {seconds:.2f} s; FactorModel {one:.2f} {means}; the stream's own {two:.2f} {own_means}"
        )


@numba.njit(cache=True)
def descent(rows, cols, values, m, n, rank, step, ridge):
    """Stochastic gradient descent on biases and factors, on values in [-1, 1]; predictions before each step."""
    np.random.seed(0)  # noqa: NPY002
    P, Q = np.random.normal(0, 0.1, (m, rank)), np.random.normal(0, 0.1, (n, rank))  # noqa: NPY002
    b, c, mean, out = np.zeros(m), np.zeros(n), 0.0, np.empty(len(values))
    for x in range(len(values)):
        i, j = rows[x], cols[x]
        predicted = mean + b[i] + c[j] + P[i] @ Q[j]
        out[x] = min(1.0, max(-1.0, predicted))
        error = values[x] - predicted
        mean += (values[x] - mean) / (x + 1)
        b[i] += step * (error - ridge * b[i])
        c[j] += step * (error - ridge * c[j])
        for k in range(rank):
            p = P[i, k]
            P[i, k] += step * (error * Q[j, k] - ridge * p)
            Q[j, k] += step * (error * p - ridge * Q[j, k])
    return out


def progressive() -> None:
    for name in FILES:
        for order, (users, films, stars) in orders(name).items():
            stream = StreamingCompleter(bounds=(1, 5))
            scores = stream.learn_many(users, films, stars)
            error = (scores.predictions - stars) ** 2
            correlation, means = by_decile(scores.confidences, error)
            rows, cols = (np.unique(ids, return_inverse=True)[1] for ids in (users, films))
            unit, shape = (stars - 3) / 2, (rows.max() + 1, cols.max() + 1)
            peers = [np.mean((descent(rows, cols, unit, *shape, 10, step, 0.05) - unit) ** 2) for step in STEPS]
            free = StreamingCompleter()
            free.learn_many(users, films, stars)
            late = error[len(error) // 2 :].mean() ** 0.5
            print(f"{name} by {order}: RMSE {stream.metrics.rmse:.4f}, second half {late:.4f}, bounds learnt", end=" ")
            print(f"{free.metrics.rmse:.4f}; descent, best of three steps, {2 * min(peers) ** 0.5:.4f};", end=" ")
            print(f"confidence decile and error {correlation:.2f} {means}", flush=True)


def speed() -> None:
    StreamingCompleter().learn_many([0, 1], [0, 1], [0.0, 1.0])
    for order, (users, films, stars) in orders("ml-1m").items():
        stream = StreamingCompleter(bounds=(1, 5))
        start, busy = time.perf_counter(), time.process_time()
        for first in range(0, len(stars), 50_000):
            part = slice(first, first + 50_000)
            stream.learn_many(users[part], films[part], stars[part])
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        print(f"ml-1m by {order}: {len(stars) / seconds:,.0f} a second ({len(stars) / busy:,.0f} per processor second)")
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def kills() -> None:
    """ml-1m through the command line, whole, and killed three times."""
    source = DATA / "ml-1m" / FILES["ml-1m"]
    with tempfile.TemporaryDirectory() as folder:
        texts, states = [], []
        for n_kills in (0, 3):
            out, state = Path(folder) / f"out{n_kills}.csv", Path(folder) / f"state{n_kills}"
            command = [sys.executable, "-m", "surefill", "stream", source, "-o", out, "--checkpoint", state]
            command += ["--no-header", "--row", "0", "--col", "1", "--value", "2", "--bounds", "1", "5"]
            start, killed = time.perf_counter(), 0
            while killed < n_kills:
                before = state.stat().st_mtime_ns if state.exists() else 0
                process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
                while not state.exists() or state.stat().st_mtime_ns == before:
                    time.sleep(0.01)
                time.sleep(0.7)
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
            subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
            print(f"killed {n_kills} times: {seconds:.1f} s, {1_000_209 / seconds:,.0f} a second")
            texts.append(out.read_bytes())
            with np.load(state) as stored:
                states.append([stored[key].tobytes() for key in stored.files if key.startswith("array")])
        print("same output:", texts[0] == texts[1], " same state to the bit:", states[0] == states[1])


PARTS = {"blocks": blocks, "square": square, "progressive": progressive, "speed": speed, "kills": kills}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    for part in parser.parse_args().parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()

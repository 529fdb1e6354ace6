"""The online game: what a step costs, how regret grows, what one pass over the paper's MovieLens square shows.

    SUREFILL_DATA=... python benchmarks/online.py steps | regret | blocks | movielens [--rounds N]

``movielens`` is users 1..250 x movies 1..250 of ml-100k's u1.base, 5189 ratings, in a random order, as in the paper.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from data_folder import DATA
from surefill.completion import FactorModel
from surefill.datasets import make_blocks, make_low_rank
from surefill.online import BestResponse, GradientAdversary, OnlineDualDescent, SimplifiedODD
from surefill.online.players import MatrixMultiplicativeWeights
from surefill.reproduction import error_by_decile, load_square


def report_deciles(name: str, confidence: np.ndarray, errors: np.ndarray) -> None:
    tenths = error_by_decile(confidence, errors)
    print(
        f"{name}: squared error by tenth of confidence {np.round(tenths.error, 3)}, Spearman {tenths.spearman:.3f}",
        flush=True,
    )


def movielens(arguments: argparse.Namespace) -> None:
    base, test = load_square(DATA)
    print(f"{len(base)} ratings to learn from, {len(test)} to test on", flush=True)
    errors = (FactorModel(rank=3).fit(base).at(test.rows, test.cols) - test.values) ** 2
    order = np.random.default_rng(0).permutation(len(base))[: arguments.rounds]
    values = base.unit.to_unit(base.values)
    game = OnlineDualDescent(base.shape, confidence=arguments.confidence, observations=arguments.observations)
    start, busy = time.perf_counter(), time.process_time()
    for part in np.array_split(order, max(1, len(order) // 250)):
        game.learn_many(base.rows[part], base.cols[part], values[part])
        seconds, work = time.perf_counter() - start, time.process_time() - busy
        print(f"{game.rounds} rounds, {seconds:.0f} s, {work / game.rounds:.3f} s of one core a round", flush=True)
        report_deciles("  so far", game.average[test.rows, test.cols], errors)
    counts = np.zeros(base.shape)
    counts[base.rows, base.cols] = 1
    seen = counts.sum(axis=1)[:, None] + counts.sum(axis=0)
    report_deciles("ratings of the row and of the column, for comparison", seen[test.rows, test.cols], errors)
    print(f"mean of the test errors {errors.mean():.3f}")


def steps(arguments: argparse.Namespace) -> None:
    """Seconds a round: in blocks, and by the paper to the letter (the oracle of the tests), both with values."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "online"))
    from literal import LiteralMatrixPlayer

    print(f"{'m + n':>6} {'blocks':>9} {'literal':>9} {'ratio':>6} {'largest difference':>19}")
    for size, rounds in ((30, 20), (60, 5)):
        player, oracle = (
            MatrixMultiplicativeWeights((size, size), 1.0, 0.5, "values"),
            LiteralMatrixPlayer((size, size), 1.0, 0.5),
        )
        state, C, rng = player.init(), np.full((size, size), size**-2.0), np.random.default_rng(0)
        seconds = np.zeros(2)
        for _ in range(rounds):
            cell, value = (int(rng.integers(size)), int(rng.integers(size))), float(rng.uniform(-1, 1))
            start = time.perf_counter()
            state = player.update(state, C, cell, value, 1.0)
            middle = time.perf_counter()
            oracle.update(C, cell, value, 1.0)
            seconds += middle - start, time.perf_counter() - middle
        ours, theirs = seconds / rounds
        apart = max(np.abs(a - b).max() for a, b in zip(player.decision(state), oracle.decision(), strict=True))
        print(f"{2 * size:6d} {ours:9.4f} {theirs:9.4f} {theirs / ours:6.0f} {apart:19.1e}", flush=True)


def stream(name: str, shape: tuple[int, int], rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform draws of a rank-one truth; draws that move from the first rows to the last; values that contradict."""
    rng, (m, n) = np.random.default_rng(5), shape
    truth = make_low_rank(shape, 1, 10, random_state=2).truth
    rows, cols = rng.integers(m, size=rounds), rng.integers(n, size=rounds)
    if name == "drifting":
        rows = np.minimum(m - 1, np.arange(rounds) * m // rounds + rng.integers(2, size=rounds))
    values = truth[rows, cols] if name != "adversarial" else np.where(np.arange(rounds) % 2, 1.0, -1.0)
    return rows, cols, values


def regret(arguments: argparse.Namespace) -> None:
    """Measured regret of games with the theorem's steps for T rounds, and how fast it grows with T."""
    shape, horizons = (5, 4), (400, 800, 1600, 3200)
    print(f"{'setting':>8} {'stream':>12} {'player':>11} {'slope':>6}  regret at T = {horizons}, share of its bound")
    for setting in ("entropy", "cube"):
        for name in ("random", "drifting", "adversarial"):
            found = []
            for T in horizons:
                game = OnlineDualDescent(
                    shape, alpha=1.0, theta=0.25, confidence=setting, observations="values", horizon=T
                )
                found.append(game.learn_many(*stream(name, shape, T)).regret())
            _print_growth(
                setting, name, "confidence", horizons, [(r.confidence, r.confidence_theorem_bound) for r in found]
            )
            _print_growth(
                setting, name, "matrix", horizons, [(r.matrix_upper_bound, r.matrix_theorem_bound) for r in found]
            )


def _print_growth(
    setting: str, name: str, player: str, horizons: tuple[int, ...], found: list[tuple[float, float]]
) -> None:
    regrets = np.array([value for value, _ in found])
    share = max(value / bound for value, bound in found)
    positive = bool((regrets > 0).all())
    slope = f"{np.polyfit(np.log(horizons), np.log(regrets), 1)[0]:.2f}" if positive else "none"
    print(f"{setting:>8} {name:>12} {player:>11} {slope:>6}  {np.round(regrets, 2)}  {share:.3f}", flush=True)


def blocks(arguments: argparse.Namespace) -> None:
    """Figure 1, permuted: how well the averaged confidence tells the blocks from the rest; least of the seeds."""
    for size, draws in ((10, 400), (15, 1500)):
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(arguments.seeds):
            sim = make_blocks((size, size), 2, draws, random_state=seed)
            seen, shape = sim.observations, sim.observations.shape
            rows, cols = np.repeat(seen.rows, seen.counts), np.repeat(seen.cols, seen.counts)
            order = np.random.default_rng(seed).permutation(draws)
            cells = rows[order], cols[order], sim.truth_at(rows[order], cols[order])
            for name, game in _players(shape, draws).items():
                start = time.process_time()
                C = game.learn_many(*cells).confidence().dense()
                milliseconds = 1e3 * (time.process_time() - start) / draws
                score = C if "factored" in name else game.average
                auc = roc_auc_score(sim.support.ravel(), score.ravel())
                found.setdefault(name, []).append((auc, C[sim.support].mean(), C[~sim.support].mean(), milliseconds))
        for name, figures in found.items():
            least, (on, off, milliseconds) = min(f[0] for f in figures), np.mean(figures, axis=0)[1:]
            print(
                f"{2 * size} x {2 * size}, {draws} draws, {name}: AUC at least {least:.4f}, mean {on:.3f} on blocks "
                f"and {off:.3f} off, {milliseconds:.1f} ms of one core a round",
                flush=True,
            )


def _players(shape: tuple[int, int], draws: int) -> dict[str, Any]:
    """Both settings with their defaults, exact and factored, with the theorem's parameters, and the simplified game."""
    players: dict[str, Any] = {}
    for setting in ("entropy", "cube"):
        players[f"{setting}, exact"] = OnlineDualDescent(shape, confidence=setting)
        players[f"{setting}, factored"] = OnlineDualDescent(shape, confidence=setting, matrix="factored")
        players[f"{setting}, the theorem's parameters"] = OnlineDualDescent(
            shape, confidence=setting, delta=0.1, horizon=draws
        )
    players["simplified, gradient"] = SimplifiedODD(shape, matrix_predict=GradientAdversary())
    players["simplified, best response"] = SimplifiedODD(shape, matrix_predict=BestResponse())
    return players


STUDIES = {"steps": steps, "regret": regret, "blocks": blocks, "movielens": movielens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(STUDIES))
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--observations", choices=["zero", "values"], default="zero")
    parser.add_argument("--confidence", choices=["entropy", "cube"], default="cube")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    STUDIES[arguments.what](arguments)


if __name__ == "__main__":
    main()

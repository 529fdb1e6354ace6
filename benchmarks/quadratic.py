"""The inefficient algorithm: how far MP 1 is bracketed, what its hardness looks like, and how it compares with MP 2.

Run with ``python benchmarks/quadratic.py tiny blocks cliques simulated compare``; everything when nothing is named.
"""

from __future__ import annotations

import sys
import time
import warnings

import networkx as nx
import numpy as np

from surefill import (
    MaxNorm,
    Observations,
    TraceNorm,
    VersionSpace,
    complete_partially,
    solve_coverage,
    solve_quadratic_coverage,
)
from surefill.completion import MaxNormCompletion, TraceNormCompletion
from surefill.coverage.quadratic.square_search import strongest_squares
from surefill.datasets import make_blocks
from surefill.spaces.conic_model import ScaledMember, load_cvxpy
from surefill.theory import clique_instance, efficient_parameters, inefficient_parameters


def random_instance(seed: int) -> tuple[Observations, MaxNorm | TraceNorm, float]:
    """2 x 2 to 6 x 6, up to two draws per cell, gamma in [0.1, 0.5]; max-norm 1 or 1.5, or trace norm, in turn."""
    rng = np.random.default_rng(seed)
    m, n = (int(size) for size in rng.integers(2, 7, 2))
    draws = 2 * int(rng.integers(2, m * n + 1))
    obs = Observations(rng.integers(m, size=draws), rng.integers(n, size=draws), np.zeros(draws), (m, n), (-1, 1))
    tau = float(rng.uniform(0.8, 1.2) * np.sqrt(m * n))
    classes = (MaxNorm(1.0), MaxNorm(1.5), TraceNorm(tau), MaxNorm(1.0))
    return obs, classes[seed % 4], float(rng.uniform(0.1, 0.5))


def exact_convex_concave(space: VersionSpace, C: np.ndarray, starts: int, rng: np.random.Generator) -> float:
    """The largest mean square under C that another search finds: exact linear responses by the conic solver."""
    cp = load_cvxpy()
    model, slope = ScaledMember(space, 1.0), cp.Parameter(space.shape)
    problem = cp.Problem(cp.Minimize(-cp.sum(cp.multiply(slope, model.matrix))), model.constraints)
    best = 0.0
    for _ in range(starts):
        M, reached = rng.normal(size=space.shape), -1.0
        for _ in range(30):
            slope.value = C * M
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver=cp.CLARABEL if sum(space.shape) <= 48 else cp.SCS)
            M = model.member()
            now = float(np.sum(C * M**2) / C.sum())
            if now <= reached * (1 + 1e-5):
                break
            reached = now
        best = max(best, reached)
    return best


def tiny(count: int = 100) -> None:
    """How far brackets close; certified C against another search, cuts against the membership test."""
    gaps: dict[str, list[float]] = {}
    broken, strangers, seconds, by_branching = 0, 0, 0.0, 0
    for seed in range(count):
        obs, matrix_class, gamma = random_instance(seed)
        found = solve_quadratic_coverage(obs, matrix_class=matrix_class, gamma=gamma, time_limit=20)
        name = type(matrix_class).__name__ + (f" {matrix_class.K:g}" if isinstance(matrix_class, MaxNorm) else "")
        gaps.setdefault(name, []).append(found.gap)
        space = VersionSpace(obs, found.beta, matrix_class)
        if found.lower > 0:
            reached = exact_convex_concave(space, found.confidence.dense(), 4, np.random.default_rng(seed))
            broken += reached > gamma * (1 + 1e-6)
        strangers += sum(not space.contains(M) for M in found.cuts[:3])
        seconds += found.seconds
        by_branching += obs.shape[0] * obs.shape[1] <= 9
        print(f"{seed:3d} {obs.shape} {name:12s} gamma {gamma:.2f}: {found} {found.status.name}", flush=True)
    everything = np.concatenate([np.array(part) for part in gaps.values()])
    for name, part in [*gaps.items(), ("all", everything)]:
        values = np.array(part)
        print(
            f"{name:12s} {len(values):4d} instances: gap within 1% in {np.sum(values <= 0.01)}, median "
            f"{np.median(values):.4f}, largest {values.max():.3f}"
        )
    print(f"certified confidences broken by another search: {broken}; cuts outside the version space: {strangers}")
    print(f"{seconds / count:.1f} s each, {by_branching} of them small enough to branch", flush=True)


def blocks(size: int = 20) -> None:
    """Two blocks of 20 x 20 in a 40 x 40 matrix, one draw per cell of the matrix."""
    sim = make_blocks((size, size), 2, n_draws=4 * size**2, random_state=0)
    obs, inside, gamma = sim.observations, sim.support, 0.2
    for matrix_class in (MaxNorm(1.0), TraceNorm(2.0 * size)):
        found = solve_quadratic_coverage(obs, matrix_class=matrix_class, gamma=gamma, time_limit=90)
        space, rng = VersionSpace(obs, found.beta, matrix_class), np.random.default_rng(12345)
        reached = []
        for C in (found.confidence.dense(), found.candidate.dense()):
            strongest = strongest_squares(space, C, starts=20, rng=rng)[0]
            reached.append(float(np.sum(C * strongest**2) / C.sum()) / gamma)
        C = found.confidence.dense()
        print(
            f"{matrix_class}, gamma {gamma}: {found} {found.status.name}, {found.seconds:.0f} s; certified C "
            f"{C[inside].mean():.3f} in the blocks, {C[~inside].mean():.3f} off; candidate covers "
            f"{found.candidate.coverage:.1f}; 20 fresh starts reach {reached[0]:.4f} gamma against the certified C, "
            f"{reached[1]:.4f} against the candidate",
            flush=True,
        )


def cliques(count: int = 50) -> None:
    """The program's optimum against cliques found by networkx, for every k of every graph; seconds as graphs grow."""
    agreed = asked = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        graph = nx.gnp_random_graph(int(rng.integers(4, 13)), float(rng.uniform(0.2, 0.9)), seed=seed)
        instance, largest = clique_instance(graph), max(map(len, nx.find_cliques(graph)))
        for k in range(1, graph.number_of_nodes() + 1):
            asked += 1
            agreed += (instance.solve(k).value == k**2) == (k <= largest)
        assert len(instance.largest_clique()) == largest
    print(f"{agreed} of {asked} programs on {count} graphs have the value k^2 exactly where a k-clique exists")
    for size in (8, 10, 12, 14, 16, 18):
        start = time.perf_counter()
        clique_instance(nx.gnp_random_graph(size, 0.5, seed=0)).solve(size // 2)
        print(f"{size} vertices, k = {size // 2}: {1000 * (time.perf_counter() - start):.1f} ms", flush=True)


def simulated(count: int = 100, eps: float = 0.4, n_draws: int = 1500) -> None:
    """Algorithm 1 on known truths: how often coverage and error are as promised, for both norms."""
    side = 6
    for name in ("max-norm", "trace norm"):
        covered = accurate = both = 0
        coverages, errors = [], []
        for seed in range(count):
            sim = make_blocks((side // 2, side // 2), 2, n_draws=n_draws, noise=0.3, random_state=seed)
            tau = None if name == "max-norm" else float(side)
            algorithm = MaxNormCompletion(K=1.0) if tau is None else TraceNormCompletion(tau=tau)
            found = complete_partially(
                sim.observations, eps=eps, tau=tau, completion=algorithm, program="quadratic", gap=0.9, time_limit=1
            )
            C = found.confidence.dense()
            errors.append(float(np.sum(C * (found.completion.dense() - sim.truth) ** 2) / C.sum()))
            coverages.append(float(C.sum()))
            wide, right = coverages[-1] >= sim.support.sum(), errors[-1] <= eps
            covered, accurate, both = covered + wide, accurate + right, both + (wide and right)
        print(
            f"{name}: coverage at least 1/mu_max = {sim.support.sum()} in {covered}, error at most {eps} in "
            f"{accurate}, both in {both} of {count} draws; coverage {min(coverages):.2f} to {max(coverages):.2f}, "
            f"largest error {np.max(errors):.4f}",
            flush=True,
        )


def compare(tolerances: tuple[float, ...] = (1.0, 0.4), side: int = 16, picture: str | None = None) -> None:
    """Algorithm 1 and Algorithm 2 on the same draws and completion: coverage, true error, seconds, as N grows."""
    studies = {}
    for eps in tolerances:
        one, two = inefficient_parameters(eps), efficient_parameters(eps, 1.0)
        print(f"eps {eps}: MP 1 at gamma {one.gamma:.4f}, beta {one.beta:.5f}; MP 2 at {two.gamma:.4f}, {two.beta:.5f}")
        rows = []
        for n_draws in (100, 200, 400, 800, 1600, 3200, 6400):
            sim = make_blocks((side // 2, side // 2), 2, n_draws=n_draws, noise=0.3, random_state=0)
            obs = sim.observations
            completion = MaxNormCompletion(K=1.0).fit(obs).dense()
            bracket = solve_quadratic_coverage(obs, gamma=one.gamma, beta=one.beta, gap=0.02, max_rounds=5)
            start = time.perf_counter()
            linear = solve_coverage(obs, 1.0, gamma=two.gamma, beta=two.beta)
            seconds = time.perf_counter() - start
            losses = [_loss(found.confidence.dense(), completion, sim.truth) for found in (bracket, linear)]
            rows.append((n_draws, bracket.lower, bracket.upper, linear.coverage))
            print(
                f"{n_draws:6d} draws: MP 1 {bracket.lower:6.1f} to {bracket.upper:6.1f}, error {losses[0]:.4f}, "
                f"{bracket.seconds:5.1f} s; MP 2 {linear.coverage:6.1f}, error {losses[1]:.4f}, {seconds:5.1f} s",
                flush=True,
            )
        studies[eps] = np.array(rows)
    if picture is not None:
        draw(studies, side**2 // 2, side**2, picture)


def _loss(C: np.ndarray, completion: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sum(C * (completion - truth) ** 2) / C.sum()) if C.sum() > 0 else float("nan")


def draw(studies: dict[float, np.ndarray], inverse_mu: int, cells: int, picture: str) -> None:
    """Coverage against draws, a panel for each eps: MP 1 between its two bounds, MP 2, and 1/mu_max."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(studies), figsize=(9, 3.8), sharey=True, layout="constrained")
    for axes, (eps, rows) in zip(panels, studies.items(), strict=True):
        draws, lower, upper, linear = rows.T
        axes.fill_between(draws, lower, upper, alpha=0.25, label="MP 1, between its bounds")
        axes.plot(draws, lower, "o-", label="MP 1, certified")
        axes.plot(draws, linear, "s-", label="MP 2, certified")
        axes.axhline(inverse_mu, color="grey", linestyle="--", label=r"$1/\mu_{\max}$")
        axes.set(xscale="log", xlabel="draws", title=f"eps = {eps:g}", ylim=(0, None))
    panels[0].set_ylabel(f"coverage, of {cells} cells")
    panels[-1].legend(loc="lower right")
    figure.savefig(picture, dpi=120)
    plt.close(figure)


STUDIES = {"tiny": tiny, "blocks": blocks, "cliques": cliques, "simulated": simulated, "compare": compare}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or list(STUDIES):
        name, _, picture = chosen.partition("=")
        STUDIES[name](picture=picture) if picture else STUDIES[name]()

"""The largest confidence that no adversary in the version space can break (the paper's MP 2)."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from surefill.coverage.closed_form import closed_form
from surefill.coverage.linear.certified import CertifiedDualSolver
from surefill.coverage.linear.conic_dual import solve_conic
from surefill.coverage.linear.coverage_result import (
    Coverage,
    certified_coverage,
    closed_form_coverage,
    conic_coverage,
    mixture_coverage,
)
from surefill.coverage.linear.factored_dual import WarmStart
from surefill.coverage.linear.mixture import MixtureSolver
from surefill.data.observations import Observations
from surefill.errors import InputError, invalid_parameter
from surefill.loop import ProgressCallback, run
from surefill.spaces.classes import MaxNorm
from surefill.spaces.conic_model import CONIC_SOLVER, INTERIOR_POINT_LIMIT, first_tight, plan_for
from surefill.spaces.separation_oracle import deadline_after
from surefill.spaces.version_space import VersionSpace

METHODS = ("auto", "conic", "factored")

MAX_ROUNDS = 60
"""Rounds of a factored solver; a round is at most 100 iterations of L-BFGS and a check."""

MANY_DIGITS = 1e-3
"""Gaps below which "auto" prefers the conic solver wherever it can be used: the factored one is slow to reach them."""


def solve_coverage(
    obs: Observations,
    K: float = 1.0,
    *,
    gamma: float,
    beta: float | None = None,
    rank: int | None = None,
    method: str = "auto",
    gap: float = 0.01,
    time_limit: float | None = None,
    warm_start: Coverage | None = None,
    random_state: int = 0,
    progress: ProgressCallback | None = None,
) -> Coverage:
    """MP 2: max |C| over C in [0, 1]^(m x n) with <C, M> <= gamma |C| for all M in V(0, beta, S; MaxNorm(K, rank)).

    Parameters
    ----------
    obs : where the matrix was seen and how often; the values play no part.
    K : max-norm of the adversaries.
    gamma : largest mean that an adversary may reach on the covered cells.
    beta : largest mean square of an adversary on the observed cells; gamma^2 / 2 when not given, as in the
        paper's proposition on the coverage of the efficient algorithm.
    rank : largest rank of the adversaries; without one the class is convex and the answer certified.
    method : "conic", a semidefinite program up to 150 rows and columns, many digits; "factored", any size; "auto"
        chooses conic for small matrices without a rank.
    gap : relative gap between ``coverage`` and ``upper_bound`` to aim for; with a rank, the share by which an
        adversary found may exceed gamma. What was reached is in the result.
    time_limit : seconds after which the factored solver gives its best answer so far.
    warm_start : a factored answer for the same matrix and neighbouring parameters.
    random_state : seed of the factored solver's random starts.
    progress : called after each of the factored solver's rounds.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((5, 5), n_groups=2, n_draws=200, random_state=0)
    >>> found = sf.solve_coverage(sim.observations, K=1, gamma=0.16)
    >>> inside, outside = found.confidence.dense()[sim.support], found.confidence.dense()[~sim.support]
    >>> bool(inside.mean() > 0.8), bool(outside.mean() < 0.1)
    (True, True)
    """
    if not isinstance(obs, Observations):
        raise invalid_parameter(
            "solve_coverage", "obs", "Observations, such as Observations.from_matrix(array)", type(obs)
        )
    if method not in METHODS:
        raise invalid_parameter("solve_coverage", "method", " or ".join(map(repr, METHODS)), method)
    for name, number in (("gamma", gamma), ("gap", gap)):
        if not 0 < number < np.inf:
            raise invalid_parameter("solve_coverage", name, "a positive finite number", number)
    if time_limit is not None and not time_limit > 0:
        raise invalid_parameter("solve_coverage", "time_limit", "None or a positive number of seconds", time_limit)
    space = VersionSpace(obs, gamma**2 / 2 if beta is None else beta, MaxNorm(K, rank))
    if method == "conic":
        CONIC_SOLVER.check(space)
    form = closed_form(space, gamma)
    if form is not None:
        return closed_form_coverage(space, gamma, form)
    if method == "conic" or (method == "auto" and _prefers_conic(space, gap)):
        answers = solve_conic(space, gamma, plan_for(space.shape))
        return conic_coverage(space, gamma, gap, first_tight(answers, lambda answer: answer.gap, gap))
    given = (space, gamma, gap, np.random.default_rng(random_state), deadline_after(time_limit))
    warm = _warm(warm_start, space)
    limits: dict[str, Any] = {"max_steps": MAX_ROUNDS, "time_limit": time_limit, "progress": progress}
    if rank is None:
        return certified_coverage(space, gamma, run(CertifiedDualSolver(*given, warm), **limits))
    return mixture_coverage(space, gamma, run(MixtureSolver(*given, warm), **limits))


def _prefers_conic(space: VersionSpace, gap: float) -> bool:
    """Whether the conic solver is there and better: a small convex problem, or many digits wanted of a larger one."""
    if CONIC_SOLVER.missing(space) or importlib.util.find_spec("cvxpy") is None:
        return False
    return sum(space.shape) <= INTERIOR_POINT_LIMIT or gap < MANY_DIGITS or space.beta == 0


def _warm(start: Coverage | None, space: VersionSpace) -> WarmStart | None:
    """What a factored solver takes over from an earlier result, None where that had no factored solution."""
    if start is None:
        return None
    if start.confidence.shape != space.shape:
        raise InputError(
            f"warm_start must be for a matrix of the same shape; it is {start.confidence.shape} and not {space.shape}."
        )
    return start.warm

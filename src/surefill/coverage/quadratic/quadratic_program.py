"""MP 1, the coverage program of the paper's inefficient algorithm: certified lower and upper bounds on its optimum."""

from __future__ import annotations

import enum
import math
import time
from dataclasses import dataclass

import numpy as np

from surefill.arrays import Array
from surefill.coverage.closed_form import closed_form, closed_form_answer, relative_gap
from surefill.coverage.quadratic.branch_and_bound import can_branch, certify_by_branching
from surefill.coverage.quadratic.cutting_planes import CuttingPlaneSolver, CuttingPlaneState
from surefill.coverage.quadratic.relaxation import RelaxationSolver, make_squares_feasible
from surefill.data.observations import Observations
from surefill.errors import InputError, SolverError, invalid_parameter
from surefill.loop import ProgressCallback, Status, run
from surefill.spaces.classes import MatrixClass, MaxNorm
from surefill.spaces.confidence_matrix import Confidence, DenseConfidence
from surefill.spaces.conic_model import CONIC_SOLVER
from surefill.spaces.version_space import VersionSpace

MAX_TRIANGLE_ROUNDS = 12
"""Rounds of triangle inequalities at most; they end earlier where one brings less than ``relaxation.ENOUGH``."""

TIED = 1e-9
"""Relative distance of beta to gamma below which they count as equal."""

CONTRADICTION = 1e-6
"""How far rounding may bring the lower bound above the upper one."""


class BracketStatus(enum.Enum):
    """How a bracket was reached; the value is a sentence.

    >>> BracketStatus.WITHIN_GAP.value
    'The two bounds are as close as asked for.'
    """

    EXACT = "The answer follows from a closed form; no solver was needed."
    WITHIN_GAP = "The two bounds are as close as asked for."
    SEARCH_ENDED = (
        "No search broke the linear program's confidence, which suggests that the optimum is near the upper bound; "
        "that is not proved, the two bounds are."
    )
    STEP_LIMIT = "The rounds of cuts ran out; both bounds hold, and more rounds may lower the upper one."
    TIME_LIMIT = "The time limit was reached; both bounds hold, and more time may lower the upper one."


@dataclass(frozen=True, eq=False)
class CoverageBracket:
    """lower <= max |C| of MP 1 <= upper, with what proves either.

    Attributes
    ----------
    lower : |confidence|.
    upper : the value of the linear program with the cuts found, by its multipliers.
    confidence : a C proved feasible, if ``certified_feasible``.
    certified_feasible : whether sum_x C_x M_x^2 <= gamma |C| was proved of ``confidence`` for all M in V. Always so
        here: the lower bound is never a search's word.
    cuts : members of the version space (T x m x n) that prove ``upper``; none where a closed form does.
    status : why the solver stopped.
    candidate : the linear program's C, mixed with the certified one where a last search still broke it. It covers more
        than ``confidence`` and is feasible for all that was found; it may still be infeasible.
    excess : the largest mean square found against ``candidate``, over gamma; NaN where nothing had to be searched.
    matrix_class, gamma, beta : the parameters used.
    seconds : how long it took.

    Examples
    --------
    >>> obs = Observations([0, 0, 1], [0, 1, 0], [0.0, 0.0, 0.0], shape=(2, 2))
    >>> solve_quadratic_coverage(obs, gamma=0.3, beta=0.4)
    CoverageBracket(0 to 0 of 4 cells, gap 0, 1 cuts)
    """

    lower: float
    upper: float
    confidence: Confidence
    certified_feasible: bool
    cuts: Array
    status: BracketStatus
    candidate: Confidence
    excess: float
    matrix_class: MatrixClass
    gamma: float
    beta: float
    seconds: float

    @property
    def gap(self) -> float:
        """(upper - lower) / upper, 0 when both are 0."""
        return relative_gap(self.lower, self.upper)

    @property
    def coverage(self) -> float:
        """The certified coverage, ``lower``."""
        return self.lower

    def __repr__(self) -> str:
        m, n = self.confidence.shape
        return (
            f"CoverageBracket({self.lower:.6g} to {self.upper:.6g} of {m * n} cells, gap {self.gap:.2g}, "
            f"{len(self.cuts)} cuts)"
        )


def solve_quadratic_coverage(
    obs: Observations,
    *,
    matrix_class: MatrixClass | None = None,
    gamma: float,
    beta: float | None = None,
    gap: float = 0.005,
    max_rounds: int = 100,
    time_limit: float | None = None,
    random_state: int = 0,
    progress: ProgressCallback | None = None,
) -> CoverageBracket:
    """MP 1: max |C| over C in [0, 1]^(m x n) with sum_x C_x M_x^2 <= gamma |C| for all M in V(0, beta, S; class).

    Deciding whether a C is feasible means maximising a convex function, so the optimum is bracketed. From below: a C
    feasible for a convex set that holds M o M for every M in V, found and certified by one semidefinite program. From
    above: the linear program in C over the adversaries that a search found. Up to nine cells branch and bound, of at
    most 600 boxes, tries to certify the linear program's C, which mostly closes the bracket. docs/mathematics.md has
    the proofs; certificates hold up to the rounding of eigenvalues, for which a margin of 1e-10 is taken.

    Parameters
    ----------
    obs : where the matrix was seen and how often; the values play no part.
    matrix_class : ``MaxNorm(K)`` or ``TraceNorm(tau)``; ``MaxNorm(1)`` when not given.
    gamma : largest mean square that an adversary may reach on the covered cells.
    beta : largest mean square of an adversary on the observed cells; gamma / 2 when not given, as in the paper.
    gap : stop when the bounds are this close, relative to the upper one.
    max_rounds, time_limit : rounds of cuts, and seconds for them, and as many for branching; the certified C is found
        before and takes its time: a second for 10 rows and columns, some ten seconds for 40, many minutes for 100.
    random_state : seed of the searches.
    progress : called after each round of cuts.

    Examples
    --------
    >>> import surefill as sf
    >>> obs = sf.Observations([0, 0, 1, 2], [0, 1, 0, 1], [0.0, 0.0, 0.0, 0.0], shape=(3, 2))
    >>> found = sf.solve_quadratic_coverage(obs, gamma=0.3)
    >>> found.certified_feasible, bool(found.gap < 0.01)
    (True, True)
    >>> bool(4 <= found.lower <= found.upper <= 6)
    True
    """
    chosen = MaxNorm(1.0) if matrix_class is None else matrix_class
    space = _checked_space(obs, chosen, gamma, gamma / 2 if beta is None else beta, gap, max_rounds, time_limit)
    start = time.perf_counter()
    # Entries and means enter squared, so MP 1 at gamma is decided where MP 2 at sqrt(gamma) is.
    form = closed_form(space, math.sqrt(gamma))
    if form is not None:
        confidence, coverage, adversary = closed_form_answer(space, math.sqrt(gamma), form)
        cuts = adversary.matrix[None] if form == "none" else np.zeros((0, *obs.shape))
        proofs = (coverage, coverage, confidence, True, cuts, BracketStatus.EXACT, confidence, math.nan)
        return CoverageBracket(*proofs, chosen, gamma, space.beta, time.perf_counter() - start)
    C = run(RelaxationSolver(space, gamma), max_steps=MAX_TRIANGLE_ROUNDS).state.C
    solver = CuttingPlaneSolver(space, gamma, C, gap, np.random.default_rng(random_state))
    outcome = run(solver, max_steps=max_rounds, time_limit=time_limit, progress=progress)
    found = solver.retreat(outcome.state)
    if can_branch(space.shape) and found.upper_bound - C.sum() > gap * found.upper_bound and found.C.any():
        C = max(C, _certified_by_branching(space, gamma, found.C, gap / 2, time_limit), key=np.sum)
    return _bracket(space, gamma, gap, C, found, outcome.status, time.perf_counter() - start)


def _certified_by_branching(
    space: VersionSpace, gamma: float, C: Array, slack: float, time_limit: float | None
) -> Array:
    """C as far as branch and bound certifies it; 0 where the solver of its boxes fails, for another C is certified."""
    try:
        return make_squares_feasible(space, gamma, C, certify_by_branching(space, C, gamma, slack, time_limit))[0]
    except SolverError:
        return np.zeros_like(C)


def _bracket(
    space: VersionSpace,
    gamma: float,
    gap: float,
    C: Array,
    found: CuttingPlaneState,
    ended: Status,
    seconds: float,
) -> CoverageBracket:
    """The result from a certified C and the cutting planes' last state; they may not contradict each other."""
    lower = float(C.sum())
    if lower > (1 + CONTRADICTION) * found.upper_bound:
        raise SolverError(
            f"the proved bounds contradict each other ({lower:g} > {found.upper_bound:g}); please report this."
        )
    upper = max(found.upper_bound, lower)
    statuses = {Status.STEP_LIMIT: BracketStatus.STEP_LIMIT, Status.TIME_LIMIT: BracketStatus.TIME_LIMIT}
    status = statuses.get(ended, BracketStatus.SEARCH_ENDED)
    if upper - lower <= gap * upper:
        status = BracketStatus.WITHIN_GAP
    cuts = found.cuts.view()
    cuts.flags.writeable = False
    proofs = (lower, upper, DenseConfidence(C), True, cuts, status, DenseConfidence(found.C), found.excess)
    return CoverageBracket(*proofs, space.matrix_class, gamma, space.beta, seconds)


def _checked_space(
    obs: Observations,
    matrix_class: MatrixClass,
    gamma: float,
    beta: float,
    gap: float,
    max_rounds: int,
    time_limit: float | None,
) -> VersionSpace:
    """The version space, once every parameter was found usable."""
    owner = "solve_quadratic_coverage"
    if not isinstance(obs, Observations):
        raise invalid_parameter(owner, "obs", "Observations, such as Observations.from_matrix(array)", type(obs))
    for name, number in (("gamma", gamma), ("beta", beta), ("gap", gap)):
        if not 0 < number < math.inf:
            raise invalid_parameter(owner, name, "a positive finite number", number)
    if max_rounds != int(max_rounds) or max_rounds < 1:
        raise invalid_parameter(owner, "max_rounds", "a whole number of at least 1", max_rounds)
    if time_limit is not None and not time_limit > 0:
        raise invalid_parameter(owner, "time_limit", "None or a positive number of seconds", time_limit)
    if not isinstance(matrix_class, MatrixClass):
        raise invalid_parameter(owner, "matrix_class", "MaxNorm(K) or TraceNorm(tau)", matrix_class)
    space = VersionSpace(obs, float(beta), matrix_class)
    CONIC_SOLVER.check(space)
    if not isinstance(matrix_class, MaxNorm) and beta >= (1 - TIED) * gamma:
        raise InputError(f"beta must be below gamma for {matrix_class.description}; got {beta:g} and {gamma:g}.")
    return space

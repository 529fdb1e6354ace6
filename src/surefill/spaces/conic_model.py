"""The version space as cone constraints, the conic solvers, and certificates computed afresh from their answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from surefill.arrays import Array
from surefill.errors import MissingPackageError, SolverError
from surefill.spaces.certificates import factor_gram
from surefill.spaces.requirements import CONVEX_CLASS, Requirement, SolverRequirements, unmet

if TYPE_CHECKING:
    from surefill.spaces.version_space import VersionSpace

Attempt = tuple[Literal["clarabel", "scs"], float]
"""A solver and the accuracy to ask it for."""

INTERIOR_POINT: tuple[Attempt, ...] = (("clarabel", 1e-10), ("clarabel", 1e-8), ("scs", 1e-7))
FIRST_ORDER: tuple[Attempt, ...] = (("scs", 1e-5), ("scs", 1e-6), ("scs", 1e-7))
"""Attempts in turn: an interior-point solver asks for less where it stalls, a first-order one for more where the
certificate is not tight yet."""

SCS_ITERATIONS = 20_000
"""Iterations of SCS per attempt, a fifth of its default: an attempt that does not converge is certified as it is."""

INTERIOR_POINT_LIMIT = 48
"""Rows plus columns up to which the interior-point solver takes about a second (``benchmarks/conic.py``)."""

SIZE_LIMIT = 150
"""Rows or columns beyond which a dense semidefinite program takes too long to be useful: SCS took 70 s at 160."""

SIZE_NEED, SIZE_ADVICE = f"at most {SIZE_LIMIT} rows and columns", "solve on a subset of its rows and columns"

CONIC_SOLVER = SolverRequirements(
    "the conic solver",
    (
        CONVEX_CLASS,
        Requirement(
            SIZE_NEED,
            lambda space: max(space.shape) <= SIZE_LIMIT,
            lambda space: f"{space.shape[0]} x {space.shape[1]}",
            SIZE_ADVICE,
        ),
    ),
)
"""What :class:`ScaledMember` can be solved for."""

Answer = TypeVar("Answer")


def load_cvxpy() -> Any:
    """The cvxpy module, imported when first needed."""
    try:
        import cvxpy
    except ImportError:
        raise MissingPackageError("the conic solver", "cvxpy", "scs", "clarabel") from None
    return cvxpy


def check_size(shape: tuple[int, int]) -> None:
    """Refuse a matrix that is too large for the conic solver."""
    if max(shape) > SIZE_LIMIT:
        raise unmet(CONIC_SOLVER.solver, SIZE_NEED, f"{shape[0]} x {shape[1]}", SIZE_ADVICE)


def plan_for(shape: tuple[int, int]) -> tuple[Attempt, ...]:
    """Clarabel (interior point, many digits) while it takes a second, SCS (first order, fewer) beyond."""
    return INTERIOR_POINT if sum(shape) <= INTERIOR_POINT_LIMIT else FIRST_ORDER


def attempts(problem: Any, plan: tuple[Attempt, ...]) -> Iterator[None]:
    """Solve ``problem`` by each attempt in turn, pausing after every one that left numbers in its variables.

    Inaccurate numbers pass, since callers certify them afresh; an attempt without numbers is skipped.
    """
    failures = []
    for solver, accuracy in plan:
        failure = _solve(problem, solver, accuracy)
        if failure is None:
            yield
        else:
            failures.append(f"{solver} at {accuracy:g}: {failure}")
    if len(failures) == len(plan):
        raise SolverError(f"the conic solvers gave no answer ({'; '.join(failures)}).")


def first_tight(answers: Iterable[Answer], gap: Callable[[Answer], float], target: float) -> Answer:
    """The first answer whose certified gap is at most ``target``, or else the one with the smallest."""
    best: Answer | None = None
    for answer in answers:
        if best is None or gap(answer) < gap(best):
            best = answer
        if gap(best) <= target:
            break
    assert best is not None  # attempts() raises when there is no answer at all
    return best


def _solve(problem: Any, solver: str, accuracy: float) -> str | None:
    """Run one solver; None when it left numbers, or else what it reported."""
    cp = load_cvxpy()
    options: dict[str, Any]
    if solver == "clarabel":
        options = {
            "solver": cp.CLARABEL,
            "tol_gap_abs": accuracy,
            "tol_gap_rel": accuracy,
            "tol_feas": accuracy,
        }
    else:
        options = {"solver": cp.SCS, "eps_abs": accuracy, "eps_rel": accuracy, "max_iters": SCS_ITERATIONS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(warm_start=True, **options)
        except cp.SolverError as error:
            return str(error)
    return None if problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) else str(problem.status)


class ScaledMember:
    """N in lambda V as cone constraints on a Gram matrix G = [[W1, N], [N^T, W2]] PSD.

        norm:  diag(G) <= lambda K  (max-norm)   or   trace(G) <= 2 lambda tau  (trace norm)
        ball:  |sqrt(w) N_S|_2 <= lambda sqrt(beta), or N_S = 0 when beta = 0
        box:   |N_x| <= lambda, left out when the norm's radius is at most 1 and implies it

    ``scale`` is lambda, a cvxpy variable or the number 1.
    """

    def __init__(self, space: VersionSpace, scale: Any) -> None:
        cp = load_cvxpy()
        (m, n), seen = space.shape, space.observations
        self.space = space
        self.gram = cp.Variable((m + n, m + n), PSD=True)
        self.matrix = self.gram[:m, m:]
        entries = self.gram[seen.rows, m + seen.cols]
        self._norm = space.matrix_class.limit_gram(self.gram, scale)
        if space.beta > 0:
            self._ball = cp.SOC(scale * np.sqrt(space.beta), cp.multiply(np.sqrt(seen.weights), entries))
        else:
            self._ball = entries == 0
        self._box = [] if space.matrix_class.radius <= 1 else [self.matrix <= scale, -self.matrix <= scale]

    @property
    def constraints(self) -> list[Any]:
        """All cone constraints, to be joined to an objective that is minimised."""
        return [self._norm, self._ball, *self._box]

    def member(self) -> Array:
        """The solver's N, divided by the smallest certified lambda with N in lambda V: a member of V."""
        m, seen = self.space.shape[0], self.space.observations
        G = np.array(self.gram.value)
        N = G[:m, m:]
        if self.space.beta == 0:
            N[seen.rows, seen.cols] = 0.0
        norm = self.space.matrix_class.norm_of_factors(*factor_gram(G[:m, :m], N, G[m:, m:]))
        scales = [norm / self.space.matrix_class.radius, float(np.abs(N).max())]
        if self.space.beta > 0:
            scales.append(float(np.sqrt(self.space.mean_square(N) / self.space.beta)))
        return N / max(scales) if max(scales) > 0 else N

    def bound(self, C: Array) -> float:
        """radius dual-norm(B) + sum|A| + sqrt(beta sum_S Z_x^2 / w_x) >= sup over V of <C, M>, C = B + Z + A.

        Z (the ball's part) and A (the box's part) come from the dual variables and B is what remains of C, so
        the inequality holds whatever numbers the solver gave; they only decide how tight it is.
        """
        seen = self.space.observations
        Z = np.zeros(self.space.shape)
        if self.space.beta > 0:
            Z[seen.rows, seen.cols] = -np.sqrt(seen.weights) * np.ravel(self._ball.dual_value[1])
        else:
            Z[seen.rows, seen.cols] = self._ball.dual_value
        A = self._box[0].dual_value - self._box[1].dual_value if self._box else np.zeros(self.space.shape)
        matrix_class = self.space.matrix_class
        dual_norm = matrix_class.bound_dual_norm(C - Z - A, 2 * np.atleast_1d(self._norm.dual_value))
        ball = np.sqrt(self.space.beta * np.sum(Z[seen.rows, seen.cols] ** 2 / seen.weights))
        return float(matrix_class.radius * dual_norm + np.abs(A).sum() + ball)

"""The version space around zero: the matrices of a class that are small on the observed cells, and its oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.data.observations import Observations
from surefill.errors import InputError, invalid_parameter
from surefill.spaces.classes import MatrixClass, MaxNorm
from surefill.spaces.conic_model import (
    CONIC_SOLVER,
    ScaledMember,
    attempts,
    first_tight,
    load_cvxpy,
    plan_for,
)
from surefill.spaces.norms import as_matrix

if TYPE_CHECKING:
    from surefill.spaces.adversary import FactoredAdversary

MEMBERSHIP_TOLERANCE = 1e-6
"""How far over a limit a matrix may be and still count as a member: a conic solver's accuracy, not rounding alone."""

ORACLE_GAP = 2e-5
"""Gap between value and bound, as a share of |C|, at which the conic oracle asks for no more accuracy."""


@dataclass(frozen=True)
class Membership:
    """By how much each condition of the version space is exceeded; true when none is by more than 1e-6.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> seen = sf.Observations([0, 0, 1], [0, 1, 1], [1.0, 0.5, 0.2])
    >>> space = sf.VersionSpace(seen, beta=0.01, matrix_class=sf.MaxNorm(1.0))
    >>> print(space.contains(np.zeros((2, 2))))
    The matrix is in the version space.
    """

    norm: float
    rank: float
    box: float
    ball: float

    def __bool__(self) -> bool:
        return max(self.norm, self.rank, self.box, self.ball) <= MEMBERSHIP_TOLERANCE

    def __str__(self) -> str:
        if self:
            return "The matrix is in the version space."
        excess = {
            "the norm's limit": self.norm,
            "the rank's limit": self.rank,
            "the largest entry 1": self.box,
            "the mean square beta on the observed cells": self.ball,
        }
        broken = " and ".join(f"{name} by {by:.3g}" for name, by in excess.items() if by > MEMBERSHIP_TOLERANCE)
        return f"The matrix is outside the version space: it exceeds {broken}."


@dataclass(frozen=True, eq=False)
class Adversary:
    """A member M of the version space played against a confidence C: value <= sup <C, M> <= bound.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> seen = sf.Observations([0, 0, 1], [0, 1, 1], [1.0, 0.5, 0.2])
    >>> space = sf.VersionSpace(seen, beta=0.01, matrix_class=sf.MaxNorm(1.0))
    >>> adversary = space.maximize(np.full((2, 2), 0.25))
    >>> adversary.value <= adversary.bound
    True
    """

    matrix: Array
    value: float
    mean: float
    bound: float

    @classmethod
    def against(cls, C: Array, M: Array, bound: float) -> Adversary:
        """<C, M> and <C, M> / |C| of a member ``M``; the mean is NaN where C is zero everywhere."""
        value, total = float(np.sum(C * M)), float(C.sum())
        frozen = M.view()
        frozen.flags.writeable = False
        return cls(frozen, value, value / total if total > 0 else float("nan"), bound)

    def __repr__(self) -> str:
        return f"Adversary(value {self.value:.6g}, bound {self.bound:.6g}, mean {self.mean:.6g})"


@dataclass(frozen=True, eq=False)
class VersionSpace:
    """V(0, beta, S; class) = {M in class : |M_x| <= 1, sum_S w_x M_x^2 <= beta}, w = counts / N.

    Parameters
    ----------
    observations : where the matrix was seen and how often; their values play no part.
    beta : largest mean square on the observed cells, 0 or more.
    matrix_class : ``MaxNorm(K)`` or ``TraceNorm(tau)``.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> seen = sf.Observations([0, 0, 1], [0, 1, 1], [1.0, 0.5, 0.2])
    >>> space = sf.VersionSpace(seen, beta=0.01, matrix_class=sf.MaxNorm(1.0))
    >>> bool(space.contains(np.array([[0.0, 0.0], [1.0, 0.0]])))
    True
    >>> round(space.maximize(np.array([[0.0, 0.0], [1.0, 0.0]])).value, 2)
    1.0
    """

    observations: Observations
    beta: float
    matrix_class: MatrixClass

    def __post_init__(self) -> None:
        if not 0 <= self.beta < np.inf:
            raise invalid_parameter("VersionSpace", "beta", "a finite number of at least 0", self.beta)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of the observed matrix."""
        return self.observations.shape

    def mean_square(self, M: Array) -> float:
        """sum_S w_x M_x^2, the paper's loss of M against zero on the sample."""
        seen = self.observations
        return float(np.sum(seen.weights * M[seen.rows, seen.cols] ** 2))

    def contains(self, M: ArrayLike) -> Membership:
        """Whether ``M`` is in V, and by how much each condition is exceeded (the norm by its upper bound)."""
        A = as_matrix(M, "M", self.shape)
        rank = self.matrix_class.rank
        beyond = np.linalg.svd(A, compute_uv=False)[rank:] if rank is not None else np.zeros(0)
        return Membership(
            norm=max(0.0, self.matrix_class.norm(A).upper - self.matrix_class.radius),
            rank=float(beyond.max(initial=0.0)),
            box=max(0.0, float(np.abs(A).max()) - 1),
            ball=max(0.0, self.mean_square(A) - self.beta),
        )

    def maximize(self, C: Any, *, starts: int = 4, random_state: int = 0) -> Adversary | FactoredAdversary:
        """sup over M in V of <C, M>, the separation oracle of MP 2, for a non-negative ``C``.

        Small convex problems go to the conic solver; all others are searched in factored form from ``starts`` random
        starts, the best of which is returned. Either way M is exactly a member, and ``bound`` is what no member of the
        class exceeds: certified for the convex class, infinite where the class has a rank.

        ``C`` is a matrix, a confidence, or anything with ``block(rows, cols)`` and ``coverage``.
        """
        if not self._uses_conic_solver():
            from surefill.spaces.separation_oracle import best_responses  # which needs this class

            given = C if hasattr(C, "block") else self._checked(C)
            return best_responses(self, given, starts=starts, rng=np.random.default_rng(random_state))[0]
        weights = self._checked(C.dense() if hasattr(C, "dense") else C)
        size = float(weights.max())
        if size == 0:
            return Adversary.against(weights, np.zeros(self.shape), 0.0)
        adversaries = self._adversaries(weights / size, weights)
        return first_tight(adversaries, lambda found: found.bound - found.value, ORACLE_GAP * float(weights.sum()))

    def _checked(self, C: ArrayLike) -> Array:
        weights = as_matrix(C, "C", self.shape)
        if weights.min() < 0:
            raise InputError(f"C must be non-negative; its smallest entry is {weights.min():g}.")
        return weights

    def _uses_conic_solver(self) -> bool:
        """Whether the oracle is the conic solver: where it can be, and always for classes other than the max-norm's."""
        if isinstance(self.matrix_class, MaxNorm):
            return not CONIC_SOLVER.missing(self)
        CONIC_SOLVER.check(self)
        return True

    def _adversaries(self, scaled: Array, C: Array) -> Iterator[Adversary]:
        """A certified adversary from each attempt at the conic program; ``scaled`` is C / max(C)."""
        cp = load_cvxpy()
        model = ScaledMember(self, 1.0)
        gain = cp.sum(cp.multiply(scaled, model.matrix))
        for _ in attempts(cp.Problem(cp.Minimize(-gain), model.constraints), plan_for(self.shape)):
            yield Adversary.against(C, model.member(), float(C.max()) * model.bound(scaled))

    def bound(self, C: Any) -> float:
        """(K/2) sum(y) + sum|A| + sqrt(beta sum_S Z_x^2 / w_x) >= sup over V of <C, M>, if C = B + Z + A.

        Here diag(y) - [[0, B], [B^T, 0]] is PSD; tau |B|_2 takes the first term's place for the trace norm.
        The split comes from the dual variables of :meth:`maximize` and y is raised until the condition holds, so the
        bound is valid whatever the solver's accuracy. A class with a rank lies in the one without, whose bound it is.
        """
        if isinstance(self.matrix_class, MaxNorm) and self.matrix_class.rank is not None:
            return replace(self, matrix_class=MaxNorm(self.matrix_class.K)).bound(C)
        return self.maximize(C, starts=1).bound

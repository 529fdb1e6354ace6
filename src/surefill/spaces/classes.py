"""The paper's matrix classes, max-norm and trace-norm balls: where the truth and the adversaries are taken from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.errors import invalid_parameter
from surefill.spaces.certificates import bound_dual_max_norm, max_norm_of_factors, trace_norm_of_factors
from surefill.spaces.conic_model import load_cvxpy
from surefill.spaces.norms import NormValue, max_norm, trace_norm


@dataclass(frozen=True)
class MaxNorm:
    """{M : max-norm(M) <= K}, and rank(M) <= rank when a rank is given (the paper's M^max_K).

    Without a rank the class is convex and every answer about it can be certified; with one it is smaller,
    holds more coverage, and is not convex.

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> sf.MaxNorm(K=1.0).description
    'matrices of max-norm at most 1'
    >>> sf.MaxNorm(K=1.0).norm(np.ones((2, 2))).upper <= 1 + 1e-6
    True
    """

    K: float
    rank: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.K < np.inf:
            raise invalid_parameter("MaxNorm", "K", "a positive finite number", self.K)
        if self.rank is not None and (self.rank != int(self.rank) or self.rank < 1):
            raise invalid_parameter("MaxNorm", "rank", "None or an integer of at least 1", self.rank)

    @classmethod
    def of_rank(cls, rank: int) -> MaxNorm:
        """{M : rank(M) <= k, |M_x| <= 1}, the paper's M^rk_k with its box.

        There no matrix has a max-norm above sqrt(k) (section 2.1), so that the limit on the norm takes nothing away
        from the matrices in the box, within which every :class:`VersionSpace` lies.

        >>> MaxNorm.of_rank(4)
        MaxNorm(K=2.0, rank=4)
        """
        return cls(math.sqrt(rank), rank)

    @property
    def radius(self) -> float:
        """K, the largest norm in the class and so the largest entry."""
        return self.K

    @property
    def convex(self) -> bool:
        """Whether the class is convex: matrices of limited rank are not."""
        return self.rank is None

    @property
    def description(self) -> str:
        """The class in words."""
        limit = "" if self.rank is None else f" and rank at most {self.rank}"
        return f"matrices of max-norm at most {self.K:g}{limit}"

    def within_box(self, shape: tuple[int, int]) -> MaxNorm:
        """The class of the smallest K and rank that holds the same matrices of ``shape`` with entries |M_x| <= 1.

        One of rank k has max-norm at most sqrt(k) (section 2.1), reached by factors of k columns (John's ellipsoid).
        """
        rank = None if self.rank is None else min(self.rank, *shape)
        return MaxNorm(min(self.K, math.sqrt(rank or min(shape))), rank)

    def norm(self, M: ArrayLike) -> NormValue:
        """The max-norm of ``M``, certified."""
        return max_norm(M)

    def norm_of_factors(self, U: Array, V: Array) -> float:
        """|U|_{2,inf} |V|_{2,inf}, an upper bound on the max-norm of U V^T."""
        return max_norm_of_factors(U, V)

    def limit_gram(self, gram: Any, scale: Any) -> Any:
        """diag(G) <= lambda K, as a cvxpy constraint."""
        return load_cvxpy().diag(gram) <= scale * self.K

    def bound_dual_norm(self, B: Array, multipliers: Array) -> float:
        """At least sup of <B, M> over max-norm(M) <= 1; ``multipliers`` are twice those of ``limit_gram``."""
        return bound_dual_max_norm(B, multipliers)


@dataclass(frozen=True)
class TraceNorm:
    """{M : trace-norm(M) <= tau}, the sum of singular values (the paper's M^tr_tau).

    Examples
    --------
    >>> import surefill as sf
    >>> import numpy as np
    >>> sf.TraceNorm(tau=2.0).description
    'matrices of trace norm at most 2'
    >>> round(sf.TraceNorm(tau=2.0).norm(np.ones((2, 2))).value, 6)
    2.0
    """

    tau: float
    rank: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not 0 < self.tau < np.inf:
            raise invalid_parameter("TraceNorm", "tau", "a positive finite number", self.tau)

    @property
    def radius(self) -> float:
        """tau, the largest norm in the class and so the largest entry."""
        return self.tau

    @property
    def convex(self) -> bool:
        """True: a norm's ball is convex."""
        return True

    @property
    def description(self) -> str:
        """The class in words."""
        return f"matrices of trace norm at most {self.tau:g}"

    def norm(self, M: ArrayLike) -> NormValue:
        """The trace norm of ``M``, certified."""
        return trace_norm(M)

    def norm_of_factors(self, U: Array, V: Array) -> float:
        """|U|_F |V|_F, an upper bound on the trace norm of U V^T."""
        return trace_norm_of_factors(U, V)

    def limit_gram(self, gram: Any, scale: Any) -> Any:
        """trace(G) <= 2 lambda tau, as a cvxpy constraint."""
        return load_cvxpy().trace(gram) <= 2 * scale * self.tau

    def bound_dual_norm(self, B: Array, multipliers: Array) -> float:
        """|B|_2 = sup of <B, M> over trace-norm(M) <= 1; no multiplier is needed."""
        return float(np.linalg.norm(B, 2))


MatrixClass = MaxNorm | TraceNorm

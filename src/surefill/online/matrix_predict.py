"""Ways to update the matrix of :class:`SimplifiedODD`: what could the unseen entries be, at worst?

A ``MatrixPredict`` is a callable (C_t, M_t, cells) -> M_(t+1), ``cells`` the rows and columns observed in the round.
<C, M> must measure disagreement: larger where less is known. Both given here are adversaries: M is half
the difference of two completions, small where the matrix was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.data.observations import Observations
from surefill.errors import invalid_parameter
from surefill.spaces.augmented_lagrangian import Limits
from surefill.spaces.classes import MaxNorm
from surefill.spaces.spheres import Spheres
from surefill.spaces.stage import LinearPayoff, Stage
from surefill.spaces.version_space import VersionSpace

Cells = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows and columns of what was observed in one round, usually one of each."""


class MatrixPredict(Protocol):
    """``matrix-predict`` of the paper's Simplified ODD, which may keep a memory of its own.

    Examples
    --------
    >>> import numpy as np
    >>> matrix_predict: MatrixPredict = GradientAdversary(rank=2)
    >>> matrix_predict(np.full((2, 2), 0.25), np.zeros((2, 2)), (0, 0)).shape
    (2, 2)
    """

    def __call__(self, C: Array, M: Array, cells: Cells) -> Array:
        """M_(t+1) from C_t and M_t after observations at ``cells``."""
        ...

    def state(self) -> dict[str, Any]:
        """Its memory, as numbers and arrays."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a memory that :meth:`state` described."""
        ...


@dataclass
class BestResponse:
    """M = argmax of <C_t, M> over max-norm(M) <= K, |M_x| <= 1, mean square at most ``beta`` on the cells seen so far.

    A factored ascent of the given ``rank``, warm from the last answer and continued for ``iterations`` every
    ``every`` rounds; in between the matrix stays. O(mn rank iterations / every) a round.

    Examples
    --------
    >>> import surefill as sf
    >>> game = sf.SimplifiedODD((4, 3), matrix_predict=BestResponse(rank=2)).learn_many([0, 1, 2], [0, 1, 2])
    >>> game.confidence().shape
    (4, 3)
    """

    K: float = 1.0
    beta: float = 0.01
    rank: int = 8
    every: int = 10
    iterations: int = 15
    random_state: int = 0
    _counts: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _variables: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    _ball: Array = field(default_factory=lambda: np.zeros(1), repr=False)
    _rounds: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        for name in ("K", "beta", "rank", "every", "iterations"):
            if not getattr(self, name) > 0:
                raise invalid_parameter(type(self).__name__, name, "a positive number", getattr(self, name))

    def __call__(self, C: Array, M: Array, cells: Cells) -> Array:
        """The response to C_t, solved again every so many rounds."""
        if self._counts.shape != C.shape:
            self._counts = np.zeros(C.shape)
        np.add.at(self._counts, cells, 1)
        self._rounds += 1
        return self._respond(C) if self._rounds % self.every == 1 or self.every == 1 else M

    def _respond(self, C: Array) -> Array:
        shape = (C.shape[0], C.shape[1])
        rows, cols = np.nonzero(self._counts)
        counts = self._counts[rows, cols].astype(np.int64)
        seen = Observations(rows, cols, np.zeros(len(rows)), shape, (-1.0, 1.0), counts=counts)
        spheres = Spheres(shape, self.K, 1, self.rank)
        if not self._variables.size:
            self._variables = spheres.random(np.random.default_rng(self.random_state))
        stage = Stage(spheres, Limits(VersionSpace(seen, self.beta, MaxNorm(self.K)), 1, self._ball))
        payoff = LinearPayoff(C, shape, shape[0] * shape[1] / C.sum(), 1, np.float64)
        self._variables, point = stage.run(self._variables, payoff, self.iterations)
        self._ball = stage.limits.ball
        left, right = stage.limits.members(point)
        M: Array = left @ right.T
        return M

    def state(self) -> dict[str, Any]:
        """Counts, variables, the ball's multiplier and the rounds."""
        return {
            "counts": self._counts.copy(), "variables": self._variables.copy(), "ball": self._ball.copy(),
            "rounds": self._rounds,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a memory."""
        self._counts, self._variables, self._ball = (np.array(state[name]) for name in ("counts", "variables", "ball"))
        self._rounds = int(state["rounds"])


@dataclass
class GradientAdversary:
    """M = U V' with rows of at most sqrt(K): one step up <C_t, M>, and down M_x^2 at every cell seen so far.

        u_i += eta [(mn C_t - pull W M) V]_i / (n + pull W_i),    v_j alike,    then rows are cut to sqrt(K),

    with W = 1 where the matrix was seen, W_i the number of such cells in row i: cells are remembered, so an old
    observation keeps its hold. mn C_t has mean 1 and the divisor is the row's curvature, so eta and pull mean the same
    at every size. O(mn rank) a round.

    Examples
    --------
    >>> import surefill as sf
    >>> game = sf.SimplifiedODD((4, 3), matrix_predict=GradientAdversary(rank=2)).learn_many([0, 1, 2], [0, 1, 2])
    >>> game.confidence().shape
    (4, 3)
    """

    K: float = 1.0
    rank: int = 8
    eta: float = 0.5
    pull: float = 20.0
    random_state: int = 0
    _seen: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _left: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _right: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    def __post_init__(self) -> None:
        for name in ("K", "rank", "eta", "pull"):
            if not getattr(self, name) > 0:
                raise invalid_parameter(type(self).__name__, name, "a positive number", getattr(self, name))

    def __call__(self, C: Array, M: Array, cells: Cells) -> Array:
        """One gradient step of both factors."""
        m, n = C.shape
        if self._seen.shape != C.shape:
            rng = np.random.default_rng(self.random_state)
            self._seen = np.zeros(C.shape)
            self._left, self._right = (self._shorten(rng.normal(size=(size, self.rank))) for size in C.shape)
        self._seen[cells] = 1.0
        gradient = m * n * C - self.pull * self._seen * (self._left @ self._right.T)
        rows, cols = n + self.pull * self._seen.sum(axis=1), m + self.pull * self._seen.sum(axis=0)
        left = self._shorten(self._left + self.eta * (gradient @ self._right) / rows[:, None])
        self._right = self._shorten(self._right + self.eta * (gradient.T @ self._left) / cols[:, None])
        self._left = left
        return self._left @ self._right.T

    def _shorten(self, rows: Array) -> Array:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True) / np.sqrt(self.K)
        shortened: Array = rows / np.maximum(1.0, lengths)
        return shortened

    def state(self) -> dict[str, Any]:
        """Cells seen and factors."""
        return {"seen": self._seen.copy(), "left": self._left.copy(), "right": self._right.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a memory."""
        self._seen, self._left, self._right = (np.array(state[name]) for name in ("seen", "left", "right"))

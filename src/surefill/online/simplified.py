"""Simplified ODD, the paper's implementation, and two update functions for its matrix (``matrix-predict``).

C takes mirror steps on r~_t(C) = alpha H(C) - <C, M_t>; M is updated by any :class:`MatrixPredict`, a callable
(C_t, M_t, cells, values) -> M_(t+1), ``cells`` and ``values`` what was revealed in the round. <C, M> must measure
disagreement: larger where less is known. Both given here, :class:`BestResponse` and :class:`GradientAdversary`, are
adversaries: M is half the difference of two completions, small at the cells observed, and values play no part.
``completion_pair.py`` makes one of any completion algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array, Indices
from surefill.data.checks import as_cells
from surefill.data.observations import Observations
from surefill.errors import InputError, invalid_parameter, is_seed
from surefill.online.parameters import require_positive, require_shape
from surefill.online.players import EntropyPlayer
from surefill.online.projections import project_euclidean
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.classes import MaxNorm
from surefill.spaces.confidence_matrix import DenseConfidence
from surefill.spaces.spheres import Spheres
from surefill.spaces.stage import LinearObjective, Stage
from surefill.spaces.version_space import VersionSpace

CellIndices = tuple[Indices, Indices]
"""Rows and columns observed in one round, usually one of each."""

STATE_PREFIX = "predict_"
"""What the names of the update function's arrays begin with in :meth:`SimplifiedODD.state`."""


class MatrixPredict(Protocol):
    """``matrix-predict`` of the paper's Simplified ODD: any function of what was played and revealed.

    One that remembers anything, and whose game is to be saved, has ``state()`` and ``restore(state)`` besides.

    Examples
    --------
    >>> import numpy as np
    >>> matrix_predict: MatrixPredict = GradientAdversary(rank=2)
    >>> matrix_predict(np.full((2, 2), 0.25), np.zeros((2, 2)), (0, 0), 0.5).shape
    (2, 2)
    """

    def __call__(self, C: Array, M: Array, cells: CellIndices, values: Array) -> Array:
        """M_(t+1) from C_t and M_t after ``values``, on [-1, 1], were revealed at ``cells``."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """A :class:`MatrixPredict` with a state of its own."""

    def state(self) -> dict[str, Any]:
        """Its state, as numbers and arrays."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state`."""
        ...


@dataclass
class BestResponse:
    """M = argmax of <C_t, M> over max-norm(M) <= K, |M_x| <= 1, mean square at most ``beta`` on the cells so far.

    Every ``every`` rounds the factored augmented Lagrangian of rank ``rank`` runs for ``iterations`` from its last
    iterate; in between the matrix stays. O(mn rank iterations / every) a round on average.

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
    _multiplier: Array = field(default_factory=lambda: np.zeros(1), repr=False)
    _rounds: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        names = ("K", "beta", "rank", "every", "iterations")
        require_positive("BestResponse", **{name: getattr(self, name) for name in names})

    def __call__(self, C: Array, M: Array, cells: CellIndices, values: Array) -> Array:
        """The best response to C_t in the rounds 1, 1 + every, 1 + 2 every, ...; M_t in the others."""
        if self._counts.shape != C.shape:
            self._counts = np.zeros(C.shape)
        np.add.at(self._counts, cells, 1)
        self._rounds += 1
        return self._respond(C) if self._rounds % self.every == 1 or self.every == 1 else M

    def _respond(self, C: Array) -> Array:
        shape = (C.shape[0], C.shape[1])
        rows, cols = np.nonzero(self._counts)
        counts = self._counts[rows, cols].astype(np.int64)
        zeros = Observations(rows, cols, np.zeros(len(rows)), shape, (-1.0, 1.0), counts=counts)
        spheres = Spheres(shape, self.K, 1, self.rank)
        if not self._variables.size:
            self._variables = spheres.random(np.random.default_rng(self.random_state))
        stage = Stage(spheres, AugmentedLagrangian(VersionSpace(zeros, self.beta, MaxNorm(self.K))))
        # C scaled to mean 1, so that the solver sees the same numbers at every size
        objective = LinearObjective(C, shape, shape[0] * shape[1] / C.sum(), 1, np.float64)
        start = Multipliers(self._multiplier)
        self._variables, multipliers, point = stage.run(self._variables, start, objective, self.iterations)
        self._multiplier = multipliers.ball
        left, right = stage.lagrangian.members(point)
        M: Array = left @ right.T
        return M

    def state(self) -> dict[str, Any]:
        """Counts of the cells, the factors' variables, the multiplier of the mean square, and the rounds."""
        return {
            "counts": self._counts.copy(),
            "variables": self._variables.copy(),
            "multiplier": self._multiplier.copy(),
            "rounds": self._rounds,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state`."""
        self._counts, self._variables = np.array(state["counts"]), np.array(state["variables"])
        self._multiplier = np.array(state["multiplier"])
        self._rounds = int(state["rounds"])


@dataclass
class GradientAdversary:
    """M = U V' with rows of norm at most sqrt(K): one gradient step a round on <mn C_t, M> - (penalty / 2) |W o M|_F^2.

        u_i += eta [(mn C_t - penalty W o M) V]_i / (n + penalty W_i),    v_j alike,    then rows are projected,

    with W = 1 at the cells observed so far and 0 elsewhere, W_i the sum of its row i: old observations keep their
    weight. mn C_t has mean 1 and the divisor has the order of the row's curvature, so that eta and penalty mean the
    same at every size. O(mn rank) a round.

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
    penalty: float = 20.0
    random_state: int = 0
    _observed: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _left: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _right: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    def __post_init__(self) -> None:
        names = ("K", "rank", "eta", "penalty")
        require_positive("GradientAdversary", **{name: getattr(self, name) for name in names})

    def __call__(self, C: Array, M: Array, cells: CellIndices, values: Array) -> Array:
        """One gradient step of both factors."""
        m, n = C.shape
        if self._observed.shape != C.shape:
            rng = np.random.default_rng(self.random_state)
            self._observed = np.zeros(C.shape)
            self._left, self._right = (self._project_rows(rng.normal(size=(size, self.rank))) for size in C.shape)
        self._observed[cells] = 1.0
        gradient = m * n * C - self.penalty * self._observed * (self._left @ self._right.T)
        rows, cols = n + self.penalty * self._observed.sum(axis=1), m + self.penalty * self._observed.sum(axis=0)
        left = self._project_rows(self._left + self.eta * (gradient @ self._right) / rows[:, None])
        self._right = self._project_rows(self._right + self.eta * (gradient.T @ self._left) / cols[:, None])
        self._left = left
        return self._left @ self._right.T

    def _project_rows(self, rows: Array) -> Array:
        relative_norms = np.linalg.norm(rows, axis=1, keepdims=True) / np.sqrt(self.K)
        projected: Array = rows / np.maximum(1.0, relative_norms)
        return projected

    def state(self) -> dict[str, Any]:
        """Cells observed so far, and the factors."""
        return {"observed": self._observed.copy(), "left": self._left.copy(), "right": self._right.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state`."""
        self._observed, self._left, self._right = (np.array(state[name]) for name in ("observed", "left", "right"))


class SimplifiedODD:
    """Simplified ODD: mirror ascent of C on r~_t(C) = alpha H(C) - <C, M_t>, projected, and any update of M.

        C^_(t+1) = C_t^(1 - eta alpha) exp(-eta (alpha + M_t)),    C_(t+1) = its Euclidean projection onto the simplex,

    and C-bar = (C_1 + ... + C_T) / T. There is no regret bound. Values count only if ``matrix_predict`` looks at them.

    Parameters
    ----------
    shape : (m, n).
    matrix_predict : (C_t, M_t, cells, values) -> M_(t+1), larger where less is known: a :class:`GradientAdversary`
        where None, a :class:`BestResponse`, a :class:`CompletionPair` of any completion algorithm, or your own.
    eta : step size of the mirror ascent.
    alpha : weight of the entropy. Small, since entropy and Euclidean projection do not match: C collapses onto a few
        cells unless alpha log(mn) is below the typical M (docs/mathematics.md, "The online game").

    Examples
    --------
    >>> game = SimplifiedODD((4, 3), eta=0.1, alpha=0.01)
    >>> round(float(game.learn_many([0, 1, 1], [0, 1, 2]).average.sum()), 12)
    1.0
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        matrix_predict: MatrixPredict | None = None,
        eta: float = 0.02,
        alpha: float = 0.01,
    ) -> None:
        require_shape("SimplifiedODD", shape)
        require_positive("SimplifiedODD", eta=eta, alpha=alpha)
        if eta * alpha > 1:
            raise invalid_parameter("SimplifiedODD", "eta", "at most 1 / alpha, beyond which steps overshoot", eta)
        self.shape, self.eta, self.alpha = (int(shape[0]), int(shape[1])), float(eta), float(alpha)
        self.matrix_predict: MatrixPredict = GradientAdversary() if matrix_predict is None else matrix_predict
        self.rounds = 0
        self.C = np.full(self.shape, 1.0 / (self.shape[0] * self.shape[1]))
        self.M = np.zeros(self.shape)
        self.total = np.zeros(self.shape)

    def learn_one(self, i: int, j: int, o: float = 0.0) -> Self:
        """One round: the value ``o``, on [-1, 1], was observed at row ``i`` and column ``j``."""
        return self.learn_many([i], [j], [o])

    def learn_many(
        self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike | None = None, *, per_round: int = 1
    ) -> Self:
        """One round for each ``per_round`` observations, in their order; values that are left out are zero.

        A round costs O(mn) however many observations it has, so that several of them pay off on large matrices.
        """
        if not is_seed(per_round) or per_round < 1:
            raise invalid_parameter("SimplifiedODD", "per_round", "a whole number of at least 1", per_round)
        given = np.zeros(np.shape(rows)) if values is None else values
        i, j, o = as_cells(self.shape, rows, cols, given)
        for start in range(0, len(i), per_round):
            part = slice(start, start + per_round)
            self._play_round((i[part], j[part]), o[part])
        return self

    def _play_round(self, cells: CellIndices, values: Array) -> None:
        self.total += self.C
        self.rounds += 1
        M = self.matrix_predict(self.C, self.M, cells, values)
        if np.shape(M) != self.shape:
            raise InputError(f"matrix_predict must return an array of shape {self.shape}, not {np.shape(M)}.")
        # grad R(C^) = grad R(C) + eta grad r~(C), R = -H, solved for C^
        stepped = self.C ** (1 - self.eta * self.alpha) * np.exp(-self.eta * (self.alpha + self.M))
        self.C, self.M = project_euclidean(stepped), M

    @property
    def average(self) -> Array:
        """C-bar, the mean of C_1, ..., C_T; C_1 before the first round."""
        return self.total / self.rounds if self.rounds else self.C.copy()

    def confidence(self) -> DenseConfidence:
        """min(1, e^H(C-bar) C-bar_x): 1 on the support of a uniform distribution, 0 off it."""
        return DenseConfidence(EntropyPlayer(self.shape, self.alpha).to_unit(self.average))

    def state(self) -> dict[str, Any]:
        """The whole game as numbers and arrays; :meth:`from_state` goes on from it to the bit."""
        remembered = self.matrix_predict.state() if isinstance(self.matrix_predict, Remembers) else {}
        predictor = {f"{STATE_PREFIX}{name}": value for name, value in remembered.items()}
        own = {"C": self.C.copy(), "M": self.M.copy(), "total": self.total.copy(), "rounds": self.rounds}
        return {"shape": self.shape, "eta": self.eta, "alpha": self.alpha, **own, **predictor}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], matrix_predict: MatrixPredict) -> SimplifiedODD:
        """The game that had this :meth:`state`; ``matrix_predict`` has the same parameters and gets its state back."""
        game = cls(tuple(state["shape"]), matrix_predict=matrix_predict, eta=state["eta"], alpha=state["alpha"])
        game.C, game.M, game.total = (np.array(state[name]) for name in ("C", "M", "total"))
        game.rounds = int(state["rounds"])
        if isinstance(matrix_predict, Remembers):
            matrix_predict.restore(
                {name.removeprefix(STATE_PREFIX): state[name] for name in state if name.startswith(STATE_PREFIX)}
            )
        return game

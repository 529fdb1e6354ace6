"""Online Dual Descent: confidence and completions from a stream of observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.data.checks import as_indices, checked_cells
from surefill.errors import invalid_parameter
from surefill.online.exact_game import ExactGame
from surefill.online.factored_play import FactoredPlay
from surefill.online.parameters import OWNER, GameOptions
from surefill.spaces.confidence_matrix import Confidence


class Game(Protocol):
    """What the facade needs of a game."""

    def learn(self, rows: NDArray[np.int64], cols: NDArray[np.int64], values: Array) -> None:
        """One round for each observation, in their order."""
        ...

    def confidence(self) -> Confidence:
        """The averaged confidence, in [0, 1]."""
        ...

    def predict(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Array:
        """Values at the given cells."""
        ...

    def regret(self) -> Any:
        """Regret so far."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything the game is, as numbers, words and arrays."""
        ...


GAMES: dict[str, tuple[Callable[[GameOptions], Game], Callable[[Mapping[str, Any]], Game]]] = {
    "mmw": (ExactGame, ExactGame.from_state),
    "factored": (FactoredPlay, FactoredPlay.from_state),
}
"""For each ``matrix``: how its game is begun, and how it is continued from a state."""


class OnlineDualDescent:
    """ODD of the paper: two players on h_t(C, M) = H(C) - alpha G(C, M) + alpha theta f_t(M).

    G(C, M) = <C, M^1 - M^2> is how far two completions that fit differ where one is confident, and
    f_t(M) = (M^1_x - o)^2 + (M^2_x - o)^2 how well they fit the value o seen at x. The confidence player raises h_t,
    the matrix player lowers it; both move before the observation is shown.

    Parameters
    ----------
    shape : (m, n).
    K : max-norm of the matrices considered; 1 holds every matrix of rank 1 with entries in [-1, 1].
    alpha, theta : weights of disagreement and misfit; the theorem's for ``delta`` where not given.
    confidence : "entropy", H(C) = -sum C log C on the simplex, or "cube", H(C) = |C| on [0, (m + n)^(-3/2)].
    matrix : "mmw", the paper's matrix multiplicative weights, O((m + n)^3) a round; or "factored", a low-rank player
        for long streams and large matrices (:class:`FactoredGame`), with ``observations="zero"``, nothing m x n, no
        regret, and alpha and theta on the scale of a confidence in [0, 1].
    observations : "values" keeps two completions; "zero" takes every observation for zero and keeps one matrix, the
        radius of what still fits, at half the price.
    horizon : number of rounds, from which the theorem's steps follow. Without it, and without steps given by hand,
        the game is begun anew in epochs of doubling length.
    eta_confidence, eta_matrix : steps of the two players, by hand.
    delta : accuracy from which alpha and theta follow.
    tolerance : how exactly each projection of the matrix player is solved.

    Notes
    -----
    The theorem's own parameters make the first useful confidence wait for some 10^3 K^2 (m + n) / delta^2 rounds; see
    docs/mathematics.md, "The online game", for steps that show one after a pass over the data.

    Examples
    --------
    >>> game = OnlineDualDescent((4, 3), K=1.0, alpha=1.0, theta=1.0, eta_confidence=0.1, eta_matrix=0.2)
    >>> game.learn_one(0, 1, 0.5).learn_many([1, 2], [0, 2], [1.0, -1.0]).rounds
    3
    >>> game.confidence().shape
    (4, 3)
    """

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        K: float = 1.0,
        alpha: float | None = None,
        theta: float | None = None,
        confidence: str = "entropy",
        matrix: str = "mmw",
        observations: str = "values",
        horizon: int | None = None,
        eta_confidence: float | None = None,
        eta_matrix: float | None = None,
        delta: float = 0.1,
        tolerance: float = 1e-8,
    ) -> None:
        if matrix not in GAMES:
            raise invalid_parameter(OWNER, "matrix", " or ".join(map(repr, GAMES)), matrix)
        if matrix == "factored":
            alpha, theta = FactoredPlay.weights(alpha, theta)
        self.options = GameOptions.resolve(
            shape, K, alpha, theta, delta, confidence=confidence, observations=observations, horizon=horizon,
            eta_confidence=eta_confidence, eta_matrix=eta_matrix, tolerance=tolerance,
        )  # fmt: skip
        self.matrix = matrix
        self.rounds = 0
        self.game: Any = GAMES[matrix][0](self.options)

    def learn_one(self, i: int, j: int, o: float) -> Self:
        """One round: the value ``o``, on [-1, 1], was seen at row ``i`` and column ``j``."""
        return self.learn_many([i], [j], [o])

    def learn_many(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> Self:
        """One round for each observation, in their order; nothing is learned if one of them is refused."""
        cells = checked_cells(self.options.shape, rows, cols, values)
        self.game.learn(*cells)
        self.rounds += len(cells[0])
        return self

    @property
    def average(self) -> Array:
        """C-bar, the mean of the confidences played, on the player's own scale (adds up to 1 on the simplex; "mmw")."""
        average: Array = self.game.average
        return average

    def confidence(self) -> Confidence:
        """C-bar in [0, 1]: min(1, e^H(C-bar) C-bar_x) with the entropy, C-bar_x (m + n)^(3/2) on the cube.

        With the entropy it is relative to the support found so far: 1 everywhere before a round was played.
        """
        confidence: Confidence = self.game.confidence()
        return confidence

    def predict(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """The middle of the two completions, averaged over rounds, at the given cells; on [-1, 1]."""
        values: Array = self.game.predict(as_indices("rows", rows), as_indices("cols", cols))
        return values

    def regret(self) -> Any:
        """Both players' regret so far against the best fixed decision in hindsight, beside the theorem's bounds."""
        return self.game.regret()

    def state(self) -> dict[str, Any]:
        """The whole game as numbers, words and arrays; :meth:`from_state` goes on from it to the bit."""
        return {**self.game.state(), "matrix": self.matrix, "rounds": self.rounds}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> OnlineDualDescent:
        """The game that ``state`` describes."""
        game = cls.__new__(cls)
        game.matrix, game.rounds = str(state["matrix"]), int(state["rounds"])
        game.game = GAMES[game.matrix][1](state)
        game.options = GameOptions.from_scalars(state)
        return game

    def __repr__(self) -> str:
        m, n = self.options.shape
        return f"OnlineDualDescent({m} x {n}, {self.options.confidence}, {self.matrix}, after {self.rounds} rounds)"

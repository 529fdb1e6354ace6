"""Online Dual Descent: confidence and completions from a stream of observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import ArrayLike

from surefill.arrays import Array
from surefill.data.checks import as_cells, as_indices
from surefill.errors import InputError, invalid_parameter
from surefill.online.exact_game import ExactGame
from surefill.online.factored_game import FactoredGame
from surefill.online.parameters import OWNER, GameOptions, require_one_of
from surefill.online.regret import GameRegret
from surefill.spaces.confidence_matrix import Confidence

MATRIX_PLAYERS = ("mmw", "factored")
"""Matrix multiplicative weights (:class:`ExactGame`), stochastic descent on thin factors (:class:`FactoredGame`)."""

STATE_PREFIX = "game_"
"""What the names of the game's own arrays begin with in :meth:`OnlineDualDescent.state`."""


class OnlineDualDescent:
    """Online Dual Descent (Algorithm ODD): two players on h_t(C, M) = H(C) - alpha G(C, M) + alpha theta f_t(M).

    G(C, M) = <C, M^1 - M^2> is the disagreement of two completions where C is confident, and
    f_t(M) = (M^1_x - o)^2 + (M^2_x - o)^2 their misfit to the value o observed at x. The confidence player maximises
    h_t, the matrix player minimises it; both decide before the observation is revealed.

    Parameters
    ----------
    shape : (m, n).
    K : max-norm of the matrices considered; 1 holds every matrix of rank 1 with entries in [-1, 1].
    alpha, theta : weights of disagreement and misfit; the theorem's for ``delta``, or without it 2 and D, the largest
        |C|_1 (:func:`usual_weights`).
    confidence : "entropy", H(C) = -sum C log C on the simplex, or "cube", H(C) = |C| on [0, (m + n)^(-3/2)].
    matrix : "mmw", the paper's matrix multiplicative weights, O((m + n)^3) a round; or "factored", a low-rank player
        for long streams and large matrices (:class:`FactoredGame`), which takes ``eta_matrix``, and alpha and theta on
        the scale of a confidence in [0, 1]. It forms no m x n array and looks at no values, so that :attr:`average`,
        :meth:`predict` and :meth:`regret` need "mmw".
    observations : "zero" takes every observation for zero and keeps one matrix, half the difference of two completions;
        what is proved of C then holds for squared errors. "values" keeps two completions and can predict, at twice
        the cost; what is proved of C is then about G alone, and rows never seen can get a confidence near 1.
        See :meth:`confidence`.
    delta : accuracy of the theorem "Offline implications": alpha, theta and step sizes are then the theorem's.
    horizon : number of rounds for which step sizes are chosen. With ``delta`` and without it, both players restart in
        epochs of doubling length.
    eta_confidence, eta_matrix : step sizes of the two players; without them, ``delta`` and ``horizon``
        1 / (4 alpha) on the simplex or (m + n)^(-3/2) / (1 + 2 alpha) on the cube, and 1 / (theta K), the longest with
        which neither overshoots; the last is longer than the regret's bound covers.
    tol : largest violation of a constraint that each projection of the matrix player may leave.

    Notes
    -----
    The theorem's own parameters make the first useful confidence wait for some 10^2 K^2 (m + n) / delta^2 rounds; the
    defaults show one after a pass over the data (docs/mathematics.md, "Usual weights and steps").

    Examples
    --------
    >>> game = OnlineDualDescent((4, 3))
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
        observations: str = "zero",
        delta: float | None = None,
        horizon: int | None = None,
        eta_confidence: float | None = None,
        eta_matrix: float | None = None,
        tol: float = 1e-6,
    ) -> None:
        require_one_of(OWNER, "matrix", MATRIX_PLAYERS, matrix)
        if matrix == "factored":
            # the paper's weights are for a C that sums to 1, the factored game's for one in [0, 1]
            alpha = FactoredGame.alpha if alpha is None else alpha
            theta = FactoredGame.theta if theta is None else theta
        self.options = GameOptions.resolve(
            shape, K, alpha, theta, confidence=confidence, observations=observations, delta=delta, horizon=horizon,
            eta_confidence=eta_confidence, eta_matrix=eta_matrix, tol=tol,
        )  # fmt: skip
        self.matrix = matrix
        self.rounds = 0
        self.game: ExactGame | FactoredGame = _new_game(self.options, matrix)

    def learn_one(self, i: int, j: int, o: float) -> Self:
        """One round: the value ``o``, on [-1, 1], was observed at row ``i`` and column ``j``."""
        return self.learn_many([i], [j], [o])

    def learn_many(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike) -> Self:
        """One round for each observation, in their order; nothing is learned if one of them is refused."""
        cells = as_cells(self.options.shape, rows, cols, values)
        self.game.learn(*cells)
        self.rounds += len(cells[0])
        return self

    def confidence(self) -> Confidence:
        """C-bar in [0, 1]: min(1, e^H(C-bar) C-bar_x) with the entropy, C-bar_x (m + n)^(3/2) on the cube.

        With the entropy it is relative to the support found so far: 1 everywhere before a round was played.

        What C-bar proves depends on the mode. With ``observations="zero"`` the disagreement G that the game keeps small
        bounds squared errors, sum_x C_x (M^1_x - M^2_x)^2 <= pi K sup G, for all completions M^1, M^2 that fit the
        observed values; :func:`offline_implication` says by how much. With "values" it bounds <C, M^1 - M^2> alone,
        where differences of both signs cancel: a row never seen can get a confidence near 1 (docs/mathematics.md,
        "Why zero observations"). With ``matrix="factored"`` nothing is proved of C.
        """
        return self.game.confidence()

    @property
    def average(self) -> Array:
        """C-bar, the mean of the C_t, on the confidence player's own scale (sums to 1 on the simplex; "mmw")."""
        return self.exact_game("average").average

    def predict(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """The midpoint of the two completions, averaged over rounds, at the given cells; on [-1, 1] ("mmw")."""
        return self.exact_game("predict").predict(as_indices("rows", rows), as_indices("cols", cols))

    def regret(self) -> GameRegret:
        """Both players' regret so far against the best fixed decisions, beside the theorem's bounds ("mmw")."""
        return self.exact_game("regret").regret()

    def exact_game(self, asked: str) -> ExactGame:
        """The game with dense matrices, which what was ``asked`` for needs."""
        if isinstance(self.game, ExactGame):
            return self.game
        raise InputError(
            f"{asked} needs matrix='mmw': with matrix='factored' no m x n array is formed and values are not looked at."
        )

    def state(self) -> dict[str, Any]:
        """The whole game as numbers, words and arrays; :meth:`from_state` goes on from it to the bit."""
        own = {f"{STATE_PREFIX}{name}": array for name, array in self.game.state().items()}
        return {"matrix": self.matrix, "rounds": self.rounds, **self.options.as_scalars(), **own}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The game that had this :meth:`state`."""
        odd = cls.__new__(cls)
        odd.matrix, odd.rounds = str(state["matrix"]), int(state["rounds"])
        odd.options = GameOptions.from_scalars(state)
        own = {name.removeprefix(STATE_PREFIX): state[name] for name in state if name.startswith(STATE_PREFIX)}
        odd.game = _new_game(odd.options, odd.matrix).restore(own)
        return odd

    def __repr__(self) -> str:
        m, n = self.options.shape
        return f"OnlineDualDescent({m} x {n}, {self.options.confidence}, {self.matrix}, after {self.rounds} rounds)"


def _new_game(options: GameOptions, matrix: str) -> ExactGame | FactoredGame:
    """The game before its first round; the factored one refuses options that it has no use for."""
    if matrix == "mmw":
        return ExactGame(options)
    if options.observations != "zero":
        raise invalid_parameter(OWNER, "observations", "'zero' with matrix='factored'", options.observations)
    for name in ("delta", "horizon", "eta_confidence"):
        if getattr(options, name) is not None:
            raise invalid_parameter(OWNER, name, "None with matrix='factored'", getattr(options, name))
    return FactoredGame(
        options.shape,
        options.K,
        options.alpha,
        options.theta,
        confidence_player=options.confidence,
        eta=FactoredGame.eta if options.eta_matrix is None else options.eta_matrix,
    )

"""The online game with thin factors: a step costs nothing of size m x n, and C is never formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import size_needed, with_capacity
from surefill.data.checks import as_indices
from surefill.errors import InputError, invalid_parameter, is_number, is_seed
from surefill.kernels.counter_random import stream_key
from surefill.kernels.game_play import COLS, ROWS, TIME, GameRules, GameState, grow, play
from surefill.online.game_confidence import StreamConfidence, payoff

RANDOM_STREAM = 1
MOST_SUMMED = 20_000_000

State = dict[str, Any]


@dataclass
class FactoredGame:
    """max over C, min over M:  mean_x [H(C_x) - alpha C_x M_x] + alpha theta mean_t M_{x_t}^2,  one cell x_t at a time.

    The paper's h_t (Section "Designing Convex-Concave Objectives") in its single-matrix form: all observations
    are taken to be zero and M is half the difference of two completions, so values play no part. C ranges over
    [0, 1]^X, relative to a cell that is known for certain; M = U V' over |u_i|^2, |v_j|^2 <= K, of limited rank.

    - Confidence player: against the averaged adversary Mbar its best answer is C_x = exp(-alpha Mbar_x) for the
      entropy H(c) = c (1 - log c), max(0, 1 - alpha Mbar_x) for "cube", H(c) = c - c^2 / 2; 1 where Mbar_x <= 0.
      Mbar is held as ``snapshots`` of (U, V), the recent ones weighing more: what mirror descent with a constant
      step leaves. One low-rank adversary alone is no equilibrium; their average is.
    - Matrix player: per observation ``pairs`` cells drawn uniformly push up C_x M_x, an unbiased estimate of its
      gradient, and as many cells from a uniform sample of all those observed so far pull M_x^2 to zero, each by
      an exact proximal step. The sample of ``memory`` cells is what keeps old observations in force, whatever
      their order.

    One observation costs O(pairs rank snapshots); memory is O((m + n) rank snapshots + memory). Random numbers
    are a hash of the seed and the time, so batches of any size give the same state to the bit. What is
    guaranteed: Mbar is in the max-norm ball, and its payoff bounds the game's value from above. That it is near
    the value is measured, not certified (docs/mathematics.md, "Streams"). Two completions with their own values
    are not offered here.

    Parameters
    ----------
    shape : (m, n), or None to start empty; rows and columns beyond it are added as they are observed.
    K, alpha, theta : max-norm, weight of the deviation, weight of the observations. The paper normalises C to sum
        to 1, so its theta is this one divided by the mean of C.
    rank : of the adversary; twice that of the matrix to be completed is what the theorem needs.
    confidence_player : "entropy" or "cube".
    step, pairs, snapshots, memory : step size, cells pushed and pulled per observation, snapshots and cells kept.
    random_state : same seed, same result.

    Examples
    --------
    >>> from surefill.datasets import make_blocks
    >>> sim = make_blocks((20, 20), n_groups=2, n_draws=1500, random_state=0)
    >>> game = FactoredGame(sim.observations.shape)
    >>> before = game.learn(sim.observations.rows, sim.observations.cols)
    >>> C = game.confidence().dense()
    >>> bool(C[sim.support].mean() > 3 * C[~sim.support].mean())
    True
    """

    shape: tuple[int, int] | None = None
    K: float = 1.0
    alpha: float = 3.0
    theta: float = 1.0
    rank: int = 8
    confidence_player: str = "entropy"
    step: float = 0.1
    pairs: int = 32
    snapshots: int = 8
    memory: int = 1 << 20
    random_state: int = 0

    def __post_init__(self) -> None:
        self._validate()
        slots = 1 + self.snapshots
        self._state = GameState(
            U=np.zeros((0, slots, self.rank), np.float32),
            V=np.zeros((0, slots, self.rank), np.float32),
            born_rows=np.zeros(0, np.int64),
            born_cols=np.zeros(0, np.int64),
            centre=np.ones((2, self.rank)),
            sample=np.zeros((0, 2), np.int64),
            clock=np.zeros(5, np.int64),
        )
        if self.shape is not None:
            self._make_room(*self.shape, 0)
            grow(*self.shape, self._state, self._rules)

    def _validate(self) -> None:
        for name in ("K", "alpha", "theta", "step"):
            given = getattr(self, name)
            if not (is_number(given) and 0 < given < np.inf):
                raise invalid_parameter("FactoredGame", name, "a number above 0", given)
        for name in ("rank", "pairs", "snapshots", "memory"):
            given = getattr(self, name)
            if not (is_seed(given) and given >= 1):
                raise invalid_parameter("FactoredGame", name, "a whole number of at least 1", given)
        if self.confidence_player not in ("entropy", "cube"):
            raise invalid_parameter("FactoredGame", "confidence_player", "'entropy' or 'cube'", self.confidence_player)
        if not is_seed(self.random_state):
            raise invalid_parameter("FactoredGame", "random_state", "a whole number of at least 0", self.random_state)
        if self.shape is not None and not (len(self.shape) == 2 and all(is_seed(size) and size for size in self.shape)):
            raise invalid_parameter("FactoredGame", "shape", "two whole numbers of at least 1, or None", self.shape)

    @property
    def _rules(self) -> GameRules:
        return GameRules(
            alpha=float(self.alpha),
            theta=float(self.theta),
            K=float(self.K),
            step=float(self.step),
            decay=0.2,
            spread=0.5,
            pairs=int(self.pairs),
            pace=6,
            memory=int(self.memory),
            entropic=self.confidence_player == "entropy",
            key=stream_key(int(self.random_state), RANDOM_STREAM),
        )

    def learn(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike | None = None) -> NDArray[np.float64]:
        """Observe the cells in order; returns C at each as it was before, 0 where its row or column was new.

        ``values`` are accepted, for every player is given them, and play no part in the single-matrix game.
        """
        i, j = as_indices("rows", rows), as_indices("cols", cols)
        if len(i) != len(j) or (values is not None and np.shape(values) != i.shape):
            raise InputError("rows, cols and values must have one item per observation.")
        self._make_room(size_needed(i, self._state.clock[ROWS]), size_needed(j, self._state.clock[COLS]), len(i))
        before = np.empty(len(i))
        play(i, j, self._state, self._rules, before)
        return before

    def _make_room(self, m: int, n: int, new: int) -> None:
        state = self._state
        needed = min(int(state.clock[TIME]) + new, self.memory)
        self._state = state._replace(
            U=with_capacity(state.U, m),
            V=with_capacity(state.V, n),
            born_rows=with_capacity(state.born_rows, m),
            born_cols=with_capacity(state.born_cols, n),
            sample=with_capacity(state.sample, needed)[: self.memory],
        )

    @property
    def n_observed(self) -> int:
        """How many observations were learnt."""
        return int(self._state.clock[TIME])

    @property
    def present(self) -> tuple[int, int]:
        """Rows and columns there are now."""
        return int(self._state.clock[ROWS]), int(self._state.clock[COLS])

    def confidence(self) -> StreamConfidence:
        """C as it is now; what is learnt later leaves it unchanged."""
        (m, n), state = self.present, self._state
        copied = state._replace(
            U=state.U[:m].copy(),
            V=state.V[:n].copy(),
            born_rows=state.born_rows[:m].copy(),
            born_cols=state.born_cols[:n].copy(),
            clock=state.clock.copy(),
        )
        return StreamConfidence(copied, self._rules)

    def confidence_at(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[np.float64]:
        """C at the cells as it is now, nothing copied."""
        return StreamConfidence(self._state, self._rules).at(rows, cols)

    def payoff(self) -> float:
        """The objective at Mbar and its best C, an upper bound on the game's value; by summing over all m x n cells."""
        m, n = self.present
        if m * n > MOST_SUMMED or not self.n_observed:
            raise InputError(
                f"the payoff is summed over all cells, from one observation on and up to {MOST_SUMMED:,} cells; "
                f"there are {self.n_observed} observations and {m} x {n} cells."
            )
        held = self._state.sample[: min(self.n_observed, self.memory)]
        return payoff(self.confidence(), held[:, 0], held[:, 1])

    def state(self) -> State:
        """Everything the game remembers, as arrays cut to what is in use."""
        (m, n), held = self.present, min(self.n_observed, self.memory)
        sizes = {"U": m, "V": n, "born_rows": m, "born_cols": n, "sample": held}
        return {name: array[: sizes.get(name)].copy() for name, array in self._state._asdict().items()}

    def restore(self, state: State) -> Self:
        """Go on from a :meth:`state` of a game with the same parameters; returns the game itself."""
        restored = GameState(
            **{name: np.array(state[name], fresh.dtype) for name, fresh in self._state._asdict().items()}
        )
        m, n, t = (int(restored.clock[place]) for place in (ROWS, COLS, TIME))
        slots = 1 + self.snapshots, self.rank
        expected = ((m, *slots), (n, *slots), (m,), (n,), (2, self.rank), (min(t, self.memory), 2), (5,))
        if tuple(array.shape for array in restored) != expected:
            raise InputError("this state belongs to a game with other parameters.")
        self._state = restored
        return self

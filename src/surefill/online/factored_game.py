"""The online game with thin factors: no step costs O(mn), and C is never formed.

:class:`FactoredGame` plays it, :class:`FactoredGameConfidence` is its confidence at one moment. The loops over
observations are in ``kernels/factored_descent.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from surefill.arrays import Array, Indices, as_stored, row_blocks, size_needed, with_capacity
from surefill.data.checks import as_indices
from surefill.errors import InputError, invalid_parameter, is_seed
from surefill.kernels.counter_random import stream_key
from surefill.kernels.factored_descent import (
    LAST_SNAPSHOT,
    N_COLS,
    N_OBSERVED,
    N_ROWS,
    N_SNAPSHOTS,
    GameParameters,
    GameState,
    averages_at,
    grow,
    play,
)
from surefill.online.parameters import SETTINGS, require_one_of, require_positive
from surefill.spaces.confidence_matrix import some_cells

RANDOM_STREAM = 1
"""Number of this game's random stream; a :class:`StreamingCompleter` uses others of the same seed."""

# Figures are the least AUC of C, support against the rest, over five seeds of Figure 1's two blocks of 10 x 10 with 200
# draws: in random order (0.994 with the constants as they are), and sorted by row (0.986).

SNAPSHOT_DECAY = 0.2
"""Weights of the snapshots are (1 - 0.2)^age; 0.05 gives 0.995 and 0.971, 0.6 gives 0.990 and 0.993."""

SNAPSHOT_INTERVAL = 6
"""Steps of a row between two snapshots on average; 3 gives 0.992 and 0.988, 24 gives 0.999 and 0.943."""

INIT_NOISE = 0.5
"""Uniform noise in a new row beside a mean direction of norm 1; from 0.1 to 2 both stay within 0.002."""

MAX_SUMMED_CELLS = 20_000_000
"""Cells up to which sums over all of them are exact: a few seconds at some 10^7 cells a second."""

SAMPLED_CELLS = 4_000_000
"""Cells sampled for the coverage beyond that; the standard error of the mean is then at most 0.5 / 2000."""


@dataclass(frozen=True, eq=False)
class FactoredGameConfidence:
    """C_x = exp(-alpha max(Mbar_x, 0)), or clip(1 - alpha Mbar_x, 0, 1) for "cube": 1 is a cell known for certain.

    Mbar_x is the exponentially weighted average of the adversary's snapshots since row and column appeared.
    """

    _state: GameState
    _parameters: GameParameters

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return int(self._state.counters[N_ROWS]), int(self._state.counters[N_COLS])

    def adversary_at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Mbar at the cells (rows[t], cols[t])."""
        i, j = (np.ascontiguousarray(np.atleast_1d(index), dtype=np.int64) for index in (rows, cols))
        for name, index, size in (("rows", i, self.shape[0]), ("cols", j, self.shape[1])):
            # the kernel does not check bounds
            if index.size and not (index.min() >= 0 and index.max() < size):
                raise InputError(f"{name} must be from 0 to {size - 1}.")
        out = np.empty(len(i))
        averages_at(i, j, self._state, self._parameters, out)
        return out

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """C at the cells (rows[t], cols[t])."""
        return self._best_confidence(self.adversary_at(rows, cols))

    def block(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """C at every pair of the given rows and columns, len(rows) x len(cols)."""
        i, j = np.asarray(rows), np.asarray(cols)
        return self.at(np.repeat(i, len(j)), np.tile(j, len(i))).reshape(len(i), len(j))

    def dense(self) -> Array:
        """All m x n of it; only for matrices small enough to hold."""
        return self.block(np.arange(self.shape[0]), np.arange(self.shape[1]))

    @property
    def coverage(self) -> float:
        """|C|, the sum of all confidences; estimated from four million sampled cells beyond 20 million."""
        m, n = self.shape
        if m * n > MAX_SUMMED_CELLS:
            return float(m) * n * float(self.at(*some_cells(self.shape, SAMPLED_CELLS)).mean())
        return float(sum(self.block(np.arange(m)[rows], np.arange(n)).sum() for rows in row_blocks(m, n)))

    def payoff(self, rows: Indices, cols: Indices) -> float:
        """F(Mbar) = mean_x max_c [H(c) - alpha c Mbar_x] + alpha theta mean over the given cells of Mbar_x^2."""
        (m, n), game = self.shape, self._parameters
        total = 0.0
        for block in row_blocks(m, n):
            i, j = (index.ravel() for index in np.meshgrid(np.arange(m)[block], np.arange(n), indexing="ij"))
            M = self.adversary_at(i, j)
            c = self._best_confidence(M)
            above, below = np.maximum(M, 0.0), np.minimum(M, 0.0)
            best = np.exp(-game.alpha * above) if game.entropic else c * (1.0 - c / 2 - game.alpha * above)
            # c = 1 where Mbar < 0, and H(1) is in ``best`` already
            total += float((best - game.alpha * below).sum())
        mean_square = float((self.adversary_at(rows, cols) ** 2).mean())
        return total / (float(m) * n) + game.alpha * game.theta * mean_square

    def _best_confidence(self, M: Array) -> Array:
        above = self._parameters.alpha * np.maximum(M, 0.0)
        return np.asarray(np.exp(-above) if self._parameters.entropic else np.maximum(0.0, 1.0 - above))

    def __repr__(self) -> str:
        m, n = self.shape
        return f"FactoredGameConfidence({m} x {n})"


@dataclass
class FactoredGame:
    """max over C, min over M:  mean_x [H(C_x) - alpha C_x M_x] + alpha theta mean_t M_{x_t}^2,  one cell x_t at a time.

    The paper's h_t (Section "Designing Convex-Concave Objectives") in its single-matrix form: all observations
    are taken to be zero and M is half the difference of two completions, so values play no part. C ranges over
    [0, 1]^X, relative to a cell that is known for certain; M = U V' over |u_i|^2, |v_j|^2 <= K, of limited rank.

    - Confidence player: its best response to the averaged adversary Mbar is C_x = exp(-alpha Mbar_x) for the
      entropy H(c) = c (1 - log c), max(0, 1 - alpha Mbar_x) for "cube", H(c) = c - c^2 / 2; 1 where Mbar_x <= 0.
      Mbar is the exponentially weighted average of ``n_snapshots`` of (U, V), which is what mirror descent with a
      constant step size computes. A single low-rank adversary is no equilibrium; the average is.
    - Matrix player: per observation ``batch_size`` cells drawn uniformly take a gradient step on C_x M_x, an unbiased
      estimate of its gradient, and as many from a uniform sample of all cells observed so far (reservoir sampling)
      take an exact proximal step on M_x^2. The reservoir keeps old observations in force, whatever their order.

    One observation costs O(batch_size rank n_snapshots); memory is O((m + n) rank n_snapshots + reservoir_size).
    Random numbers are a hash of the seed and the number of observations, so batches of any size give the same state to
    the bit. What is guaranteed: Mbar is in the max-norm ball, and its payoff bounds the game's value from above. That
    it is near the value is measured, not certified (docs/mathematics.md, "Streams"). Two completions with their own
    values are not offered here.

    Parameters
    ----------
    shape : (m, n), or None to start empty; rows and columns beyond it are added as they are observed.
    K, alpha, theta : max-norm, weight of the disagreement, weight of the observations. The paper normalises C to sum
        to 1, so its theta is this one divided by the mean of C.
    rank : of the adversary; twice that of the matrix to be completed is what the theorem needs.
    confidence_player : "entropy" or "cube".
    eta : step size of the matrix player.
    batch_size : cells of each kind sampled per observation.
    n_snapshots, reservoir_size : snapshots and observed cells kept.
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
    eta: float = 0.1
    batch_size: int = 32
    n_snapshots: int = 8
    reservoir_size: int = 1 << 20
    random_state: int = 0

    def __post_init__(self) -> None:
        self._validate()
        slots = 1 + self.n_snapshots
        self._state = GameState(
            U=np.zeros((0, slots, self.rank), np.float32),
            V=np.zeros((0, slots, self.rank), np.float32),
            row_start=np.zeros(0, np.int64),
            col_start=np.zeros(0, np.int64),
            mean_factors=np.ones((2, self.rank)),
            reservoir=np.zeros((0, 2), np.int32),
            counters=np.zeros(5, np.int64),
        )
        if self.shape is not None:
            self._allocate(*self.shape, 0)
            grow(*self.shape, self._state, self._parameters)

    def _validate(self) -> None:
        owner = "FactoredGame"
        require_positive(owner, K=self.K, alpha=self.alpha, theta=self.theta, eta=self.eta)
        for name in ("rank", "batch_size", "n_snapshots", "reservoir_size"):
            given = getattr(self, name)
            if not (is_seed(given) and given >= 1):
                raise invalid_parameter(owner, name, "a whole number of at least 1", given)
        require_one_of(owner, "confidence_player", SETTINGS, self.confidence_player)
        if not is_seed(self.random_state):
            raise invalid_parameter(owner, "random_state", "a whole number of at least 0", self.random_state)
        if self.shape is not None and not (len(self.shape) == 2 and all(is_seed(size) and size for size in self.shape)):
            raise invalid_parameter(owner, "shape", "two whole numbers of at least 1, or None", self.shape)

    @property
    def _parameters(self) -> GameParameters:
        return GameParameters(
            alpha=float(self.alpha),
            theta=float(self.theta),
            K=float(self.K),
            eta=float(self.eta),
            decay=SNAPSHOT_DECAY,
            init_noise=INIT_NOISE,
            batch_size=int(self.batch_size),
            snapshot_interval=SNAPSHOT_INTERVAL,
            reservoir_size=int(self.reservoir_size),
            entropic=self.confidence_player == "entropy",
            key=stream_key(int(self.random_state), RANDOM_STREAM),
        )

    def learn(self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike | None = None) -> Array:
        """Observe the cells in order; returns C at each as it was before, 0 where its row or column was new.

        ``values`` are accepted, as by every game, and not used.
        """
        i, j = as_indices("rows", rows), as_indices("cols", cols)
        if len(i) != len(j) or (values is not None and np.shape(values) != i.shape):
            raise InputError("rows, cols and values must have one item per observation.")
        m, n = self.current_shape
        self._allocate(size_needed(i, m), size_needed(j, n), len(i))
        confidence = np.empty(len(i))
        play(i, j, self._state, self._parameters, confidence)
        return confidence

    def _allocate(self, m: int, n: int, n_new: int) -> None:
        """Make the arrays large enough for m rows, n columns and so many new observations."""
        state = self._state
        held = min(self.n_observed + n_new, self.reservoir_size)
        self._state = state._replace(
            U=with_capacity(state.U, m),
            V=with_capacity(state.V, n),
            row_start=with_capacity(state.row_start, m),
            col_start=with_capacity(state.col_start, n),
            reservoir=with_capacity(state.reservoir, held)[: self.reservoir_size],
        )

    @property
    def n_observed(self) -> int:
        """How many observations were learnt."""
        return int(self._state.counters[N_OBSERVED])

    @property
    def current_shape(self) -> tuple[int, int]:
        """Rows and columns there are now."""
        return int(self._state.counters[N_ROWS]), int(self._state.counters[N_COLS])

    def confidence(self) -> FactoredGameConfidence:
        """C as it is now; what is learnt later leaves it unchanged."""
        (m, n), state = self.current_shape, self._state
        copied = state._replace(
            U=state.U[:m].copy(),
            V=state.V[:n].copy(),
            row_start=state.row_start[:m].copy(),
            col_start=state.col_start[:n].copy(),
            counters=state.counters.copy(),
        )
        return FactoredGameConfidence(copied, self._parameters)

    def confidence_at(self, rows: Indices, cols: Indices) -> Array:
        """C at the cells as it is now, without a copy of the factors."""
        return FactoredGameConfidence(self._state, self._parameters).at(rows, cols)

    def payoff(self) -> float:
        """The objective at Mbar and its best C, an upper bound on the game's value; a sum over all m x n cells."""
        m, n = self.current_shape
        if m * n > MAX_SUMMED_CELLS or not self.n_observed:
            raise InputError(
                f"the payoff is summed over all cells, from one observation on and up to {MAX_SUMMED_CELLS:,} cells; "
                f"there are {self.n_observed} observations and {m} x {n} cells."
            )
        held = self._state.reservoir[: min(self.n_observed, self.reservoir_size)]
        return self.confidence().payoff(*held.T.astype(np.int64))

    def state(self) -> dict[str, Any]:
        """The whole state, as arrays without their spare capacity."""
        (m, n), held = self.current_shape, min(self.n_observed, self.reservoir_size)
        sizes = {"U": m, "V": n, "row_start": m, "col_start": n, "reservoir": held}
        return {name: array[: sizes.get(name)].copy() for name, array in self._state._asdict().items()}

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Go on from a :meth:`state` of a game with the same parameters, to the bit; returns the game itself."""
        # cells are looked at as they came, before they are narrowed to what the game holds them in
        types = {name: empty.dtype for name, empty in self._state._asdict().items()} | {"reservoir": np.dtype(np.int64)}
        restored = GameState(**{name: as_stored(state[name], dtype).copy() for name, dtype in types.items()})
        m, n, t = (int(restored.counters[index]) for index in (N_ROWS, N_COLS, N_OBSERVED))
        slots = 1 + self.n_snapshots, self.rank
        expected = ((m, *slots), (n, *slots), (m,), (n,), (2, self.rank), (min(t, self.reservoir_size), 2), (5,))
        if tuple(array.shape for array in restored) != expected:
            raise InputError("this state belongs to a game with other parameters.")
        _check_state(restored, m, n, t)
        self._state = restored._replace(reservoir=restored.reservoir.astype(np.int32))
        return self


def _check_state(state: GameState, m: int, n: int, t: int) -> None:
    """Refuse an inconsistent state: the kernels index with its counters and do not check them."""
    taken, last = int(state.counters[N_SNAPSHOTS]), int(state.counters[LAST_SNAPSHOT])
    within = [0 <= taken <= t, 0 <= last <= t]
    within += [bool(np.isfinite(factors).all()) for factors in (state.U, state.V, state.mean_factors)]
    for start in (state.row_start, state.col_start):
        within.append(not start.size or (start.min() >= 0 and start.max() <= taken))
    cells = state.reservoir
    within.append(not cells.size or (cells.min() >= 0 and cells[:, 0].max() < m and cells[:, 1].max() < n))
    if not all(within):
        raise InputError("this state holds cells or times that lie outside of the game.")

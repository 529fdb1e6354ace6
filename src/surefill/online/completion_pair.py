"""Any completion method as ``matrix-predict`` of Simplified ODD: two completions that fit the values and disagree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefill.arrays import Array, Indices
from surefill.completion.base import CompletionAlgorithm
from surefill.data.observations import Observations
from surefill.online.parameters import require_positive
from surefill.online.simplified import CellIndices


@dataclass
class CompletionPair:
    """M = (M^1 - M^2) / 2, two completions of the revealed values, one with +1 and one with -1 at guessed cells.

    The guessed cells are drawn from C_t among those not revealed, as many as were revealed: the pair is pushed apart
    where C_t is confident, as the matrix player of ODD does, and whatever structure the algorithm assumes lets it move
    only where the values leave room. Every ``every`` rounds the algorithm is fitted twice; in between the matrix stays.

    Parameters
    ----------
    algorithm : any completion algorithm, such as :class:`surefill.completion.SoftImpute`.
    every : rounds between two fits.
    random_state : same seed, same draws of guessed cells.

    Examples
    --------
    >>> import surefill as sf
    >>> pair = CompletionPair(sf.completion.SoftImpute(penalty=0.5))
    >>> game = sf.SimplifiedODD((4, 3), matrix_predict=pair).learn_many([0, 1, 2], [0, 1, 2], [1.0, -1.0, 0.5])
    >>> game.confidence().shape
    (4, 3)
    """

    algorithm: CompletionAlgorithm
    every: int = 50
    random_state: int = 0
    _sums: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _counts: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    _rounds: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        require_positive("CompletionPair", every=self.every)

    def __call__(self, C: Array, M: Array, cells: CellIndices, values: Array) -> Array:
        """Two new completions in the rounds ``every``, 2 ``every``, ...; M_t in the others."""
        if self._counts.shape != C.shape:
            self._sums, self._counts = np.zeros(C.shape), np.zeros(C.shape)
        np.add.at(self._sums, cells, values)
        np.add.at(self._counts, cells, 1)
        self._rounds += 1
        return M if self._rounds % self.every else self._disagreement(C)

    def _disagreement(self, C: Array) -> Array:
        rows, cols = np.nonzero(self._counts)
        guesses = self._guessed_cells(C, len(rows))
        known = self._sums[rows, cols] / self._counts[rows, cols]
        first, second = (
            self.algorithm.fit(_joined(C.shape, (rows, cols), known, guesses, sign)).dense() for sign in (1.0, -1.0)
        )
        return np.clip((first - second) / 2, -1.0, 1.0)

    def _guessed_cells(self, C: Array, n_wanted: int) -> tuple[Indices, Indices]:
        """Cells not revealed, drawn from C without repetition."""
        chances = np.where(self._counts > 0, 0.0, C).ravel()
        n_drawn = min(n_wanted, int(np.count_nonzero(chances)))
        if n_drawn == 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rng = np.random.default_rng([self.random_state, self._rounds])
        drawn = rng.choice(C.size, n_drawn, replace=False, p=chances / chances.sum())
        return drawn // C.shape[1], drawn % C.shape[1]

    def state(self) -> dict[str, Any]:
        """Sums and counts of the revealed values, and the rounds."""
        return {"sums": self._sums.copy(), "counts": self._counts.copy(), "rounds": self._rounds}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state`."""
        self._sums, self._counts = np.array(state["sums"]), np.array(state["counts"])
        self._rounds = int(state["rounds"])


def _joined(
    shape: tuple[int, ...],
    cells: tuple[Indices, Indices],
    values: Array,
    guesses: tuple[Indices, Indices],
    guess: float,
) -> Observations:
    """The revealed values and one guess for all guessed cells, as observations on [-1, 1]."""
    rows, cols = (np.concatenate(parts) for parts in zip(cells, guesses, strict=True))
    joined = np.concatenate([values, np.full(len(guesses[0]), guess)])
    return Observations(rows, cols, joined, (shape[0], shape[1]), (-1.0, 1.0))

"""Simplified ODD: what the paper's experiments ran."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from surefill.arrays import Array
from surefill.data.checks import checked_cells
from surefill.errors import invalid_parameter, is_number, is_seed
from surefill.online.matrix_predict import Cells, GradientAdversary, MatrixPredict
from surefill.online.projections import project_euclidean
from surefill.spaces.confidence_matrix import DenseConfidence


class SimplifiedODD:
    """Mirror ascent of C on r~_t(C) = alpha H(C) - <C, M_t>, a Euclidean projection, and any update of M.

        C^_(t+1) = C_t^(1 - eta alpha) exp(-eta (alpha + M_t)),    C_(t+1) = the nearest point of the simplex,

    and C-bar = (C_1 + ... + C_T) / T. The values observed play no part, only where they were; there is no regret bound.

    Parameters
    ----------
    shape : (m, n).
    matrix_predict : (C_t, M_t, cells) -> M_(t+1), larger where less is known; see ``surefill.online.matrix_predict``.
        A :class:`GradientAdversary` where none is given.
    eta : step of the mirror ascent.
    alpha : weight of the entropy; 1 / alpha is how strongly the adversary moves C.

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
        if len(shape) != 2 or min(shape) < 1:
            raise invalid_parameter("SimplifiedODD", "shape", "two whole numbers of at least 1", shape)
        for name, number in (("eta", eta), ("alpha", alpha)):
            if not is_number(number) or not 0 < number < math.inf:
                raise invalid_parameter("SimplifiedODD", name, "a positive finite number", number)
        if eta * alpha > 1:
            raise invalid_parameter("SimplifiedODD", "eta", "at most 1 / alpha, beyond which steps overshoot", eta)
        self.shape, self.eta, self.alpha = (int(shape[0]), int(shape[1])), float(eta), float(alpha)
        self.matrix_predict: MatrixPredict = GradientAdversary() if matrix_predict is None else matrix_predict
        self.rounds = 0
        self.C = np.full(self.shape, 1.0 / (self.shape[0] * self.shape[1]))
        self.M = np.zeros(self.shape)
        self.total = np.zeros(self.shape)

    def learn_one(self, i: int, j: int, o: float = 0.0) -> Self:
        """One round: row ``i`` and column ``j`` were observed; the value is not used."""
        return self.learn_many([i], [j], [o])

    def learn_many(
        self, rows: ArrayLike, cols: ArrayLike, values: ArrayLike | None = None, *, per_round: int = 1
    ) -> Self:
        """One round for each ``per_round`` observations, in their order; values may be left out.

        A round costs O(mn) whatever it learns, so that large matrices want several observations in each.
        """
        if not is_seed(per_round) or per_round < 1:
            raise invalid_parameter("SimplifiedODD", "per_round", "a whole number of at least 1", per_round)
        given = np.zeros(np.shape(rows)) if values is None else values
        i, j, _ = checked_cells(self.shape, rows, cols, given)
        for start in range(0, len(i), per_round):
            self._play((i[start : start + per_round], j[start : start + per_round]))
        return self

    def _play(self, cells: Cells) -> None:
        self.total += self.C
        self.rounds += 1
        M = self.matrix_predict(self.C, self.M, cells)
        ascended = self.C ** (1 - self.eta * self.alpha) * np.exp(-self.eta * (self.alpha + self.M))
        self.C, self.M = project_euclidean(ascended), M

    @property
    def average(self) -> Array:
        """C-bar, the mean of the distributions played."""
        return self.total / self.rounds if self.rounds else self.C.copy()

    def confidence(self) -> DenseConfidence:
        """min(1, e^H(C-bar) C-bar_x): 1 on the support of a uniform distribution, 0 off it."""
        average = self.average
        return DenseConfidence(np.minimum(1.0, math.exp(-xlogy(average, average).sum()) * average))

    def state(self) -> dict[str, Any]:
        """The whole game as numbers and arrays; :meth:`from_state` goes on from it to the bit."""
        memory = {f"predict_{name}": value for name, value in self.matrix_predict.state().items()}
        own = {"C": self.C.copy(), "M": self.M.copy(), "total": self.total.copy(), "rounds": self.rounds}
        return {"shape": self.shape, "eta": self.eta, "alpha": self.alpha, **own, **memory}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], matrix_predict: MatrixPredict) -> SimplifiedODD:
        """The game that ``state`` describes; ``matrix_predict`` as it was made at first, its memory is restored."""
        game = cls(tuple(state["shape"]), matrix_predict=matrix_predict, eta=state["eta"], alpha=state["alpha"])
        game.C, game.M, game.total = (np.array(state[name]) for name in ("C", "M", "total"))
        game.rounds = int(state["rounds"])
        prefix = "predict_"
        matrix_predict.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        return game

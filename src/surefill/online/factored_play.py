"""The factored game behind the facade of Online Dual Descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError, invalid_parameter
from surefill.online.factored_game import FactoredGame
from surefill.online.game_confidence import StreamConfidence
from surefill.online.parameters import OWNER, GameOptions


class FactoredPlay:
    """:class:`FactoredGame` with the parameters of :class:`OnlineDualDescent`; ``eta_matrix`` is its step."""

    def __init__(self, options: GameOptions) -> None:
        if options.observations != "zero":
            raise invalid_parameter(OWNER, "observations", "'zero' with matrix='factored'", options.observations)
        for name in ("horizon", "eta_confidence"):
            if getattr(options, name) is not None:
                raise invalid_parameter(OWNER, name, "None with matrix='factored'", getattr(options, name))
        self.options = options
        self.game = FactoredGame(
            options.shape,
            options.K,
            options.alpha,
            options.theta,
            confidence_player=options.confidence,
            step=FactoredGame.step if options.eta_matrix is None else options.eta_matrix,
        )

    @staticmethod
    def weights(alpha: float | None, theta: float | None) -> tuple[float, float]:
        """The game's own alpha and theta where none are given: the paper's are for a C that sums to 1."""
        return FactoredGame.alpha if alpha is None else alpha, FactoredGame.theta if theta is None else theta

    @property
    def average(self) -> NoReturn:
        """Not there: C is never formed."""
        raise InputError("the factored game never forms C; ask confidence() for it, cell by cell or in blocks.")

    def learn(self, rows: NDArray[np.int64], cols: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """One round for each observation, in their order."""
        self.game.learn(rows, cols, values)

    def confidence(self) -> StreamConfidence:
        """C now, relative to a cell that is known for certain."""
        return self.game.confidence()

    def predict(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NoReturn:
        """Not there: values play no part."""
        raise InputError("the factored game never looks at values and predicts none; StreamingCompleter does both.")

    def regret(self) -> NoReturn:
        """Not there: it would need sums over all cells in every round."""
        raise InputError("the factored game keeps no sums over all cells, so its regret is unknown; use matrix='mmw'.")

    def state(self) -> dict[str, Any]:
        """Parameters and memory, as numbers, words and arrays."""
        return {**self.options.as_scalars(), **{f"game_{name}": array for name, array in self.game.state().items()}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FactoredPlay:
        """The game that :meth:`state` described; it goes on to the bit as the first would have."""
        play = cls(GameOptions.from_scalars(state))
        memory = {name.removeprefix("game_"): state[name] for name in state if name.startswith("game_")}
        play.game.restore(memory)
        return play

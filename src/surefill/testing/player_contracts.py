"""What every player of the online game must do, as tests to inherit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from surefill.arrays import Array
from surefill.errors import InputError
from surefill.online.players import ConfidencePlayer, MatrixPlayer
from surefill.online.regret import MatrixRewardSum
from surefill.spaces import max_norm

ROUNDS = 60
"""Rounds of the streams played; step sizes are the bound's best for so many, or for more where it needs more."""

ROUNDING = 1e-12
"""Rounding error forgiven in constraints that are met in closed form."""

CONFIDENCE_STREAMS = ("random", "fixed", "alternating")
"""Disagreements drawn anew each round, the same in every round, and of a sign that changes with every round."""

MATRIX_STREAMS = ("consistent", "contradicting")
"""Values of a rank-one matrix, and +1 and -1 in turn."""


class _PlayerContract:
    """What both contracts share: parameters are refused by ``init``, states are arrays that resume to the bit."""

    player: ClassVar[Any]
    bad_parameters: ClassVar[dict[str, Any]] = {}

    def play(self, state: Any, first: int, last: int) -> Any:
        """The state after the rounds ``first`` to ``last`` of one fixed stream."""
        raise NotImplementedError

    def test_update_leaves_the_old_state_unchanged(self) -> None:
        """A step gives a new state; the one it was given can still be used."""
        state = self.play(self.player.init(), 0, 5)
        before = [array.copy() for array in _arrays(state)]
        following = self.play(state, 5, 6)
        for array, copy in zip(_arrays(state), before, strict=True):
            np.testing.assert_array_equal(array, copy)
        assert any(not np.array_equal(a, b) for a, b in zip(_arrays(state), _arrays(following), strict=True))

    def test_a_saved_state_resumes_to_the_bit(self, tmp_path: Path) -> None:
        """The state is arrays and nothing else: written to a file of arrays, read, and played on with a new player."""
        halfway = self.play(self.player.init(), 0, 10)
        assert all(isinstance(array, np.ndarray) and array.dtype != object for array in _arrays(halfway))
        np.savez(tmp_path / "state.npz", *_arrays(halfway))
        with np.load(tmp_path / "state.npz", allow_pickle=False) as stored:
            arrays = [stored[name] for name in stored.files]
        loaded = type(halfway)(*arrays) if isinstance(halfway, tuple) else arrays[0]
        whole, resumed = self.play(self.player.init(), 0, 20), self.play(loaded, 10, 20)
        for one, other in zip(_arrays(whole), _arrays(resumed), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_bad_parameters_are_refused_in_one_sentence(self) -> None:
        """Which parameter, what would do, what was given; by ``init``, not when made."""
        owner = type(self.player).__name__
        for name, value in self.bad_parameters.items():
            bad = dataclasses.replace(self.player, **{name: value})
            with pytest.raises(InputError, match=f"The '{name}' parameter of {owner} must be .* Got .* instead"):
                bad.init()


class ConfidencePlayerContract(_PlayerContract):
    """Subclass it, name it ``Test...``, set ``player`` and ``violation``, and pytest runs the contract::

        class TestMine(ConfidencePlayerContract):
            player = Mine((4, 3), alpha=2.0)
            violation = staticmethod(lambda C: abs(C.sum() - 1))

    Attributes
    ----------
    player : a confidence player, a frozen dataclass of its parameters, for a matrix of at least 2 x 2.
    violation : the largest violation of the constraints on C, at most 0 where there is none.
    bad_parameters : for each parameter a value that ``init`` must refuse with one sentence.

    Examples
    --------
    >>> from surefill.online.players import CubePlayer
    >>> class TestMine(ConfidencePlayerContract):
    ...     player = CubePlayer((4, 3), alpha=2.0)
    ...     violation = staticmethod(lambda C: C.max() - 7**-1.5)
    >>> TestMine().test_decisions_stay_feasible("random")
    """

    player: ClassVar[ConfidencePlayer]
    violation: ClassVar[Callable[[Array], float]]

    def play(self, state: Any, first: int, last: int) -> Any:
        """The decision after the rounds ``first`` to ``last`` of the random stream."""
        for disagreement in self.disagreements("random")[first:last]:
            state = self.player.update(state, disagreement, self.eta)
        return state

    @property
    def eta(self) -> float:
        """The step size of the regret bound."""
        return self.player.constants.step(max(ROUNDS, self.player.constants.shortest_horizon))

    def disagreements(self, stream: str) -> Array:
        """M^1 - M^2 of each round, entries in [-2, 2]."""
        shape, rng = self.player.init().shape, np.random.default_rng(0)
        if stream == "random":
            return rng.uniform(-2, 2, (ROUNDS, *shape))
        signs = np.where(np.arange(ROUNDS) % 2, 1.0, -1.0 if stream == "alternating" else 1.0)
        return signs[:, None, None] * rng.uniform(-2, 2, shape)

    def decisions(self, stream: str, eta: float) -> Iterator[tuple[Array, Array]]:
        """C_t and the disagreement of each round."""
        C = self.player.init()
        for disagreement in self.disagreements(stream):
            yield C, disagreement
            C = self.player.update(C, disagreement, eta)

    @pytest.mark.parametrize("stream", CONFIDENCE_STREAMS)
    def test_decisions_stay_feasible(self, stream: str) -> None:
        """In the player's set, also with steps ten times too long, and within what the matrix player's bound assumes.

        That is row sums and column sums of C of Euclidean norm at most 1.
        """
        for eta in (self.eta, 10 * self.eta):
            for C, _ in self.decisions(stream, eta):
                assert type(self).violation(C) <= ROUNDING
                assert C.min() >= 0
                assert max(np.linalg.norm(C.sum(axis=axis)) for axis in (0, 1)) <= 1 + ROUNDING
                unit = self.player.to_unit(C)
                assert 0 <= unit.min() <= unit.max() <= 1

    @pytest.mark.parametrize("stream", CONFIDENCE_STREAMS)
    def test_regret_stays_below_its_bound(self, stream: str) -> None:
        """Against the best fixed decision in hindsight, which no decision of the player's beats."""
        player, played = self.player, list(self.decisions(stream, self.eta))
        total = self.disagreements(stream).sum(axis=0)
        best = player.best_reward(len(played), total)
        achieved = sum(player.support(C) - player.alpha * float(np.vdot(C, D)) for C, D in played)
        assert best - achieved <= player.constants.bound(len(played), self.eta) < np.inf
        for C, _ in played:
            assert len(played) * player.support(C) - player.alpha * float(np.vdot(C, total)) <= best + 1e-9

    def test_confidence_moves_to_where_completions_agree(self) -> None:
        """Against the same disagreement in every round, cells that agree end with more confidence than others."""
        shape = self.player.init().shape
        disagreement = np.where(np.indices(shape).sum(axis=0) % 2, 2.0, 0.0)
        C = self.player.init()
        for _ in range(ROUNDS):
            C = self.player.update(C, disagreement, self.eta)
        assert C[disagreement == 0].min() > C[disagreement > 0].max()

    def test_the_confidence_of_a_distribution_is_its_multiple(self) -> None:
        """C_mu / |C_mu| = mu, and to_unit keeps the order of cells."""
        shape = self.player.init().shape
        mu = np.random.default_rng(0).dirichlet(np.ones(shape[0] * shape[1])).reshape(shape)
        C = self.player.from_distribution(mu)
        np.testing.assert_allclose(C / C.sum(), mu, atol=ROUNDING)
        unit = self.player.to_unit(C).ravel()[np.argsort(mu, axis=None)]
        assert (np.diff(unit) >= 0).all()


class Round(NamedTuple):
    """What the matrix player is given in one round."""

    C: Array
    cell: tuple[int, int]
    value: float


class MatrixPlayerContract(_PlayerContract):
    """Subclass it, name it ``Test...``, set ``player``, and pytest runs the contract::

        class TestMine(MatrixPlayerContract):
            player = Mine((4, 3), K=0.8, theta=0.5)

    Attributes
    ----------
    player : a matrix player, a frozen dataclass of its parameters.
    bad_parameters : for each parameter a value that ``init`` must refuse with one sentence.
    zero_observations : whether the player takes all observations for zero, so that M^2 = -M^1.
    tol : how far a decision may exceed its constraints.

    Examples
    --------
    >>> from surefill.online.players import MatrixMultiplicativeWeights
    >>> class TestMine(MatrixPlayerContract):
    ...     player = MatrixMultiplicativeWeights((3, 2), K=0.8, theta=0.5)
    ...     zero_observations = True
    >>> TestMine().test_update_leaves_the_old_state_unchanged()
    """

    player: ClassVar[MatrixPlayer]
    zero_observations: ClassVar[bool] = False
    tol: ClassVar[float] = 1e-6

    def play(self, state: Any, first: int, last: int) -> Any:
        """The state after the rounds ``first`` to ``last`` of the consistent stream."""
        for C, cell, value in self.rounds("consistent")[first:last]:
            state = self.player.update(state, C, cell, value, self.eta)
        return state

    @property
    def eta(self) -> float:
        """The step size of the regret bound."""
        return self.player.constants.step(max(ROUNDS, self.player.constants.shortest_horizon))

    def rounds(self, stream: str) -> list[Round]:
        """Confidences that are random distributions, cells at random, and the stream's values."""
        m, n = self.player.decision(self.player.init())[0].shape
        rng = np.random.default_rng(0)
        truth = np.outer(rng.uniform(-1, 1, m), rng.uniform(-1, 1, n))
        found = []
        for t in range(ROUNDS):
            cell = int(rng.integers(m)), int(rng.integers(n))
            value = float(truth[cell]) if stream == "consistent" else 1.0 - 2.0 * (t % 2)
            C = rng.dirichlet(np.ones(m * n)).reshape(m, n)
            found.append(Round(C, cell, 0.0 if self.zero_observations else value))
        return found

    def decisions(self, stream: str, eta: float) -> Iterator[tuple[Array, Array, Round]]:
        """M^1_t, M^2_t and what is revealed after them."""
        state = self.player.init()
        for shown in self.rounds(stream):
            yield *self.player.decision(state), shown
            state = self.player.update(state, *shown, eta)

    @pytest.mark.parametrize("stream", MATRIX_STREAMS)
    def test_decisions_stay_feasible(self, stream: str) -> None:
        """Entries in [-1, 1] and max-norm at most K, also with steps ten times too long; opposite where all is zero."""
        for eta in (self.eta, 10 * self.eta):
            played = list(self.decisions(stream, eta))
            for first, second, _ in played:
                assert max(np.abs(first).max(), np.abs(second).max()) <= 1 + self.tol
                if self.zero_observations:
                    np.testing.assert_array_equal(second, -first)
            for M in played[-1][:2]:
                assert max_norm(M).value <= self.player.K + self.tol

    @pytest.mark.parametrize("stream", MATRIX_STREAMS)
    def test_regret_stays_below_its_bound(self, stream: str) -> None:
        """Against the best pair in hindsight of max-norm at most K, bounded from above by a certificate."""
        player, played = self.player, list(self.decisions(stream, self.eta))
        cells = np.array([shown.cell for _, _, shown in played])
        values = np.array([shown.value for _, _, shown in played])
        counts, sums = np.zeros((2, *played[0][0].shape))
        np.add.at(counts, tuple(cells.T), 1)
        np.add.at(sums, tuple(cells.T), values)
        confidence = np.sum([shown.C for _, _, shown in played], axis=0)
        rewards = MatrixRewardSum(
            player.K, player.theta, self.zero_observations, confidence, counts, sums, float(values @ values)
        )
        achieved = sum(_matrix_reward(player.theta, *decision) for decision in played)
        assert rewards.best()[1] - achieved <= player.constants.bound(len(played), self.eta) < np.inf

    def test_matrices_agree_where_values_were_observed(self) -> None:
        """A cell observed in every round ends with less disagreement than the cells never observed."""
        state = self.player.init()
        m, n = self.player.decision(state)[0].shape
        C, eta = np.full((m, n), 1 / (m * n)), min(10 * self.eta, self.player.constants.max_step)
        for _ in range(ROUNDS):
            state = self.player.update(state, C, (0, 0), 0.0, eta)
        first, second = self.player.decision(state)
        others = (first - second).ravel()[1:]
        assert abs(first[0, 0] - second[0, 0]) < 0.5 * others.min()


def _arrays(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple) else [state]


def _matrix_reward(theta: float, first: Array, second: Array, shown: Round) -> float:
    """gamma_t(M) = <C_t, M^1 - M^2> - theta [(M^1_x - o)^2 + (M^2_x - o)^2]."""
    misfit = (first[shown.cell] - shown.value) ** 2 + (second[shown.cell] - shown.value) ** 2
    return float(np.vdot(shown.C, first - second) - theta * misfit)

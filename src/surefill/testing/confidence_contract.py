"""What every confidence algorithm must do, as tests to inherit."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from surefill.completion import BayesianFactorModel, Completion
from surefill.confidence import Certificate, ConfidenceAlgorithm, ExtendableConfidence
from surefill.data import Observations
from surefill.datasets import Simulation, make_blocks
from surefill.errors import InputError
from surefill.io.archive import read_archive, write_archive

STANDINGS = ("certified", "searched", "heuristic", "tested")
"""What a certificate may say of a confidence, from a proof to a rule of thumb."""

LEAST_SEPARATION = 0.1
"""By how much the mean confidence inside two blocks must exceed the mean between them, of which nothing was seen."""


class Found(NamedTuple):
    """What an algorithm returned."""

    confidence: ExtendableConfidence
    certificate: Certificate


class ConfidenceContract:
    """Subclass it, name it ``Test...``, set ``algorithm``, and pytest runs the contract::

        class TestMine(ConfidenceContract):
            algorithm = Mine(rank=3)
            bad_parameters = {"rank": 0}

    Attributes
    ----------
    algorithm : a confidence algorithm, a frozen dataclass of its parameters.
    bad_parameters : for each parameter a value that ``fit`` must refuse with one sentence.

    Examples
    --------
    >>> import surefill as sf
    >>> class TestMine(ConfidenceContract):
    ...     algorithm = sf.confidence.CoverageProgram(K=1.0, gamma=0.3)
    >>> TestMine.fit(two_blocks().observations).confidence.shape
    (24, 20)
    """

    algorithm: ClassVar[Any]
    bad_parameters: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(scope="class")
    @classmethod
    def sim(cls) -> Simulation:
        """Two groups of rows and columns, of which nothing between them was seen."""
        return two_blocks()

    @pytest.fixture(scope="class")
    @classmethod
    def found(cls, sim: Simulation) -> Found:
        """The algorithm fitted on it."""
        return cls.fit(sim.observations)

    @classmethod
    def fit(cls, observations: Observations, algorithm: Any = None) -> Found:
        """The algorithm under test, its parameters chosen, fitted."""
        completion = completion_of(observations)
        given = cls.algorithm if algorithm is None else algorithm
        chosen = given.chosen_for(observations, completion, tolerance=0.1, held_out_error=0.02)
        return Found(*chosen.fit(observations, completion))

    def test_it_is_what_the_protocol_asks_for(self, found: Found) -> None:
        """An algorithm, a confidence and a certificate that says how it stands."""
        assert isinstance(self.algorithm, ConfidenceAlgorithm)
        assert found.certificate.standing in STANDINGS
        assert found.certificate.sentence

    def test_choosing_parameters_gives_the_same_algorithm_with_nothing_left_to_choose(self, sim: Simulation) -> None:
        """Chosen twice is chosen once."""
        completion = completion_of(sim.observations)
        chosen = self.algorithm.chosen_for(sim.observations, completion, 0.1, 0.02)
        assert type(chosen) is type(self.algorithm)
        assert chosen.chosen_for(sim.observations, completion, 0.1, 0.02) == chosen

    def test_at_block_and_dense_agree_and_lie_in_the_unit_interval(self, sim: Simulation, found: Found) -> None:
        """Three ways to ask, one answer."""
        confidence, dense = found.confidence, found.confidence.dense()
        assert dense.shape == confidence.shape == sim.observations.shape
        assert 0 <= dense.min() <= dense.max() <= 1
        rows, cols = np.array([3, 0, 23]), np.array([19, 5])
        np.testing.assert_allclose(confidence.block(rows, cols), dense[np.ix_(rows, cols)], atol=1e-6)
        np.testing.assert_allclose(confidence.at([3, 23], [5, 0]), dense[[3, 23], [5, 0]], atol=1e-6)
        assert confidence.at(np.zeros(0, int), np.zeros(0, int)).shape == (0,)
        assert confidence.coverage == pytest.approx(dense.sum(), rel=1e-4)

    def test_what_was_never_seen_together_is_less_sure(self, sim: Simulation, found: Found) -> None:
        """Higher on average inside the blocks than between them."""
        dense = found.confidence.dense()
        assert dense[sim.support].mean() > dense[~sim.support].mean() + LEAST_SEPARATION

    def test_same_input_same_result_and_asking_changes_nothing(self, sim: Simulation, found: Found) -> None:
        """Deterministic, and the algorithm learns nothing that outlives a fit."""
        before = found.confidence.dense().copy()
        found.confidence.fold_in(sim.observations)
        np.testing.assert_array_equal(found.confidence.dense(), before)
        np.testing.assert_array_equal(self.fit(sim.observations).confidence.dense(), before)

    def test_new_rows_have_confidences_and_others_widths_are_refused(self, sim: Simulation, found: Found) -> None:
        """A row seen in one block, and one of which nothing was seen."""
        n = sim.observations.shape[1]
        cols = np.flatnonzero(sim.support[0])
        new = Observations(np.zeros(len(cols), int), cols, np.linspace(-0.5, 0.5, len(cols)), shape=(2, n))
        folded = found.confidence.fold_in(new).dense()
        assert folded.shape == (2, n)
        assert 0 <= folded.min() <= folded.max() <= 1
        assert folded[0, cols].mean() >= folded[1].mean()
        with pytest.raises(InputError, match=f"{n} columns"):
            found.confidence.fold_in(Observations([0], [0], [1.0], shape=(1, n + 1)))

    def test_what_was_stored_answers_the_same(self, found: Found, tmp_path: Path) -> None:
        """Arrays and numbers are all there is."""
        write_archive(tmp_path / "stored", "a confidence", 1, tuple(found))
        again, certificate = read_archive(tmp_path / "stored", "a confidence", 1, lambda content: content)
        np.testing.assert_array_equal(again.dense(), found.confidence.dense())
        assert certificate == found.certificate

    def test_bad_parameters_are_refused_by_name(self, sim: Simulation) -> None:
        """One sentence that names the parameter."""
        for name, value in self.bad_parameters.items():
            with pytest.raises(InputError, match=name):
                self.fit(sim.observations, dataclasses.replace(self.algorithm, **{name: value}))


def two_blocks() -> Simulation:
    """24 x 20 in two groups, rank 2, four fifths of the cells inside the groups seen."""
    return make_blocks((12, 10), n_groups=2, rank=2, n_draws=500, noise=0.1, random_state=0)


def completion_of(observations: Observations) -> Completion:
    """A completion with a posterior, as every confidence may ask for."""
    return BayesianFactorModel(rank=2).fit(observations)

"""The contract of every completion algorithm, as tests to inherit."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from surefill.completion import Completion, CompletionAlgorithm
from surefill.data import Observations, split_rows
from surefill.datasets import make_low_rank
from surefill.errors import InputError
from surefill.estimators import PartialCompleter, load
from surefill.loop import Progress


class Case(NamedTuple):
    """Observations, and the truth they were drawn from."""

    observations: Observations
    truth: NDArray[np.float64]


class CompletionContract:
    """Subclass it, name it ``Test...``, set ``algorithm``, and pytest runs the contract::

        class TestMine(CompletionContract):
            algorithm = Mine(rank=3)
            bad_parameters = {"rank": 0}

    Attributes
    ----------
    algorithm : a completion algorithm, a frozen dataclass of its parameters.
    bad_parameters : for each parameter a value that ``fit`` must refuse with one sentence.
    equivariant : whether predictions follow when all values are scaled and shifted. A parameter in the units of the
        values breaks that; leave it on its automatic choice here.
    iterative : whether ``fit`` reports progress.
    storable : whether a completer with it can be saved; if not, saving must say so.

    Examples
    --------
    >>> import surefill as sf
    >>> class TestMine(CompletionContract):
    ...     algorithm = sf.completion.FactorModel(rank=3)
    ...     bad_parameters = {"rank": 0}
    >>> TestMine.fit(additive_and_low_rank().observations).shape
    (30, 24)
    """

    algorithm: ClassVar[Any]
    bad_parameters: ClassVar[dict[str, Any]] = {}
    equivariant: ClassVar[bool] = True
    iterative: ClassVar[bool] = True
    storable: ClassVar[bool] = True

    @pytest.fixture(scope="class")
    @classmethod
    def sim(cls) -> Case:
        """Row and column effects and a part of rank 2, half of it seen, some cells more than once."""
        return additive_and_low_rank()

    @pytest.fixture(scope="class")
    @classmethod
    def completion(cls, sim: Case) -> Completion:
        """The algorithm fitted on it."""
        return cls.fit(sim.observations)

    @classmethod
    def fit(cls, observations: Observations) -> Completion:
        """The algorithm under test, fitted."""
        fitted: Completion = cls.algorithm.fit(observations)
        return fitted

    def test_it_is_what_the_protocols_ask_for(self, completion: Completion) -> None:
        """An algorithm, and a completion."""
        assert isinstance(self.algorithm, CompletionAlgorithm)
        assert isinstance(completion, Completion)

    def test_at_block_and_dense_agree(self, sim: Case, completion: Completion) -> None:
        """Three ways to ask, one answer, within the bounds."""
        dense = completion.dense()
        assert dense.shape == completion.shape == sim.observations.shape
        rows, cols = np.array([3, 0, 29]), np.array([23, 5])
        np.testing.assert_allclose(completion.block(rows, cols), dense[np.ix_(rows, cols)], atol=1e-12)
        np.testing.assert_allclose(completion.at([3, 29], [5, 0]), dense[[3, 29], [5, 0]], atol=1e-12)
        assert completion.at([], []).shape == (0,)
        low, high = sim.observations.bounds
        assert np.isfinite(dense).all()
        assert low - 1e-12 <= dense.min() <= dense.max() <= high + 1e-12

    def test_it_predicts_better_than_the_mean(self, sim: Case, completion: Completion) -> None:
        """A low bar for a truth of which half was seen."""
        unseen = np.ones(sim.observations.shape, dtype=bool)
        unseen[sim.observations.rows, sim.observations.cols] = False
        error = np.mean((completion.dense() - sim.truth)[unseen] ** 2)
        assert error < np.var(sim.truth[unseen])

    def test_same_input_same_result(self, sim: Case, completion: Completion) -> None:
        """Deterministic, and the algorithm learns nothing that outlives a fit."""
        np.testing.assert_array_equal(self.fit(sim.observations).dense(), completion.dense())

    def test_a_copy_is_the_same_algorithm(self, sim: Case, completion: Completion) -> None:
        """Parameters are all there is to an algorithm: frozen, comparable, copied by ``dataclasses.replace``."""
        copy = dataclasses.replace(self.algorithm)
        assert copy == self.algorithm
        np.testing.assert_array_equal(copy.fit(sim.observations).dense(), completion.dense())
        with pytest.raises(dataclasses.FrozenInstanceError):
            copy.anything = 1

    def test_predicting_changes_nothing(self, sim: Case, completion: Completion) -> None:
        """Neither the completion, nor what it was fitted on."""
        before, values = completion.dense(), sim.observations.values.copy()
        completion.at([0], [0])
        completion.block([1, 2], [0])
        completion.fold_in(sim.observations)
        np.testing.assert_array_equal(completion.dense(), before)
        np.testing.assert_array_equal(sim.observations.values, values)

    def test_values_follow_their_units(self, sim: Case, completion: Completion) -> None:
        """Values scaled by 4 and shifted by 3 give predictions scaled by 4 and shifted by 3.

        The values have few enough digits to be scaled and shifted without rounding: where many matrices fit them
        equally well, a last digit may decide which one an algorithm finds.
        """
        if not self.equivariant:
            pytest.skip("the algorithm does not claim it")
        seen = sim.observations
        low, high = seen.bounds
        other = _with(seen, 3 + 4 * seen.values, (3 + 4 * low, 3 + 4 * high))
        np.testing.assert_allclose(self.fit(other).dense(), 3 + 4 * completion.dense(), atol=1e-4)

    def test_single_precision_is_taken_for_what_it_is(self, sim: Case) -> None:
        """float32 values give what the same numbers give in float64; answers are float64."""
        seen = sim.observations
        single = seen.values.astype(np.float32)
        bounds = float(single.min()), float(single.max())
        here, there = (self.fit(_with(seen, values, bounds)) for values in (single, single.astype(np.float64)))
        assert here.at([0], [0]).dtype == np.float64
        np.testing.assert_array_equal(here.dense(), there.dense())

    def test_repeats_are_counts(self, sim: Case) -> None:
        """Every draw given three times is every count times three."""
        seen = sim.observations
        rows, cols, values = (np.tile(part, 3) for part in (seen.rows, seen.cols, seen.values))
        three = Observations(rows, cols, values, seen.shape, seen.bounds)
        counted = _with(seen, seen.values, seen.bounds, counts=np.full(len(seen), 3))
        np.testing.assert_allclose(self.fit(three).dense(), self.fit(counted).dense(), atol=1e-8)

    def test_rows_and_columns_without_observations(self, sim: Case) -> None:
        """They get finite values within the bounds, at any size of the matrix."""
        seen = sim.observations.select((sim.observations.rows != 4) & (sim.observations.cols != 7))
        dense = self.fit(seen).dense()
        low, high = seen.bounds
        assert np.isfinite(dense).all()
        assert low - 1e-12 <= min(dense[4].min(), dense[:, 7].min())
        assert max(dense[4].max(), dense[:, 7].max()) <= high + 1e-12

    def test_rows_fold_in_together_as_one_by_one(self, sim: Case) -> None:
        """Batch or single, a new row gets the same values; a row never seen gets finite ones."""
        train, new = split_rows(sim.observations, 0.3, 0)
        fitted = self.fit(train)
        together, cols = fitted.fold_in(new), np.arange(new.shape[1])
        assert together.shape == new.shape
        for row in new.by_row.ids[:4]:
            alone = fitted.fold_in(new.select(new.rows == row))
            np.testing.assert_allclose(alone.block([row], cols), together.block([row], cols), atol=1e-9)
        assert np.isfinite(together.dense()).all()

    def test_new_rows_are_predicted_better_than_by_the_mean(self, sim: Case) -> None:
        """What was learnt of the columns helps."""
        train, new = split_rows(sim.observations, 0.2, 0)
        rows = new.by_row.ids
        error = np.mean((self.fit(train).fold_in(new).block(rows, np.arange(new.shape[1])) - sim.truth[rows]) ** 2)
        assert error < np.var(sim.truth[rows])

    def test_progress_is_reported(self, sim: Case) -> None:
        """Steps of a named task, one after the other."""
        if not self.iterative:
            pytest.skip("the algorithm does not iterate")
        reports: list[Progress] = []
        self.algorithm.fit(sim.observations, reports.append)
        assert reports
        assert all(progress.task and 1 <= progress.step <= progress.max_steps for progress in reports)

    def test_bad_parameters_are_refused_in_one_sentence(self, sim: Case) -> None:
        """Which parameter, what would do, what was given; when fitting, not when made."""
        owner = type(self.algorithm).__name__
        for name, value in self.bad_parameters.items():
            bad = dataclasses.replace(self.algorithm, **{name: value})
            with pytest.raises(InputError, match=f"The '{name}' parameter of {owner} must be .* Got .* instead"):
                bad.fit(sim.observations)

    def test_a_completer_takes_it_and_knows_its_labels(self, sim: Case, tmp_path: Path) -> None:
        """Through PartialCompleter, with labels, to a file and back."""
        seen = sim.observations
        labels = {"row_labels": [f"r{i}" for i in range(30)], "col_labels": [f"c{j}" for j in range(24)]}
        named = _with(seen, seen.values, seen.bounds, counts=seen.counts, **labels)
        completer = PartialCompleter(0.1, completion=self.algorithm, confidence="posterior").fit(named)
        values = completer.predict(["r3", "r29"], ["c0", "c5"])
        with pytest.raises(InputError, match="there is no row labelled 'nobody'"):
            completer.predict(["nobody"], ["c0"])
        if not self.storable:
            with pytest.raises(InputError, match="cannot be saved"):
                completer.save(tmp_path / "model")
            return
        completer.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert repr(again.completion) == repr(self.algorithm)
        np.testing.assert_array_equal(again.predict(["r3", "r29"], ["c0", "c5"]), values)
        new = Observations([0, 0], [1, 2], seen.values[:2], (1, 24), seen.bounds)
        folded = (model.result_.completion.fold_in(new).dense() for model in (completer, again))
        np.testing.assert_array_equal(next(folded), next(folded))


def additive_and_low_rank() -> Case:
    """A 30 x 24 truth within [-1, 1], (b_i + c_j) / 3 + a product of rank 2, and 500 noisy draws of its cells.

    Values are multiples of 2^-20, which small factors and shifts do not round.
    """
    base = make_low_rank((30, 24), rank=2, n_draws=500, random_state=1)
    seen, rng = base.observations, np.random.default_rng(2)
    truth = (rng.uniform(-1, 1, (30, 1)) + rng.uniform(-1, 1, 24) + base.truth) / 3
    noisy = truth[seen.rows, seen.cols] + 0.03 * rng.normal(size=len(seen))
    return Case(_with(seen, np.round(np.clip(noisy, -1, 1) * 2**20) / 2**20, (-1.0, 1.0)), truth)


def _with(
    seen: Observations, values: Any, bounds: tuple[float, float], counts: Any = None, **labels: Any
) -> Observations:
    """The cells of ``seen`` with other values."""
    counts = seen.counts if counts is None else counts
    return Observations(seen.rows, seen.cols, values, seen.shape, bounds, counts=counts, **labels)

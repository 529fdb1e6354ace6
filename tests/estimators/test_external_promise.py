"""Predictions that may have been made with the calibration cells get no promise."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from surefill import Observations, PartialCompleter
from surefill.completion import ExternalCompletion, FactorModel
from surefill.report.page import render_report


@pytest.fixture(scope="module")
def noise():
    """Values that nothing can predict, half of them seen."""
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.7, 1.7, size=(120, 90))
    rows, cols = np.nonzero(rng.random(values.shape) < 0.5)
    return values, Observations(rows, cols, values[rows, cols], values.shape)


def completed(completion, observations, **options):
    return PartialCompleter(0.8, completion=completion, confidence="posterior", **options).fit(observations)


def test_a_table_that_copies_what_was_observed_gets_no_promise(noise):
    """Its errors on observed cells are 0, elsewhere as large as the values."""
    _, seen = noise
    result = completed(ExternalCompletion(seen), seen).result_
    assert result.kept_share() > 0.5
    assert result.selection.held_out_error < 1e-6
    assert not result.guarantee.promised
    for guarantee in (result.guarantee, result.at_tolerance(0.9).guarantee):
        assert not guarantee.promised
        assert guarantee.sentence.startswith("Nothing is promised of what is kept: the predictions may have been made")
        assert "ExternalCompletion(..., held_out=True)" in guarantee.sentence


def test_the_report_promises_nothing_of_it(noise):
    _, seen = noise
    page = render_report(completed(ExternalCompletion(seen), seen))
    assert "and promises nothing of that: the predictions may have been made with the very cells" in page
    assert "<td>yes</td>" not in page


def test_predictions_stated_to_be_held_out_are_promised(noise):
    values, seen = noise
    theirs = values + 0.3 * np.random.default_rng(1).normal(size=values.shape)
    for source in (Observations.from_matrix(theirs), lambda rows, cols: theirs[rows, cols]):
        assert completed(ExternalCompletion(source, held_out=True), seen).result_.guarantee.promised
        assert not completed(ExternalCompletion(source), seen).result_.guarantee.promised


def test_what_is_fitted_on_the_training_cells_needs_no_such_word():
    for kind, source in (("fit", lambda seen: lambda rows, cols: 0.0 * rows), ("regressor", Ridge())):
        assert not ExternalCompletion(source, kind=kind).may_have_seen_all


def test_any_algorithm_may_say_that_it_knew_the_cells():
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((40, 30)) < 0.5)
    seen = Observations(rows, cols, 0.1 * rng.normal(size=len(rows)), (40, 30), bounds=(-2, 2))

    class Pretrained:
        may_have_seen_all = True

        def fit(self, observations, progress=None):
            return FactorModel(rank=1, penalty=3.0).fit(observations, progress)

    assert not completed(Pretrained(), seen).result_.guarantee.promised
    assert completed(FactorModel(rank=1, penalty=3.0), seen).result_.guarantee.promised

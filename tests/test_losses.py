import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.data import BoundsSource, Observations
from surefill.errors import InputError
from surefill.losses import AbsoluteError, ClippedLoss, Misclassification, SquaredError, choose_loss

LOSSES = [SquaredError(), AbsoluteError(), Misclassification(0.5), Misclassification(0)]
draws = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from([0.0, 0.25, 1.0, 3.0])), min_size=1, max_size=12
)


@pytest.mark.parametrize("loss", LOSSES)
@given(draws, st.sampled_from([0.0, 0.4, 0.75, 2.0]))
def test_a_cell_has_at_least_the_mean_loss_of_its_draws_and_just_that_where_they_agree(loss, given_draws, predicted):
    rows, cols, values = map(np.array, zip(*given_draws, strict=True))
    seen = Observations(rows, cols, values, (2, 2))
    by_cell = loss.at(seen, np.full(len(seen), predicted))
    for k, (i, j) in enumerate(zip(seen.rows, seen.cols, strict=True)):
        mean = np.mean([loss.of(predicted - y) for y in values[(rows == i) & (cols == j)]])
        assert by_cell[k] >= mean - 1e-12
        if seen.scatter[k] == 0 or isinstance(loss, SquaredError):
            assert by_cell[k] == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_variance_is_that_of_losses_of_normal_errors(loss):
    rng = np.random.default_rng(0)
    errors = rng.normal(size=200_000) * (0.6 if isinstance(loss, Misclassification) else 1.3)
    losses = np.array([loss.of(error) for error in errors])
    assert losses.var() == pytest.approx(float(loss.variance(losses.mean())), rel=0.02, abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "expected"), [(SquaredError(), 1.0), (AbsoluteError(), 0.5), (Misclassification(1.5), 0.25)]
)
def test_the_default_tolerance_is_half_the_loss_of_the_best_constant(loss, expected):
    seen = Observations([0, 0, 1, 1], [0, 1, 0, 1], [0.0, 2.0, 2.0, 4.0])
    assert loss.default_tolerance(seen) == pytest.approx(expected)
    if not isinstance(loss, Misclassification):
        grid = [np.mean(loss.at(seen, constant)) for constant in np.linspace(0, 4, 81)]
        assert 2 * loss.default_tolerance(seen) == pytest.approx(min(grid))


def test_a_default_tolerance_of_0_is_refused():
    seen = Observations([0, 1], [0, 1], [1.0, 1.2])
    with pytest.raises(InputError, match=r"the share of errors beyond 0.5 of predicting .* everywhere is 0"):
        Misclassification(0.5).default_tolerance(seen)


@pytest.mark.parametrize("loss", LOSSES[:3])
def test_no_loss_within_the_bounds_exceeds_the_largest_and_none_outside_counts_for_more(loss):
    bounded = ClippedLoss(loss, (1.0, 5.0), BoundsSource.SEEN, (2.0, 4.5))
    cells = np.arange(40)
    values = np.r_[np.linspace(1, 5, 38), -100.0, 100.0]
    predicted = np.r_[np.linspace(-9, 9, 38), 3.0, 3.0]
    at = bounded.at(Observations(cells, cells, values), predicted)
    assert at.max() == bounded.largest == at[-1]
    inside = loss.at(Observations(cells, cells, values), np.clip(predicted, 2.0, 4.5))[:38]
    np.testing.assert_array_equal(at[:38], inside)


def test_sentences_say_what_is_assumed():
    known, seen = (
        [ClippedLoss(loss, (1.0, 5.0), source, (1.0, 5.0)) for loss in LOSSES[:3]]
        for source in (BoundsSource.GIVEN, BoundsSource.SEEN)
    )
    assert [each.condition for each in known] == ["values lie in [1, 5]", "values lie in [1, 5]", ""]
    assert [each.condition for each in seen] == ["", "", ""]
    assert [each.clipping for each in known] == ["", "", ""]
    clipped = "Errors beyond 4 count as 4: bounds were not given."
    assert [each.clipping for each in seen] == [clipped, clipped, ""]


def test_what_is_no_loss_is_refused():
    assert choose_loss("absolute") == AbsoluteError()
    assert choose_loss(Misclassification(2)) == Misclassification(2.0)
    assert choose_loss("beyond:2") == Misclassification(2.0)
    for given_loss in ("huber", "beyond:", "beyond:-1", "beyond", "absolute:1", Misclassification, 0.5, ["squared"]):
        with pytest.raises(InputError, match="The 'loss' parameter of PartialCompleter must be 'squared', 'absolute'"):
            choose_loss(given_loss)
    with pytest.raises(InputError, match="The 'distance' parameter of Misclassification must be a number of at least"):
        Misclassification(-1)

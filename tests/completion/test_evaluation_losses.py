import numpy as np
import pytest

from surefill.completion import ExternalCompletion, confidence_loss, distribution_loss, evaluation_losses, sample_loss
from surefill.data import Observations
from surefill.errors import InputError


@pytest.fixture
def guess():
    seen = Observations([0, 0, 1, 1], [0, 0, 1, 2], [1.0, 3.0, 4.0, 2.0], (5, 3), (0, 9))
    return seen, ExternalCompletion(lambda rows, cols: 1.0 + rows + cols).fit(seen)


def test_the_sample_loss_counts_every_draw(guess):
    seen, completion = guess
    assert sample_loss(completion, seen) == pytest.approx(np.mean([0, 4, 1, 4]))


def test_the_loss_over_a_distribution_is_the_weighted_mean_in_any_form_and_block(guess, monkeypatch):
    _, completion = guess
    rng = np.random.default_rng(0)
    truth, nu = rng.uniform(0, 9, (5, 3)), rng.uniform(size=(5, 3))
    expected = np.sum(nu * (completion.dense() - truth) ** 2) / nu.sum()
    for size in (10**6, 6, 1):
        monkeypatch.setattr(evaluation_losses, "BLOCK_CELLS", size)
        assert distribution_loss(completion, truth, nu) == pytest.approx(expected)
        by_function = distribution_loss(completion, lambda i, j: truth[np.ix_(i, j)], lambda i, j: nu[np.ix_(i, j)])
        assert by_function == pytest.approx(expected)
    assert distribution_loss(completion, truth) == pytest.approx(np.mean((completion.dense() - truth) ** 2))
    assert distribution_loss(completion, completion, nu) == 0.0


def test_the_loss_over_a_confidence_ignores_what_is_not_trusted(guess):
    _, completion = guess
    truth, C = completion.dense() + 1.0, np.zeros((5, 3))
    truth[4, 2] += 2
    C[4, 2], C[0, 0] = 0.25, 0.75
    assert confidence_loss(completion, truth, C) == pytest.approx(0.75 * 1 + 0.25 * 9)


@pytest.mark.parametrize(
    ("truth", "weights", "sentence"),
    [
        (np.zeros((3, 5)), None, "truth must be 5 x 3"),
        (np.full((5, 3), np.nan), None, "one finite number per cell"),
        (np.zeros((5, 3)), -np.ones((5, 3)), "0 or more"),
        (np.zeros((5, 3)), np.zeros((5, 3)), "not all be 0"),
        (lambda i, j: np.zeros(3), None, "truth must give one finite number per cell"),
    ],
)
def test_bad_input(guess, truth, weights, sentence):
    with pytest.raises(InputError, match=sentence):
        distribution_loss(guess[1], truth, weights)

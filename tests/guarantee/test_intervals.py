import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.guarantee import ConformalScores


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("n", [30, 300])
def test_exchangeable_values_are_held_at_the_level(level, n):
    """Whatever the risk: here it has nothing to do with the errors of a third of the entries."""
    rng, held = np.random.default_rng(n), []
    for _ in range(2000 if n == 30 else 500):
        risk = rng.uniform(0.5, 2, n + 20)
        error = np.sqrt(np.where(rng.random(n + 20) < 1 / 3, 3.0, risk)) * rng.standard_t(3, n + 20)
        scores = ConformalScores.of(np.abs(error[:n]), np.sqrt(risk[:n]), np.ones(n))
        held.append(np.mean(np.abs(error[n:]) <= scores.half_widths(np.sqrt(risk[n:]), np.ones(20), level)))
    noise = 5 * np.std(held) / np.sqrt(len(held))
    assert level - noise <= np.mean(held) <= level + 1 / (n + 1) + noise


def test_weights_carry_the_level_over_to_other_entries():
    """Errors grow with x; calibration has mostly small x, the entries aimed at mostly large."""
    rng, held, plain = np.random.default_rng(0), [], []
    for _ in range(400):
        x, new = rng.beta(1, 3, 400), rng.beta(3, 1, 30)
        weight = [(t / (1 - t + 1e-9)) ** 2 for t in (x, new)]
        largest = np.quantile(weight[0], 0.999)
        w, v = (np.minimum(t / largest, 1.0) for t in weight)
        error, new_error = x * rng.normal(size=400), new * rng.normal(size=30)
        scores = ConformalScores.of(np.abs(error), np.ones(400), w)
        held.append(np.mean(np.abs(new_error) <= scores.half_widths(np.ones(30), v, 0.9)))
        unweighted = ConformalScores.of(np.abs(error), np.ones(400), np.ones(400))
        plain.append(np.mean(np.abs(new_error) <= unweighted.half_widths(np.ones(30), np.ones(30), 0.9)))
    assert np.mean(held) > 0.87
    assert np.mean(plain) < 0.7


@given(st.lists(st.floats(0, 10), min_size=1, max_size=40), st.floats(0.05, 0.95))
def test_the_score_is_the_one_of_rank_ceil_level_times_n_plus_1(errors, level):
    ones = np.ones(len(errors))
    half = ConformalScores.of(np.array(errors), ones, ones).half_widths([1.0], [1.0], level)[0]
    rank = int(np.ceil(level * (len(errors) + 1) * (1 - 1e-12)))
    expected = np.sort(errors)[rank - 1] if rank <= len(errors) else np.inf
    assert half == pytest.approx(expected)


def test_widths_grow_with_the_scale_and_are_infinite_without_calibration():
    scores = ConformalScores.of(np.ones(50), np.ones(50), np.ones(50))
    np.testing.assert_allclose(scores.half_widths([1.0, 2.0], [1.0, 1.0], 0.9), [1.0, 2.0])
    none = ConformalScores.of(np.empty(0), np.empty(0), np.empty(0))
    assert none.half_widths([1.0], [1.0], 0.5)[0] == np.inf

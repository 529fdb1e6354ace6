"""L-BFGS on functions whose minimum is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import rosen, rosen_der

from surefill.spaces.lbfgs import MAX_TRIES, MEMORY, LBFGSMemory, _cubic_minimum, _line_search, minimize_lbfgs


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_a_quadratic_is_solved(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(12, 12))
    H, b = root @ root.T + 0.1 * np.eye(12), rng.normal(size=12)
    x = minimize_lbfgs(lambda x: (float(x @ H @ x / 2 - b @ x), H @ x - b), np.zeros(12), 120)
    np.testing.assert_allclose(x, np.linalg.solve(H, b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("start", [[-1.2, 1.0], [3.0, -2.0, 1.0, 0.5]])
def test_a_curved_valley_is_followed(start):
    found = minimize_lbfgs(lambda x: (float(rosen(x)), rosen_der(x)), np.array(start), 200)
    np.testing.assert_allclose(found, 1.0, atol=1e-4)


def test_every_step_lowers_the_function_and_few_are_wasted():
    calls = 0

    def objective(x):
        nonlocal calls
        calls += 1
        return float(rosen(x)), rosen_der(x)

    x = np.array([-1.2, 1.0])
    accepted = [float(rosen(minimize_lbfgs(objective, x, iterations))) for iterations in range(1, 30)]
    assert (np.diff(accepted) < 0).all()
    assert calls < 2 * sum(range(1, 30))


def test_with_full_memory_the_last_gradient_change_is_met():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(20, 20))
    H, memory = root @ root.T + np.eye(20), LBFGSMemory()
    for _ in range(MEMORY + 3):
        s = rng.normal(size=20)
        memory.add(s, H @ s)
    assert len(memory.pairs) == MEMORY
    s, y, _ = memory.pairs[-1]
    np.testing.assert_allclose(memory.times(y), s)
    g = rng.normal(size=20)
    assert g @ memory.times(g) > 0


def test_steps_along_which_the_slope_falls_are_not_remembered():
    memory = LBFGSMemory()
    memory.add(np.ones(3), -np.ones(3))
    assert not memory.pairs


def test_steps_too_short_to_be_squared_are_not_remembered():
    memory = LBFGSMemory()
    memory.add(np.full(3, 1e-120), np.full(3, 1e-170))
    assert not memory.pairs


def test_walls_are_stepped_back_from_and_precision_is_kept():
    def objective(x):
        if x[0] >= 1:
            return np.inf, np.full_like(x, np.nan)
        return float(x[1] ** 2 - np.log1p(-x[0]) - 30 * x[0]), np.array([1 / (1 - x[0]) - 30, 2 * x[1]], x.dtype)

    found = minimize_lbfgs(objective, np.array([0.0, 3.0], np.float32), 60)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [1 - 1 / 30, 0.0], atol=1e-3)


@pytest.mark.parametrize("end", [(1.0, 0.0, 1.0), (1.0, -1.0, -1.0), (1.0, np.inf, np.nan), (1.0, 1e300, 1e300)])
def test_the_next_step_lies_between_the_ends_whatever_was_found_there(end):
    assert 0.1 <= _cubic_minimum((0.0, 0.0, -1.0), end) <= 0.9


def test_a_search_ends_where_no_number_is_left_between_its_ends():
    """Values that wobble in their last digit, as those of a minimum over lambda do that is found by iteration."""
    eps = np.finfo(float).eps
    values = iter([1 + eps, 1.0, *[1 + 2 * eps] * MAX_TRIES])
    point, value, _ = _line_search(
        lambda x: (next(values), np.full(1, -1e-17)), np.zeros(1), 1.0, -1e-17, np.ones(1), 1.0
    )
    assert (point[0], value) == (0.1, 1.0)


def test_it_stops_when_told_and_at_a_minimum():
    x = np.array([2.0, 2.0])
    np.testing.assert_array_equal(minimize_lbfgs(lambda x: (float(rosen(x)), rosen_der(x)), x, 50, deadline=0.0), x)
    np.testing.assert_array_equal(minimize_lbfgs(lambda x: (float(x @ x), 2 * x), np.zeros(2), 50), np.zeros(2))

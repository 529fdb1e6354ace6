import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.kernels import least_squares as kernels

both = {
    name: pytest.mark.parametrize(name, [getattr(kernels, name), getattr(kernels, f"{name}_reference")])
    for name in ("solve_groups", "invert_groups", "biased_products", "quadratic_forms", "biased_forms")
}


def problem(seed, k=4, sizes=(3, 0, 9, 1), n_other=7):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    other = rng.integers(-1, n_other, starts[-1])
    features, target = rng.normal(size=(n_other, k)), rng.normal(size=starts[-1])
    weight, penalty = rng.uniform(0.5, 3, starts[-1]), rng.uniform(0.1, 2, (len(sizes), k))
    root = rng.normal(size=(k, k))
    return starts, other, target, weight, features, penalty, root @ root.T, rng.normal(size=(len(sizes), k))


@both["solve_groups"]
@given(seed=st.integers(0, 30))
def test_the_gradient_of_every_ridge_problem_vanishes(solve_groups, seed):
    starts, other, target, weight, features, penalty, prior, pull = problem(seed)
    solution = np.full((4, 4), np.nan)
    values = np.full(4, np.nan)
    solve_groups(0, 4, starts, other, target, weight, features, penalty, prior, pull, solution, values)
    for g in range(4):
        entries = slice(starts[g], starts[g + 1])
        f = features[other[entries]]
        gradient = f.T @ (weight[entries] * (f @ solution[g] - target[entries])) + penalty[g] * solution[g]
        gradient += prior @ solution[g] - pull[g]
        np.testing.assert_allclose(gradient, 0, atol=1e-10)
        residual = target[entries] - f @ solution[g]
        value = weight[entries] @ residual**2 + penalty[g] @ solution[g] ** 2
        value += solution[g] @ prior @ solution[g] - 2 * pull[g] @ solution[g]
        assert values[g] == pytest.approx(value, abs=1e-9)


@both["solve_groups"]
def test_only_the_groups_asked_for_are_written(solve_groups):
    starts, other, target, weight, features, penalty, prior, pull = problem(0)
    solution = np.full((4, 4), 7.0)
    solve_groups(1, 3, starts, other, target, weight, features, penalty, prior, 0 * pull, solution, np.empty(4))
    assert (solution[[0, 3]] == 7).all()
    assert (solution[1] == 0).all()


@both["invert_groups"]
@given(seed=st.integers(0, 30))
def test_inverses_invert_the_normal_matrices(invert_groups, seed):
    starts, other, _, weight, features, penalty, prior, _ = problem(seed)
    inverse = np.empty((4, 4, 4))
    invert_groups(0, 4, starts, other, weight, features, penalty, prior, inverse)
    for g in range(4):
        entries = slice(starts[g], starts[g + 1])
        f = features[other[entries]]
        normal = (f.T * weight[entries]) @ f + np.diag(penalty[g]) + prior
        np.testing.assert_allclose(normal @ inverse[g], np.eye(4), atol=1e-9)


@both["biased_products"]
def test_biased_products_by_hand(biased_products):
    left, right = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, 1.0]]), np.array([[10.0, 1.0, 1.0], [20.0, -1.0, 2.0]])
    result = biased_products(left, right, np.array([0, 1, -1]), np.array([0, 1, 0]))
    assert result.tolist() == [1 + 10 + 2 + 3, 0.5 + 20 + 0 + 2, 0.5 + 10 + 0 + 1]


@both["quadratic_forms"]
def test_quadratic_forms_by_hand(quadratic_forms):
    vectors, matrices = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[[2.0, 1.0], [1.0, 4.0]], np.eye(2)])
    result = quadratic_forms(vectors, matrices, np.array([0, 1, 0]), np.array([0, 0, 1]))
    assert result.tolist() == [2 + 4 + 16, 36, 5]


@both["biased_forms"]
def test_the_first_number_of_a_line_counts_as_one_in_biased_forms(biased_forms):
    lines, matrices = np.array([[7.0, 2.0], [-9.0, 3.0]]), np.array([[[2.0, 1.0], [1.0, 4.0]], np.eye(2)])
    result = biased_forms(lines, matrices, np.array([0, 1, -1]), np.array([0, 0, 1]))
    assert result.tolist() == [2 + 4 + 16, 2 + 6 + 36, 10]

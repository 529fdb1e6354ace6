import numpy as np
import pytest

from surefill.data import Groups
from surefill.kernels import sparse_residuals


@pytest.fixture
def side():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 12, 70), rng.integers(0, 9, 70)
    groups = Groups.of(rows)
    entries = groups.starts, cols[groups.order], rng.normal(size=70), rng.uniform(1, 3, 70)
    return entries, rng.normal(size=(len(groups), 4)), rng.normal(size=(9, 4))


def dense_residual(entries, own, fixed):
    starts, other, target, weight = entries
    E = np.zeros((len(own), len(fixed)))
    group = np.repeat(np.arange(len(own)), np.diff(starts))
    np.add.at(E, (group, other), weight * (target - (own @ fixed.T)[group, other]))
    return E, group


@pytest.mark.parametrize("name", ["residual_products", "residual_products_reference"])
def test_products_are_those_of_the_dense_residual(side, name):
    entries, own, fixed = side
    product = np.full(own.shape, np.nan)
    getattr(sparse_residuals, name)(0, 5, *entries, own, fixed, product)
    getattr(sparse_residuals, name)(5, len(own), *entries, own, fixed, product)
    np.testing.assert_allclose(product, dense_residual(*side)[0] @ fixed, atol=1e-12)


@pytest.mark.parametrize("name", ["residuals", "residuals_reference"])
def test_residuals_add_up_to_the_dense_residual(side, name):
    entries, own, fixed = side
    result = np.full(70, np.nan)
    getattr(sparse_residuals, name)(0, len(own), *entries, own, fixed, result)
    E, group = dense_residual(*side)
    sums = np.zeros_like(E)
    np.add.at(sums, (group, entries[1]), result)
    np.testing.assert_allclose(sums, E, atol=1e-12)


def test_a_product_of_rank_zero_leaves_the_target(side):
    entries, own, fixed = side
    result = np.empty(70)
    sparse_residuals.residuals(0, len(own), *entries, own[:, :0], fixed[:, :0], result)
    np.testing.assert_array_equal(result, entries[3] * entries[2])

"""Best responses: the compiled kernel, its readable twin, and the optimality conditions of each row's problem."""

import numpy as np
import pytest

from surefill.kernels import best_response as kernels
from surefill.kernels.counter_random import stream_key

PROX, WEIGHT, ALPHA, K, CAP = 0.3, 0.7, 8.0, 1.0, 16


class Table:
    """A random table of 30 rows with 0 to 40 observations each among 50 columns, and snapshots of both sides."""

    def __init__(self, seed, taken, rank=4):
        rng = np.random.default_rng(seed)
        self.counts = rng.integers(0, 40, 30)
        self.starts = np.concatenate([[0], np.cumsum(self.counts)])
        self.others = np.concatenate([rng.permutation(50)[:c] for c in self.counts]).astype(np.int32)
        self.U, self.V = (self.unit(rng.normal(size=(size, rank))) for size in (30, 50))
        self.slots = self.unit(rng.normal(size=(30, taken, rank))).reshape(30, -1)
        block = rng.permutation(50)[:12]
        block_slots = self.unit(rng.normal(size=(50, taken, rank))).reshape(50, -1)[block]
        self.block = np.ascontiguousarray(self.V[block].T)
        self.block_slots = np.ascontiguousarray(block_slots.T / np.float32(max(taken, 1)))
        self.mean = self.V.mean(axis=0)

    @staticmethod
    def unit(x):
        return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)

    def respond(self, name, ranges=((0, 30),)):
        out = np.full_like(self.U, np.nan)
        for first, last in ranges:
            getattr(kernels, name)(
                first, last, self.U, self.slots, self.starts, self.others, self.V, self.block, self.block_slots,
                self.mean, np.float32(ALPHA), WEIGHT, PROX, K, CAP, stream_key(3, 0), 0, out,
            )  # fmt: skip
        return out


@pytest.mark.parametrize("taken", [0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_and_its_twin_agree(seed, taken):
    table = Table(seed, taken)
    # exp is replaced by (1 - x/32)^32, within 1.6% of it where x <= 1 and smaller beyond
    tolerance = 2e-3 if taken == 0 else 2e-2
    np.testing.assert_allclose(
        table.respond("best_responses"), table.respond("best_responses_reference"), atol=tolerance
    )


@pytest.mark.parametrize("seed", range(4))
def test_rows_do_not_depend_on_the_ranges_they_are_computed_in(seed):
    table = Table(seed, 3)
    whole, parts = table.respond("best_responses"), table.respond("best_responses", [(0, 7), (7, 8), (8, 30)])
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("seed", range(4))
def test_each_row_meets_the_optimality_conditions_of_its_problem(seed):
    table = Table(seed, taken=0)
    found = table.respond("best_responses").astype(float)
    g = table.mean + PROX * table.U
    for i in np.flatnonzero(table.counts <= CAP):
        X = table.V[table.others[table.starts[i] : table.starts[i + 1]]].astype(float)
        A = 2 * WEIGHT * X.T @ X + (PROX + kernels.RIDGE) * np.eye(X.shape[1])
        u, gradient = found[i], g[i] - A @ found[i]
        multiplier = gradient @ u / (u @ u)
        assert u @ u <= K * (1 + 1e-6)
        np.testing.assert_allclose(gradient, multiplier * u, atol=1e-4)  # stationary along the ball
        assert multiplier >= -1e-4
        assert multiplier < 1e-3 or u @ u > K * 0.998  # complementary: the ball binds, or its multiplier is 0


def test_starts_have_length_one_and_repeat():
    first, again, other = (np.empty((20, 5), np.float32) for _ in range(3))
    for factors, seed in ((first, 1), (again, 1), (other, 2)):
        kernels.random_start(factors, stream_key(seed, 0), 0)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, atol=1e-6)


def test_mean_products():
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(size, 6)).astype(np.float32) for size in (9, 7))
    i, j, out = rng.integers(9, size=40), rng.integers(7, size=40), np.empty(40, np.float32)
    kernels.mean_products(0, 40, i, j, left, right, 3, out)
    np.testing.assert_allclose(out, (left @ right.T)[i, j] / 3, rtol=1e-5, atol=1e-6)


def grams_of(table, name, rates, offset=0):
    """What 50 columns see of the rows, summed."""
    rows = np.repeat(np.arange(30), table.counts)
    total = np.zeros((50, 4 * 5 // 2 + 1))
    getattr(kernels, name)(rows, table.others, table.U, rates, stream_key(5, 0), offset, 50, total)
    return total


@pytest.mark.parametrize("taken", [0, 3])
def test_columns_respond_alike_to_sums_and_to_single_rows(taken):
    table = Table(0, taken)
    rows = np.repeat(np.arange(30), table.counts)
    order = np.argsort(table.others, kind="stable")
    counts = np.bincount(table.others, minlength=50)
    starts, others = np.concatenate([[0], np.cumsum(counts)]), rows[order].astype(np.int32)
    V, slots = table.V, np.ascontiguousarray(np.resize(table.slots, (50, taken * 4)))
    across = table.block, table.block_slots, table.mean, np.float32(ALPHA), WEIGHT, PROX, K
    one_by_one, summed, twin = (np.empty_like(V) for _ in range(3))
    kernels.best_responses(0, 50, V, slots, starts, others, table.U, *across, 99, stream_key(3, 0), 0, one_by_one)
    grams = grams_of(table, "add_grams", np.ones(50))
    np.testing.assert_allclose(grams, grams_of(table, "add_grams_reference", np.ones(50)), rtol=1e-12, atol=1e-12)
    kernels.best_responses_to_grams(0, 50, V, slots, grams, counts, *across, summed)
    kernels.best_responses_to_grams_reference(0, 50, V, slots, grams, counts, *across, twin)
    np.testing.assert_allclose(summed, one_by_one, atol=2e-3)
    np.testing.assert_allclose(summed, twin, atol=2e-3 if taken == 0 else 2e-2)


def test_cells_are_drawn_by_their_place_in_the_whole_table_and_stand_for_all():
    table, rates = Table(1, 0), np.full(50, 0.4)
    drawn = grams_of(table, "add_grams", rates, offset=7)
    np.testing.assert_allclose(drawn, grams_of(table, "add_grams_reference", rates, offset=7), rtol=1e-12, atol=1e-12)
    share = drawn[:, -1].sum() / len(table.others)
    assert abs(share - 0.4) < 4 * np.sqrt(0.24 / len(table.others))
    assert not np.array_equal(drawn, grams_of(table, "add_grams", rates, offset=8))

"""Weights of held-out cells add up to the cells there are, line by line."""

import numpy as np

from surefill import Observations
from surefill.guarantee import MarginRaking


def halves(rng, chance):
    rows, cols = np.nonzero(rng.random(chance.shape) < chance)
    seen, first = Observations(rows, cols, np.zeros(len(rows)), chance.shape), rng.random(len(rows)) < 0.5
    return seen.select(first), seen.select(~first)


def weights_of(raking, chances, cells):
    p = raking.corrected(chances, cells.rows, cells.cols)
    return (1 - 0.5 * p) / (0.5 * p)


def test_lines_add_up_to_their_cells():
    rng = np.random.default_rng(0)
    one, two = halves(rng, np.full((200, 150), 0.3) * rng.uniform(0.3, 1.0, 150))
    flat = np.full(len(two), 0.2)
    raking = MarginRaking.of(flat, one, two, 0.5)
    outside = 200 - np.bincount(one.cols, minlength=150)
    added = np.bincount(two.cols, weights_of(raking, flat, two), 150)
    before = np.bincount(two.cols, np.full(len(two), 9.0), 150)
    assert np.abs(added / outside - 1).mean() < 0.6 * np.abs(before / outside - 1).mean()
    assert abs(added.sum() / outside.sum() - 1) < 0.1


def test_what_depends_on_how_rare_a_column_truly_is_is_not_understated():
    """Rare columns err more. Counts of one half cannot tell how rare a column is; the other half's can."""
    rng, off, model = np.random.default_rng(1), [], []
    for _ in range(10):
        popularity = 0.03 + 0.2 * rng.random(300)
        error = 1 / (0.05 + popularity)
        one, two = halves(rng, np.broadcast_to(popularity, (200, 300)))
        outside = 200 - np.bincount(one.cols, minlength=300)
        average = np.full(len(two), 2 * len(one) / (200 * 300))
        weight = weights_of(MarginRaking.of(average, one, two, 0.5), average, two)
        truth = np.average(error, weights=outside)
        off.append(np.average(error[two.cols], weights=weight) / truth - 1)
        model.append(error[two.cols].mean() / truth - 1)
    assert abs(np.mean(off)) < 0.5 * abs(np.mean(model))
    assert np.mean(model) < -0.1


def test_relabelling_rows_and_columns_relabels_the_factors():
    rng = np.random.default_rng(2)
    one, two = halves(rng, np.full((40, 30), 0.4))
    shuffle = rng.permutation(40)
    moved = [Observations(shuffle[each.rows], each.cols, each.values, each.shape) for each in (one, two)]
    flat = np.full(len(two), 0.4)
    first, second = MarginRaking.of(flat, one, two, 0.5), MarginRaking.of(flat, *moved, 0.5)
    np.testing.assert_allclose(second.row_factor[shuffle], first.row_factor)
    np.testing.assert_allclose(second.col_factor, first.col_factor)

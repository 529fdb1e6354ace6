"""A fit on blocks of rows is the fit of the table."""

import numpy as np
import pytest

import surefill as sf
from surefill.blocks import LocalBlocks, TreeSum
from surefill.completion import BayesianFactorModel
from surefill.completion.bayes import bayesian_model
from surefill.completion.bayes.blocked_solver import BlockedSolver
from surefill.completion.bayes.row_block import RowBlock, blocks_of, cut_rows


def blocked_fit(model, seen, cells):
    blocks = LocalBlocks([RowBlock(part) for part in blocks_of(seen, cells)])
    target = min(model.rank, *seen.shape)
    solver = BlockedSolver.of(blocks, seen.shape, seen.unit, min(target, 10), model.tol, model.random_state)
    *_, last = model.grow(solver, target)
    return solver.completion(last, seen.shape[0]), len(blocks)


def assert_same(one, other, tolerance=1e-9):
    assert one.status == other.status
    assert one.noise == pytest.approx(other.noise, rel=1e-9)
    np.testing.assert_array_equal(one.rows.ids, other.rows.ids)
    for left, right in ((one.rows, other.rows), (one.cols, other.cols)):
        for name in ("mean", "variance", "implicit", "precision", "intercept"):
            np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=0, atol=tolerance)
        np.testing.assert_allclose(left.noise_precision.mean, right.noise_precision.mean, atol=tolerance)
    np.testing.assert_allclose(one.dense(), other.dense(), atol=tolerance)


@pytest.fixture(scope="module")
def seen():
    sim = sf.datasets.make_low_rank((90, 60), rank=2, n_draws=2500, noise=0.1, random_state=3)
    gaps = sim.observations.rows % 7 != 3  # rows without cells, and cells drawn several times
    return sim.observations.select(gaps)


@pytest.mark.parametrize("cells", [10**9, 400])
def test_blocks_give_the_fit_of_the_table(seen, cells):
    model = BayesianFactorModel(rank=13, max_sweeps=30)
    fitted, n_blocks = blocked_fit(model, seen, cells)
    assert n_blocks == (1 if cells > len(seen) else 4)
    assert_same(fitted, model.fit(seen))


@pytest.mark.parametrize("turned", [False, True])
def test_a_fit_that_starts_on_a_sample_of_lines_does_so_in_blocks_too(seen, monkeypatch, turned):
    if turned:
        seen = sf.Observations(seen.cols, seen.rows, seen.values, shape=seen.shape[::-1], bounds=seen.bounds)
    monkeypatch.setattr(bayesian_model, "SAMPLED_CELLS", 1500)
    model = BayesianFactorModel(rank=4, max_sweeps=30)
    assert_same(blocked_fit(model, seen, 300)[0], model.fit(seen))


def test_blocks_are_cut_by_the_table_alone_and_hold_every_cell_once(seen):
    blocks = blocks_of(seen, 300)
    assert sum(map(len, blocks)) == len(seen)
    assert len(blocks) == 4
    assert min(map(len, blocks)) >= 250
    rows = np.concatenate([block.row_ids for block in blocks])
    np.testing.assert_array_equal(rows, seen.by_row.ids)
    np.testing.assert_array_equal(cut_rows(np.array([0, 3, 5, 9, 10]), 4), [0, 2, 4])


@pytest.mark.parametrize("n", [1, 2, 5, 8, 13])
def test_sums_do_not_depend_on_who_has_which_blocks(n):
    values = np.random.default_rng(n).normal(size=(n, 3))
    totals = []
    for n_workers in (1, 2, 3, 4):
        whole = TreeSum(n)
        for ids in np.array_split(np.arange(n), n_workers):
            worker = TreeSum(n)
            for i in ids:
                worker.add((0, int(i)), (values[i].copy(), 1))
            for node, sums in worker.nodes.items():
                whole.add(node, sums)
        totals.append(whole.total())
    for total in totals:
        np.testing.assert_array_equal(total[0], totals[0][0])  # to the last bit
        assert total[1] == n
    np.testing.assert_allclose(totals[0][0], values.sum(axis=0))

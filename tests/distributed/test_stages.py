"""Stages of the main job on row blocks next to the same algorithms on one table."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import surefill as sf
from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.blocked_solver import PlainRuns
from surefill.completion.bayes.row_block import WHOLE
from surefill.confidence import CoverageGame
from surefill.distributed.few_cells import learn_risk
from surefill.distributed.learning import fit_rest, fit_whole, sampled_rows
from surefill.distributed.playing import play_game
from surefill.distributed.risk_block import FOLD, REST
from surefill.distributed.split_block import FIRST, SECOND, SPLIT
from surefill.distributed.splitting import split_cells
from surefill.guarantee.propensity import MarginalPropensity, MarginRaking
from surefill.losses import SQUARED
from surefill.risk import CrossFit, PriorRisk, RiskModel
from surefill.risk.noise_factors import NoiseSide
from surefill.risk.risk_model import unsupported_factor

from .conftest import SEED, open_blocks


def gathered(opened, table):
    """The cells of a table of all blocks, as observations of all rows."""
    rows, cols, values = [], [], []
    for block in opened.each:
        cells = block._cells[table]
        rows.append(block._first + block._rows(cells))
        cols.append(cells.cols)
        values.append(cells.values)
    return sf.Observations(*map(np.concatenate, (rows, cols, values)), opened.table.shape)


def test_blocks_have_the_cells_in_the_order_of_one_table(opened, in_memory):
    found = gathered(opened, WHOLE)
    assert found.shape == in_memory.shape
    for name in ("rows", "cols", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(in_memory, name))


class TestSplit:
    @pytest.fixture
    def halves(self, opened, monkeypatch):
        monkeypatch.setattr("surefill.distributed.split_block.SplitBlock.finish_split", lambda block: None)
        columns = split_cells(opened.blocks, opened.table.shape, opened.table.n_cells, "unobserved", 0.2, SEED)
        return columns, gathered(opened, FIRST), gathered(opened, SECOND)

    def rows(self, opened, name):
        return np.concatenate([block._parts[SPLIT][name] for block in opened.each])

    def test_margins_are_those_of_the_table(self, opened, halves):
        columns, first, _ = halves
        expected = MarginalPropensity.of(first, 0.5)
        np.testing.assert_allclose(self.rows(opened, "row_logit"), expected.row_logit, rtol=1e-9)
        np.testing.assert_allclose(columns.col_logit, expected.col_logit, rtol=1e-9)

    def test_weights_add_up_to_the_cells_of_every_line(self, opened, halves):
        columns, first, second = halves
        m = opened.table.n_rows
        rows = {name: self.rows(opened, name) for name in ("row_logit", "row_factor")}
        if columns.pattern is not None:
            rows["row_pattern"] = self.rows(opened, "row_pattern")
        chances = columns.propensity(rows).at(second.rows, second.cols)
        corrected = columns.calibrated.corrected(chances, second.rows, second.cols)
        expected = MarginRaking.of(corrected, first, second, 0.5)
        np.testing.assert_allclose(rows["row_factor"], expected.row_factor, rtol=1e-9)
        np.testing.assert_allclose(columns.col_factor, expected.col_factor, rtol=1e-9)
        assert len(rows["row_factor"]) == m

    def test_coins_hold_out_the_share_that_was_asked_for(self, opened, halves):
        _, first, second = halves
        n = len(first) + len(second)
        assert abs(len(second) - n / 2) < 4 * np.sqrt(n) / 2
        held = sum(int((block._parts[SPLIT]["cells"] == 1).sum()) for block in opened.each)
        assert abs(held - 0.2 * n) < 5 * np.sqrt(0.2 * n)

    def test_another_number_of_blocks_sets_the_same_cells_aside(self, opened, halves, folder, tmp_path):
        other = open_blocks(folder, tmp_path / "other", 7)
        split_cells(other.blocks, other.table.shape, other.table.n_cells, "unobserved", 0.2, SEED)
        np.testing.assert_array_equal(self.rows(opened, "cells"), self.rows(other, "cells"))


class TestCompletion:
    MODEL = BayesianFactorModel(rank=2)

    @pytest.fixture
    def fitted(self, opened):
        opened.blocks.total("set_fold", WHOLE, 0.2)
        for table, value in ((REST, 0), (FOLD, 1)):
            opened.blocks.each("select_cells", table, WHOLE, FOLD, value)
        unit = sf.data.UnitMap(-3.0, 3.0)
        about = opened.blocks, PlainRuns(), opened.table.shape
        return fit_rest(*about, unit, self.MODEL, None)

    def test_rows_columns_and_variances_are_those_of_one_table(self, opened, fitted):
        _, fit = fitted
        rest = gathered(opened, REST).with_bounds((-3.0, 3.0))
        expected = self.MODEL.fit(rest)
        for block in opened.each:
            rows, cols = np.arange(block._m), np.arange(block._n)
            found, global_rows = block._completion(fit), block._first + rows
            np.testing.assert_allclose(found.block(rows, cols), expected.block(global_rows, cols), atol=1e-6)
            grid = np.ix_(rows, cols), np.ix_(global_rows, cols)
            np.testing.assert_allclose(found.variance(*grid[0]), expected.variance(*grid[1]), rtol=1e-6)

    def test_the_fit_of_all_goes_on_as_in_one_table(self, opened, fitted):
        rest, whole = (gathered(opened, table).with_bounds((-3.0, 3.0)) for table in (REST, WHOLE))
        expected = self.MODEL.fit_from(self.MODEL.fit(rest), whole)
        fit = fit_whole(opened.blocks, PlainRuns(), opened.table.shape, WHOLE, fitted, self.MODEL, None)
        block = opened.each[1]
        rows, cols = np.arange(block._m), np.arange(block._n)
        found = block._completion(fit).block(rows, cols)
        np.testing.assert_allclose(found, expected.block(block._first + rows, cols), atol=1e-6)


class TestGame:
    def test_the_order_of_supported_and_other_cells_is_that_of_one_table(self, tmp_path):
        """Two groups with little between: the area under the curve in blocks and in memory."""
        sim = sf.datasets.make_blocks((120, 90), n_groups=2, rank=2, n_draws=9000, noise=0.1, random_state=0)
        seen = sim.observations
        rng = np.random.default_rng(0)
        stray = rng.integers(0, seen.shape[0], 60), rng.integers(0, seen.shape[1], 60)
        rows, cols = np.append(seen.rows, stray[0]), np.append(seen.cols, stray[1])
        (tmp_path / "files").mkdir()
        text = "\n".join(["row,col,value", *(f"{i},{j},1.0" for i, j in zip(rows, cols, strict=True)), "0,0,0.5"])
        (tmp_path / "files" / "a.csv").write_text(text)
        opened = open_blocks(tmp_path / "files", tmp_path / "blocks", 4)
        columns, certificate = play_game(opened.blocks, WHOLE, opened.table.shape, CoverageGame(random_state=SEED))
        labels = np.concatenate([block._row_labels() for block in opened.each])
        C = np.vstack([
            columns.confidence(block._parts["game"], (block._m, block._n)).dense() for block in opened.each
        ])[np.argsort(labels)]  # fmt: skip
        other, of_table = CoverageGame(random_state=SEED).fit(
            sf.Observations(rows, cols, np.ones(len(rows)), seen.shape)
        )
        areas = [roc_auc_score(sim.support.ravel(), each.ravel()) for each in (C, other.dense())]
        assert min(areas) > 0.99
        assert abs(areas[0] - areas[1]) < 0.005
        assert certificate.floor == of_table.floor
        passed = [np.mean(each[~sim.support] >= certificate.floor) for each in (C, other.dense())]
        kept = [np.mean(each[sim.support] >= certificate.floor) for each in (C, other.dense())]
        assert max(passed) < 0.05
        assert abs(kept[0] - kept[1]) < 0.05

    def test_components_are_those_of_one_table(self, opened, in_memory):
        columns, _ = play_game(opened.blocks, WHOLE, opened.table.shape, CoverageGame(random_state=SEED))
        assert len(np.unique(columns.components)) == 1
        assert all((block._parts["game"]["components"] == columns.components[0]).all() for block in opened.each)


def test_the_risk_of_few_cells_is_that_of_one_table(opened, in_memory):
    """Of 7,000 cells five folds: curves, columns, and each block's own rows, to the bit."""
    model, seen = BayesianFactorModel(rank=2, random_state=SEED), in_memory.with_bounds((-3.0, 3.0))
    cells = sampled_rows(opened.blocks, WHOLE, opened.table.n_cells, opened.table.shape[1], (-3.0, 3.0))
    columns, prior, _, unsupported = learn_risk(opened.blocks, cells, model, SQUARED, None)
    folds = CrossFit(seen, model, random_state=SEED)
    expected, of_prior = RiskModel().fit(seen, model.fit(seen), folds), PriorRisk.measured(folds)
    for name in ("slope", "knots", "heights", "part_powers"):
        np.testing.assert_array_equal(getattr(columns, name), getattr(expected, name))
    np.testing.assert_array_equal(columns.cols.factors, expected.cols.factors)
    assert (prior.new_row, prior.new_col, prior.neither) == (of_prior.new_row, of_prior.new_col, of_prior.neither)
    assert unsupported == unsupported_factor(expected, folds.without_blocks(), SQUARED)
    for name, of_rows in (("", expected.rows), ("hidden_", of_prior.of_rows)):
        found = [block._row_noise(name) for block in opened.each]
        ids = np.concatenate([block._first + each.ids for block, each in zip(opened.each, found, strict=True)])
        np.testing.assert_array_equal(ids, of_rows.ids)
        for field in ("factors", "slopes", "centres"):
            own = np.concatenate([getattr(each, field)[:-1] for each in found])
            np.testing.assert_array_equal(own, getattr(of_rows, field)[:-1])


def test_rows_noise_given_a_prior_is_that_learnt_with_it():
    rng = np.random.default_rng(0)
    rows, ratio, predicted = rng.integers(0, 40, 3000), rng.chisquare(1, 3000), rng.normal(size=3000)
    side = NoiseSide.of(rows, np.ones(3000, np.int64), predicted)
    ratio *= np.exp(rng.normal(0, 0.5, 40))[rows]
    factors, _, prior = side.learnt(ratio)
    some = rows % 2 == 0
    again = NoiseSide.of(rows[some], np.ones(some.sum(), np.int64), predicted[some]).given(ratio[some], prior)
    even = factors.ids % 2 == 0
    for name in ("factors", "slopes", "centres"):
        np.testing.assert_allclose(getattr(again, name)[:-1], getattr(factors, name)[:-1][even], rtol=1e-9, atol=1e-12)

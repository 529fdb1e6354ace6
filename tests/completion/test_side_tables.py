"""The model with side tables: its bound, its limits, and known truths."""

import numpy as np
import pandas as pd
import pytest

from surefill.completion import BayesianFactorModel
from surefill.completion.bayes.variational_solver import VariationalSolver
from surefill.data import Features, Observations, split_entries
from surefill.data.features import FeatureScale
from surefill.data.side_tables import join_features
from surefill.errors import InputError
from surefill.io.archive import read_archive, write_archive

M, N, COLD = 150, 60, 30


@pytest.fixture(scope="module")
def truth():
    """Rows whose bias and factor follow two features, but for a little; the last thirty rows are never seen."""
    rng = np.random.default_rng(0)
    f = rng.normal(size=(M, 2))
    bias, factor = 0.3 * f[:, 0] + 0.05 * rng.normal(size=M), 0.3 * f[:, 1] + 0.05 * rng.normal(size=M)
    matrix = bias[:, None] + 0.1 * rng.normal(size=N) + np.outer(factor, rng.normal(size=N))
    seen = rng.random((M, N)) < 0.3
    seen[-COLD:] = False
    i, j = np.nonzero(seen)
    values = matrix[i, j] + 0.1 * rng.normal(size=len(i))
    observations = Observations(i, j, values, (M, N), bounds=(-4, 4))
    return observations, matrix, Features(("a", "b"), f)


@pytest.fixture(scope="module")
def told(truth):
    return join_features(truth[0], 0, np.arange(M), truth[2])


@pytest.fixture(scope="module")
def fitted(told):
    return BayesianFactorModel(rank=2).fit(told)


def error(completion, matrix, rows):
    return float(np.mean((completion.block(rows, np.arange(N)) - matrix[rows]) ** 2))


def test_the_bound_never_falls(told):
    solver = VariationalSolver.of(told, 2, 1e-3, 0)
    state = solver.init()
    for _ in range(15):
        before, state = state, solver.step(state)
        assert state.bound >= before.bound - 1e-9 * abs(before.bound)


def test_rows_never_seen_are_predicted_by_their_features(truth, fitted):
    plain, cold = BayesianFactorModel(rank=2).fit(truth[0]), np.arange(M - COLD, M)
    assert error(fitted, truth[1], cold) < 0.25 * error(plain, truth[1], cold)
    assert error(fitted, truth[1], np.arange(M - COLD)) < 1.02 * error(plain, truth[1], np.arange(M - COLD))
    assert np.isfinite(fitted.variance(cold, np.zeros(COLD, int))).all()


def test_columns_have_features_as_rows_do(truth, fitted):
    observations, _, features = truth
    flipped = Observations(observations.cols, observations.rows, observations.values, (N, M), observations.bounds)
    other = BayesianFactorModel(rank=2).fit(join_features(flipped, 1, np.arange(M), features))
    cold = np.arange(M - COLD, M)
    found = other.block(np.arange(N), cold).T - fitted.block(cold, np.arange(N))
    assert np.mean(found**2) < 0.02  # other random starts; values have a variance of 0.2


def test_features_that_never_differ_change_nothing(truth):
    same = join_features(truth[0], 0, np.arange(M), Features(("one",), np.full((M, 1), 3.0)))
    plain, told = (BayesianFactorModel(rank=2).fit(each) for each in (truth[0], same))
    seen = np.arange(M - COLD)
    np.testing.assert_allclose(told.block(seen, np.arange(N)), plain.block(seen, np.arange(N)), atol=1e-6)


def test_useless_features_do_little_harm(truth):
    noise = Features(tuple("abcdefgh"), np.random.default_rng(1).normal(size=(M, 8)))
    plain, told = (
        BayesianFactorModel(rank=2).fit(each) for each in (truth[0], join_features(truth[0], 0, np.arange(M), noise))
    )
    rows = np.arange(M - COLD)
    assert error(told, truth[1], rows) < 1.1 * error(plain, truth[1], rows)


def test_new_rows_are_folded_in_by_features_alone(truth, fitted):
    _, matrix, features = truth
    cold = np.arange(M - COLD, M)
    one_cell = Observations([0], [0], [matrix[cold[0], 0]], (COLD, N), (-4, 4))
    new = join_features(one_cell, 0, np.arange(COLD), Features(features.names, features.table[cold]))
    folded = fitted.fold_in(new)
    expected = fitted.block(cold[1:], np.arange(N))
    np.testing.assert_allclose(folded.block(np.arange(1, COLD), np.arange(N)), expected, atol=1e-9)


def test_a_saved_model_knows_its_features(fitted, tmp_path):
    write_archive(tmp_path / "model", "test", 1, fitted)
    again = read_archive(tmp_path / "model", "test", 1, lambda content: content)
    np.testing.assert_array_equal(again.dense(), fitted.dense())


def test_side_tables_are_joined_by_label_and_stay_with_a_part():
    seen = Observations([0, 1, 1], [0, 1, 0], [4.0, 3.0, 2.0], row_labels=["ann", "bob"], names=("user", "item", "x"))
    people = pd.DataFrame({"age": [30, 40, 50], "user": ["bob", "cleo", "ann"], "sex": ["m", "f", "f"]})
    told = seen.with_features(rows=people)
    assert told.shape == (3, 2)
    assert told.row_labels.tolist() == ["ann", "bob", "cleo"]
    assert told.row_features.names == ("age", "sex=f", "sex=m")
    assert told.row_features.table[:, 0].tolist() == [50, 30, 40]
    train, _ = split_entries(told, 0.3)
    assert train.row_features is told.row_features
    smaller, larger = told.in_shape((2, 2), told.row_labels[:2]), told.in_shape((4, 2))
    assert len(smaller.row_features.table) == 2
    assert np.isnan(larger.row_features.table[3]).all()


def test_bad_side_tables_are_refused():
    seen = Observations([0, 1], [0, 1], [4.0, 3.0])
    with pytest.raises(InputError, match="some occur twice"):
        seen.with_features(rows=pd.DataFrame({"row": [0, 0], "age": [1, 2]}))
    with pytest.raises(InputError, match="a column beside the labels"):
        seen.with_features(cols=pd.DataFrame({"column": [0, 1]}))
    with pytest.raises(InputError, match="201 different texts"):
        Features.of({"name": [str(k) for k in range(201)]})
    scale = FeatureScale.of(Features(("age",), np.ones((2, 1))))
    with pytest.raises(InputError, match="none of the features"):
        scale.standardised(Features(("size",), np.ones((2, 1))))

"""scikit-learn's model selection over entries."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate

from surefill import Observations, PartialCompleter
from surefill.completion import BayesianFactorModel
from surefill.data import split_entries
from surefill.datasets import make_low_rank
from surefill.errors import InputError
from surefill.estimators import make_error_scorer, make_kept_share_scorer

FOLDS = KFold(2, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def seen():
    """Labelled, so that rows are found by label; the last column is seen once, and so unknown to one training part."""
    sim = make_low_rank((40, 30), rank=2, n_draws=1200, noise=0.2, random_state=0).observations
    once = np.flatnonzero(sim.cols == 29)[1:]
    part = sim.select(np.setdiff1d(np.arange(len(sim)), once))
    return Observations(
        part.rows, part.cols, part.values, part.shape, (-1, 1), counts=part.counts, scatter=part.scatter,
        row_labels=[f"u{i}" for i in range(40)], col_labels=100 + np.arange(30),
    )  # fmt: skip


@pytest.fixture
def completer():
    return PartialCompleter(0.2, confidence="posterior")


def by_hand(completer, seen, measure):
    scores = []
    for train, test in FOLDS.split(np.zeros(len(seen))):
        fitted, held_out = clone(completer).fit(seen.select(train)), seen.select(test)
        scores.append(measure(fitted, held_out))
    return scores


def test_cross_validation_holds_out_entries_and_not_rows(completer, seen):
    def error(fitted, held_out):
        predicted = fitted.result_.values_at(held_out.rows, held_out.cols)
        return -np.average(held_out.squared_errors(predicted), weights=held_out.counts)

    def kept(fitted, held_out):
        return fitted.result_.at_tolerance(0.3).keeps(held_out.rows, held_out.cols).mean()

    scorers = {"error": make_error_scorer(), "kept": make_kept_share_scorer(0.3)}
    found = cross_validate(completer, seen.entries, cv=FOLDS, scoring=scorers)
    np.testing.assert_allclose(found["test_error"], by_hand(completer, seen, error))
    np.testing.assert_allclose(found["test_kept"], by_hand(completer, seen, kept))
    np.testing.assert_allclose(cross_val_score(completer, seen.entries, cv=FOLDS), found["test_error"])
    assert 0 < found["test_kept"].min() < 1


def test_scikit_learns_own_scorers_and_predictions_work_with_values_as_y(completer, seen):
    one_draw_each = Observations(seen.rows, seen.cols, seen.values, seen.shape, (-1, 1))
    own = cross_val_score(completer, one_draw_each.entries, cv=FOLDS, scoring=make_error_scorer("absolute"))
    plain = cross_val_score(completer, one_draw_each.entries, seen.values, cv=FOLDS, scoring="neg_mean_absolute_error")
    np.testing.assert_allclose(own, plain)
    predicted = cross_val_predict(completer, seen.entries, cv=FOLDS)
    assert np.mean((predicted - seen.values) ** 2) < 0.5 * seen.values.var()


def test_a_grid_search_in_other_processes_finds_the_rank(completer, seen):
    grid = {"completion": [BayesianFactorModel(rank=rank, max_sweeps=20) for rank in (1, 3)], "n_jobs": [1]}
    search = GridSearchCV(completer, grid, cv=FOLDS, n_jobs=2).fit(seen.entries)
    assert search.best_params_["completion"].rank == 3
    assert search.best_estimator_.observations_.shape == seen.shape
    assert search.predict(seen.entries).shape == seen.values.shape
    alone = GridSearchCV(completer, grid, cv=FOLDS).fit(seen.entries)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


def test_score_finds_entries_of_another_table_by_label(completer, seen):
    train, held_out = split_entries(seen)
    fitted = completer.fit(train)
    used_rows, rows = np.unique(held_out.rows, return_inverse=True)
    used_cols, cols = np.unique(held_out.cols, return_inverse=True)
    other = Observations(
        rows, cols, held_out.values, counts=held_out.counts, scatter=held_out.scatter,
        row_labels=seen.row_labels[used_rows], col_labels=seen.col_labels[used_cols],
    )  # fmt: skip
    assert fitted.score(other) == fitted.score(held_out) == fitted.score(held_out.entries)
    np.testing.assert_array_equal(fitted.predict(other), fitted.predict(held_out))
    unlabelled = Observations(rows, cols, held_out.values)
    with pytest.raises(InputError, match="fit has row labels and the entries have none"):
        fitted.score(unlabelled)


def test_score_of_a_matrix_is_that_of_its_entries_and_other_rows_are_refused(completer):
    sim = make_low_rank((40, 30), rank=2, n_draws=1200, noise=0.2, random_state=0).observations
    X = sim.dense()
    held_out = np.zeros(X.shape, dtype=bool)
    held_out[sim.rows[::5], sim.cols[::5]] = True
    fitted = completer.fit(np.where(held_out, np.nan, X))
    rows, cols = np.nonzero(held_out)
    expected = -np.mean((fitted.predict(rows, cols) - X[held_out]) ** 2)
    assert fitted.score(np.where(held_out, X, np.nan)) == pytest.approx(expected)
    with pytest.raises(InputError, match=r"give\s+scikit-learn observations.entries"):
        fitted.score(X[:8])


def test_observations_themselves_are_not_split_by_rows(completer, seen):
    with pytest.raises(InputError, match=r"splits observations\.entries"):
        cross_val_score(completer, seen, cv=3, error_score="raise")
    with pytest.raises(InputError, match="'tolerance' parameter of make_kept_share_scorer"):
        make_kept_share_scorer(0)


def test_entries_are_counted_and_taken_like_an_array(seen):
    entries = seen.entries
    assert len(entries) == entries.shape[0] == len(seen)
    mask = seen.rows == 3
    for which in (mask, np.flatnonzero(mask)):
        np.testing.assert_array_equal(entries[which].values, seen.values[mask])
    np.testing.assert_array_equal(entries[5:9].cols, seen.cols[5:9])
    assert entries[2].rows.tolist() == [seen.rows[2]]
    assert entries[mask].observations.row_labels is seen.row_labels

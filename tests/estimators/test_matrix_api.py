"""Rows and columns by label, and matrices in and out as scikit-learn has them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from surefill import Observations, PartialCompleter
from surefill.confidence import CoverageProgram
from surefill.datasets import make_low_rank
from surefill.errors import InputError


@pytest.fixture(scope="module")
def named(sim):
    """Rows labelled by text, columns by integers that are no positions."""
    seen = sim.observations
    labels = {"row_labels": [f"user {i}" for i in range(60)], "col_labels": 50 - np.arange(50)}
    labelled = Observations(seen.rows, seen.cols, seen.values, seen.shape, seen.bounds, counts=seen.counts, **labels)
    return PartialCompleter(confidence="posterior").fit(labelled)


@pytest.mark.parametrize("ask", ["predict", "predict_confidence", "predict_risk", "keep", "predict_interval"])
def test_integers_are_labels_where_there_are_labels_and_positions_where_there_are_none(named, fitted, ask):
    by_label = getattr(named, ask)(["user 7", "user 9"], [47, 3])
    at_positions = {"predict": "values_at", "predict_confidence": "confidence_at", "predict_risk": "risk_at",
                    "keep": "keeps"}.get(ask)  # fmt: skip
    result, cells = named.result_, ([7, 9], [3, 47])
    expected = getattr(result, at_positions)(*cells) if at_positions else result.interval_at(*cells, 0.9)
    np.testing.assert_array_equal(by_label, expected)
    np.testing.assert_array_equal(getattr(named, ask)(["user 7", "user 9"], ["47", "3"]), expected)
    by_position = getattr(fitted, ask)(*cells)
    result = fitted.result_
    expected = getattr(result, at_positions)(*cells) if at_positions else result.interval_at(*cells, 0.9)
    np.testing.assert_array_equal(by_position, expected)


def test_what_is_not_a_label_is_refused_in_one_sentence(named, fitted):
    assert named.predict("user 7", 47).shape == (1,)
    with pytest.raises(InputError, match="no row labelled 'user 77'"):
        named.predict(["user 77"], [3])
    with pytest.raises(InputError, match="no row labelled 7: rows are asked for by label here, such as 'user 0', not"):
        named.predict([7], [3])
    with pytest.raises(InputError, match=r"no column labelled 1003: columns .* such as 50"):
        named.predict(["user 7"], [1003])
    with pytest.raises(InputError, match="rows and cols must be of one length, a pair per entry; got 1 and 2"):
        named.keep(["user 7"], [1, 2])
    with pytest.raises(InputError, match="no column 50: columns have no labels here and are counted from 0 to 49"):
        fitted.keep([7], [50])
    with pytest.raises(InputError, match=r"asked for by whole numbers or text; got 7\.5"):
        fitted.keep([7.5], [1])
    with pytest.raises(InputError, match="asked for by whole numbers or text; got True"):
        fitted.keep(np.full(60, True), [1])


def test_labels_come_in_any_container(named):
    expected = named.predict(["user 7", "user 9"], [47, 3])
    frame = pd.DataFrame({"row": ["user 7", "user 9"], "col": [47, 3]})
    for kind in (frame, frame.astype("category"), frame.convert_dtypes(), pl.DataFrame(frame.to_dict("list"))):
        np.testing.assert_array_equal(named.predict(kind["row"], kind["col"]), expected)
    index = frame.set_index(["row", "col"]).index
    rows, cols = index.get_level_values("row"), index.get_level_values("col")
    np.testing.assert_array_equal(named.predict(rows, cols), expected)
    np.testing.assert_array_equal(named.predict(np.array(["user 7", "user 9"], object), (47, 3.0)), expected)


def test_matrix_api_fills_kept_entries_and_leaves_the_rest_nan(sim):
    X = sim.observations.dense()
    completer = PartialCompleter(tolerance=0.08, confidence="posterior").fit(X)
    filled = completer.transform(X)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])
    holes = np.argwhere(~seen)
    kept = completer.keep(*holes.T)
    np.testing.assert_array_equal(~np.isnan(filled[~seen]), kept)
    np.testing.assert_allclose(filled[tuple(holes[kept].T)], completer.predict(*holes[kept].T))
    assert 0.2 < kept.mean() <= 1


def test_matrix_api_agrees_with_keep_for_the_coverage_program_too(blocks):
    sim, _ = blocks
    X = sim.observations.dense()
    completer = PartialCompleter(tolerance=0.6, confidence=CoverageProgram(K=1.0, gamma=0.3)).fit(X)
    holes = np.argwhere(np.isnan(X))
    np.testing.assert_array_equal(np.isfinite(completer.transform(X)[tuple(holes.T)]), completer.keep(*holes.T))
    assert completer.keep(*holes.T).any()


def test_rows_of_which_nothing_was_seen_stay_empty(fitted):
    assert np.isnan(fitted.transform(np.full((2, 50), np.nan))).all()


def test_matrix_api_and_observations_agree(sim):
    X = sim.observations.dense()
    by_matrix = PartialCompleter(confidence="posterior").fit(X)
    by_observations = PartialCompleter(confidence="posterior").fit(Observations.from_matrix(X))
    np.testing.assert_array_equal(by_matrix.predict([1, 2], [3, 4]), by_observations.predict([1, 2], [3, 4]))


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_sparse_in_sparse_out_with_stored_zeros_seen(container):
    sim = make_low_rank((40, 30), rank=2, n_draws=900, noise=0.1, random_state=1)
    seen = sim.observations
    values = np.round(seen.values, 1)
    X = container(sparse.coo_array((values, (seen.rows, seen.cols)), shape=seen.shape))
    assert (X.data == 0).any()
    completer = PartialCompleter(tolerance=0.2, confidence="posterior").fit(X)
    assert len(completer.observations_) == len(seen)
    filled = completer.transform(X)
    assert sparse.issparse(filled)
    assert isinstance(filled, sparse.sparray) == isinstance(X, sparse.sparray)
    dense = completer.transform(np.where(np.isnan(seen.dense()), np.nan, np.round(seen.dense(), 1)))
    stored = sparse.coo_array(filled)
    np.testing.assert_allclose(stored.data, dense[stored.coords], atol=1e-12)
    assert filled.nnz == np.isfinite(dense).sum()


def test_float32_stays_and_rows_that_were_not_there_are_folded_in(sim):
    X = sim.observations.dense().astype(np.float32)
    completer = PartialCompleter(tolerance=0.1, confidence="posterior").fit(X[:50])
    filled = completer.transform(X[50:])
    assert filled.dtype == np.float32
    found = np.isfinite(filled) & np.isnan(X[50:])
    assert found.sum() > 50
    assert np.mean((filled[found] - sim.truth[50:][found]) ** 2) < 0.1


def test_pandas_out_and_pipelines(sim):
    X = pd.DataFrame(sim.observations.dense(), columns=[f"c{j}" for j in range(50)])
    completer = PartialCompleter(confidence="posterior").set_output(transform="pandas")
    filled = completer.fit_transform(X)
    assert list(filled.columns) == list(X.columns)
    pipeline = make_pipeline(FunctionTransformer(lambda x: x), PartialCompleter(confidence="posterior"))
    assert pipeline.fit_transform(X.to_numpy()).shape == (60, 50)

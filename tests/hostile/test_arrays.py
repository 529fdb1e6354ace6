"""Arrays, sparse matrices, labels and numbers from Python that must not pass, or not as what they are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from surefill import InputError, Observations, PartialCompleter, StreamingCompleter
from surefill.inputs import SMALLEST_RANGE


def holed(seed=0, shape=(12, 8)):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < 0.7, rng.normal(size=shape), np.nan)


def test_what_is_masked_is_not_learnt():
    X = holed()
    hidden = np.isnan(X)
    masked = np.ma.masked_array(np.where(hidden, 999.0, X), hidden)
    completer = PartialCompleter(confidence="posterior").fit(masked)
    plain = PartialCompleter(confidence="posterior").fit(X)
    np.testing.assert_array_equal(completer.observations_.values, plain.observations_.values)
    np.testing.assert_array_equal(completer.transform(masked), plain.transform(X))


FAR = {"indices": [0, 1, 2, 99], "indptr": [0, 1, 2, 3, 400]}


@pytest.mark.parametrize("which", FAR)
@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_matrices_with_indices_outside_are_refused_before_anything_follows_them(which, container):
    matrix = container(np.eye(4))
    setattr(matrix, which, np.array(FAR[which], dtype=np.int32))
    for use in (Observations.from_matrix, PartialCompleter(bounds=(0, 1)).fit):
        with pytest.raises(InputError, match="a sparse matrix must be sound"):
            use(matrix)


def test_dates_are_no_values():
    with pytest.raises(InputError, match="real numbers"):
        PartialCompleter().fit(np.arange("2020-01-01", "2020-01-21", dtype="datetime64[D]").reshape(4, 5))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a\0", "a"], "a zero sign"),
        (["\ud800", "a"], "half a character"),
        ([None, "a"], "missing"),
        ([(1, 2), "a"], "text or numbers"),
    ],
)
def test_labels_that_would_become_others(labels, words):
    with pytest.raises(InputError, match=words):
        Observations([0, 1], [0, 1], [1.0, 2.0], row_labels=labels)
    stream = StreamingCompleter()
    with pytest.raises(InputError, match=f"{words}|text"):
        stream.learn_many(labels, ["x", "y"], [1.0, 2.0])
    assert stream.n_observed == 0


def test_ids_of_parquet_that_differ_by_a_zero_are_not_merged(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"user": ["a", "a\0", "b"], "item": [1, 2, 3], "rating": [1.0, 2.0, 3.0]}
    parquet.write_table(pyarrow.table(table), tmp_path / "t.parquet")
    from surefill import read_observations

    with pytest.raises(InputError, match="a zero sign"):
        read_observations(tmp_path / "t.parquet")


def test_values_whose_squares_are_no_numbers_are_refused_for_that_reason():
    for scale in (1e-300, SMALLEST_RANGE / 10):
        with pytest.raises(InputError, match="values and bounds must range over 1e-60 or more"):
            PartialCompleter(confidence="posterior").fit(scale * holed())
    kept = PartialCompleter(confidence="posterior").fit(SMALLEST_RANGE * holed())
    assert np.isfinite(kept.predict_risk([0], [0])).all()


@pytest.mark.parametrize("tolerance", [np.float16(0.5), np.float32(0.5), np.int8(1)])
def test_numbers_of_any_width_are_numbers(tolerance):
    half = PartialCompleter(float(tolerance), confidence="posterior").fit(holed())
    narrow = PartialCompleter(tolerance, delta=np.float32(0.0625), confidence="posterior").fit(holed())
    assert narrow.result_.selection.tolerance == half.result_.selection.tolerance

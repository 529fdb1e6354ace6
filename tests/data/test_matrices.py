"""Matrices in memory: seen is what is not NaN, or what is stored."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from surefill.data import Observations
from surefill.data.containers import from_matrix
from surefill.errors import InputError

FORMATS = ("coo", "csr", "csc", "lil", "dok", "bsr", "dia")


def cells(seen):
    return sorted(zip(seen.rows.tolist(), seen.cols.tolist(), seen.values.tolist(), strict=True))


@given(hnp.arrays(st.sampled_from([np.float32, np.float64]), (3, 4), elements=st.sampled_from([np.nan, 0, 1, 2.5])))
def test_an_array_and_back(matrix):
    matrix[0, 0] = 1
    seen = Observations.from_matrix(matrix, bounds=(0, 5))
    np.testing.assert_array_equal(seen.dense(), matrix)
    assert (seen.shape, seen.bounds, seen.counts.max()) == ((3, 4), (0.0, 5.0), 1)


def test_integers_booleans_lists_objects_and_masks():
    assert len(from_matrix(np.zeros((2, 3), dtype=int))) == 6
    assert from_matrix(np.eye(2, dtype=bool)).values.tolist() == [1, 0, 0, 1]
    assert cells(from_matrix([[1, None], [np.nan, 0]])) == [(0, 0, 1.0), (1, 1, 0.0)]
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    assert cells(from_matrix(masked)) == [(0, 0, 1.0), (1, 0, 3.0), (1, 1, 4.0)]


@pytest.mark.parametrize("interface", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("format", FORMATS)
def test_every_sparse_format_gives_what_is_stored(interface, format):
    stored = interface(([4.0, 3.0, 2.0], ([0, 1, 2], [1, 2, 3])), shape=(4, 5)).asformat(format)
    seen = from_matrix(stored)
    assert cells(seen) == [(0, 1, 4.0), (1, 2, 3.0), (2, 3, 2.0)]
    assert seen.shape == (4, 5)


@pytest.mark.parametrize("interface", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("format", ["coo", "csr", "csc", "lil", "bsr"])
def test_stored_zeros_are_seen(interface, format):
    stored = interface(([4.0, 0.0, 0.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3)).asformat(format)
    assert stored.nnz == 3
    assert cells(from_matrix(stored)) == [(0, 1, 4.0), (1, 2, 0.0), (2, 0, 0.0)]


@pytest.mark.parametrize("interface", [sparse.dia_array, sparse.dia_matrix])
@pytest.mark.parametrize("shape", [(2, 4), (3, 3), (4, 2)])
def test_stored_diagonals_are_seen_with_their_zeros(interface, shape):
    data, offsets = np.array([[1.0, 0.0, 3.0, 0.0], [0.0, 5.0, 0.0, 7.0]]), np.array([0, 1])
    seen = from_matrix(interface((data, offsets), shape=shape))
    expected = [(j - k, j, data[d, j]) for d, k in enumerate(offsets) for j in range(4)]
    assert cells(seen) == sorted(c for c in expected if 0 <= c[0] < shape[0] and c[1] < shape[1])


@pytest.mark.parametrize("interface", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("format", ["coo", "csr"])
def test_entries_stored_twice_are_two_draws(interface, format):
    twice = interface(([2.0, 4.0, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    if format == "csr":
        twice = sparse.csr_array((np.array([2.0, 4.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    seen = from_matrix(twice)
    assert cells(seen) == [(0, 0, 3.0), (1, 1, 1.0)]
    assert seen.counts.tolist() == [2, 1]


def test_stored_nan_is_unseen():
    assert cells(from_matrix(sparse.csr_array(np.array([[np.nan, 2.0]])))) == [(0, 1, 2.0)]


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.dia_array], ids=["array", "csr", "dia"])
@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[1.0, 0.0], [2.0, np.inf]], r"^the matrix must hold finite numbers; entry \(1, 1\) is inf\.$"),
        ([[np.nan, np.nan]], r"^the 1 x 2 matrix holds no observations: at least one entry must be seen\.$"),
        ([[1 + 2j]], r"^a matrix must hold real numbers; got complex128\.$"),
    ],
)
def test_faults_are_one_sentence(wrap, matrix, sentence):
    with pytest.raises(InputError, match=sentence):
        from_matrix(wrap(np.array(matrix)))


@pytest.mark.parametrize("matrix", [[1.0, 2.0], np.zeros((2, 2, 2)), sparse.coo_array(np.ones(3))])
def test_matrices_have_two_dimensions(matrix):
    with pytest.raises(InputError, match=r"^a matrix must have two dimensions; got \d\.$"):
        from_matrix(matrix)


def test_text_is_no_number():
    with pytest.raises(InputError, match=r"^a matrix must hold real numbers; got <U1\.$"):
        from_matrix([["a"]])
    with pytest.raises(InputError, match=r"^a matrix must hold real numbers: could not convert string"):
        from_matrix(np.array([["a"]], dtype=object))


def test_empty_matrices():
    for empty in (sparse.csr_array((3, 4)), np.empty((3, 0))):
        with pytest.raises(InputError, match="matrix holds no observations"):
            from_matrix(empty)

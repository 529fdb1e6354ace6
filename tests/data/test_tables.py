"""Tables in memory: pandas, polars and pyarrow give the same observations and the same errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.data import Observations
from surefill.data.containers import from_table
from surefill.data.labels import encode_integers
from surefill.errors import InputError

libraries = pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)


def cells(seen):
    rows, cols = seen.row_labels[seen.rows].tolist(), seen.col_labels[seen.cols].tolist()
    return list(zip(rows, cols, seen.values.tolist(), strict=True))


def read(table, **options):
    return from_table(table, row="u", col="i", value="r", **options)


@libraries
def test_integer_ids(library):
    seen = read(library({"r": [4, 3, 1], "i": [30, 30, 10], "u": [7, 3, 7]}), bounds=(1, 5))
    assert cells(seen) == [(7, 30, 4.0), (3, 30, 3.0), (7, 10, 1.0)]
    assert seen.row_labels.tolist() == [3, 7]
    assert seen.row_labels.dtype.kind == "i"
    assert seen.bounds == (1.0, 5.0)


@libraries
def test_names(library):
    seen = read(library({"u": ["zoë", "anna", " b"], "i": ["x", "y", "x"], "r": [1.5, 2.5, 0.0]}))
    assert cells(seen) == [("zoë", "x", 1.5), ("anna", "y", 2.5), (" b", "x", 0.0)]
    assert seen.row_labels.tolist() == [" b", "anna", "zoë"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"u": pd.Categorical(["b", "a", "b"]), "i": pd.Categorical([9, 8, 7]), "r": [1, 2, 3]}),
        pl.DataFrame({"u": pl.Series(["b", "a", "b"], dtype=pl.Categorical), "i": [9, 8, 7], "r": [1, 2, 3]}),
        pa.table({"u": pa.array(["b", "a", "b"]).dictionary_encode(), "i": [9, 8, 7], "r": [1, 2, 3]}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_categories(table):
    assert cells(read(table)) == [("b", 9, 1.0), ("a", 8, 2.0), ("b", 7, 3.0)]


def test_observations_offer_it():
    table = pl.DataFrame({"u": [1], "i": [2], "r": [True]})
    assert cells(Observations.from_table(table, row="u", col="i", value="r")) == [(1, 2, 1.0)]


@libraries
@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"u": [1], "i": [1], "x": [1]}, r"^the table has no column 'r'; its columns are 'u', 'i', 'x'\.$"),
        (
            {"u": ["a", None], "i": [1, 2], "r": [1, 2]},
            r"^the table lacks 1 of the entries of column 'u', the first in line 1 ",
        ),
        (
            {"u": [1, 2], "i": [1, 2], "r": [None, 2.5]},
            r"^the table lacks 1 of the entries of column 'r', the first in line 0 ",
        ),
        (
            {"u": [1, 2], "i": [1, 2], "r": [1.5, np.inf]},
            r"must hold finite numbers in column 'r'; line 1 counted from 0 is inf",
        ),
        ({"u": [1], "i": [1], "r": ["4"]}, r"^the table must hold numbers in column 'r'; they are String\.$"),
        (
            {"u": [1.5], "i": [1], "r": [4]},
            r"^the table must hold integers or strings as ids in column 'u'; they are Float64\.$",
        ),
        (
            {"u": [True], "i": [1], "r": [4]},
            r"^the table must hold integers or strings as ids in column 'u'; they are Boolean\.$",
        ),
    ],
)
def test_faults_are_one_sentence(library, columns, sentence):
    with pytest.raises(InputError, match=sentence):
        read(library(columns))


@libraries
def test_whole_floats_are_integer_ids(library):
    seen = read(library({"u": [196.0, 22.0], "i": [1, 2], "r": [4, 5]}))
    assert cells(seen) == [(196, 1, 4.0), (22, 2, 5.0)]


@libraries
def test_text_stays_text(library):
    assert cells(read(library({"u": ["7", "22.0"], "i": ["1", "2"], "r": [4, 5]})))[1] == ("22.0", "2", 5.0)
    assert read(library({"u": ["7", "22"], "i": [1, 2], "r": [4, 5]})).row_labels.tolist() == ["22", "7"]


def test_dates_as_ids_are_refused_with_what_to_do():
    table = pd.DataFrame({"u": pd.to_datetime(["2026-03-01", "2026-03-02"]), "i": [1, 2], "r": [4, 5]})
    with pytest.raises(InputError, match=r"they are Datetime.*: turn dates into text, in pandas by df\['u'\].astype"):
        read(table)


@libraries
def test_nan_values_are_refused(library):
    with pytest.raises(InputError, match=r"column 'r'.* line 1 .*skip_missing=True"):
        read(library({"u": [1, 2], "i": [1, 2], "r": [1.5, np.nan]}))


@libraries
def test_an_empty_table(library):
    with pytest.raises(InputError, match="the table holds no observations: at least one line is needed"):
        read(library({"u": [1], "i": [1], "r": [1]})[:0])


def test_columns_may_have_any_label_but_one_each():
    assert len(from_table(pd.DataFrame({0: [1], 1: [1], 2: [2]}), row=0, col=1, value=2)) == 1
    with pytest.raises(InputError, match="the table must have columns of different names; some names occur twice"):
        read(pd.DataFrame([[1, 2, 3, 4]], columns=["u", "i", "r", "r"]))


@pytest.mark.parametrize("ids", [[1, "x"], [[1], [2]]])
def test_mixed_ids_are_refused(ids):
    with pytest.raises(InputError, match="must hold integers or strings as ids in column 'u'; they are Object"):
        read(pd.DataFrame({"u": pd.Series(ids, dtype=object), "i": [1, 1], "r": [1, 2]}))


@pytest.mark.parametrize("table", [{"u": [1]}, [[1, 2, 3]], pl.LazyFrame({"u": [1]}), None])
def test_other_things_are_refused(table):
    with pytest.raises(InputError, match="the table must be a pandas, polars or pyarrow table in memory; got a "):
        read(table)


@given(
    st.one_of(
        st.lists(st.integers(-20, 20), min_size=1),
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
        st.lists(st.sampled_from([2**63 - 1, 2**63 - 5]), min_size=1),
    )
)
def test_integers_are_numbered_in_order_by_counting_and_by_sorting(ids):
    labels, codes = encode_integers(np.array(ids, dtype=np.int64))
    assert labels.tolist() == sorted(set(ids))
    assert labels[codes].tolist() == ids


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
def test_integers_keep_their_type(kind):
    ids = np.array([np.iinfo(kind).max, np.iinfo(kind).min, np.iinfo(kind).max], dtype=kind)
    labels, codes = encode_integers(ids)
    assert labels.dtype == kind
    np.testing.assert_array_equal(labels[codes], ids)

"""Labels are looked up by what they say, whatever type they are stored as and come in."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.data.labels import LabelIndex
from surefill.errors import InputError

ids = st.lists(st.integers(-(2**52), 2**52), min_size=1, max_size=30, unique=True)


@given(ids, st.data())
def test_an_id_is_one_label_as_integer_text_and_whole_float(numbers, data):
    asked = data.draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=20))
    expected = [numbers.index(number) for number in asked]
    for labels in (np.array(numbers), np.array(numbers).astype(str)):
        index = LabelIndex("row", labels, len(labels))
        for form in (asked, [str(number) for number in asked], [float(number) for number in asked]):
            assert index.find(form).tolist() == expected
            assert index.find(np.array(form, dtype=object)).tolist() == expected


def test_text_of_a_float_names_the_integer():
    index = LabelIndex("row", np.array([196, 22]), 2)
    assert index.locate(["22.0", "196", "196.5", "0196.0", "x.0"]).tolist() == [1, 0, -1, -1, -1]
    assert index.grown(["22.0", "7.0"]).labels.tolist() == [196, 22, 7]


@pytest.mark.parametrize("asked", [[pd.Timestamp("2026-03-01")], [("a", "b")]])
def test_what_cannot_be_a_label_is_answered_with_one(asked):
    index = LabelIndex("row", np.array(["2026-03-01", "('a', 'b')"]), 2)
    with pytest.raises(InputError, match="a label here is a text such as '2026-03-01'"):
        index.find(asked)


@given(ids, st.integers(-(2**70), 2**70))
def test_what_is_no_label_is_never_another_ones_position(numbers, asked):
    for labels in (np.array(numbers), np.array(numbers).astype(str)):
        found = LabelIndex("row", labels, len(labels)).locate(np.array([asked], dtype=object))[0]
        assert found == (numbers.index(asked) if asked in numbers else -1)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64, np.int32])
def test_integers_that_the_labels_type_does_not_hold_are_unknown(kind):
    index = LabelIndex("row", np.array([44, 3], dtype=kind), 2)
    assert index.locate([300, -1, 44, 2**40, 3]).tolist() == [-1, -1, 0, -1, 1]
    assert index.locate(["300", "-1", "44", str(2**40), "03", "3 ", ""]).tolist() == [-1, -1, 0, -1, -1, -1, -1]


def test_every_container_of_ids_is_understood():
    index = LabelIndex("column", np.array([10, 20, 30]), 3)
    asked = [30, 10]
    text = [str(label) for label in asked]
    containers = (tuple, np.array, pd.Series, pd.Index, pl.Series, pa.array, pd.Categorical)
    for container in containers:
        assert index.find(container(asked)).tolist() == [2, 0]
        assert index.find(container(text)).tolist() == [2, 0]
    assert index.find(pd.Series(asked, dtype="Int64")).tolist() == [2, 0]
    assert index.find(pa.chunked_array([[30], [10]])).tolist() == [2, 0]
    assert index.find(30).tolist() == index.find("30").tolist() == [2]
    assert index.find([]).tolist() == []


@pytest.mark.parametrize("labels", [None, np.array([0, 1]), np.array(["0", "1"])])
@pytest.mark.parametrize(
    "asked", [[True], [0.5], [np.nan], [None], [2.0**60], [{}], [b"0"], np.array(["2020"], "M8[Y]")]
)
def test_what_cannot_be_a_label_gets_one_sentence(labels, asked):
    with pytest.raises(InputError, match="rows are asked for by whole numbers or text; got"):
        LabelIndex("row", labels, 2).find(asked)


def test_without_labels_positions_are_looked_up():
    index = LabelIndex("column", None, 3)
    assert index.find([2, 0]).tolist() == index.find(["2", "0"]).tolist() == [2, 0]
    for unknown in (-1, 3, "a", "-1"):
        with pytest.raises(InputError, match=f"no column {unknown!r}: columns have no labels"):
            index.find([unknown])
    with pytest.raises(InputError, match="columns must be one-dimensional; got 2"):
        index.find([[0, 1]])


def test_labels_of_other_types_are_compared_as_they_are():
    days = np.array(["2020-01-02", "2020-01-01"], "M8[D]")
    assert LabelIndex("row", days, 2).find(["2020-01-01"]).tolist() == [1]
    with pytest.raises(InputError, match="asked for by whole numbers or text; got 'yesterday'"):
        LabelIndex("row", days, 2).find(["yesterday"])

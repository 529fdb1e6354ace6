"""Columns that say when, and what is sorted by them."""

from __future__ import annotations

import numpy as np
import pytest

from surefill.errors import InputError
from surefill.io.readers import ReadOptions, read_ordered
from surefill.io.times import parse_times


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "2.5", "1e3", "881250949"],
        ["2026-01-30", "2026-01-31", "2026-02-01T00:00:00.5", "2026-02-01 00:00:01"],
        ["2026-01-31T12:00:00+02:00", "2026-01-31T10:30:00Z", "2026-01-31T10:30:00-01:00"],
        ["20260131", "20260201"],
    ],
)
def test_later_is_larger(texts):
    assert (np.diff(parse_times(texts, "when")) > 0).all()


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (
            ["31.01.2026"],
            "'31.01.2026' is no time that can be read in column 'when'; a number, or a date such as",
        ),
        (["1", ""], "a time is missing in column 'when'"),
        (["1", "NA"], "a time is missing in column 'when'"),
        (["2026-01-31", "12"], "column 'when' holds dates, and numbers such as '12'; one kind is expected"),
        (["2026-01-31T10:00Z", "2026-01-31T10:00"], "holds date-times with a time zone and without"),
        (["inf"], "'inf' is no time that can be read"),
    ],
)
def test_other_times_are_one_sentence(texts, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_times(texts, "when")


def test_a_cell_counts_when_it_was_last_drawn(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating,when\n1,1,5,10\n1,2,4,20\n1,1,3,30\n2,1,NA,40\n2,2,1,5\n")
    seen, times = read_ordered(path, ReadOptions(skip_missing=True), "when")
    assert seen.values.tolist() == [4, 4, 1]
    assert times.tolist() == [30, 20, 5]
    with pytest.raises(InputError, match="has no column 'then' for order_by; its columns are user, item, rating, when"):
        read_ordered(path, ReadOptions(skip_missing=True), "then")
    with pytest.raises(InputError, match="a wide table has no column that says when"):
        read_ordered(path, ReadOptions(wide=True), "when")


def test_parquet_and_excel_times(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    when = pd.to_datetime(["2026-01-31 00:00", "2025-01-31 10:00", "2026-02-01 00:00"])
    frame = pd.DataFrame({"user": [1, 2, 3], "item": list("aab"), "rating": [1.0, 2.0, 3.0], "when": when})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    for name in ("a.parquet", "a.xlsx"):
        seen, times = read_ordered(tmp_path / name, ReadOptions(), "when")
        assert seen.values[np.argsort(times)].tolist() == [2, 1, 3]

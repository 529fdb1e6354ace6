"""Wide tables keep their labels; long tables taken for wide ones, and the reverse, are noticed."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill import InputError, Observations
from surefill.data.frames import axis_labels
from surefill.data.long_as_wide import are_triples, refuse_long

NAN = np.nan


def test_the_index_and_the_columns_of_pandas_become_labels():
    wide = pd.DataFrame([[5, NAN, 2], [NAN, 4, 1]], index=["bob", "ann"], columns=["Brazil", "Alien", "Big"])
    seen = Observations.from_matrix(wide, bounds=(1, 5))
    assert seen.row_labels.tolist() == ["bob", "ann"]
    assert seen.col_labels.tolist() == ["Brazil", "Alien", "Big"]
    np.testing.assert_array_equal(seen.dense(), wide.to_numpy())
    assert seen.names == ("row", "column", "value")
    wide.index.name, wide.columns.name = "user", "film"
    assert Observations.from_matrix(wide).names == ("user", "film", "value")


def test_integer_labels_stay_integers_and_a_plain_index_gives_positions():
    seen = Observations.from_matrix(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=[196, 22], columns=[242, 7]))
    assert seen.row_labels.tolist() == [196, 22]
    assert seen.col_index([7]).tolist() == [1]
    plain = Observations.from_matrix(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]]))
    assert plain.row_labels is None
    assert plain.col_labels is None
    rounded = Observations.from_matrix(pd.DataFrame([[1.0], [3.0]], index=[196.0, 22.0]))
    assert rounded.row_index([22]).tolist() == [1]


def test_nulls_of_every_library_are_holes():
    columns = {"a": [1, None, 3], "b": [None, 2.5, 1.0]}
    expected = [[1, NAN], [NAN, 2.5], [3, 1.0]]
    tables = [pd.DataFrame(columns), pd.DataFrame(columns).convert_dtypes(), pl.DataFrame(columns), pa.table(columns)]
    tables.append(pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in columns.items()}))
    for table in tables:
        seen = Observations.from_matrix(table)
        np.testing.assert_array_equal(seen.dense(), expected)
        assert seen.col_labels.tolist() == ["a", "b"]


def test_a_column_can_hold_the_labels_of_the_rows():
    columns = {"who": ["ann", "bob"], "Alien": [5.0, None], "Big": [1.0, 2.0]}
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        seen = Observations.from_matrix(table, row="who")
        assert (seen.row_labels.tolist(), seen.col_labels.tolist()) == (["ann", "bob"], ["Alien", "Big"])
        assert seen.names[0] == "who"
    with pytest.raises(InputError, match="no column 'whom' for row"):
        Observations.from_matrix(pd.DataFrame(columns), row="whom")
    with pytest.raises(InputError, match="got no such table"):
        Observations.from_matrix(np.eye(2), row="who")


def test_dates_are_written_as_pandas_writes_them():
    days = pd.date_range("2024-02-28", periods=3)
    assert axis_labels(pd.DataFrame(np.eye(3), index=days)).rows.tolist() == ["2024-02-28", "2024-02-29", "2024-03-01"]


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        (["a", "b", "a"], "2 rows are labelled 'a'; every row of a wide table needs its own label"),
        ([1, "1", 2], "2 rows are labelled '1'"),
        (["a", None, "b"], "row 1 counted from 0 has no label"),
        (["a", "b", ""], "row 2 counted from 0 has no label"),
    ],
)
def test_labels_must_be_there_and_be_distinct(index, sentence):
    with pytest.raises(InputError, match=sentence):
        Observations.from_matrix(pd.DataFrame(np.eye(3), index=index))
    with pytest.raises(InputError, match="2 columns are labelled 'x'"):
        Observations.from_matrix(pd.DataFrame(np.eye(2), columns=["x", "x"]))


def test_a_matrix_of_words_is_refused():
    for table in (pd.DataFrame({"a": ["x"], "b": [1]}), pl.DataFrame({"a": ["x"], "b": [1]})):
        with pytest.raises(InputError, match="a matrix must hold real numbers"):
            Observations.from_matrix(table)


def long_lines(rng, n=60, users=10, films=12):
    cells = rng.choice(users * films, n, replace=False)
    return cells // films + 100, cells % films + 500, rng.integers(1, 6, n)


def frames(columns):
    return pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (("userId", "movieId", "rating"), r"Observations\.from_table\(df\)"),
        (("a", "b", "c"), r"Observations\.from_table\(df, row='a', col='b', value='c'\)"),
    ],
)
def test_a_long_table_is_not_fitted_as_a_matrix(names, line):
    users, films, stars = long_lines(np.random.default_rng(0))
    for table in frames(dict(zip(names, (users, films, stars), strict=True))):
        with pytest.raises(InputError, match="looks like a long table, an observation in each line.*" + line):
            refuse_long(table)
    text = {names[0]: users.astype(str), names[1]: films.astype(str), names[2]: stars}
    for table in frames(text):
        with pytest.raises(InputError, match="looks like a long table.*" + line):
            refuse_long(table)


def test_a_long_table_with_times_is_noticed_by_its_names():
    users, films, stars = long_lines(np.random.default_rng(0), n=5)
    with pytest.raises(InputError, match="columns 'user_id', 'item_id' and 'rating'"):
        refuse_long(pd.DataFrame({"user_id": users, "item_id": films, "rating": stars, "timestamp": users * 1000}))


def test_triples_in_an_array_are_noticed():
    with pytest.raises(InputError, match="these look like triples"):
        refuse_long(np.column_stack(long_lines(np.random.default_rng(0))))


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(20, 80))
def test_matrices_of_few_or_of_many_different_numbers_are_no_triples(seed, kinds, n):
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, kinds + 1, (n, 3)).astype(float)
    if n > kinds**2:
        assert not are_triples(ratings)
    assert not are_triples(rng.normal(size=(n, 3)))
    assert not are_triples(np.where(rng.random((n, 3)) < 0.2, NAN, ratings) + np.array([[NAN, 0, 0]]))
    assert not are_triples(np.round(rng.normal(0, 1e6, (n, 3))))


@given(st.integers(0, 10**6))
def test_real_looking_triples_are_told(seed):
    assert are_triples(np.column_stack(long_lines(np.random.default_rng(seed))))


def test_labels_of_rows_among_the_values_are_noticed():
    columns = {"user": [101, 102, 103], "Alien": [5.0, NAN, 1.0], "Big": [4.0, 2.0, NAN], "Dune": [1.0, NAN, 3.0]}
    with pytest.raises(InputError, match=r"first column, 'user', looks like labels of the rows: fit on df.set_index"):
        refuse_long(pd.DataFrame(columns))
    with pytest.raises(InputError, match=r"'user', looks like .* Observations.from_matrix\(df, row='user'\)"):
        refuse_long(pl.DataFrame(columns))
    with pytest.raises(InputError, match="'Unnamed: 0', looks like labels"):
        refuse_long(pd.DataFrame(columns).rename(columns={"user": "Unnamed: 0"}))
    columns["user"] = ["ann", "bob", "cid"]
    with pytest.raises(InputError, match=r"column 'user' holds text.* df.set_index\('user'\)"):
        refuse_long(pd.DataFrame(columns))
    refuse_long(pd.DataFrame(columns).set_index("user"))
    refuse_long(pd.DataFrame({"Alien": [5, 4, 3], "Big": [4.0, 2.0, NAN]}))


def test_words_for_holes_are_told_from_ids():
    table = pd.DataFrame({"Alien": [5.0, NAN, 1.0], "Big": ["4", "n/a", "2"], "Dune": ["-", "3", "1"]})
    with pytest.raises(InputError, match=r"column 'Big' holds text such as 'n/a'.*with these as missing"):
        refuse_long(table)
    named = table.assign(Alien=["ann", "bob", "cid"])
    with pytest.raises(InputError, match=r"column 'Alien' holds text.*df.set_index\('Alien'\)"):
        refuse_long(named)


def test_from_table_guesses_columns_as_files_are_read():
    users, films, stars = long_lines(np.random.default_rng(0))
    expected = Observations.from_table(pd.DataFrame({"u": users, "f": films, "s": stars}), row="u", col="f", value="s")
    for names in (("userId", "movieId", "rating"), ("a", "b", "c"), ("User ID", "Film", "Stars")):
        for table in frames(dict(zip(names, (users, films, stars), strict=True))):
            guessed = Observations.from_table(table)
            np.testing.assert_array_equal(guessed.dense(), expected.dense())
            assert guessed.names == names
    shuffled = pd.DataFrame({"when": users, "rating": stars, "movieId": films, "userId": users})
    np.testing.assert_array_equal(Observations.from_table(shuffled).dense(), expected.dense())
    assert Observations.from_table(shuffled, value="when").names == ("userId", "movieId", "when")


@pytest.mark.parametrize(
    "columns",
    [
        {"name": ["ann", "bob", "cid"], "Alien": [5, 4, 3], "Big": [4, 2, 1]},
        {"id": [7, 8, 9], "Alien": [5, 4, 3], "Big": [4, 2, 1]},
        {"Alien": [4.0, 3.0, 4.0], "Big": [1.0, NAN, 2.0], "Dune": [5.0, 5.0, NAN]},
        {"Alien": [4.5, 4.5, 3.5], "Big": [1, 2, 3], "Dune": [5, 5, 4]},
    ],
)
def test_a_wide_table_of_three_columns_is_not_read_as_triples(columns):
    for table in frames(columns):
        with pytest.raises(InputError, match=r"looks like a wide table.*PartialCompleter\.fit or Observations"):
            Observations.from_table(table)


def test_a_wide_table_of_few_ratings_is_known_by_its_index():
    rng = np.random.default_rng(0)
    stars = pd.DataFrame(rng.integers(1, 4, (30, 3)), columns=["Alien", "Big", "Dune"])
    with pytest.raises(InputError, match="looks like a wide table"):
        Observations.from_table(stars.rename("user {}".format))
    assert Observations.from_table(stars, row="Alien", col="Big", value="Dune").shape == (3, 3)


def test_answers_on_one_scale_are_no_ids():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="looks like a wide table"):
        Observations.from_table(pd.DataFrame(rng.integers(1, 6, (200, 3)), columns=["q a", "q b", "q c"]))
    judged = pd.DataFrame({"judge": np.repeat([1, 2, 3], 30), "wine": np.tile(np.arange(101, 131), 3), "mark": 12})
    assert Observations.from_table(judged, bounds=(0, 20)).shape == (3, 30)


def test_what_cannot_be_guessed_is_asked_for():
    with pytest.raises(InputError, match=r"4 columns \(a, b, c, d\): say which hold row and col and value"):
        Observations.from_table(pd.DataFrame({"a": ["x", "x"], "b": ["y", "z"], "c": [1, 2], "d": ["p", "q"]}))
    with pytest.raises(InputError, match="at least three are expected"):
        Observations.from_table(pd.DataFrame({"a": [1], "b": [2]}))
    with pytest.raises(InputError, match="must be a pandas, polars or pyarrow table"):
        Observations.from_table([1, 2])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("ratings.csv", r"not the name of a file: fit on read_observations\('ratings.csv'\)"),
        (pl.LazyFrame({"a": [1.0], "b": [2.0]}), r"this one is lazy: fit on df\.collect\(\)"),
        ({"a": [1.0, 2.0], "b": [2.0, 3.0]}, "not a dictionary"),
        (
            pd.DataFrame({"a": [1.0], "day": pd.to_datetime(["2024-01-01"])}),
            "column 'day' holds Datetime",
        ),
        (pd.DataFrame(np.eye(2), columns=["a", 1]), r"df\.columns = df\.columns\.astype\(str\)"),
    ],
)
def test_what_is_no_matrix_gets_one_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence):
        refuse_long(given)

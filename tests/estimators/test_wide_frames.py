"""Wide tables in and out of the completer, with their labels."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import surefill as sf
from surefill.errors import MissingPackageError


@pytest.fixture(scope="module")
def wide():
    sim = sf.datasets.make_low_rank((40, 30), rank=1, n_draws=700, noise=0.1, random_state=0)
    return pd.DataFrame(sim.observations.dense()).rename("person {}".format).add_prefix("film ")


def fit(table, **options):
    return sf.PartialCompleter(0.3, completion="factor-model", confidence="posterior", **options).fit(table)


@pytest.fixture(scope="module")
def fitted(wide):
    return fit(wide)


def integers(wide):
    return wide.set_axis(1000 - np.arange(40), axis=0).set_axis(500 - np.arange(30), axis=1)


def test_rows_and_columns_of_a_fitted_table_are_asked_for_by_name(wide, fitted):
    value = fitted.predict(["person 7"], ["film 3"])
    assert value == fitted.result_.values_at([7], [3])
    assert fit(wide.to_numpy()).predict([7], [3]) == value
    numbered = fit(integers(wide))
    assert numbered.predict([993], [497]) == value
    with pytest.raises(sf.InputError, match="no row labelled 7"):
        numbered.predict([7], [3])
    assert fit(pl.DataFrame(wide.to_dict("list"))).predict([7], ["film 3"]) == value


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_transform_gives_the_table_back_with_its_labels(wide, fitted, kind):
    filled = fitted.set_output(transform=kind).transform(wide)
    fitted.set_output(transform="default")
    np.testing.assert_array_equal(filled.to_numpy(), fitted.transform(wide))
    assert list(filled.columns) == list(wide.columns)
    if kind == "pandas":
        assert filled.index.equals(wide.index)


def test_columns_in_another_order_are_noticed(wide, fitted):
    other = wide[wide.columns[::-1]]
    for ask in (fitted.transform, fitted.predict):
        with pytest.raises(ValueError, match="same order"):
            ask(other)
    numbered, observed = fit(integers(wide)), fit(sf.Observations.from_matrix(wide))
    for completer, table in ((numbered, integers(wide)), (observed, wide)):
        np.testing.assert_array_equal(completer.transform(table), fitted.transform(wide))
        np.testing.assert_array_equal(completer.transform(table.to_numpy()), fitted.transform(wide))
        for ask in (completer.transform, completer.predict):
            with pytest.raises(sf.InputError, match="those of the fit in another order"):
                ask(table[table.columns[::-1]])
            with pytest.raises(sf.InputError, match="lacks columns that were there when fitting"):
                ask(table.iloc[:, :20])
            with pytest.raises(sf.InputError, match="columns that were not there when fitting"):
                ask(table.assign(new=1.0))
    polars, arrow = pl.DataFrame(wide.to_dict("list")), pa.table(wide.to_dict("list"))
    for table in (polars, arrow):
        np.testing.assert_array_equal(observed.transform(table), fitted.transform(wide))
    with pytest.raises(sf.InputError, match="in another order"):
        observed.transform(polars[polars.columns[::-1]])


def test_names_of_transformed_columns_are_the_labels_as_text(wide, fitted):
    assert fitted.get_feature_names_out().tolist() == list(wide.columns)
    assert fit(integers(wide)).get_feature_names_out().tolist() == [str(500 - j) for j in range(30)]
    assert fit(wide.to_numpy()).get_feature_names_out()[:2].tolist() == ["x0", "x1"]


def test_the_completed_table_holds_what_was_seen_and_what_is_kept(wide, fitted):
    completed = fitted.complete_frame()
    assert completed.index.equals(wide.index)
    assert completed.columns.equals(wide.columns)
    keep, seen = fitted.result_.keeps_dense(), wide.notna().to_numpy()
    np.testing.assert_array_equal(completed.notna(), keep | seen)
    np.testing.assert_array_equal(completed.to_numpy()[seen], wide.to_numpy()[seen])
    rows, cols = np.nonzero(keep & ~seen)
    assert len(rows) > 0
    np.testing.assert_allclose(completed.to_numpy()[rows, cols], fitted.result_.values_at(rows, cols))


def test_the_completed_table_is_of_the_kind_that_was_given(wide, fitted, tmp_path):
    expected = fitted.complete_frame()
    polars = pl.DataFrame(wide.to_dict("list"))
    again = fit(polars).complete_frame()
    assert isinstance(again, pl.DataFrame)
    assert again.columns == list(wide.columns)
    np.testing.assert_array_equal(again.to_numpy(), expected.to_numpy())
    numbered = fit(integers(wide)).complete_frame()
    assert numbered.index.equals(integers(wide).index)
    assert numbered.columns.equals(integers(wide).columns)
    dated = wide.set_axis(pd.date_range("2024-01-01", periods=40, name="day"), axis=0)
    pd.testing.assert_index_equal(fit(dated).complete_frame().index, dated.index)
    levels = wide.set_axis(pd.MultiIndex.from_product([["x", "y"], range(15)]), axis=1)
    pd.testing.assert_index_equal(fit(levels).complete_frame().columns, levels.columns)
    fitted.save(tmp_path / "model")
    pd.testing.assert_frame_equal(sf.load(tmp_path / "model").complete_frame(), expected)
    pd.testing.assert_frame_equal(fit(sf.Observations.from_matrix(wide)).complete_frame(), expected)


def test_without_pandas_the_completed_table_is_polars_with_the_labels_first(wide, monkeypatch):
    completer = fit(sf.Observations.from_matrix(wide))
    monkeypatch.setitem(sys.modules, "pandas", None)
    completed = completer.complete_frame()
    assert completed.columns == ["row", *wide.columns]
    assert completed["row"].to_list() == wide.index.tolist()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match="pip install pandas"):
        completer.complete_frame()


def test_a_long_table_is_not_fitted_as_if_it_were_wide():
    rng = np.random.default_rng(0)
    cells = rng.choice(200, 120, replace=False)
    long = pd.DataFrame({"user": cells // 20, "item": cells % 20, "rating": rng.integers(1, 6, 120)})
    completer = sf.PartialCompleter(confidence="posterior")
    with pytest.raises(sf.InputError, match=r"looks like a long table.*Observations\.from_table\(df\)"):
        completer.fit(long)
    with pytest.raises(sf.InputError, match="look like triples"):
        completer.fit(long.to_numpy())
    assert not hasattr(completer, "result_")
    assert fit(sf.Observations.from_table(long)).observations_.shape == (10, 20)
    assert fit(sf.Observations.from_matrix(long)).observations_.shape == (120, 3)


def test_a_refit_on_an_array_forgets_the_labels(wide):
    completer = fit(wide)
    completer.fit(wide.to_numpy())
    assert completer.observations_.col_labels is None
    assert completer.complete_frame().columns.tolist() == list(range(30))


def test_a_table_grows_by_what_is_observed(wide):
    completer = fit(wide)
    completer.observe(["zoe", "person 1"], ["film 3", "opera"], [0.2, 0.3])
    completed = completer.complete_frame()
    assert completed.shape == (41, 31)
    assert completed.loc["zoe", "film 3"] == 0.2
    assert completed.loc["person 1", "opera"] == 0.3
    assert completer.transform(completed).shape == (41, 31)
    with pytest.raises(ValueError, match=r"opera|31 features"):
        completer.transform(wide)


def test_new_rows_of_a_table_are_learnt_under_the_names_of_its_index(wide):
    completer = fit(wide)
    new = wide.iloc[:2].set_axis(["zoe", "yan"], axis=0)
    completer.partial_fit(new)
    assert set(completer.observations_.row_labels[-2:].tolist()) == {"zoe", "yan"}
    learnt = completer.complete_frame().loc[new.index].where(new.notna())
    np.testing.assert_array_equal(learnt, new)
    with pytest.raises(sf.InputError, match="was observed already"):
        completer.partial_fit(new)

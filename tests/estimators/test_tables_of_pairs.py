"""Pairs scored, columns recommended, rows alike, and long tables learnt, by label and in every kind of table."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import surefill as sf
from surefill.errors import InputError
from surefill.estimators import iterate_recommendations
from surefill.estimators.recommending import Ranking
from surefill.guarantee import Reason

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture(scope="module")
def completer():
    seen = sf.datasets.make_low_rank((40, 30), rank=2, n_draws=1100, noise=0.1, random_state=0).observations
    ratings = pd.DataFrame({"user": [f"u{i}" for i in seen.rows], "item": seen.cols + 100, "rating": seen.values})
    observations = sf.Observations.from_table(ratings, row="user", col="item", value="rating")
    return sf.PartialCompleter(0.03, confidence="posterior", aim="observed").fit(observations)


@pytest.fixture(scope="module")
def pairs(completer):
    """Every known pair, in a shuffled order."""
    seen, (m, n) = completer.observations_, completer.observations_.shape
    cells = np.random.default_rng(0).permutation(m * n)
    return {"user": seen.row_names(cells // n).tolist(), "item": seen.col_names(cells % n).tolist()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_scored_table_has_what_the_methods_say_in_the_same_order(completer, pairs, kind):
    table = KINDS[kind](pairs | {"note": [f"n{k}" for k in range(len(pairs["user"]))]})
    scored = completer.predict_frame(table, level=0.8)
    assert type(scored) is type(table)
    found = nw.from_native(scored, eager_only=True)
    users, items = found["user"].to_list(), found["item"].to_list()
    assert (users, items) == (pairs["user"], pairs["item"])
    assert found["note"].to_list() == [f"n{k}" for k in range(len(users))]
    low, high = completer.predict_interval(users, items, 0.8)
    expected = {
        "value": completer.predict(users, items),
        "confidence": completer.predict_confidence(users, items),
        "risk": completer.predict_risk(users, items),
        "keep": completer.keep(users, items),
        "low": low,
        "high": high,
    }
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name].to_numpy(), column)
    observed = completer.observations_.find(*completer._cells(users, items)) >= 0
    reasons, keep = np.array(found["reason"].to_list()), expected["keep"]
    assert (reasons[observed] == Reason.OBSERVED).all()
    assert (reasons[~observed & keep] == Reason.KEPT).all()
    assert (reasons[~observed & ~keep] != Reason.KEPT).all()


def test_pandas_keeps_its_index(completer):
    table = pd.DataFrame({"user": ["u1", "u2"], "item": [101, 102]}, index=["b", "a"])
    assert completer.predict_frame(table).index.tolist() == ["b", "a"]
    assert completer.predict_frame(table.set_axis(["b", "b"])).index.tolist() == ["b", "b"]
    assert completer.predict_frame(table.set_axis([0, 1], axis=1))["keep"].tolist() == [
        *completer.keep(["u1", "u2"], [101, 102])
    ]


def test_pairs_never_seen_get_an_answer_and_a_reason(completer):
    table = pl.DataFrame({"item": [101, 7, 7], "user": ["nobody", "u1", "nobody"]})
    scored = completer.predict_frame(table)
    assert scored["reason"].to_list() == [Reason.NEW_ROW, Reason.NEW_COLUMN, Reason.NEW_BOTH]
    assert scored["confidence"].to_list() == [0, 0, 0]
    assert not scored["keep"].any()
    assert scored["value"].is_finite().all()
    assert scored["risk"].min() > completer.predict_risk(["u1"], [101])[0]


def test_a_table_without_lines_has_the_columns(completer):
    scored = completer.predict_frame(pd.DataFrame({"user": pd.Series([], dtype=str), "item": pd.Series([], dtype=int)}))
    assert list(scored.columns) == ["user", "item", "value", "confidence", "risk", "keep", "reason"]
    assert len(scored) == 0


def test_values_that_are_there_stay(completer):
    scored = completer.predict_frame(pd.DataFrame({"user": ["u1"], "item": [101], "value": [9.0]}))
    assert scored["value"].tolist() == [9.0]
    assert scored["predicted"].tolist() == completer.predict(["u1"], [101]).tolist()


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"who": ["u1"], "what": [101], "x": [1]}, "needs the columns 'user' and 'item'"),
        ({"user": ["u1"], "item": [101], "risk": [1]}, "has a column 'risk' already"),
        ({"user": ["u1", None], "item": [101, 102]}, "lacks 1 of the entries of column 'user'"),
        ({"user": ["u1"], "item": [101.5]}, "whole numbers or text; got 101.5"),
    ],
)
def test_tables_that_cannot_be_scored(completer, table, sentence):
    with pytest.raises(InputError, match=sentence):
        completer.predict_frame(pl.DataFrame(table))


def test_what_is_no_table_and_no_level_is_refused(completer):
    with pytest.raises(InputError, match="pandas, polars or pyarrow table"):
        completer.predict_frame([["u1", 101]])
    with pytest.raises(InputError, match="level"):
        completer.predict_frame(pd.DataFrame({"user": ["u1"], "item": [101]}), level=1.5)


def dense_best(completer, row, n, trusted, allowed=None):
    """All columns of a row, one by one."""
    seen = completer.observations_
    items = seen.col_labels.tolist()
    ranked = []
    for item in items:
        kept = completer.keep([row], [item])[0]
        observed = seen.find(*completer._cells([row], [item]))[0] >= 0
        if not observed and (kept or not trusted) and (allowed is None or item in allowed):
            ranked.append((-completer.predict([row], [item])[0], completer.predict_risk([row], [item])[0], item))
    return [item for _, _, item in sorted(ranked)[:n]]


@pytest.mark.parametrize("trusted", [True, False])
def test_recommendations_are_those_of_a_dense_search(completer, trusted):
    for row in ("u0", "u7"):
        best = completer.recommend(row, 5, trusted=trusted)
        assert best.labels == dense_best(completer, row, 5, trusted)
        assert list(best.table) == ["item", "rating", "confidence", "risk", *([] if trusted else ["keep"])]
        np.testing.assert_allclose(best.table["rating"], completer.predict([row] * len(best), best.labels), rtol=1e-6)


def test_columns_are_left_out_or_taken_alone(completer):
    whole = completer.recommend("u7", 30, trusted=False).labels
    assert len(whole) > 5
    assert completer.recommend("u7", 30, exclude=whole[:2], trusted=False).labels == whole[2:]
    assert completer.recommend("u7", 30, include=whole[3:5], trusted=False).labels == whole[3:5]
    with pytest.raises(InputError, match="no column is left"):
        completer.recommend("u7", exclude=whole[:1], include=whole[:1])


def test_all_rows_are_ranked_in_blocks_as_one_by_one(completer, monkeypatch):
    monkeypatch.setattr("surefill.estimators.recommending.BLOCK_CELLS", 100)
    blocks = list(iterate_recommendations(completer, n=3))
    assert len(blocks) > 5
    found = {}
    for block in blocks:
        for user, item in zip(block["user"].tolist(), block["item"].tolist(), strict=True):
            found.setdefault(user, []).append(item)
    for row in ("u0", "u7", "u39"):
        assert found.get(row, []) == completer.recommend(row, 3).labels


def test_similar_rows_are_those_whose_predictions_differ_least(completer):
    completion, seen = completer.result_.completion, completer.observations_
    found = completer.similar("u7", 39)
    own = seen.row_index(["u7"])[0]
    x, y = completion.row_table()[1][:-1], completion.col_table()[1][:-1]
    unclipped = completion.scale * (x[:, :1] + y[:, 0] + x[:, 1:] @ y[:, 1:].T)
    distance = np.sqrt(np.mean((unclipped - unclipped[own]) ** 2, axis=1))
    order = [k for k in np.argsort(distance, kind="stable") if k != own]
    assert found.labels == seen.row_names(order).tolist()
    np.testing.assert_allclose(found.table["distance"], distance[order], rtol=1e-6)


def test_a_ranking_is_pleasant():
    best = Ranking({"item": np.array(["a", "b"]), "rating": np.array([4.5, 4.0])})
    for backend in KINDS:
        assert nw.from_native(best.to_frame(backend), eager_only=True).shape == (2, 2)
    assert repr(best) == "Ranking(item: a, b)"
    assert ">a</td>" in best._repr_html_()
    with pytest.raises(InputError, match="backend"):
        best.to_frame("excel")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda c: c.recommend("nobody"), "there is no row labelled 'nobody'"),
        (lambda c: c.recommend(["u1", "u2"]), "one label"),
        (lambda c: c.recommend("u1", 0), "'n' parameter"),
        (lambda c: c.recommend("u1", exclude=[5]), "there is no column labelled 5"),
        (lambda c: c.similar("nobody"), "there is no row labelled 'nobody'"),
        (lambda c: c.similar("u1", 0), "'n' parameter"),
    ],
)
def test_rows_and_numbers_that_make_no_sense(completer, call, sentence):
    with pytest.raises(InputError, match=sentence):
        call(completer)


@pytest.mark.parametrize("kind", KINDS)
def test_partial_fit_is_fit_then_observe(kind):
    seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=400, noise=0.1, random_state=0).observations
    ratings = {"user": seen.rows.tolist(), "item": seen.cols.tolist(), "rating": seen.values.tolist()}
    more = {"user": [50, 50, 3], "item": [1, 2, 77], "rating": [0.1, 0.2, 0.1]}
    one = sf.PartialCompleter(0.2, confidence="posterior")
    one.partial_fit(KINDS[kind](ratings)).partial_fit(KINDS[kind](more))
    other = sf.PartialCompleter(0.2, confidence="posterior")
    other.fit(sf.Observations.from_table(pd.DataFrame(ratings), row="user", col="item", value="rating"))
    other.observe(more["user"], more["item"], more["rating"])
    assert one.observations_.shape == (31, 21)
    np.testing.assert_array_equal(one.predict([50, 3], [5, 77]), other.predict([50, 3], [5, 77]))


def test_partial_fit_takes_observations_with_labels_and_new_rows_of_a_matrix():
    seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=400, noise=0.1, random_state=0).observations
    completer = sf.PartialCompleter(0.2, confidence="posterior").partial_fit(seen)
    row = np.full((1, 20), np.nan)
    row[0, [2, 5]] = 0.2, 0.1
    assert completer.partial_fit(row).observations_.shape == (31, 20)
    labelled = sf.Observations([0], [0], [0.5], row_labels=[31], col_labels=[4])
    assert completer.partial_fit(labelled).observations_.shape == (32, 20)


def test_partial_fit_refuses_positions_for_labels_and_repeats(completer):
    with pytest.raises(InputError, match="rows have labels, such as 'u0'"):
        completer.partial_fit(sf.Observations([0], [0], [0.5]))
    with pytest.raises(InputError, match="give new rows in long form"):
        completer.partial_fit(np.full((1, 30), 0.5))
    seen = completer.observations_
    again = seen.row_names(seen.rows[:1]), seen.col_names(seen.cols[:1])
    with pytest.raises(InputError, match="observed already"):
        completer.observe(*again, [0.5])

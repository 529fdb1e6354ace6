"""Rows that were not there when fitting: one rating, equal ratings or none, in the columns and bounds of the fit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefill as sf
from surefill import InputError, Observations, PartialCompleter
from surefill.registry import COMPLETIONS

FILMS = [f"film {j}" for j in range(20)]


def stars(seed=0):
    sim = sf.datasets.make_low_rank((50, 20), rank=1, n_draws=500, noise=0.1, random_state=seed)
    return pd.DataFrame(np.clip(np.round(3 + 2 * sim.observations.dense()), 1, 5), columns=FILMS)


@pytest.fixture(scope="module")
def completer():
    return PartialCompleter(0.6, confidence="posterior").fit(stars())


def row(**ratings):
    return pd.DataFrame([ratings], columns=FILMS, dtype=float)


ONE, EQUAL = row(**{"film 3": 4}), row(**dict.fromkeys(FILMS[:10], 3))
NOTHING = row()


@pytest.mark.parametrize("confidence", ["posterior", "game", "coverage"])
@pytest.mark.parametrize("bounds", [None, (1, 5), (0, 10)])
def test_one_rating_or_equal_ratings_suffice(confidence, bounds):
    completer = PartialCompleter(0.6, confidence=confidence, completion="factor-model", bounds=bounds).fit(stars())
    for rows in (ONE, EQUAL, pd.concat([ONE, NOTHING, EQUAL])):
        values = completer.predict(rows)
        assert ((values >= 1) & (values <= 5)).all()
        filled = completer.transform(rows)
        np.testing.assert_array_equal(filled[rows.notna()], rows.to_numpy()[rows.notna()])
        seen = Observations.from_matrix(rows.to_numpy())
        np.testing.assert_allclose(completer.result_.fold_in(seen).completion.dense().clip(1, 5), values, atol=1e-12)


@pytest.mark.parametrize("name", COMPLETIONS)
def test_every_completion_takes_a_row_with_one_rating(name):
    completer = PartialCompleter(0.6, confidence="game", completion=name).fit(stars()[:25])
    assert np.isfinite(completer.predict(ONE)).all()
    assert np.isfinite(completer.predict(NOTHING)).all()


def test_a_row_alone_is_answered_as_among_others(completer):
    together = completer.predict(pd.concat([ONE, EQUAL, NOTHING, stars()[:5] + 0.0]))
    for k, alone in enumerate((ONE, EQUAL, NOTHING)):
        np.testing.assert_allclose(completer.predict(alone)[0], together[k], atol=1e-9)


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(FILMS), st.integers(1, 5), min_size=1, max_size=8))
def test_repeated_draws_weigh_by_the_units_of_the_fit(completer, ratings):
    cols = [FILMS.index(film) for film in ratings]
    values = list(ratings.values())
    once = Observations([0] * len(cols), cols, values, (1, 20))
    among = Observations([0] * len(cols) + [1, 1], [*cols, 0, 1], [*values, 1, 5], (2, 20))
    at = np.zeros(20, dtype=int), np.arange(20)
    alone, beside = completer.result_.fold_in(once).answer(*at), completer.result_.fold_in(among).answer(*at)
    np.testing.assert_allclose(alone.value, beside.value, atol=1e-9)
    np.testing.assert_allclose(alone.risk, beside.risk, rtol=1e-6)
    np.testing.assert_array_equal(alone.keep, beside.keep)


def test_differing_draws_of_a_new_row_do_not_depend_on_the_rows_beside_it(completer):
    rows, cols, values = [0, 0, 0], [3, 3, 4], [3, 4, 3]
    alone = completer.result_.fold_in(Observations(rows, cols, values, (1, 20)))
    beside = completer.result_.fold_in(Observations([*rows, 1, 1], [*cols, 0, 1], [*values, 1, 5], (2, 20)))
    at = np.zeros(20, dtype=int), np.arange(20)
    np.testing.assert_allclose(alone.values_at(*at), beside.values_at(*at), atol=1e-9)
    np.testing.assert_allclose(alone.risk_at(*at), beside.risk_at(*at), rtol=1e-9)


def test_of_a_row_without_ratings_nothing_is_trusted(completer):
    assert np.isnan(completer.transform(NOTHING)).all()
    assert np.isnan(completer.transform(pd.concat([EQUAL, NOTHING]))[1]).all()
    assert completer.predict(NOTHING).shape == (1, 20)


@pytest.mark.parametrize("bounds", [None, (1, 5)])
def test_values_outside_the_bounds_of_the_fit_are_refused(bounds):
    completer = PartialCompleter(0.6, confidence="posterior", completion="factor-model", bounds=bounds).fit(stars())
    outside = row(**{"film 3": 4, "film 7": 6})
    for ask in (
        completer.transform,
        completer.predict,
        lambda X: completer.result_.fold_in(Observations.from_matrix(X)),
    ):
        with pytest.raises(InputError, match=r"must lie in \[1, 5\], .*; row 0 has 6 in column 'film 7'"):
            ask(outside)


def test_beyond_the_range_seen_new_rows_may_go_where_no_bounds_are_known():
    sim = sf.datasets.make_low_rank((50, 20), rank=1, n_draws=500, noise=0.1, random_state=0)
    seen = Observations(sim.observations.rows, sim.observations.cols, sim.observations.values, (50, 20))
    completer = PartialCompleter(confidence="posterior", completion="factor-model").fit(seen)
    beyond = np.full((1, 20), np.nan)
    beyond[0, 3] = seen.values.max() + 0.5
    assert np.isfinite(completer.predict(beyond)).all()


def test_fold_in_matches_columns_by_label(completer):
    expected = completer.predict(row(**{"film 3": 4, "film 7": 2, "film 11": 5}))[0]
    named = Observations.from_table(
        pd.DataFrame({"user": "new", "item": ["film 7", "film 11", "film 3"], "rating": [2, 5, 4]})
    )
    assert named.shape == (1, 3)
    folded = completer.result_.fold_in(named)
    np.testing.assert_allclose(folded.values_at(np.zeros(20, int), np.arange(20)), expected, atol=1e-12)
    by_position = Observations([0, 0, 0], [3, 7, 11], [4, 2, 5], (1, 20))
    again = completer.result_.fold_in(by_position).values_at(np.zeros(20, int), np.arange(20))
    np.testing.assert_allclose(again, expected, atol=1e-12)


def test_fold_in_refuses_what_cannot_be_matched(completer):
    unknown = Observations([0, 0], [0, 1], [4, 2], col_labels=["film 3", "opera 1"])
    with pytest.raises(InputError, match="columns that were not there when fitting: opera 1; leave them out"):
        completer.result_.fold_in(unknown)
    with pytest.raises(InputError, match="new rows must have 20 columns; got 3"):
        completer.result_.fold_in(Observations([0, 0], [0, 2], [4, 2]))


def test_labels_of_columns_are_matched_after_saving(completer, tmp_path):
    completer.save(tmp_path / "model")
    named = Observations([0, 0], [0, 1], [4, 2], col_labels=["film 7", "film 3"])
    at = np.zeros(20, int), np.arange(20)
    again = sf.load(tmp_path / "model").result_.fold_in(named)
    np.testing.assert_array_equal(again.values_at(*at), completer.result_.fold_in(named).values_at(*at))


def test_labels_of_columns_are_matched_after_observing():
    completer = PartialCompleter(0.6, confidence="posterior", completion="factor-model").fit(stars())
    rows, cols = completer.suggest(3, strategy="random")
    completer.observe(rows, cols, [3.0, 4.0, 2.0])
    named = Observations([0, 0], [0, 1], [4, 2], col_labels=["film 7", "film 3"])
    alike = row(**{"film 7": 4, "film 3": 2})
    np.testing.assert_allclose(completer.result_.fold_in(named).completion.dense(), completer.predict(alike), atol=1e-9)

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from surefill import InputError, Observations
from surefill.completion import ExternalCompletion


@pytest.fixture
def seen():
    return Observations([0, 0, 1, 2, 2], [0, 1, 0, 1, 2], [1.0, 2.0, 3.0, 4.0, 5.0], (4, 3), (0, 6))


def test_a_function_is_asked_and_cut(seen):
    completion = ExternalCompletion(lambda rows, cols: 10.0 * rows - cols).fit(seen)
    np.testing.assert_array_equal(completion.dense(), np.clip(10 * np.arange(4)[:, None] - np.arange(3), 0, 6))


def test_a_fitting_function_sees_the_observations(seen):
    completion = ExternalCompletion(lambda obs: lambda rows, cols: 0 * rows + obs.values.mean(), kind="fit").fit(seen)
    np.testing.assert_array_equal(completion.dense(), 3.0)
    with pytest.raises(InputError, match="must return a function"):
        ExternalCompletion(lambda obs: 3, kind="fit").fit(seen)


@pytest.mark.parametrize("answer", [lambda i, j: np.nan * i, lambda i, j: np.zeros(len(i) + 1)])
def test_a_function_that_answers_badly_is_told(seen, answer):
    with pytest.raises(InputError, match="one finite number per cell"):
        ExternalCompletion(answer).fit(seen).dense()


def test_one_hot_ridge_is_the_additive_model(seen):
    alpha = 0.5
    completion = ExternalCompletion(Ridge(alpha=alpha)).fit(seen)
    X = np.zeros((5, 7))
    X[np.arange(5), seen.rows] = X[np.arange(5), 4 + seen.cols] = 1
    centred = X - X.mean(axis=0)
    beta = np.linalg.solve(centred.T @ centred + alpha * np.eye(7), centred.T @ (seen.values - 3.0))
    expected = 3.0 + (np.array([1, 0, 0, 0, 0, 0, 1.0]) - X.mean(axis=0)) @ beta
    assert completion.at([0], [2])[0] == pytest.approx(expected)


def test_features_may_be_ids_or_the_users_own(seen):
    by_ids = ExternalCompletion(RandomForestRegressor(5, random_state=0), features="ids").fit(seen)
    assert by_ids.dense().shape == (4, 3)
    side = np.array([1.0, 2.0, 3.0, 4.0])
    mine = ExternalCompletion(Ridge(alpha=1e-9), features=lambda rows, cols: np.column_stack([side[rows], cols]))
    plane = Observations([0, 1, 2, 3], [0, 1, 2, 1], [1.0, 3.0, 5.0, 5.0], (4, 3), (0, 9))
    assert mine.fit(plane).at([3], [2])[0] == pytest.approx(6.0, abs=1e-6)


def test_counts_are_weights_or_refused(seen):
    doubled = Observations(seen.rows, seen.cols, seen.values, (4, 3), (0, 6), counts=[2, 1, 1, 1, 1])
    one, two = (ExternalCompletion(Ridge()).fit(obs).dense() for obs in (seen, doubled))
    assert np.abs(one - two).max() > 0.01
    ExternalCompletion(KNeighborsRegressor(1)).fit(seen)
    with pytest.raises(InputError, match="takes no sample_weight"):
        ExternalCompletion(KNeighborsRegressor(1)).fit(doubled)


def test_an_imputer_must_be_asked_for_and_folds_in_by_itself(seen):
    with pytest.raises(InputError, match="say kind='imputer'"):
        ExternalCompletion(KNNImputer()).fit(seen)
    completion = ExternalCompletion(SimpleImputer(), kind="imputer").fit(seen)
    means = [2.0, 3.0, 5.0]
    np.testing.assert_allclose(completion.dense()[3], means)
    np.testing.assert_allclose(completion.dense()[0], [1, 2, 5])
    new = completion.fold_in(Observations([1], [2], [0.5], (2, 3), (0, 6))).dense()
    np.testing.assert_allclose(new, [means, [2, 3, 0.5]])


def test_an_imputer_that_drops_columns_is_told():
    narrow = Observations([0, 1], [0, 0], [1.0, 2.0], (2, 2), (0, 6))
    with (
        pytest.warns(UserWarning, match="features without"),
        pytest.raises(InputError, match="keep_empty_features=True"),
    ):
        ExternalCompletion(SimpleImputer(), kind="imputer").fit(narrow)


def test_a_table_is_matched_by_labels_and_the_rest_falls_back(seen):
    labelled = Observations(
        seen.rows, seen.cols, seen.values, seen.shape, seen.bounds,
        row_labels=["a", "b", "c", "d"], col_labels=["x", "y", "z"],
    )  # fmt: skip
    table = pd.DataFrame({"u": ["d", "b", "nobody"], "i": ["x", "z", "x"], "v": [2.5, 9.0, 1.0]})
    predictions = Observations.from_table(table, row="u", col="i", value="v")
    completion = ExternalCompletion(predictions).fit(labelled)
    assert completion.at([3], [0])[0] == 2.5
    assert completion.at([1], [2])[0] == 6.0
    effects = completion.fallback
    assert completion.at([0], [2])[0] == effects.at([0], [2])[0]
    assert effects.at([2], [0])[0] > effects.at([0], [0])[0]
    with pytest.raises(InputError, match="no prediction in the table"):
        ExternalCompletion(predictions.select([2])).fit(labelled)


def test_a_table_without_labels_is_matched_by_index(seen):
    completion = ExternalCompletion(Observations([1], [1], [2.5])).fit(seen)
    assert completion.at([1], [1])[0] == 2.5


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"source": 3}, "source"),
        ({"source": Ridge(), "kind": "imputer"}, "source"),
        ({"source": len, "kind": "predictions"}, "source"),
        ({"source": len, "kind": "x"}, "kind"),
        ({"source": Ridge(), "features": "x"}, "features"),
        ({"source": len, "held_out": "yes"}, "held_out"),
    ],
)
def test_bad_parameters(seen, parameters, name):
    with pytest.raises(InputError, match=f"The '{name}' parameter of ExternalCompletion must be"):
        ExternalCompletion(**parameters).fit(seen)

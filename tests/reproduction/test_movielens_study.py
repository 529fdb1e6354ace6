import numpy as np
import pytest

from surefill import InputError, Observations
from surefill.completion import BayesianFactorModel, SoftImpute
from surefill.data import split_entries
from surefill.datasets import make_low_rank
from surefill.reproduction import load_fold, load_square, reproduce_movielens
from surefill.reproduction.methods import coverage_program, factored_descent, simplified_descent
from surefill.reproduction.movielens_study import take_square


@pytest.fixture(scope="module")
def outcome():
    """Some people and films are rated far more often than others, as everywhere."""
    weights = 1 / np.arange(1, 51), 1 / np.arange(1, 41)
    seen = make_low_rank((50, 40), rank=2, n_draws=1500, sampling=weights, noise=0.1, random_state=0).observations
    base, test = split_entries(seen, 0.4)
    methods = (
        coverage_program(gap=0.05),
        factored_descent("entropy"),
        factored_descent("cube"),
        simplified_descent(per_round=2),
    )
    algorithms = {"soft": SoftImpute(penalty=1.0, centre="none"), "best": BayesianFactorModel(rank=2)}
    return base, test, reproduce_movielens(base, test, part="a part", methods=methods, algorithms=algorithms)


def test_the_error_falls_with_every_confidence(outcome):
    *_, found = outcome
    rows = found.table()
    assert len(rows) == 2 * 5
    for row in (row for row in rows if row["completion"] == "soft"):  # the other is wrong by little but the noise
        assert row["error_10"] < 0.7 * row["error_1"], row
        assert row["spearman"] < -0.5, row
        assert row["area"] < 0.8, row


def test_scores_are_those_of_the_test_cells(outcome):
    base, test, found = outcome
    soft, best = found.completions
    completion = BayesianFactorModel(rank=2).fit(base)
    np.testing.assert_allclose(best.errors, test.squared_errors(completion.at(test.rows, test.cols)))
    assert soft.errors.mean() > best.errors.mean()
    assert found.methods[-1].name == "ratings of row + column"
    i, j = test.rows[7], test.cols[7]
    count = (base.rows == i).sum() + (base.cols == j).sum()
    most = np.bincount(base.rows).max() + np.bincount(base.cols).max()
    assert found.methods[-1].confidence[7] == pytest.approx(count / most)
    for method in found.methods:
        assert method.confidence.shape == method.order.shape == test.values.shape
        assert 0 <= method.confidence.min() <= method.confidence.max() <= 1


def test_cells_that_the_cut_at_one_makes_equal_keep_their_order(outcome):
    simplified = outcome[2].methods[3]
    at_one = simplified.confidence == 1
    assert at_one.sum() > 10
    assert len(np.unique(simplified.order[at_one])) > 5


def test_the_square_is_taken_by_ids():
    seen = Observations(
        [0, 1, 2, *range(3, 13)], [0, 1, 0] + [1] * 10, [1, 2, 3] + [4] * 10, (13, 2), (1, 5),
        row_labels=[300, 7, 2, *range(20, 30)], col_labels=[9, 1],
    )  # fmt: skip
    square = take_square(seen, 30)
    assert square.shape == (30, 30)
    cells = sorted(zip(square.rows.tolist(), square.cols.tolist(), square.values.tolist(), strict=True))
    assert cells == [(1, 8, 3.0), (6, 0, 2.0), *((row, 0, 4.0) for row in range(19, 29))]
    with pytest.raises(InputError, match="only 2 ratings are of users and films 1 to 10"):
        take_square(seen, 10)
    names = Observations([0, 1], [0, 1], [1, 2], row_labels=["ann", "bob"], col_labels=["a", "b"])
    with pytest.raises(InputError, match="numbered from 1"):
        take_square(names)


def test_a_part_of_the_data_is_refused(tmp_path):
    (tmp_path / "u.data").write_text("".join(f"{u}\t{i}\t3\t88\n" for u in range(1, 9) for i in range(1, 9)))
    with pytest.raises(InputError, match=r"not all of ml-100k: it has 64 ratings"):
        load_fold(tmp_path)


def test_the_papers_square(data_folder):
    base, test = load_square(data_folder)
    assert (len(base), len(test)) == (5189, 4492)
    assert base.shape == test.shape == (250, 250)

import numpy as np
import pytest

from surefill.completion import FactorModel
from surefill.coverage import CoverageProgram, PosteriorConfidence, PosteriorVariance, SeenRows
from surefill.data import Observations
from surefill.datasets import make_blocks, make_low_rank
from surefill.errors import InputError


@pytest.fixture(scope="module")
def fitted():
    seen = make_low_rank((30, 20), rank=2, n_draws=200, noise=0.1, random_state=0).observations
    return seen, FactorModel(rank=2, penalty=0.3).fit(seen)


def test_posterior_confidence_is_the_documented_ratio(fitted):
    seen, completion = fitted
    confidence = PosteriorConfidence.of(completion, seen)
    i, j = 4, 7
    f = np.concatenate([np.ones((20, 1)), completion.col_solution[:-1, 1:]], axis=1)
    g = np.concatenate([np.ones((30, 1)), completion.row_solution[:-1, 1:]], axis=1)
    P = np.diag([5 * 0.3, 0.3, 0.3])

    def normal(features, mine, other):
        draws = seen.counts[mine].sum()
        used = features[other[mine]]
        return (used.T * seen.counts[mine]) @ used + np.diag([5 * 0.3, *[0.3 * np.sqrt(draws)] * 2])

    A, B = normal(f, seen.rows == i, seen.cols), normal(g, seen.cols == j, seen.rows)
    left = f[j] @ np.linalg.solve(A, f[j]) + g[i] @ np.linalg.solve(B, g[i])
    before = f[j] @ np.linalg.solve(P, f[j]) + g[i] @ np.linalg.solve(P, g[i])
    assert confidence.at([i], [j])[0] == pytest.approx(1 - left / before, rel=1e-9)


def test_posterior_confidence_lies_in_the_unit_interval_and_is_zero_where_nothing_was_seen():
    seen = Observations([0, 0, 1, 1, 2], [0, 1, 0, 1, 2], [1.0, 2.0, 3.0, 4.0, 2.0], shape=(5, 5))
    confidence = PosteriorVariance().fit(seen, FactorModel(rank=1, penalty=0.5).fit(seen))[0]
    C = confidence.dense()
    assert (C >= 0).all()
    assert (C <= 1).all()
    assert C[4, 4] == pytest.approx(0, abs=1e-12)
    assert C[0, 0] > C[4, 0] > C[4, 4]
    assert confidence.coverage == pytest.approx(C.sum())
    np.testing.assert_allclose(confidence.block([0, 2], [1]), C[[0, 2]][:, [1]])


def test_more_draws_more_confidence(fitted):
    seen, completion = fitted
    more = Observations(seen.rows, seen.cols, seen.values, seen.shape, seen.bounds, counts=10 * seen.counts)
    fewer = PosteriorConfidence.of(completion, seen).dense()
    assert (PosteriorConfidence.of(completion, more).dense() >= fewer - 1e-12).all()


def test_posterior_of_a_folded_in_row_is_that_of_the_row(fitted):
    seen, completion = fitted
    confidence = PosteriorConfidence.of(completion, seen)
    np.testing.assert_allclose(confidence.fold_in(seen).dense(), confidence.dense(), atol=1e-10)


def test_posterior_needs_a_factor_model(fitted):
    with pytest.raises(InputError, match="needs a completion by FactorModel; got str"):
        PosteriorVariance().fit(fitted[0], "not a completion")


def test_coverage_program_carries_its_certificate():
    sim = make_blocks((5, 5), n_draws=100, random_state=0)
    confidence, certificate = CoverageProgram(gamma=0.16).fit(sim.observations, None)
    assert certificate.standing == "certified"
    assert certificate.coverage == pytest.approx(confidence.coverage)
    assert certificate.coverage <= certificate.upper_bound
    assert certificate.gap < 0.01
    assert confidence.dense()[sim.support].mean() > 0.8
    assert confidence.dense()[~sim.support].mean() < 0.1


def test_new_rows_get_the_confidence_of_rows_of_which_no_more_was_seen():
    C = np.array([[1.0, 0.2, 0.1], [0.3, 0.4, 1.0], [0.0, 0.9, 0.0]])
    seen = np.array([[True, False, False], [True, False, True], [False, True, False]])
    new = Observations([0, 1, 1, 3, 3], [0, 0, 2, 1, 2], [1.0, 1.0, 2.0, 1.0, 3.0], shape=(4, 3))
    extended = SeenRows(C, seen).fold_in(new).dense()
    assert extended.tolist() == [[1.0, 0.2, 0.1], [1.0, 0.4, 1.0], [0, 0, 0], [0.0, 0.9, 0.0]]
    with pytest.raises(InputError, match="must have 3 columns; got 2"):
        SeenRows(C, seen).fold_in(Observations([0], [1], [1.0]))

from dataclasses import replace

import numpy as np
import pytest

from surefill.completion import BayesianFactorModel, FactorModel, SoftImpute
from surefill.confidence import CoverageProgram, DensePatterns, PosteriorConfidence, PosteriorVariance
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
        used = features[other[mine]]
        return (used.T * seen.counts[mine]) @ used + P

    A, B = normal(f, seen.rows == i, seen.cols), normal(g, seen.cols == j, seen.rows)
    left = f[j] @ np.linalg.solve(A, f[j]) + g[i] @ np.linalg.solve(B, g[i])
    before = f[j] @ np.linalg.solve(P, f[j]) + g[i] @ np.linalg.solve(P, g[i])
    assert confidence.at([i], [j])[0] == pytest.approx(1 - left / before, rel=1e-9)


def test_posterior_confidence_lies_in_the_unit_interval_and_is_zero_where_nothing_was_seen():
    seen = Observations([0, 0, 1, 1, 2], [0, 1, 0, 1, 2], [1.0, 2.0, 3.0, 4.0, 2.0], shape=(5, 5))
    confidence = PosteriorVariance(n_restarts=0).fit(seen, FactorModel(rank=1, penalty=0.5).fit(seen))[0]
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


def test_draws_in_other_directions_add_no_confidence():
    solution = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    seen = Observations([0] * 50 + [1], [0] * 50 + [1], [0.5] * 51, shape=(2, 2), bounds=(-1, 1))
    completion = replace(
        FactorModel(rank=2, penalty=0.5).fit(Observations([0, 1], [0, 1], [0.5, -0.5])),
        row_solution=solution, col_solution=solution, unit=seen.unit, mean=0.0,
    )  # fmt: skip
    confidence = PosteriorConfidence.of(completion, seen)
    busy_in_its_own = confidence.at([0], [0])[0]
    assert busy_in_its_own > 0.9
    unseen_direction = np.array([1.0, 0.0, 1.0])
    variance = unseen_direction @ confidence.row_inverses[0] @ unseen_direction
    assert variance >= 1 / 0.5


@pytest.mark.parametrize("groups", [[(20, 120, 3000), (400, 25, 2500)], [(40, 40, 2000), (300, 20, 2000)]])
def test_posterior_does_not_trust_what_lies_between_blocks_of_uneven_activity(groups):
    rng = np.random.default_rng(0)
    rows, cols, row_at, col_at = [], [], 0, 0
    support = np.zeros((sum(g[0] for g in groups), sum(g[1] for g in groups)), dtype=bool)
    for m, n, draws in groups:
        rows.append(row_at + rng.integers(m, size=draws))
        cols.append(col_at + rng.integers(n, size=draws))
        support[row_at : row_at + m, col_at : col_at + n] = True
        row_at, col_at = row_at + m, col_at + n
    i, j = np.concatenate(rows), np.concatenate(cols)
    truth = rng.normal(size=(row_at, 2)) @ rng.normal(size=(2, col_at)) / 3
    seen = Observations(i, j, np.clip(truth[i, j], -1, 1) * 0.9, support.shape, (-1, 1))
    confidence = PosteriorConfidence.of(FactorModel().fit(seen), seen).dense()
    assert np.median(confidence[support]) > np.quantile(confidence[~support], 0.95)


def test_posterior_of_a_folded_in_row_is_that_of_the_row(fitted):
    seen, completion = fitted
    confidence = PosteriorConfidence.of(completion, seen)
    np.testing.assert_allclose(confidence.fold_in(seen).dense(), confidence.dense(), atol=1e-10)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_where_nothing_ties_two_groups_together_fits_from_other_starts_disagree(rank):
    sim = make_blocks((40, 25), n_groups=2, rank=rank, n_draws=2000, noise=0.2, random_state=1)
    seen, completion = sim.observations, BayesianFactorModel().fit(sim.observations)
    alone = PosteriorConfidence.of(completion, seen)
    confidence, certificate = PosteriorVariance().fit(seen, completion)
    with_others = confidence.dense()
    assert np.mean(with_others[~sim.support] >= np.quantile(with_others[sim.support], 0.05)) < 0.05
    assert (with_others <= alone.dense() + 1e-12).all()
    i, j = np.nonzero(~sim.support)
    values = [c.unit.to_unit(c.at(i, j)) for c in (completion, *confidence.others)]
    _, _, of_row, of_col = alone._sides
    before = of_row[completion.locate(i, j)[1]] + of_col[completion.locate(i, j)[0]]
    expected = np.clip(alone.at(i, j) - np.var(values, axis=0, ddof=1) / before, 0, 1)
    np.testing.assert_allclose(with_others[i, j], expected, atol=1e-9)
    assert "7 fits from other starts" in certificate.sentence


def test_fits_from_other_starts_are_folded_in_and_seeded():
    sim = make_blocks((40, 25), n_groups=2, rank=2, n_draws=2000, noise=0.2, random_state=1)
    seen, completion = sim.observations, BayesianFactorModel(rank=3).fit(sim.observations)
    confidence, same, other = (PosteriorVariance(2, random_state=seed).fit(seen, completion)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(confidence.dense(), same.dense())
    assert np.abs(confidence.dense() - other.dense()).max() > 0.01
    assert [c.rank for c in confidence.others] == [3, 3]
    np.testing.assert_allclose(confidence.fold_in(seen).dense(), confidence.dense(), atol=0.02)


@pytest.mark.parametrize("parameters", [{"n_restarts": -1}, {"random_state": 0.5}])
def test_restarts_and_seed_are_whole_numbers(fitted, parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        PosteriorVariance(**parameters).fit(*fitted)


def test_posterior_of_another_completion_is_a_factor_models_own(fitted):
    seen, _ = fitted
    confidence, certificate = PosteriorVariance().fit(seen, SoftImpute(penalty=1.0).fit(seen))
    expected, _ = PosteriorVariance().fit(seen, BayesianFactorModel().fit(seen))
    np.testing.assert_array_equal(confidence.dense(), expected.dense())
    assert "a separate factor model's" in certificate.sentence


def test_coverage_program_carries_its_certificate():
    sim = make_blocks((5, 5), n_draws=100, random_state=0)
    confidence, certificate = CoverageProgram(gamma=0.16).fit(sim.observations, None)
    assert certificate.standing == "certified"
    assert certificate.coverage == pytest.approx(confidence.coverage)
    assert certificate.coverage <= certificate.upper_bound
    assert certificate.gap < 0.01
    assert confidence.dense()[sim.support].mean() > 0.8
    assert confidence.dense()[~sim.support].mean() < 0.1


def test_new_rows_get_the_confidence_of_rows_seen_alike_or_less():
    C = np.array([[1.0, 0.2, 0.1], [0.3, 0.4, 1.0], [0.0, 0.9, 0.0]])
    counts = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0]])
    new = Observations([0, 1, 1, 3, 3, 4], [0, 0, 2, 1, 2, 0], [1.0, 1.0, 2.0, 1.0, 3.0, 2.0], shape=(5, 3),
                       counts=[1, 1, 1, 1, 1, 7])  # fmt: skip
    extended = DensePatterns(C, counts).fold_in(new).dense()
    alike, alike_too, nothing, more, oftener = extended.tolist()
    assert (alike, alike_too) == ([1.0, 0.2, 0.1], [0.3, 0.4, 1.0])
    assert nothing == [0, 0, 0]
    assert more == [0.0, 0.9, 0.0]
    assert oftener == [1.0, 0.2, 0.1]
    with pytest.raises(InputError, match="must have 3 columns; got 2"):
        DensePatterns(C, counts).fold_in(Observations([0], [1], [1.0]))
    with pytest.raises(ValueError, match="read-only"):
        DensePatterns(C, counts).dense()[0, 0] = 0


def test_rows_seen_alike_share_their_confidence_and_the_coverage_stays():
    seen = Observations([0, 1, 2, 2], [0, 0, 0, 1], [1.0, 2.0, 3.0, 4.0])
    shared = DensePatterns.of(np.array([[0.2, 0.4], [0.6, 0.0], [1.0, 1.0]]), seen)
    np.testing.assert_allclose(shared.dense(), [[0.4, 0.2], [0.4, 0.2], [1.0, 1.0]])
    np.testing.assert_array_equal(shared.fold_in(seen).dense(), shared.dense())

"""Looking ahead against the posterior computed from scratch, and batches against an exhaustive greedy choice."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import surefill as sf
from surefill.active import KeptMargin, Lookahead, LookaheadUtility, choose_batch, every_cell
from surefill.active import lookahead as module


@pytest.fixture(scope="module")
def completion():
    seen = sf.datasets.make_low_rank((25, 15), rank=2, n_draws=120, noise=0.2, random_state=0).observations
    return sf.completion.BayesianFactorModel(rank=3).fit(seen)


def grid(completion):
    return np.indices(completion.shape).reshape(2, -1)


def total_variance(completion, S, T, weights):
    """The weighted sum over all cells of f_j' S_i f_j + g_i' T_j g_i, in squared units."""
    i, j = grid(completion)
    a, b = completion.locate(i, j)
    f, g = completion.col_features[b], completion.row_features[a]
    variance = np.einsum("ta,tab,tb->t", f, S[i], f) + np.einsum("ta,tab,tb->t", g, T[j], g)
    return float(weights @ variance) * completion.unit.half_width**2


def posteriors(completion):
    i, j = completion.locate(np.arange(completion.shape[0]), np.arange(completion.shape[1]))
    return completion.row_covariances.matrices[i], completion.col_covariances.matrices[j]


def after(completion, S, T, row, col):
    """Both posteriors once the cell is answered, by inverses: the other side's doubt is noise to each."""
    (i,), (j,) = completion.locate([row], [col])
    f, g = completion.col_features[j], completion.row_features[i]
    of_row, of_col = f @ S[row] @ f, g @ T[col] @ g
    S, T = S.copy(), T.copy()
    S[row] = np.linalg.inv(np.linalg.inv(S[row]) + np.outer(f, f) / (completion.noise + of_col))
    T[col] = np.linalg.inv(np.linalg.inv(T[col]) + np.outer(g, g) / (completion.noise + of_row))
    return S, T


def test_a_utility_is_the_fall_of_the_weighted_variances_whatever_was_asked_before(completion):
    rng = np.random.default_rng(0)
    table = rng.random(completion.shape)
    rows, cols = grid(completion)
    ahead = Lookahead(completion, rows, cols, lambda i, j: (table[i, j], np.zeros(len(i))))
    S, T = posteriors(completion)
    for candidate in (7, 8, 100, 7 + completion.shape[1]):
        before = total_variance(completion, S, T, table[rows, cols])
        S, T = after(completion, S, T, rows[candidate], cols[candidate])
        fall = before - total_variance(completion, S, T, table[rows, cols])
        assert ahead.utilities(np.array([candidate]))[0] == pytest.approx(fall, rel=1e-6)
        ahead.learn(candidate)


def test_a_batch_is_the_greedy_choice_over_all_candidates(completion):
    rows, cols = grid(completion)
    chosen, worth = choose_batch(rows, cols, LookaheadUtility(Lookahead(completion, rows, cols, every_cell)), 6)
    ahead, left = Lookahead(completion, rows, cols, every_cell), set(range(len(rows)))
    for t in range(6):
        utilities = ahead.utilities()
        best = max(left, key=lambda candidate: utilities[candidate])
        assert utilities[chosen[t]] == pytest.approx(utilities[best], rel=1e-9)
        assert worth[t] == pytest.approx(utilities[best], rel=1e-9)
        left.remove(int(chosen[t]))
        ahead.learn(int(chosen[t]))


def test_questions_for_the_good_of_one_row_count_its_cells_alone(completion):
    n = completion.shape[1]
    rows, cols = np.full(n, 3), np.arange(n)
    ahead = Lookahead(completion, rows, cols, every_cell, target_rows=np.array([3]))
    S, T = posteriors(completion)
    own = (grid(completion)[0] == 3).astype(float)
    fall = total_variance(completion, S, T, own) - total_variance(completion, *after(completion, S, T, 3, 5), own)
    assert ahead.utilities(np.array([5]))[0] == pytest.approx(fall, rel=1e-6)


def test_the_noise_of_a_row_is_worth_less_the_more_it_was_seen(completion):
    rows, cols = grid(completion)
    ahead = Lookahead(completion, rows, cols, lambda i, j: (np.zeros(len(i)), np.ones(len(i))))
    before = ahead.utilities(np.array([0]))[0]
    ahead.learn(0)
    assert 0 < ahead.utilities(np.array([0]))[0] < before


def test_sums_over_drawn_lines_are_close_to_those_over_all(completion, monkeypatch):
    rows, cols = grid(completion)
    exact = Lookahead(completion, rows, cols, every_cell).utilities()
    monkeypatch.setattr(module, "SUMMED_CELLS", 0)
    monkeypatch.setattr(module, "LEAST_LINES", 10)
    drawn = np.mean([Lookahead(completion, rows, cols, every_cell, random_state=s).utilities() for s in range(60)], 0)
    np.testing.assert_allclose(drawn, exact, rtol=0.25)  # 60 means over 10 of 15 or 25 lines


def most_kept(risk, tolerance):
    """min over lambda of sum max(0, 1 - lambda (r - tolerance)), by a scalar solver."""
    found = minimize_scalar(
        lambda x: np.maximum(0, 1 - np.exp(x) * (risk - tolerance)).sum(), bounds=(-10, 10), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    return float(found.fun)


def test_the_margin_is_the_derivative_of_the_most_that_can_be_kept(completion):
    risk, tolerance = np.linspace(0.1, 1.0, 2000), 0.4
    cells = np.arange(2000), np.zeros(2000, dtype=int)
    margin = KeptMargin.of(completion, lambda i, j: risk[i], tolerance, *cells)
    assert most_kept(risk, tolerance) == pytest.approx(np.sum(risk <= margin.threshold), abs=2)
    lowered = risk.copy()
    lowered[:100] -= 0.01
    gained = most_kept(lowered, tolerance) - most_kept(risk, tolerance)
    assert gained == pytest.approx(margin.per_risk * 100 * 0.01, rel=0.02)


def test_where_nothing_can_be_kept_the_best_twentieth_counts(completion):
    risk = np.linspace(1.0, 2.0, 1000)
    margin = KeptMargin.of(completion, lambda i, j: risk[i], 0.1, np.arange(1000), np.zeros(1000, dtype=int))
    assert margin.threshold == risk[49]
    assert 0 < margin.per_risk < np.inf


def test_a_completion_without_covariances_cannot_look_ahead(completion):
    with pytest.raises(sf.InputError, match="values only"):
        Lookahead(completion.values_only(), np.array([0]), np.array([0]), every_cell)

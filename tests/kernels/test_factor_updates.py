import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.kernels import factor_updates as kernels
from surefill.kernels.eight_systems import solve_systems, solve_systems_reference
from surefill.kernels.gram import add_gram, add_gram_reference

both = {
    name: pytest.mark.parametrize(name, [getattr(kernels, name), getattr(kernels, f"{name}_reference")])
    for name in ("update_groups", "sum_moments", "invert_updates")
}
STARTS = np.array([0, 3, 3, 160, 161, 450])  # an empty group, and chunks that end before, at and after a group's end


def rounding(dtype):
    """What a thousand operations may lose: sums here have some hundred terms of about 1."""
    return 1e3 * np.finfo(dtype).eps


def problem(seed, alike, k, dtype=np.float64):
    """Entries, factors of the others with a last line for those unknown, and a prior."""
    rng = np.random.default_rng(seed)
    n, n_groups, n_other = STARTS[-1], len(STARTS) - 1, 9
    size = 1 if alike else n
    entries = kernels.GroupedEntries(
        STARTS,
        other=rng.integers(-1, n_other, n).astype(np.int32),
        values=rng.normal(3, 1, n).astype(dtype),
        counts=rng.integers(1, 4, size).astype(dtype),
        scatter=rng.uniform(0, 1, size).astype(dtype),
        shift=dtype(3.0),
        scale=dtype(0.5),
    )
    z, w, t = rng.normal(size=(n_other + 1, k)), rng.uniform(0, 1, (n_other + 1, k)), rng.uniform(0.5, 2, n_other + 1)
    root = rng.normal(size=(k, k))
    P, pull = root @ root.T + np.eye(k), rng.normal(size=(n_groups, k)).astype(dtype)
    return entries, (z, w, t), kernels.GroupPrior(P, pull, rng.uniform(0.5, 2, n_groups + 1), 0.3, 1e-3), rng


def updated(update_groups, entries, others, prior, dtype=np.float64):
    k = len(prior.precision)
    found = kernels.GroupPosterior(np.full((6, k), 7.0, dtype), np.full((6, k), 7.0, dtype), np.full(5, 7.0))
    update_groups(0, 4, entries, kernels.regressors_of(*others, dtype), prior, found)
    return found


def expected_errors(g, entries, others, x, v):
    """e_g as the module says it, term by term."""
    (z, w, t), at = others, slice(STARTS[g], STARTS[g + 1])
    j, total = entries.other[at], 0.0
    counts, scatter = (np.broadcast_to(each, STARTS[-1])[at] for each in (entries.counts, entries.scatter))
    values = (entries.values[at] - 3.0) * 0.5
    for r, c, q, z_j, w_j, t_j in zip(values, counts, scatter, z[j], w[j], t[j], strict=True):
        away = r - x[0] - z_j[0] - x[1:] @ z_j[1:]
        spread = v[0] + w_j[0] + np.sum((x**2 * w_j + v * z_j**2 + v * w_j)[1:])
        total += t_j * (c * (away**2 + spread + 1e-3) + q)
    return total


@both["update_groups"]
@pytest.mark.parametrize("alike", [True, False])
@given(seed=st.integers(0, 10), k=st.sampled_from([1, 3, 8]))
def test_the_update_minimises_the_expected_error_and_the_prior(update_groups, alike, seed, k):
    entries, others, prior, rng = problem(seed, alike, k)
    P, pull, s, noise, _ = prior
    mean, variance, errors = updated(update_groups, entries, others, prior)
    for g in range(4):
        x, v = mean[g], variance[g]

        def cost(x, v, g=g):
            own = expected_errors(g, entries, others, x, v) + x @ P @ x - 2 * pull[g] @ x
            return s[g] * (own + np.diag(P) @ v) - noise * np.log(v).sum()

        here = cost(x, v)
        assert errors[g] == pytest.approx(expected_errors(g, entries, others, x, v), rel=1e-9, abs=1e-9)
        for direction in rng.normal(size=(3, k)):
            step = 1e-4 * direction
            assert cost(x + step, v) >= here - 1e-12 * abs(here)
            assert (cost(x + step, v) - cost(x - step, v)) == pytest.approx(0, abs=1e-9 * abs(here))
            assert cost(x, v * np.exp(step)) >= here - 1e-12 * abs(here)
    assert (mean[4:] == 7).all()
    assert errors[4] == 7


@pytest.mark.parametrize("k", [3, 11, 21])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_update_is_its_readable_twin_in_both_precisions(k, dtype):
    entries, others, prior, _ = problem(1, False, k, dtype)
    twins = kernels.update_groups, kernels.update_groups_reference
    fast, plain = (updated(update, entries, others, prior, dtype) for update in twins)
    for left, right in zip(fast, plain, strict=True):
        np.testing.assert_allclose(left, right, rtol=rounding(dtype), atol=rounding(dtype))


@both["invert_updates"]
@given(seed=st.integers(0, 10))
def test_inverses_invert_the_matrices_of_the_update(invert_updates, seed):
    entries, (z, w, t), (P, _, s, *_), _ = problem(seed, False, 3)
    inverse = np.full((5, 3, 3), 7.0)
    invert_updates(0, 4, entries, kernels.regressors_of(z, w, t, np.float64), s, P, inverse)
    for g in range(4):
        at = slice(STARTS[g], STARTS[g + 1])
        j = entries.other[at]
        f, c = z[j].copy(), entries.counts[at] * t[j]
        f[:, 0] = 1
        spread = c @ w[j]
        spread[0] = 0
        np.testing.assert_allclose(s[g] * ((f.T * c) @ f + np.diag(spread) + P) @ inverse[g], np.eye(3), atol=1e-9)
    assert (inverse[4] == 7).all()


@pytest.mark.parametrize("gram", [add_gram, add_gram_reference])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_adds_products_of_vectors(gram, dtype):
    vectors, total = np.random.default_rng(0).normal(size=(5, 32)).astype(dtype), np.ones((24, 24))
    gram(vectors.ravel(), 32, 4, np.empty(64, dtype), total)
    v = vectors[:4, :24].astype(np.float64)
    np.testing.assert_allclose(np.tril(total), np.tril(1 + v.T @ v), rtol=rounding(dtype))


@pytest.mark.parametrize("solve", [solve_systems, solve_systems_reference])
@pytest.mark.parametrize("k", [1, 2, 11])
def test_eight_systems_are_solved(solve, k):
    rng = np.random.default_rng(k)
    roots, b = rng.normal(size=(8, k, 3 * k)), rng.normal(size=(8, k))
    matrices = roots @ roots.transpose(0, 2, 1)
    A, x = np.empty((k + 1, k, 8)), np.empty((k, 8))
    A[:k], A[k] = np.tril(matrices).transpose(1, 2, 0), b.T
    solve(A, x)
    np.testing.assert_allclose(np.einsum("lad,dl->la", matrices, x), b, atol=1e-9)


@both["sum_moments"]
@pytest.mark.parametrize("k", [3, 11])
def test_an_update_from_the_moments_of_parts_is_the_update(sum_moments, k):
    entries, others, prior, _ = problem(2, False, k)
    whole = updated(kernels.update_groups, entries, others, prior)
    lines, total = kernels.regressors_of(*others, np.float64), np.zeros((4, kernels.moments_width(k)))
    for part in (0, 1):  # every second entry of each group
        where = [np.arange(STARTS[g] + part, STARTS[g + 1], 2) for g in range(4)]
        starts, at = np.append(0, np.cumsum([len(each) for each in where])), np.concatenate(where)
        cells = {name: getattr(entries, name)[at] for name in ("other", "values", "counts", "scatter")}
        moments = np.zeros_like(total)
        sum_moments(0, 4, entries._replace(starts=starts, **cells), lines, k, np.arange(4), moments)
        total += moments
    found = kernels.GroupPosterior(*(np.full_like(each, 7) for each in whole))
    kernels.update_from_moments(0, 4, total, prior, found)
    for left, right in zip(found, whole, strict=True):
        np.testing.assert_allclose(left[:4], right[:4], rtol=1e-9)

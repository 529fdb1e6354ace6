"""The factored oracle against the conic one, exact membership, and bounds that hold whatever they are given."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from surefill.data.observations import Observations
from surefill.errors import InputError
from surefill.spaces import MaxNorm, TraceNorm, VersionSpace
from surefill.spaces.augmented_lagrangian import AugmentedLagrangian, Multipliers
from surefill.spaces.certificates import bound_from_response
from surefill.spaces.separation_oracle import best_responses
from surefill.spaces.spectral_norm import norm_with_margin, ratio_bound, top_singular
from surefill.spaces.spheres import Spheres
from surefill.spaces.stage import LinearObjective, Stage


def draw_space(K, rank=None, shape=(14, 11), beta=0.02, seed=0):
    counts = np.random.default_rng(seed).poisson(0.5, size=shape)
    counts[0, 0] += 1
    rows, cols = np.nonzero(counts)
    obs = Observations(rows, cols, np.zeros(len(rows)), shape, counts=counts[rows, cols])
    return VersionSpace(obs, beta, MaxNorm(K, rank))


def check_member(space, adversary):
    """Row lengths, box and ball, each computed afresh in double precision."""
    left, right = adversary.left.astype(float), adversary.right.astype(float)
    K, M = space.matrix_class.K, left @ right.T
    assert np.linalg.norm(left, axis=1).max() * np.linalg.norm(right, axis=1).max() <= K * (1 + 1e-7)
    assert np.abs(M).max() <= 1 + 1e-7
    assert space.mean_square(M) <= space.beta * (1 + 1e-7)
    if space.matrix_class.rank is not None:
        assert left.shape[1] <= space.matrix_class.rank


@pytest.mark.parametrize("K", [0.6, 1.0, 1.4])
@pytest.mark.parametrize("seed", [0, 1])
def test_wide_factors_agree_with_the_conic_oracle(K, seed):
    space = draw_space(K, seed=seed)
    C = np.random.default_rng(seed + 5).uniform(size=space.shape) ** 2
    truth = space.maximize(C)
    found = best_responses(space, C, rng=np.random.default_rng(0), tol=5e-4)[0]
    check_member(space, found)
    assert found.value == pytest.approx(np.sum(C * found.matrix), rel=1e-9)
    assert truth.value * (1 - 1e-3) <= found.value <= truth.bound * (1 + 1e-9)
    assert truth.value * (1 - 1e-9) <= found.bound <= truth.value * (1 + 2e-3)


@pytest.mark.parametrize("K", [1.0, 2.5])
def test_thin_factors_are_members_and_weaker_than_wide_ones(K):
    space = draw_space(K, rank=2)
    C = np.random.default_rng(3).uniform(size=space.shape)
    found = best_responses(space, C, starts=4, rng=np.random.default_rng(0))
    limit = VersionSpace(space.observations, space.beta, MaxNorm(K)).maximize(C)
    for one in found:
        check_member(space, one)
        assert one.value <= limit.bound
        assert one.value == pytest.approx(np.sum(C * one.matrix), rel=1e-5)
    assert [one.value for one in found] == sorted((one.value for one in found), reverse=True)
    assert found[0].value > 0.4 * limit.value


def test_the_bound_holds_for_any_factors_and_multipliers():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        space = draw_space(1.3, seed=seed)
        C = rng.uniform(size=space.shape)
        U, V = rng.normal(size=(14, 3)), rng.normal(size=(11, 3))
        truth = space.maximize(C).value
        box = 0.1 * rng.normal(size=space.shape) if seed % 2 else None
        assert bound_from_response(space, C, U, V, rng.uniform(0, 5), box).value >= truth * (1 - 1e-9)


def test_uneven_excess_is_paid_where_it_lives():
    """One strong cell beside a weak constant: raising y there costs less than scaling all of it."""
    space = draw_space(1.0, shape=(30, 30))
    C = np.full((30, 30), 0.02)
    response = best_responses(space, C, rng=np.random.default_rng(0))[0]
    C[4, 7] = 1.0
    bound = bound_from_response(space, C, response.left, response.right, 0.0)
    y = np.concatenate(
        [np.sum((C @ response.right) * response.left, 1), np.sum((C.T @ response.left) * response.right, 1)]
    )
    assert bound.singular_values[0] > 1.5
    assert bound.value < 0.99 * 0.5 * y.sum() * bound.singular_values[0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("verified", [3000, 10])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_the_largest_singular_values_with_all_at_hand_or_by_lanczos(monkeypatch, kind, verified, turned):
    B = np.random.default_rng(0).normal(size=(60, 45))
    B = B.T if turned else B
    truth = np.linalg.norm(B, 2)
    monkeypatch.setattr("surefill.spaces.spectral_norm.DENSE_SIDE", verified)
    left, values, right = top_singular(kind(B), 4)
    assert values == pytest.approx(np.linalg.svd(B, compute_uv=False)[:4], rel=1e-3)
    np.testing.assert_allclose(B @ right, left * values, atol=1e-8)
    assert truth <= norm_with_margin(kind(B)) <= truth * 1.01


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_beyond_every_factorisation_a_ratio_bounds_the_norm(monkeypatch, kind):
    """Nearly exact where no entry is negative, valid for any; and a norm of Lanczos' that is far too low is mended."""
    rng = np.random.default_rng(1)
    positive, signed = rng.uniform(size=(40, 30)), rng.normal(size=(40, 30))
    signed[3] = 0
    truths = [np.linalg.norm(B, 2) for B in (positive, signed)]
    assert truths[0] <= ratio_bound(kind(positive)) <= truths[0] * 1.001
    assert truths[1] <= ratio_bound(kind(signed)) <= np.linalg.norm(np.abs(signed), 2) * 1.01
    assert ratio_bound(kind(np.zeros((4, 3)))) == 0
    monkeypatch.setattr("surefill.spaces.spectral_norm.DENSE_SIDE", 10)
    assert norm_with_margin(kind(np.zeros((40, 30))), 0.0) == 0
    assert norm_with_margin(kind(signed), truths[1] / 3) >= truths[1]
    monkeypatch.setattr("surefill.spaces.spectral_norm.GRAM_SIDE", 20)
    assert norm_with_margin(kind(signed), truths[1] / 3) >= truths[1]


def test_where_lanczos_gives_up_the_norm_is_still_bounded(monkeypatch):
    B = np.linalg.qr(np.random.default_rng(0).normal(size=(80, 80)))[0]
    monkeypatch.setattr("surefill.spaces.spectral_norm.DENSE_SIDE", 10)
    monkeypatch.setattr("surefill.spaces.spectral_norm.LANCZOS_RESTARTS", 1)
    assert 1 <= norm_with_margin(B + np.diag(np.linspace(0, 1e-6, 80))) < 20


@pytest.mark.parametrize("K", [1.0, 3.0])
@pytest.mark.parametrize("count", [1, 3])
def test_gradients_by_differences(K, count):
    space = draw_space(K, shape=(5, 4))
    rng = np.random.default_rng(0)
    stage = Stage(Spheres(space.shape, K, count, 3), AugmentedLagrangian(space))
    box = np.stack([rng.uniform(size=space.shape) for _ in range(count)]) if K > 1 else None
    multipliers, spheres = Multipliers(np.ones(count), box), stage.spheres
    objective = LinearObjective(rng.uniform(size=space.shape), space.shape, 2.0, count, np.float64)

    def value(x):
        point = spheres.point(x)
        f, d_left, d_right = stage.value_of_many(multipliers, objective, point)
        return f, point.pull_back(d_left, d_right)

    x = spheres.random(rng)
    f, gradient = value(x)
    np.testing.assert_allclose(gradient, approx_fprime(x, lambda z: value(z)[0], 1e-7), atol=2e-3, rtol=1e-4)
    if count == 1:
        point = spheres.point(x)
        g, d_left, d_right = stage.value_of_one(multipliers, objective, point)
        assert g == pytest.approx(f)
        np.testing.assert_allclose(point.pull_back(d_left, d_right), gradient)


def test_the_same_seed_gives_the_same_bits_and_blocks_the_same_answer():
    space = draw_space(1.0, rank=3)
    C = np.random.default_rng(1).uniform(size=space.shape)

    class Blocks:
        coverage = float(C.sum())

        def block(self, rows, cols):
            return C[np.ix_(rows, cols)]

    first, second, third = (best_responses(space, one, rng=np.random.default_rng(7))[0] for one in (C, C, Blocks()))
    np.testing.assert_array_equal(first.left, second.left)
    np.testing.assert_array_equal(first.left, third.left)


def test_cells_too_many_to_hold_are_swept(monkeypatch):
    """The same value and slopes; a search with a rank ends in one of several local optima, which rounding chooses."""
    space, rng = draw_space(1.0, rank=3), np.random.default_rng(1)
    C, left, right = rng.uniform(size=space.shape), *(rng.normal(size=(side, 3)) for side in space.shape)
    held = LinearObjective(C, space.shape, 2.0, 1, np.float64)
    monkeypatch.setattr("surefill.spaces.stage.HELD_CELLS", 10)
    swept = LinearObjective(InBlocks(C), space.shape, 2.0, 1, np.float64)
    assert isinstance(swept.C, InBlocks)
    for one, other in zip(held(left, right), swept(left, right), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    found = best_responses(space, InBlocks(C), rng=np.random.default_rng(7))[0]
    check_member(space, found)
    assert found.value == pytest.approx(np.sum(C * found.matrix), rel=1e-5)


def test_nothing_to_attack_and_what_is_refused():
    space = draw_space(1.0)
    nothing = best_responses(space, np.zeros(space.shape), starts=2, rng=np.random.default_rng(0))
    assert [one.value for one in nothing] == [0.0, 0.0]
    obs = space.observations
    for other, sentence in [
        (VersionSpace(obs, 0.0, MaxNorm(1.0)), "needs beta > 0"),
        (VersionSpace(obs, 0.1, TraceNorm(1.0)), "needs a max-norm class; got matrices of trace norm at most 1"),
    ]:
        with pytest.raises(InputError, match=sentence):
            best_responses(other, np.ones(space.shape), rng=np.random.default_rng(0))


class InBlocks:
    """A confidence that can only be asked for blocks."""

    def __init__(self, C):
        self._C, self.shape, self.coverage = C, C.shape, float(C.sum())

    def block(self, rows, cols):
        return self._C[np.ix_(rows, cols)]


def test_the_version_space_asks_the_solver_that_reaches():
    wide = draw_space(1.0, shape=(170, 12), beta=0.02)
    C = np.random.default_rng(1).uniform(size=wide.shape)
    found = wide.maximize(C)
    check_member(wide, found)
    assert found.value <= found.bound <= found.value * (1 + 2e-3)
    assert wide.bound(C) == pytest.approx(found.bound, rel=5e-3)
    in_blocks = wide.maximize(InBlocks(C))
    assert in_blocks.value == pytest.approx(found.value, rel=5e-3)


def test_with_a_rank_the_best_of_the_starts_is_returned_and_the_convex_bound_holds():
    space = draw_space(1.0, rank=2)
    C = np.random.default_rng(3).uniform(size=space.shape)
    one, many = space.maximize(C, starts=1), space.maximize(C, starts=8)
    check_member(space, many)
    assert one.value <= many.value * (1 + 1e-6) <= space.bound(C) * (1 + 1e-6)
    assert many.bound == np.inf
    assert space.bound(C) == pytest.approx(draw_space(1.0).maximize(C).bound)
    with pytest.raises(InputError, match="C must be non-negative"):
        space.maximize(-C)


def test_trace_norm_classes_stay_with_the_conic_solver():
    large = draw_space(1.0, shape=(170, 12))
    with pytest.raises(InputError, match="conic solver needs at most 150"):
        VersionSpace(large.observations, 0.02, TraceNorm(5.0)).maximize(np.ones(large.shape))


def test_the_bound_survives_a_gradient_of_low_rank_with_empty_rows() -> None:
    """B of rank 1 with rows and columns of zeros: y is raised along one vector, and must stay positive elsewhere."""
    rng = np.random.default_rng(0)
    B = np.zeros((6, 5))
    B[:2, :2] = np.outer([1.0, 2.0], [1.0, 0.5])
    space = VersionSpace(Observations([0], [0], [0.0], (6, 5)), 4.0, MaxNorm(1.0))
    bound = bound_from_response(space, B, rng.normal(size=(6, 3)), rng.normal(size=(5, 3)), 0.0)
    assert 4.5 - 1e-9 <= bound.value < np.inf

"""The version space: membership, the separation oracle, and the certified bound from above."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill.data.observations import Observations
from surefill.errors import InputError
from surefill.spaces import MaxNorm, TraceNorm, VersionSpace

few = settings(max_examples=12, deadline=None)


def observe(counts):
    counts = np.asarray(counts)
    rows, cols = np.nonzero(counts)
    return Observations(rows, cols, np.zeros(len(rows)), counts.shape, counts=counts[rows, cols].astype(int))


def random_space(rng, matrix_class, beta):
    counts = rng.poisson(0.8, size=(5, 4))
    counts[0, 0] += 1
    return VersionSpace(observe(counts), beta, matrix_class)


def random_member(rng, space, rank):
    """A random matrix scaled to the edge of V by its true norms."""
    M = rng.normal(size=(space.shape[0], rank)) @ rng.normal(size=(rank, space.shape[1]))
    if space.beta == 0:
        M[space.observations.rows, space.observations.cols] = 0
    sizes = [space.matrix_class.norm(M).upper / space.matrix_class.radius, np.abs(M).max()]
    if space.beta > 0:
        sizes.append(np.sqrt(space.mean_square(M) / space.beta))
    return M / max(sizes)


CLASSES = [MaxNorm(0.6), MaxNorm(1.0), MaxNorm(1.7), TraceNorm(0.9), TraceNorm(5.0)]


@pytest.mark.parametrize("matrix_class", CLASSES, ids=lambda c: c.description)
@pytest.mark.parametrize("beta", [0.0, 0.02, 0.3])
def test_oracle_is_a_member_and_meets_its_bound(matrix_class, beta):
    rng = np.random.default_rng(3)
    space = random_space(rng, matrix_class, beta)
    C = rng.uniform(size=space.shape)
    found = space.maximize(C)
    assert space.contains(found.matrix)
    assert found.value == pytest.approx(np.sum(C * found.matrix))
    assert found.mean == pytest.approx(found.value / C.sum())
    assert found.bound == pytest.approx(found.value, rel=1e-6)
    assert found.bound >= found.value * (1 - 1e-12)
    assert space.bound(7 * C) == pytest.approx(7 * found.bound, rel=1e-6)
    for rank in (1, 2, 4) * 5:
        member = random_member(rng, space, rank)
        assert space.contains(member)
        assert abs(np.sum(C * member)) <= found.bound * (1 + 1e-9)


@few
@given(st.integers(0, 2**32 - 1), st.sampled_from(CLASSES), st.sampled_from([0.0, 0.01, 0.2]))
def test_no_member_exceeds_the_bound(seed, matrix_class, beta):
    rng = np.random.default_rng(seed)
    space = random_space(rng, matrix_class, beta)
    C = rng.uniform(size=space.shape) ** 2
    bound = space.bound(C)
    for rank in (1, 2, 4):
        assert abs(np.sum(C * random_member(rng, space, rank))) <= bound * (1 + 1e-9)


@few
@given(st.integers(0, 2**32 - 1))
def test_bound_holds_however_crude_the_solver(seed):
    rng = np.random.default_rng(seed)
    space = random_space(rng, MaxNorm(1.4), 0.05)
    C = rng.uniform(size=space.shape)
    truth = space.maximize(C)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefill.spaces.version_space.plan_for", lambda shape: (("scs", 0.3),))
        crude = space.maximize(C)
    assert crude.bound >= truth.value * (1 - 1e-9)
    assert crude.value <= truth.bound * (1 + 1e-9)
    assert space.contains(crude.matrix)


def test_without_a_radius_the_adversary_is_exactly_zero_where_it_was_seen():
    space = VersionSpace(observe([[1, 0, 2], [0, 1, 0]]), 0.0, MaxNorm(1.0))
    for plan in ((("clarabel", 1e-8),), (("scs", 0.1),)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("surefill.spaces.version_space.plan_for", lambda shape, plan=plan: plan)
            found = space.maximize(np.ones((2, 3)))
        assert np.all(found.matrix[[0, 0, 1], [0, 2, 1]] == 0)


def test_oracle_in_closed_form():
    # One row, so max-norm is the largest entry: sqrt(beta) where the one observation is, min(K, 1) elsewhere.
    obs = observe([[1, 0, 0]])
    for K in (0.5, 1.0, 2.0):
        found = VersionSpace(obs, 0.04, MaxNorm(K)).maximize([[1.0, 2.0, 3.0]])
        assert found.value == pytest.approx(0.2 + 5 * min(K, 1), rel=1e-7)
        np.testing.assert_allclose(found.matrix, [[0.2, min(K, 1), min(K, 1)]], atol=1e-6)
    # Everything seen once and no other limit: Cauchy-Schwarz.
    C = np.array([[1.0, 2.0], [0.5, 1.0]])
    assert VersionSpace(observe(np.ones((2, 2))), 0.01, MaxNorm(50.0)).bound(C) == pytest.approx(
        0.1 * np.sqrt(4 * np.sum(C**2)), rel=1e-6
    )
    # Trace norm and nothing else: the spectral norm.
    far = VersionSpace(observe([[1, 0], [0, 0]]), 1.0, TraceNorm(0.3))
    assert far.bound(C) == pytest.approx(0.3 * np.linalg.norm(C, 2), rel=1e-6)


def test_oracle_with_nothing_to_gain():
    found = VersionSpace(observe(np.eye(3, dtype=int)), 0.1, MaxNorm(1.0)).maximize(np.zeros((3, 3)))
    assert (found.value, found.bound) == (0.0, 0.0)
    assert np.isnan(found.mean)


def test_oracle_beyond_the_interior_point_sizes():
    rng = np.random.default_rng(0)
    space = VersionSpace(observe(rng.poisson(0.5, size=(26, 24))), 0.01, MaxNorm(1.3))
    C = rng.uniform(size=space.shape)
    found = space.maximize(C)
    assert space.contains(found.matrix)
    assert found.value * (1 - 1e-12) <= found.bound <= found.value * (1 + 1e-4)


def test_membership_says_what_is_exceeded_and_by_how_much():
    obs = observe([[1, 0], [0, 1]])
    space = VersionSpace(obs, 0.25, MaxNorm(1.0))
    inside = space.contains([[0.5, 0.9], [0.9, 0.5]])
    assert inside
    assert str(inside) == "The matrix is in the version space."
    outside = space.contains([[1.0, 1.5], [0.0, 0.0]])
    assert not outside
    assert outside.norm == pytest.approx(0.5, abs=1e-6)
    assert outside.box == 0.5
    assert outside.ball == 0.25
    assert outside.rank == 0
    assert str(outside) == (
        "The matrix is outside the version space: it exceeds the norm's limit by 0.5 and "
        "the largest entry 1 by 0.5 and the mean square beta on the observed cells by 0.25."
    )
    assert not VersionSpace(obs, 1.0, MaxNorm(1.3)).contains([[1.0, 1.0], [1.0, -1.0]])
    assert VersionSpace(obs, 1.0, MaxNorm(1.4143)).contains([[1.0, 1.0], [1.0, -1.0]])
    limited = VersionSpace(obs, 1.0, MaxNorm(2.0, rank=1))
    assert limited.contains(np.ones((2, 2)))
    assert limited.contains(np.diag([0.5, 0.25])).rank == pytest.approx(0.25)
    assert not limited.contains(np.diag([0.5, 0.25]))


def test_more_room_means_a_higher_value():
    rng = np.random.default_rng(5)
    C = rng.uniform(size=(5, 4))
    obs = random_space(rng, MaxNorm(1.0), 0.0).observations
    by_beta = [VersionSpace(obs, beta, MaxNorm(1.0)).maximize(C).value for beta in (0.0, 0.01, 0.1, 0.5)]
    by_norm = [VersionSpace(obs, 0.05, MaxNorm(K)).maximize(C).value for K in (0.5, 1.0, 1.5, 2.0)]
    assert by_beta == sorted(by_beta)
    assert by_norm == sorted(by_norm)
    # A vanishing ball and a ball of radius 0 agree.
    assert VersionSpace(obs, 1e-12, MaxNorm(1.0)).maximize(C).value == pytest.approx(by_beta[0], abs=1e-3)


def test_trace_and_max_norm_agree_on_rank_one_shapes():
    # With one column both norms of a vector differ: |v|_2 and max|v|; with one cell they are the same.
    obs = observe([[2]])
    values = [VersionSpace(obs, 0.5, c).maximize([[1.0]]).value for c in (MaxNorm(0.4), TraceNorm(0.4))]
    assert values == pytest.approx([0.4, 0.4], rel=1e-7)


def test_classes_describe_themselves():
    assert MaxNorm(1.5).description == "matrices of max-norm at most 1.5"
    assert MaxNorm(1, rank=3).description == "matrices of max-norm at most 1 and rank at most 3"
    assert TraceNorm(4).description == "matrices of trace norm at most 4"
    assert TraceNorm(4).norm(np.eye(3)).value == pytest.approx(3)


def test_errors_are_sentences():
    obs = observe([[1, 0], [0, 1]])
    space = VersionSpace(obs, 0.1, MaxNorm(1.0))
    for make, sentence in [
        (
            lambda: MaxNorm(0.0),
            r"The 'K' parameter of MaxNorm must be a positive finite number\. Got 0\.0 instead\.",
        ),
        (lambda: MaxNorm(np.inf), "'K'"),
        (
            lambda: MaxNorm(1.0, rank=0),
            "The 'rank' parameter of MaxNorm must be None or an integer of at least 1",
        ),
        (lambda: TraceNorm(-1), "'tau'"),
        (lambda: VersionSpace(obs, -0.1, MaxNorm(1.0)), "The 'beta' parameter of VersionSpace"),
        (lambda: VersionSpace(obs, np.nan, MaxNorm(1.0)), "'beta'"),
        (lambda: space.maximize([[1.0, 2.0]]), "C must be 2 x 2 like the observed matrix; got 1 x 2"),
        (lambda: space.maximize([[1.0, -2.0], [0, 0]]), "C must be non-negative; its smallest entry is -2"),
        (lambda: space.contains(np.ones((3, 2))), "M must be 2 x 2"),
    ]:
        with pytest.raises(InputError, match=sentence):
            make()
    large = VersionSpace(Observations([0], [0], [1.0], (151, 2)), 0.1, TraceNorm(1.0))
    with pytest.raises(InputError, match="the conic solver needs at most 150"):
        large.maximize(np.ones((151, 2)))

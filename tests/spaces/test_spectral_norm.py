import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from surefill.spaces import spectral_norm
from surefill.spaces.spectral_norm import SparseOperator, bound_spectral_norm, lanczos


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 10**6))
def test_lanczos_to_the_end_finds_every_singular_value(m, n, seed):
    E = random_array((m, n), density=0.4, rng=np.random.default_rng(seed), format="csr")
    found = lanczos(SparseOperator(csr_array(E)), min(m, n), seed)
    expected = np.linalg.svd(E.toarray(), compute_uv=False)
    assert found.values[0] == pytest.approx(expected[0], rel=1e-6, abs=1e-12)
    assert np.all(found.values <= expected[: len(found.values)] * (1 + 1e-9) + 1e-12)


def test_vectors_belong_to_the_values():
    E = random_array((60, 40), density=0.2, rng=np.random.default_rng(1), format="csr")
    found = lanczos(SparseOperator(csr_array(E)), 40)
    np.testing.assert_allclose(E @ found.right[:, :3], found.left[:, :3] * found.values[:3], atol=1e-8)
    np.testing.assert_allclose(found.right.T @ found.right, np.eye(found.right.shape[1]), atol=1e-8)


@pytest.mark.parametrize("cholesky_side", [0, 2000])
@given(seed=st.integers(0, 10**6), steps=st.integers(30, 60))
def test_the_norm_lies_between_the_bounds(cholesky_side, seed, steps):
    rng = np.random.default_rng(seed)
    E = csr_array(random_array((50, 35), density=0.3, rng=rng, format="csr"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectral_norm, "CHOLESKY_SIDE", cholesky_side)
        found = bound_spectral_norm(E, steps, seed)
    norm = np.linalg.norm(E.toarray(), 2)
    assert found.standing == ("proved" if cholesky_side else "probable")
    assert found.lower <= norm * (1 + 1e-12)
    assert norm <= found.upper
    assert found.upper <= norm * (1 + 1e-5) if cholesky_side else found.upper < 2 * norm


def test_a_lanczos_that_found_too_little_is_caught_by_the_factorisation(monkeypatch):
    E = csr_array(np.diag([1.0, 2.0, 5.0]))
    poor = spectral_norm.SingularTriplets(np.eye(3)[:, :1], np.array([3.0]), np.eye(3)[:, :1])
    monkeypatch.setattr(spectral_norm, "lanczos", lambda *_: poor)
    assert bound_spectral_norm(E).upper >= 5.0


def test_nothing_has_norm_zero():
    assert bound_spectral_norm(csr_array((4, 3))).upper == 0.0

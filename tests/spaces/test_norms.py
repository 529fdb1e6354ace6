"""The norms against known truths, their own certificates, and the axioms of a norm."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import hadamard

from surefill.errors import InputError, MissingPackageError
from surefill.spaces import max_norm, trace_norm
from surefill.spaces.certificates import bound_dual_max_norm
from surefill.spaces.conic_model import FIRST_ORDER, first_tight
from surefill.spaces.norms import MAX_NORM_ACCURACY, _max_norm_bounds

few = settings(max_examples=15, deadline=None)
matrices = st.tuples(st.integers(1, 5), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-2, 2, allow_subnormal=False))
)


def check_certificates(norm, M, rows_are_short):
    """The factors multiply to M and prove the upper bound; the witness proves the lower one."""
    size = max(1.0, np.abs(M).max())
    np.testing.assert_allclose(norm.left @ norm.right.T, M, atol=1e-12 * size)
    assert norm.lower == pytest.approx(np.sum(norm.witness * M), abs=1e-12 * size)
    assert norm.lower <= norm.value <= norm.upper
    if rows_are_short:
        rows = np.linalg.norm(norm.left, axis=1).max() * np.linalg.norm(norm.right, axis=1).max()
        assert norm.upper == pytest.approx(rows, abs=1e-12 * size)
    else:
        assert norm.upper == pytest.approx(np.linalg.norm(norm.left) * np.linalg.norm(norm.right), abs=1e-12)


KNOWN = {
    "zero": (np.zeros((3, 2)), 0.0),
    "one by one": (np.array([[-3.0]]), 3.0),
    "one row": (np.array([[1.0, -2.0, 0.5]]), 2.0),
    "rank one": (np.outer([1.0, -2.0, 0.5], [3.0, 1.0]), 6.0),
    "constant": (np.full((4, 6), 0.7), 0.7),
    "identity": (np.eye(6), 1.0),
    "one entry": (np.diag([1.0, 0.0, 0.0]), 1.0),
    "Hadamard 2": (hadamard(2).astype(float), np.sqrt(2)),
    "Hadamard 8": (hadamard(8).astype(float), np.sqrt(8)),
    "rank-one signs": (np.outer([1.0, -1, 1, 1], [1.0, 1, -1]), 1.0),
    "block signs": (np.kron(np.array([[1.0, 1], [1, -1]]), np.ones((2, 3))), np.sqrt(2)),
    "tiny": (1e-200 * np.eye(3), 1e-200),
    "huge": (1e150 * np.ones((2, 3)), 1e150),
}


@pytest.mark.parametrize("name", KNOWN)
def test_max_norm_of_known_matrices(name):
    M, truth = KNOWN[name]
    norm = max_norm(M)
    assert norm.value == pytest.approx(truth, rel=MAX_NORM_ACCURACY, abs=0)
    assert norm.lower <= truth * (1 + 1e-14)
    assert norm.upper >= truth * (1 - 1e-14)
    assert float(norm) == norm.value
    check_certificates(norm, M, rows_are_short=True)


@pytest.mark.parametrize("seed", range(3))
def test_max_norm_is_tight_and_its_witness_has_dual_norm_one(seed):
    M = np.random.default_rng(seed).normal(size=(7, 5))
    norm = max_norm(M)
    check_certificates(norm, M, rows_are_short=True)
    assert norm.upper - norm.lower <= MAX_NORM_ACCURACY * np.abs(M).max()
    signs = np.array(np.meshgrid(*[[-1, 1]] * 5)).reshape(5, -1)
    assert np.abs(norm.witness @ signs).sum(axis=0).max() <= 1 + 1e-12  # sign matrices u v^T have max-norm 1


def test_polishing_closes_what_a_crude_solver_left_open():
    M = np.random.default_rng(1).choice([-1.0, 1.0], (9, 7))
    crude = next(_crude_bounds(M))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefill.spaces.norms.plan_for", lambda shape: (("scs", 1e-1),))
        polished = next(_max_norm_bounds(M, 1.0))
    check_certificates(polished, M, rows_are_short=True)
    assert crude.lower <= polished.lower <= polished.upper <= crude.upper
    assert polished.upper - polished.lower < 0.1 * (crude.upper - crude.lower)


def test_max_norm_beyond_the_interior_point_sizes():
    M = np.random.default_rng(0).normal(size=(30, 28))
    norm = max_norm(M)
    check_certificates(norm, M, rows_are_short=True)
    assert norm.upper - norm.lower <= MAX_NORM_ACCURACY * np.abs(M).max()


def test_certificates_hold_for_a_crude_solver():
    M = np.random.default_rng(1).normal(size=(6, 6))
    truth = max_norm(M)
    crude = next(_crude_bounds(M))
    check_certificates(crude, M, rows_are_short=True)
    assert crude.lower <= truth.upper
    assert crude.upper >= truth.lower
    assert crude.upper - crude.lower > 10 * (truth.upper - truth.lower)


def _crude_bounds(M):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefill.spaces.norms.plan_for", lambda shape: (("scs", 1e-1),))
        patch.setattr("surefill.spaces.norms.POLISHING_STEPS", 0)
        yield from _max_norm_bounds(M, float(np.abs(M).max()))


def test_trace_norm_of_known_matrices():
    for M, truth in [(np.zeros((2, 3)), 0), (np.eye(5), 5), (np.ones((4, 9)), 6), (np.diag([3.0, -4.0]), 7)]:
        norm = trace_norm(M)
        assert norm.value == pytest.approx(truth, abs=1e-12)
        check_certificates(norm, M, rows_are_short=False)
        assert np.linalg.norm(norm.witness, 2) <= 1 + 1e-12


@few
@given(matrices, st.floats(-3, 3, allow_subnormal=False), st.randoms(use_true_random=False))
def test_max_norm_is_a_norm_and_ignores_order_signs_and_transposition(M, factor, random):
    norm = max_norm(M)
    check_certificates(norm, M, rows_are_short=True)
    slack = 1e-6 * (1 + norm.value)
    assert max_norm(factor * M).value == pytest.approx(abs(factor) * norm.value, abs=slack)
    rng = np.random.default_rng(random.randrange(2**32))
    other = rng.normal(size=M.shape)
    assert max_norm(M + other).lower <= norm.upper + max_norm(other).upper + slack
    signs = rng.choice([-1.0, 1.0], M.shape[0])[:, None] * rng.choice([-1.0, 1.0], M.shape[1])
    shuffled = (signs * M)[rng.permutation(M.shape[0])][:, rng.permutation(M.shape[1])].T
    assert max_norm(shuffled).value == pytest.approx(norm.value, abs=slack)


@few
@given(matrices)
def test_max_norm_lies_between_its_neighbours(M):
    norm = max_norm(M)
    m, n = M.shape
    slack = 1e-9 * (1 + norm.upper)
    assert np.abs(M).max() <= norm.upper + slack
    assert trace_norm(M).value / np.sqrt(m * n) <= norm.upper + slack
    longest = min(np.linalg.norm(M, axis=1).max(), np.linalg.norm(M, axis=0).max())
    assert norm.lower <= longest + slack
    assert norm.lower <= np.sqrt(min(m, n)) * np.abs(M).max() + slack


@few
@given(matrices, st.integers(0, 2**32 - 1))
def test_dual_bound_holds_for_any_multipliers(B, seed):
    rng = np.random.default_rng(seed)
    bound = bound_dual_max_norm(B, rng.normal(size=sum(B.shape)))
    U, V = rng.normal(size=(B.shape[0], 3)), rng.normal(size=(B.shape[1], 3))
    U, V = U / np.linalg.norm(U, axis=1, keepdims=True), V / np.linalg.norm(V, axis=1, keepdims=True)
    signs = np.sign(rng.normal(size=B.shape[0])) @ B
    assert np.sum(B * (U @ V.T)) <= bound + 1e-12
    assert np.abs(signs).sum() <= bound + 1e-12


def test_first_tight_stops_early_and_else_keeps_the_best():
    seen = []
    answers = (seen.append(x) or x for x in [3.0, 0.5, 0.1])
    assert first_tight(answers, float, 1.0) == 0.5
    assert seen == [3.0, 0.5]
    assert first_tight(iter([3.0, 0.5, 2.0]), float, 0.0) == 0.5


def test_what_is_not_a_matrix_is_refused():
    for bad, sentence in [
        ([1.0, 2.0], "must be a matrix with at least one entry"),
        (np.zeros((0, 3)), "at least one entry"),
        ([[np.nan, 1.0]], "must be finite; it has 1 other"),
        ([["a", "b"]], "must be a matrix of numbers"),
    ]:
        for norm in (max_norm, trace_norm):
            with pytest.raises(InputError, match=sentence):
                norm(bad)
    with pytest.raises(InputError, match=r"needs at most 150 rows and columns; got 2 x 151: solve on a sub"):
        max_norm(np.zeros((2, 151)))


def test_missing_solver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(MissingPackageError, match=r"pip install cvxpy scs clarabel"):
        max_norm(np.eye(2))


def test_when_no_solver_answers_the_error_lists_them(monkeypatch):
    monkeypatch.setattr("surefill.spaces.conic_model._solve", lambda problem, solver, accuracy: "broken")
    with pytest.raises(RuntimeError, match=r"gave no answer \(clarabel at 1e-10: broken; .*scs at 1e-07: broken\)"):
        max_norm(np.eye(2))
    assert all(solver == "scs" for solver, _ in FIRST_ORDER)

"""MP 1 between its bounds: every certificate holds for what another search finds, every cut is a member, nets agree."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import check_grad, linprog, minimize

import surefill as sf
from surefill.coverage import BracketStatus
from surefill.coverage.quadratic.branch_and_bound import certify_by_branching
from surefill.coverage.quadratic.cutting_planes import cover_against_all
from surefill.coverage.quadratic.relaxation import RelaxationSolver, TriangleCuts, make_squares_feasible, scaled_squares
from surefill.coverage.quadratic.square_search import spheres_for, strongest_squares
from surefill.errors import InputError, SolverError
from surefill.loop import run
from surefill.spaces.conic_model import ScaledMember

CLASSES = [sf.MaxNorm(0.7), sf.MaxNorm(1.0), sf.MaxNorm(1.5), sf.TraceNorm(0.8), sf.TraceNorm(4.0)]


def draw(shape, n_draws, seed):
    rng = np.random.default_rng(seed)
    cells = (rng.integers(size, size=n_draws) for size in shape)
    return sf.Observations(*cells, np.zeros(n_draws), shape, (-1, 1))


@pytest.fixture(scope="module")
def seen():
    return draw((5, 4), 16, 0)


def gauge(space, M):
    """max(1, what M must be divided by to meet ball and box), and a subgradient of it."""
    w = np.zeros(space.shape)
    w[space.observations.rows, space.observations.cols] = space.observations.weights
    ball, box = np.sqrt(np.sum(w * M**2) / space.beta), np.abs(M).max()
    if max(ball, box) <= 1:
        return 1.0, np.zeros_like(M)
    if ball >= box:
        return ball, w * M / (space.beta * ball)
    peak = np.zeros_like(M)
    at = np.unravel_index(np.argmax(np.abs(M)), M.shape)
    peak[at] = np.sign(M[at])
    return box, peak


def another_search(space, C, starts, seed, width=4):
    """The largest mean square under C by L-BFGS on the quotient by the gauge: no multipliers, no linearisation."""
    rng, (m, n) = np.random.default_rng(seed), space.shape
    by_rows = isinstance(space.matrix_class, sf.MaxNorm)
    radius = space.matrix_class.radius * (1 if by_rows else 2)

    def loss(x):
        a = x.reshape(m + n, width)
        length = np.linalg.norm(a, axis=1 if by_rows else None, keepdims=True) / np.sqrt(radius)
        F = a / length
        M = F[:m] @ F[m:].T
        g, dg = gauge(space, M)
        value = np.sum(C * M**2) / g**2
        G = 2 * C * M / g**2 - 2 * value / g * dg
        dF = np.concatenate([G @ F[m:], G.T @ F[:m]])
        along = np.sum(dF * F, axis=1 if by_rows else None, keepdims=True) / radius
        return -value / C.sum(), -((dF - along * F) / length).ravel() / C.sum()

    found = [
        minimize(loss, rng.normal(size=(m + n) * width), jac=True, method="L-BFGS-B", options={"maxiter": 120})
        for _ in range(starts)
    ]
    return max(-one.fun for one in found)


@pytest.mark.parametrize("matrix_class", CLASSES, ids=str)
def test_squares_of_members_are_within_every_bound_whatever_the_multipliers(seen, matrix_class):
    space, rng = sf.VersionSpace(seen, 0.1, matrix_class), np.random.default_rng(1)
    C = rng.uniform(size=seen.shape)
    members = strongest_squares(space, C, starts=6, rng=rng)
    assert all(space.contains(M) for M in members)
    best = np.sum(C * members[0] ** 2)
    assert best >= 0.98 * C.sum() * another_search(space, C, 5, 2)
    triangles = TriangleCuts.none().with_violated(np.ones((9, 9)) - 0.3 * np.eye(9)[::-1], 40, least=-1)
    model = scaled_squares(space, 1.0, triangles)
    cp.Problem(cp.Minimize(-cp.sum(cp.multiply(C, model.matrix))), model.constraints).solve(solver=cp.CLARABEL)
    tight = model.bound(C)
    assert best <= tight * (1 + 1e-9)
    assert tight == pytest.approx(float(np.sum(C * model.matrix.value)), rel=1e-5)
    for constraint in model.constraints:
        noise = rng.normal(size=constraint.dual_variables[0].shape)
        constraint.dual_variables[0].save_value(constraint.dual_value + 0.1 * noise)
    assert model.bound(C) >= best
    for constraint in model.constraints:  # multipliers below zero prove nothing
        shape = constraint.dual_variables[0].shape
        constraint.dual_variables[0].save_value(-10 * np.eye(9) if shape == (9, 9) else -10 * np.ones(shape))
    assert model.bound(C) >= best


def test_triangles_hold_for_the_squared_products_of_any_vectors():
    rng = np.random.default_rng(0)
    for width in (1, 2, 3, 8):
        x = rng.normal(size=(7, width))
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        H = (x @ x.T) ** 2
        assert not len(TriangleCuts.none().with_violated(H, 1000, least=1e-12).tangents)
        corners = np.array(list(itertools.permutations(range(7), 3)))
        for t in (0.05, 0.4, 1.0, 2.0):
            every = TriangleCuts(corners, np.full(len(corners), t))
            for k, (a, b, c) in enumerate(corners):
                left = np.sum(every.total(np.eye(len(corners))[k], 7) * H) if k < 20 else None
                direct = H[a, c] + H[b, c] - H[a, b] / (2 * t)
                assert direct <= 1 + t / 2 + 1e-12
                assert left is None or left == pytest.approx(direct)


@pytest.mark.parametrize("K", [0.6, 1.0, 1.7])
def test_a_members_square_over_k_is_a_member(seen, K):
    """So sup E[M^2] <= K sup E[M]: the paper's pi K / 2 without the pi / 2."""
    space = sf.VersionSpace(seen, 0.1, sf.MaxNorm(K))
    for M in strongest_squares(space, np.ones(seen.shape), starts=4, rng=np.random.default_rng(0)):
        assert space.contains(M**2 / K)


@pytest.mark.parametrize("matrix_class", [sf.MaxNorm(1.5), sf.TraceNorm(2.0)], ids=str)
def test_gradients_of_the_search(seen, matrix_class):
    spheres = spheres_for(sf.VersionSpace(seen, 0.1, matrix_class), 2)
    rng = np.random.default_rng(0)
    G, H = rng.normal(size=(5, 2 * spheres.width)), rng.normal(size=(4, 2 * spheres.width))

    def value(x):
        point = spheres.point(x)
        return np.sum(G * point.left) + np.sum(H * point.right)

    x = spheres.random(rng)
    free = np.flatnonzero(x)
    spread = np.zeros_like(x)

    def on_free(y, back):
        spread[free] = y
        return spheres.point(spread).pull_back(G, H)[free] if back else value(spread)

    assert check_grad(lambda y: on_free(y, False), lambda y: on_free(y, True), x[free]) < 1e-5
    point = spheres.point(x)
    for t in range(2):
        part = slice(t * spheres.width, (t + 1) * spheres.width)
        assert matrix_class.norm(point.left[:, part] @ point.right[:, part].T).lower <= matrix_class.radius + 1e-9


def test_the_linear_program_and_its_proof():
    rng = np.random.default_rng(0)
    squares = rng.uniform(size=(7, 3, 4)) ** 4
    C, upper = cover_against_all(squares, 0.2)
    assert 0.1 < C.sum() < 11.9
    assert np.all(np.einsum("ij,tij->t", C, squares) <= 0.2 * C.sum() + 1e-7)
    free = cp.Variable((3, 4))
    limits = [cp.sum(cp.multiply(free, Z)) <= 0.2 * cp.sum(free) for Z in squares]
    best = cp.Problem(cp.Maximize(cp.sum(free)), [free >= 0, free <= 1, *limits]).solve(solver=cp.CLARABEL)
    assert best == pytest.approx(C.sum(), rel=1e-6)
    assert best * (1 - 1e-7) <= upper <= best * (1 + 1e-6)


@pytest.mark.parametrize("matrix_class", [sf.MaxNorm(1.0), sf.TraceNorm(4.0)], ids=str)
def test_repaired_confidences_are_feasible(seen, matrix_class):
    space, gamma = sf.VersionSpace(seen, 0.1, matrix_class), 0.2
    answer = run(RelaxationSolver(space, gamma), max_steps=12).state
    assert answer.lost < 1e-5
    assert answer.bound <= gamma * answer.C.sum() * (1 + 1e-9)
    assert another_search(space, answer.C, 10, 3) <= gamma * (1 + 1e-9)
    within = 0.5 * gamma * answer.C.sum()
    np.testing.assert_array_equal(make_squares_feasible(space, gamma, answer.C, within)[0], answer.C)
    assert make_squares_feasible(space, gamma, answer.C, within)[1] > within * (1 + 5e-11)  # a margin for rounding
    C, bound = make_squares_feasible(space, gamma, np.ones(seen.shape), float(seen.shape[0] * seen.shape[1]))
    assert bound <= gamma * C.sum() * (1 + 1e-9)
    assert another_search(space, C, 10, 3) <= gamma * (1 + 1e-9)


def net_of_two_by_two(space, gamma, outside):
    """max |C| against a net of members of V, or (outside) against a net whose squares dominate those of all members.

    M >= 0 without loss (signs of rows and columns are free, and an odd number of minus signs only shrinks the class).
    A 2 x 2 matrix sin(x) has max-norm at most 1 exactly if sum(x) - 2 min(x) <= pi (Tsirelson), and a trace norm of
    sqrt(|M|_F^2 + 2 |det M|). Outside, every member is rounded up to the net and limits are loosened by the rounding.
    """
    steps, w = 17, np.zeros((2, 2))
    w[space.observations.rows, space.observations.cols] = space.observations.weights
    max_norm = isinstance(space.matrix_class, sf.MaxNorm)
    ticks, h = np.linspace(0, np.pi / 2 if max_norm else 1, steps, retstep=True)
    x = np.stack(np.meshgrid(*[ticks] * 4, indexing="ij"), -1).reshape(-1, 4)
    low = np.maximum(x - h, 0) if outside else x
    value = np.sin if max_norm else np.asarray
    fits = (value(low) ** 2) @ w.ravel() <= space.beta + 1e-12
    if max_norm:
        fits &= x.sum(axis=1) - 2 * x.min(axis=1) <= np.pi + 1e-12 + (3 * h if outside else 0)
    else:
        det = np.abs(x[:, 0] * x[:, 3] - x[:, 1] * x[:, 2]) - (4 * h if outside else 0)
        fits &= np.sum(low**2, axis=1) + 2 * np.maximum(det, 0) <= space.matrix_class.tau**2 + 1e-12
    rows = value(x[fits]) ** 2 - gamma
    rows = rows[rows.max(axis=1) > 0]
    return -linprog(-np.ones(4), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(0, 1)).fun if len(rows) else 4.0


@pytest.mark.parametrize("matrix_class", [sf.MaxNorm(1.0), sf.TraceNorm(1.6)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_two_by_two_against_a_net(matrix_class, seed):
    obs, gamma = draw((2, 2), 3 + seed, seed), 0.25 + 0.1 * (seed % 3)
    found = sf.solve_quadratic_coverage(obs, matrix_class=matrix_class, gamma=gamma)
    space = sf.VersionSpace(obs, found.beta, matrix_class)
    inner, outer = net_of_two_by_two(space, gamma, False), net_of_two_by_two(space, gamma, True)
    assert outer <= inner <= outer * 1.35
    assert found.lower <= inner * (1 + 1e-6)
    assert found.upper >= outer * (1 - 1e-6)
    assert found.upper <= inner * 1.01
    assert found.gap <= 0.01


@pytest.mark.parametrize("seed", range(5))
def test_tiny_brackets_close_and_both_bounds_hold(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(3, 7, 2))
    matrix_class = (sf.MaxNorm(1.0), sf.MaxNorm(1.5))[seed % 2]
    obs, gamma = draw(shape, 2 * int(rng.integers(3, shape[0] * shape[1])), seed), float(rng.uniform(0.1, 0.5))
    found = sf.solve_quadratic_coverage(obs, matrix_class=matrix_class, gamma=gamma, gap=0.01, max_rounds=4)
    space = sf.VersionSpace(obs, gamma / 2, matrix_class)
    assert found.certified_feasible
    assert found.gap <= 0.1
    assert found.lower == pytest.approx(found.confidence.coverage)
    assert another_search(space, found.confidence.dense(), 6, seed) <= gamma * (1 + 1e-9)
    assert all(space.contains(M) for M in found.cuts[:2])
    assert found.upper >= found.lower
    if len(found.cuts):
        again = linprog(
            -np.ones(shape[0] * shape[1]),
            A_ub=(found.cuts**2).reshape(len(found.cuts), -1) - gamma,
            b_ub=np.zeros(len(found.cuts)),
            bounds=(0, 1),
            method="highs-ds",
        )
        assert found.upper == pytest.approx(-again.fun, rel=1e-6)


def test_blocks_of_forty_rows():
    sim = sf.datasets.make_blocks((20, 20), 2, n_draws=1600, random_state=0)
    gamma = 0.2
    found = sf.solve_quadratic_coverage(sim.observations, gamma=gamma, max_rounds=1)
    assert 0 < found.lower <= found.upper <= 1600
    assert found.gap < 0.25
    C = found.confidence.dense()
    assert C[sim.support].mean() > 0.8 > 0.2 > C[~sim.support].mean()
    space = sf.VersionSpace(sim.observations, found.beta, sf.MaxNorm(1.0))
    assert another_search(space, C, 3, 0) <= gamma * (1 + 1e-9)
    assert found.lower <= found.candidate.coverage <= found.upper * (1 + 1e-6)
    assert another_search(space, found.candidate.dense(), 3, 0) <= gamma * 1.01


@pytest.mark.parametrize(("matrix_class", "slack"), [(sf.MaxNorm(1.0), 0.01), (sf.TraceNorm(1.6), 0.06)], ids=str)
def test_branching_narrows_the_largest_square(matrix_class, slack):
    obs = sf.Observations([0, 0, 1], [0, 1, 0], np.zeros(3), (2, 2), (-1, 1), counts=np.array([6, 1, 1]))
    space, C = sf.VersionSpace(obs, 0.2, matrix_class), np.array([[1.0, 0.8], [0.6, 1.0]])
    found = strongest_squares(space, C, starts=6, rng=np.random.default_rng(0))[0]
    reached = max(np.sum(C * found**2), C.sum() * another_search(space, C, 6, 0, width=3))
    proved = certify_by_branching(space, C, reached / C.sum(), slack)
    assert reached * (1 - 1e-9) <= proved <= (1 + slack) * reached
    assert certify_by_branching(space, C, 10.0, 0.0) > (1 + slack) * reached, "the first box would have done"


def test_answers_without_a_solver():
    seen = draw((3, 4), 10, 0)
    everything = sf.solve_quadratic_coverage(seen, matrix_class=sf.MaxNorm(0.5), gamma=0.25)
    assert (everything.lower, everything.upper, everything.status) == (12.0, 12.0, BracketStatus.EXACT)
    nothing = sf.solve_quadratic_coverage(seen, gamma=0.2, beta=0.3)
    assert (nothing.lower, nothing.upper) == (0.0, 0.0)
    assert np.sum(nothing.cuts[0] ** 2) > 0.2 * 12
    tied = sf.solve_quadratic_coverage(seen, gamma=0.2, beta=0.2)
    assert tied.upper == pytest.approx(float(np.sum(seen.counts / seen.counts.max())))
    whole = sf.Observations(*np.indices((2, 3)).reshape(2, -1), np.zeros(6))
    assert sf.solve_quadratic_coverage(whole, matrix_class=sf.TraceNorm(2.0), gamma=0.2).lower == 6.0


def test_one_row_is_exact_by_the_relaxation():
    """In one row the squares are all of {0 <= Z <= 1, <w, Z> <= beta}: nothing is lost."""
    obs = sf.Observations([0] * 6, [0, 0, 0, 1, 1, 2], np.zeros(6), shape=(1, 5))
    found = sf.solve_quadratic_coverage(obs, gamma=0.3, gap=1e-4)
    assert found.gap <= 1e-3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gamma": -1.0}, "'gamma'"),
        ({"gamma": 0.2, "beta": 0.0}, "'beta'"),
        ({"gamma": 0.2, "gap": 0.0}, "'gap'"),
        ({"gamma": 0.2, "time_limit": 0.0}, "'time_limit'"),
        ({"gamma": 0.2, "max_rounds": 0}, "'max_rounds'"),
        ({"gamma": 0.2, "matrix_class": "max"}, "'matrix_class'"),
        ({"gamma": 0.2, "matrix_class": sf.MaxNorm(1.0, rank=2)}, "leave the rank out"),
        ({"gamma": 0.2, "beta": 0.3, "matrix_class": sf.TraceNorm(2.0)}, "beta must be below gamma"),
    ],
)
def test_bad_parameters_are_named(seen, given, words):
    with pytest.raises(InputError, match=words):
        sf.solve_quadratic_coverage(seen, **given)


def test_exact_linear_responses_find_no_more(seen):
    """The convex-concave procedure with the conic solver's best responses, from the same number of starts."""
    space, rng = sf.VersionSpace(seen, 0.1, sf.TraceNorm(3.0)), np.random.default_rng(4)
    C = rng.uniform(size=seen.shape)
    model, slope = ScaledMember(space, 1.0), cp.Parameter(seen.shape)
    problem = cp.Problem(cp.Minimize(-cp.sum(cp.multiply(slope, model.matrix))), model.constraints)
    best = 0.0
    for _ in range(4):
        M = rng.normal(size=seen.shape)
        for _ in range(12):
            slope.value = C * M
            problem.solve(solver=cp.CLARABEL)
            M = model.member()
        best = max(best, np.sum(C * M**2))
    found = strongest_squares(space, C, starts=8, rng=rng)[0]
    assert np.sum(C * found**2) >= 0.98 * best


def test_a_near_tie_is_no_closed_form_for_the_trace_norm():
    seen = sf.Observations([0, 1, 2], [0, 1, 2], [0.0] * 3, shape=(3, 3))
    with pytest.raises(InputError, match="beta must be below gamma"):
        sf.solve_quadratic_coverage(seen, matrix_class=sf.TraceNorm(0.6), gamma=0.1 * 3, beta=0.3)
    assert sf.solve_quadratic_coverage(
        seen, matrix_class=sf.TraceNorm(0.6), gamma=0.3, beta=0.2999
    ).lower == pytest.approx(9)


def test_closed_forms_claim_no_cuts_that_are_not_members():
    everywhere = sf.Observations([0, 0, 1, 1], [0, 1, 0, 1], [0.0] * 4, shape=(2, 2))
    found = sf.solve_quadratic_coverage(everywhere, matrix_class=sf.TraceNorm(0.7), gamma=0.3, beta=0.15)
    assert (found.lower, found.upper, len(found.cuts)) == (4, 4, 0)
    assert np.isnan(found.excess)


def test_a_solver_that_fails_while_branching_leaves_the_certified_answer(monkeypatch):
    def fail(*_):
        raise SolverError("no answer")

    seen = sf.Observations([0, 0, 1], [0, 1, 2], [0.0] * 3, shape=(2, 3))
    parameters = {"matrix_class": sf.MaxNorm(1.0), "gamma": 0.3, "gap": 1e-9, "max_rounds": 2}
    whole = sf.solve_quadratic_coverage(seen, **parameters)
    monkeypatch.setattr("surefill.coverage.quadratic.quadratic_program.certify_by_branching", fail)
    certified = sf.solve_quadratic_coverage(seen, **parameters)
    assert certified.certified_feasible
    assert 0 < certified.lower <= whole.lower + 1e-9


def test_bounds_that_contradict_each_other_are_not_hidden(monkeypatch):
    monkeypatch.setattr(
        "surefill.coverage.quadratic.quadratic_program._certified_by_branching", lambda *_: np.full((2, 3), 7.0)
    )
    seen = sf.Observations([0, 0, 1], [0, 1, 2], [0.0] * 3, shape=(2, 3))
    with pytest.raises(SolverError, match="contradict"):
        sf.solve_quadratic_coverage(seen, matrix_class=sf.MaxNorm(1.0), gamma=0.3, gap=1e-9, max_rounds=2)

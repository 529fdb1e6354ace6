"""A solver's state is all that it needs: saved, read back and given to a new solver, it goes on to the same bits."""

import dataclasses

import numpy as np
import pytest

from surefill import MaxNorm, Observations, TraceNorm, VersionSpace
from surefill.coverage.linear.certified import CertifiedDualSolver
from surefill.coverage.linear.mixture import MixtureSolver
from surefill.coverage.quadratic.branch_and_bound import BranchAndBoundSolver
from surefill.coverage.quadratic.cutting_planes import CuttingPlaneSolver
from surefill.coverage.quadratic.relaxation import RelaxationSolver
from surefill.coverage.quadratic.square_search import SquareSolver
from surefill.io.archive import read_archive, write_archive
from surefill.spaces.alternating_oracle import AlternatingOracle
from surefill.spaces.separation_oracle import ResponseSolver


def draw_space(matrix_class, shape, beta, mean=0.5, seed=0):
    counts = np.random.default_rng(seed).poisson(mean, size=shape)
    counts[0, 0] += 1
    rows, cols = np.nonzero(counts)
    return VersionSpace(
        Observations(rows, cols, np.zeros(len(rows)), shape, counts=counts[rows, cols]), beta, matrix_class
    )


def rng():
    return np.random.default_rng(3)


def confidence(shape):
    return np.random.default_rng(1).uniform(0.1, 1, size=shape)


CERTIFIED, BOXED = draw_space(MaxNorm(1.0), (14, 11), 0.02), draw_space(MaxNorm(2.5), (12, 12), 0.03)
THIN, TINY = draw_space(MaxNorm(2.0, rank=2), (14, 11), 0.045), draw_space(MaxNorm(1.5), (4, 3), 0.1)
WIDE = draw_space(MaxNorm(1.0, rank=2), (50, 40), 0.045)
SMALL, UNIT = draw_space(TraceNorm(3.0), (4, 3), 0.1), draw_space(MaxNorm(1.0), (5, 4), 0.1)


class SampledMixture(MixtureSolver):
    """Sampled stages on a table that is small for them."""

    sampled = True


SOLVERS = {
    "certified": lambda: CertifiedDualSolver(CERTIFIED, 0.3, 1e-6, rng(), np.inf, None),
    "certified with box": lambda: CertifiedDualSolver(BOXED, 0.3, 1e-6, rng(), np.inf, None),
    "mixture": lambda: MixtureSolver(THIN, 0.3, 1e-6, rng(), np.inf, None),
    "mixture, sampled": lambda: SampledMixture(WIDE, 0.3, 1e-6, rng(), np.inf, None),
    "alternating responses": lambda: AlternatingOracle(WIDE, confidence((50, 40)), 3, rng(), 1e-9),
    "best responses": lambda: ResponseSolver(BOXED, confidence((12, 12)), 3, rng(), 1e-9),
    "squares, max-norm": lambda: SquareSolver(TINY, confidence((4, 3)), 3, rng()),
    "squares, trace norm": lambda: SquareSolver(SMALL, confidence((4, 3)), 3, rng()),
    "cutting planes": lambda: CuttingPlaneSolver(TINY, 0.2, np.full((4, 3), 0.05), 1e-6, rng()),
    "relaxation": lambda: RelaxationSolver(UNIT, 0.2),
    "branch and bound": lambda: BranchAndBoundSolver(TINY, confidence((4, 3)), 0.0),
}


def assert_same(one, other, where="state"):
    """Equal to the bit, all the way down."""
    assert type(one) is type(other), where
    if dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), where
        for position, pair in enumerate(zip(one, other, strict=True)):
            assert_same(*pair, f"{where}[{position}]")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        np.testing.assert_array_equal(one, other, err_msg=where)
    else:
        assert one == other or (one != one and other != other), where


def steps(solver, state, count):
    for _ in range(count):
        if solver.terminate(state) is None:
            state = solver.step(state)
    return state


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("before", [0, 2])
def test_a_state_moved_to_a_new_solver_goes_on_to_the_same_bits(name, before, tmp_path):
    first = SOLVERS[name]()
    uninterrupted = steps(first, first.init(), before + 3)
    stopped = SOLVERS[name]()
    write_archive(tmp_path / "state", "state", 1, steps(stopped, stopped.init(), before))
    read = read_archive(tmp_path / "state", "state", 1, lambda content: content)
    assert_same(steps(SOLVERS[name](), read, 3), uninterrupted)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_step_is_a_function_of_the_state_alone(name):
    """Twice from the same state, on a solver that has gone on meanwhile."""
    solver = SOLVERS[name]()
    state = solver.init()
    once = solver.step(state)
    steps(solver, once, 2)
    assert_same(solver.step(state), once)


def test_the_cases_use_what_they_are_meant_to_use():
    """Box multipliers in the state, adversaries that joined, and random draws after the start."""
    boxed, mixture = SOLVERS["certified with box"](), SOLVERS["mixture"]()
    assert steps(boxed, boxed.init(), 2).iterate.multipliers.box is not None
    start = mixture.init()
    end = steps(mixture, start, 5)
    assert end.iterate.count > start.iterate.count
    assert end.random != start.random

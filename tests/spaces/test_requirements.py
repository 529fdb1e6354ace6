"""Every solver lists what it needs of a version space, and its error names what is missing and what to do."""

import numpy as np
import pytest

from surefill import MaxNorm, Observations, TraceNorm, VersionSpace
from surefill.coverage.linear.certified import CertifiedDualSolver
from surefill.coverage.linear.mixture import MixtureSolver
from surefill.errors import InputError
from surefill.spaces.conic_model import CONIC_SOLVER
from surefill.spaces.separation_oracle import FACTORED_SOLVER


def make_space(matrix_class, beta=0.1, shape=(4, 3)):
    return VersionSpace(Observations([0, 1], [0, 1], [0.0, 0.0], shape), beta, matrix_class)


PLAIN, RANKED, TRACE = (make_space(kind) for kind in (MaxNorm(1.0), MaxNorm(1.0, rank=2), TraceNorm(2.0)))
TIGHT, LARGE = make_space(MaxNorm(1.0), beta=0.0), make_space(MaxNorm(1.0), shape=(4, 151))


@pytest.mark.parametrize(
    ("requirements", "space", "missing"),
    [
        (CONIC_SOLVER, PLAIN, []),
        (CONIC_SOLVER, TRACE, []),
        (CONIC_SOLVER, TIGHT, []),
        (CONIC_SOLVER, RANKED, ["a convex class"]),
        (CONIC_SOLVER, LARGE, ["at most 150 rows and columns"]),
        (CONIC_SOLVER, make_space(MaxNorm(1.0, rank=2), shape=(151, 4)), ["a convex class", "at most 150"]),
        (FACTORED_SOLVER, PLAIN, []),
        (FACTORED_SOLVER, RANKED, []),
        (FACTORED_SOLVER, LARGE, []),
        (FACTORED_SOLVER, TRACE, ["a max-norm class"]),
        (FACTORED_SOLVER, TIGHT, ["beta > 0"]),
        (CertifiedDualSolver.needs, RANKED, ["a convex class"]),
        (MixtureSolver.needs, RANKED, []),
    ],
)
def test_what_is_missing_is_listed(requirements, space, missing):
    found = [requirement.need for requirement in requirements.missing(space)]
    assert len(found) == len(missing)
    assert all(one.startswith(start) for one, start in zip(found, missing, strict=True))
    if missing:
        with pytest.raises(InputError, match=rf"^{requirements.solver} needs {missing[0]}.*; got .+: .+\.$"):
            requirements.check(space)
    else:
        requirements.check(space)


def test_a_solver_refuses_when_it_is_made():
    with pytest.raises(InputError, match=r"the certified factored solver needs a convex class; got .* rank at most 2"):
        CertifiedDualSolver(RANKED, 0.3, 0.01, np.random.default_rng(0), np.inf, None)

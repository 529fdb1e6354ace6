"""The trace-norm problems as cone programs: the reference that the spectral solver is compared with."""

from __future__ import annotations

import numpy as np

from surefill.completion.sample import Sample
from surefill.completion.shrinkage import SoftThreshold, TraceBall
from surefill.completion.side import Array
from surefill.spaces.conic import attempts, check_size, load_cvxpy, plan_for


def solve_conic(sample: Sample, shrinkage: SoftThreshold | TraceBall, *, box: bool = False) -> Array:
    """min f(M) + h(M) over the Gram matrix G = [[W1, M], [M', W2]] PSD, |M|_tr = min trace(G) / 2.

    ``box`` adds |M_x| <= 1, the paper's class to the letter. Up to 150 rows and columns.
    """
    check_size(sample.shape)
    cp = load_cvxpy()
    m, n = sample.shape
    side = sample.rows
    i, j = np.repeat(np.arange(m), side.groups.sizes), side.other
    gram = cp.Variable((m + n, m + n), PSD=True)
    loss = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(side.weight), side.target - gram[i, m + j]))
    norm = cp.trace(gram) / 2
    limits = [cp.abs(gram[:m, m:]) <= 1] if box else []
    if isinstance(shrinkage, TraceBall):
        problem = cp.Problem(cp.Minimize(loss), [norm <= shrinkage.tau, *limits])
    else:
        problem = cp.Problem(cp.Minimize(loss + shrinkage.penalty * norm), limits)
    next(attempts(problem, plan_for(sample.shape)))
    return np.asarray(gram.value[:m, m:])

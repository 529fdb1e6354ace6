"""Symmetric matrices and outer products as vectors, so that one matrix product gives the quadratic forms of all pairs.

    f_j' S_i f_j + g_i' T_j g_i = (upper(S_i), squares(g_i)) . (squares(f_j), upper(T_j)),

upper(S) the entries S_ab, a <= b, and squares(v) the products v_a v_b, twice where a < b.
"""

from __future__ import annotations

import numpy as np

from surefill.arrays import Floats, IntArray
from surefill.kernels.compile import compiled_terms


@compiled_terms
def pack_forms(
    matrices: Floats, which: IntArray, vectors: Floats, scale: float, upper: Floats, squares: Floats
) -> None:
    """Write scale upper(S_g), g = which[t], and scale squares(v_t) to row t of the two tables."""
    for t in range(len(which)):
        S, v, k = matrices[which[t]], vectors[t], 0
        for a in range(len(v)):
            for b in range(a, len(v)):
                upper[t, k] = scale * S[a, b]
                squares[t, k] = scale * (v[a] * v[b]) * (2.0 if a < b else 1.0)
                k += 1


def pack_forms_reference(
    matrices: Floats, which: IntArray, vectors: Floats, scale: float, upper: Floats, squares: Floats
) -> None:
    """The readable twin of :func:`pack_forms`."""
    a, b = np.triu_indices(vectors.shape[1])
    upper[:] = scale * matrices[which][:, a, b]
    squares[:] = scale * (vectors[:, a] * vectors[:, b]) * np.where(a < b, 2.0, 1.0)

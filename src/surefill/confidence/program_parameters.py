"""Parameters of the coverage program when the user gives none: what the completion and held-out cells suggest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.completion import Completion
from surefill.data import UnitMap

SAMPLE = 300
ENERGY = 0.9
LARGEST_GAMMA = 0.9
LEAST_BETA = 0.005


@dataclass(frozen=True)
class ProgramChoice:
    """K, rank, gamma and beta for :func:`surefill.solve_coverage`, all on the [-1, 1] scale."""

    K: float
    rank: int
    gamma: float
    beta: float


def choose_parameters(
    completion: Completion, unit: UnitMap, *, tolerance: float, held_out_error: float, gamma: float | None = None
) -> ProgramChoice:
    """gamma = sqrt(tolerance) / 2, beta = min(held-out error / 4, gamma^2 / 2), rank = 2 k, K the norm of M-hat.

    The adversary stands for (M* - M-hat) / 2. A mean of gamma on the covered cells is a squared error of 4 gamma^2
    where it is spread evenly, so gamma is half the root of the tolerance; the theorem's own choice, which guards
    against every spread, is ``sf.theory.efficient_parameters``. Its mean square on the sample is a quarter of the
    completion's error, which held-out cells measure (with their noise, so from above); the paper's gamma^2 / 2 is the
    most that leaves anything to cover, and is taken where gamma is given; gamma^2 / 200 is the least, on the safe side,
    where an almost exact completion would leave the program without an interior. M-hat and M* of rank k leave a
    difference of rank 2 k, with k the number of directions that hold 90% of M-hat's sum of squares. K is the product of
    the longest rows of its balanced factors in these directions, at least 1.

    Both last are read off up to 300 rows and columns of the completion, whose own size was learnt from the cells.
    """
    rng = np.random.default_rng(0)
    rows, cols = (rng.permutation(size)[:SAMPLE] for size in completion.shape)
    U, s, Vt = np.linalg.svd(unit.to_unit(completion.block(rows, cols)), full_matrices=False)
    energy = np.cumsum(s**2)
    k = int(np.searchsorted(energy, ENERGY * energy[-1])) + 1
    left, right = U[:, :k] * np.sqrt(s[:k]), Vt[:k].T * np.sqrt(s[:k])
    norm = np.linalg.norm(left, axis=1).max() * np.linalg.norm(right, axis=1).max()
    g = min(np.sqrt(tolerance) / 2, LARGEST_GAMMA) if gamma is None else gamma
    beta = g**2 / 2 if gamma is not None else min(max(held_out_error / 4, LEAST_BETA * g**2), g**2 / 2)
    return ProgramChoice(K=max(1.0, float(norm)), rank=2 * k, gamma=float(g), beta=float(beta))

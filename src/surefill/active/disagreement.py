"""Where matrices that fit the observations still disagree: the region and the coefficient of active learning.

V(0, beta, S) holds half the difference of any two matrices of the class that are close on the sample; where its members
are small, all that fit agree. Cell by cell that says little: a matrix with one entry e has max-norm, trace norm and
rank-one factors of size |e|, so that at every cell on its own

    sup over M in V of |M_x| = min(1, radius of the class, sqrt(beta / w_x)),    w_x = 0 where nothing was seen.

What a single matrix can do on many cells at once is what ties them. The region of disagreement at scale gamma is
therefore what is left of the largest confidence on which all of V averages at most gamma, the paper's MP 2:

    R = 1 - C,     Delta(V) = |R| / (m n),     theta = sup over r of gamma^2 Delta(V(0, r^2, S)) / r^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.arrays import Array
from surefill.coverage import Coverage, solve_coverage
from surefill.errors import InputError, invalid_parameter, is_number
from surefill.spaces import MaxNorm, VersionSpace


def largest_disagreement(space: VersionSpace, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
    """min(1, radius, sqrt(beta / w_x)): the largest entry that the version space allows at each cell on its own.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 0], [1.0, 0.5, 0.2, 0.2], shape=(3, 2))
    >>> space = sf.VersionSpace(seen, beta=0.01, matrix_class=sf.MaxNorm(1.0))
    >>> sf.active.largest_disagreement(space, [0, 1, 2], [0, 0, 0]).round(2)
    array([0.2 , 0.14, 1.  ])
    """
    seen = space.observations
    position = seen.find(rows, cols)
    largest = np.full(position.shape, min(1.0, space.matrix_class.radius))
    there = position >= 0
    largest[there] = np.minimum(largest[there], np.sqrt(space.beta / seen.weights[position[there]]))
    return largest


@dataclass(frozen=True, eq=False)
class Disagreement:
    """R = 1 - C, Delta(V) = |R| / (m n), and gamma^2 Delta(V) / beta, for one radius sqrt(beta).

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_blocks((5, 5), n_groups=2, n_draws=200, random_state=0)
    >>> space = sf.VersionSpace(sim.observations, beta=0.0128, matrix_class=sf.MaxNorm(1.0))
    >>> found = sf.active.disagreement_region(space, gamma=0.16)
    >>> rows, cols = sim.support.nonzero()
    >>> bool(found.at(rows, cols).mean() < 0.2), [round(end, 1) for end in found.rate]
    (True, [0.5, 0.5])
    """

    covered: Coverage

    def at(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """R in [0, 1] at the cells (rows[t], cols[t])."""
        return np.asarray(1.0 - self.covered.confidence.at(rows, cols))

    @property
    def proved(self) -> bool:
        """Whether both ends of the rate are: with a rank the upper one is what searches found."""
        return self.covered.standing == "certified"

    @property
    def rate(self) -> tuple[float, float]:
        """Delta(V): at least, at most."""
        m, n = self.covered.confidence.shape
        return max(0.0, 1.0 - self.covered.upper_bound / (m * n)), 1.0 - self.covered.coverage / (m * n)

    @property
    def coefficient(self) -> tuple[float, float]:
        """gamma^2 Delta(V) / beta at this one radius: at least, at most."""
        low, high = self.rate
        factor = self.covered.gamma**2 / self.covered.beta
        return factor * low, factor * high


def disagreement_region(space: VersionSpace, gamma: float, gap: float = 0.01, random_state: int = 0) -> Disagreement:
    """The region in which matrices that fit may still be 2 gamma apart on average: one coverage program.

    Parameters
    ----------
    space : what may still be true of half the difference of two completions, of a max-norm class, beta above 0.
    gamma : the scale, above 0: matrices take real values, so that "different" needs one.
    gap : how close the two ends of the covered share are to be.
    random_state : seed of the solver's starts where the matrix is large or the class has a rank.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.5, 0.2, 0.3], shape=(3, 2))
    >>> space = sf.VersionSpace(seen, beta=0.01, matrix_class=sf.MaxNorm(1.0))
    >>> region = sf.active.disagreement_region(space, gamma=0.2)
    >>> bool(region.at([2], [0])[0] > 0.5 > 0.1 > region.at([0], [0])[0])
    True
    """
    if not (is_number(gamma) and 0 < gamma < np.inf):
        raise invalid_parameter("disagreement_region", "gamma", "a number above 0", gamma)
    if not space.beta > 0:
        raise InputError("a disagreement is relative to the radius of the version space, which must be above 0.")
    kind = space.matrix_class
    if not isinstance(kind, MaxNorm):
        raise invalid_parameter("disagreement_region", "space", "a version space of a MaxNorm class", kind)
    return Disagreement(
        solve_coverage(
            space.observations,
            kind.K,
            gamma=gamma,
            beta=space.beta,
            rank=kind.rank,
            gap=gap,
            random_state=random_state,
        )
    )


def disagreement_coefficient(
    space: VersionSpace, gamma: float, radii: Sequence[float], gap: float = 0.01
) -> tuple[float, float]:
    """theta = sup over the given radii r of gamma^2 Delta(V(0, r^2, S)) / r^2: at least, at most.

    Hanneke (2007) has it for classifiers, Foster, Rakhlin, Simchi-Levi and Xu (2020) with a scale. Where it is small,
    matrices that are close on the sample are close nearly everywhere, and little is left that is worth asking; where
    much was never seen it grows like gamma^2 / r^2, for no radius makes the region smaller.

    Parameters
    ----------
    space : the version space whose observations and class are taken; its own radius plays no part.
    gamma : the scale, above 0.
    radii : root mean squares r on the observed cells, above 0.
    gap : see :func:`disagreement_region`.

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.5, 0.2, 0.3])
    >>> space = sf.VersionSpace(seen, beta=0.01, matrix_class=sf.MaxNorm(1.0))
    >>> low, high = sf.active.disagreement_coefficient(space, gamma=0.2, radii=[0.1, 0.25])
    >>> round(low, 2), round(high, 2)
    (0.64, 0.64)
    """
    if len(radii) == 0:
        raise InputError("radii must hold at least one root mean square to take the largest ratio over.")
    spaces = [replace(space, beta=float(r) ** 2) for r in radii]
    each = [disagreement_region(one, gamma, gap).coefficient for one in spaces]
    return max(low for low, _ in each), max(high for _, high in each)

"""What ODD guarantees where cells are drawn uniformly from a share of the matrix (the paper's Corollary "Online")."""

from __future__ import annotations

import math
from dataclasses import dataclass

from surefill.errors import invalid_parameter
from surefill.online.online_to_offline import PROOF_CONSTANT, proof_probability
from surefill.online.parameters import require_positive, rounds_needed


@dataclass(frozen=True)
class UniformImplication:
    """Coverage and error that ODD guarantees after ``rounds`` rounds, with the constants of the proof.

    Attributes
    ----------
    coverage : cells covered at least: |C| on the cube, e^H(C-bar) on the simplex; 0 where nothing is promised.
    disagreement : largest mean of M^1 - M^2, weighted by C, for matrices in V_(T, delta).
    squared_error : largest mean of (M - M*)^2, weighted by C, for matrices of max-norm at most K whose mean square
        distance from M* at the cells drawn is at most 4 delta; None with values, for which it is not true.
    rounds, probability : T, and the probability over the draws with which both hold.

    Examples
    --------
    >>> promised = uniform_sampling_implication(0.5, 1e-9, (1000, 1000))
    >>> promised.coverage > 0.05 * 10**6, promised.squared_error < 4
    (True, True)
    """

    coverage: float
    disagreement: float
    squared_error: float | None
    rounds: int
    probability: float


def uniform_sampling_implication(
    fraction: float,
    delta: float,
    shape: tuple[int, int],
    *,
    K: float = 1.0,
    confidence: str = "cube",
    observations: str = "zero",
) -> UniformImplication:
    """Draws from a share c = ``fraction`` of the mn cells, each as likely, and the theorem's parameters for ``delta``.

    With a = delta^(1/6), C = C-bar (m + n)^(3/2) in [0, 1] on the cube and nu = C-bar on the simplex,

        cube:     |C| >= (c - 14 a) mn,             mean over C  of M^1 - M^2 <= (a (1 - c) + 14 a^2) / (c - 14 a),
        simplex:  e^H(nu) >= e^(-14 a) c mn,        mean over nu of M^1 - M^2 <= a log(1/c) + 14 a^2,

    and with zero observations the mean of (M - M*)^2 is at most pi K times as much. The paper has 1 for 14 and for
    pi K, and the squared form for values too. On the cube nothing is promised unless delta < (c / 14)^6.

    Examples
    --------
    >>> uniform_sampling_implication(0.5, 0.01, (30, 30), confidence="cube").coverage
    0.0
    >>> simplex = uniform_sampling_implication(1.0, 1e-6, (30, 30), confidence="entropy")
    >>> round(simplex.coverage), round(simplex.squared_error, 2)
    (222, 0.44)
    """
    owner = "uniform_sampling_implication"
    require_positive(owner, delta=delta, fraction=fraction)
    if fraction > 1:
        raise invalid_parameter(owner, "fraction", "at most 1, the whole matrix", fraction)
    rounds = rounds_needed(delta, shape, K, confidence, observations)
    root, cells = delta ** (1 / 6), shape[0] * shape[1]
    if confidence == "entropy":
        coverage = math.exp(-PROOF_CONSTANT * root) * fraction * cells
        disagreement = root * math.log(1 / fraction) + PROOF_CONSTANT * root**2
    else:
        share = max(0.0, fraction - PROOF_CONSTANT * root)
        coverage = share * cells
        disagreement = math.inf if share == 0 else (root * (1 - fraction) + PROOF_CONSTANT * root**2) / share
    return UniformImplication(
        coverage=coverage,
        disagreement=disagreement,
        squared_error=math.pi * K * disagreement if observations == "zero" else None,
        rounds=rounds,
        probability=proof_probability(delta, rounds, observations),
    )

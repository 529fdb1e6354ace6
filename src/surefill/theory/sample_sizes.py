"""The paper's parameters and sample sizes, with every constant in sight.

The paper states its sample sizes as O(.) and never says the constant. Every function here takes it as ``constant``,
1 when not given: an assumption to read the orders of magnitude by, not a number anybody has proved. Accuracies are
mean squared errors on the paper's scale, where values lie in [-1, 1]; there no squared error exceeds 4, and a promise
of 4 or more says nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from surefill.errors import InputError, invalid_parameter

PROGRAMS = ("linear", "quadratic")
"""MP 2, solved by the efficient algorithm, and MP 1, solved by the inefficient one."""

LARGEST_ERROR = 4.0
"""(1 - (-1))^2: no squared error between values in [-1, 1] is larger."""


@dataclass(frozen=True)
class ProgramParameters:
    """What an offline algorithm asks of its two parts, on the [-1, 1] scale.

    Attributes
    ----------
    gamma : largest mean (MP 2) or mean square (MP 1) that an adversary may reach on the covered cells.
    beta : largest mean square of an adversary on the observed cells, and the accuracy to which sample and
        population must agree, uniformly over the class.
    completion_accuracy : mean squared error that the full completion must reach.

    >>> inefficient_parameters(eps=0.4)
    ProgramParameters(gamma=0.1, beta=0.05, completion_accuracy=0.1)
    """

    gamma: float
    beta: float
    completion_accuracy: float


@dataclass(frozen=True)
class SampleSize:
    """The draws that a theorem asks for at ``eps``, the draws there are, and the smallest eps that these suffice for.

    Errors are on the [-1, 1] scale, and the constant that the paper does not state is taken as ``constant``.

    >>> size = compare_draws(10**6, "quadratic", 0.5, 0.05, (100, 80), K=1.0)
    >>> size.enough
    True
    """

    n_draws: int
    required: int
    eps: float
    achievable_eps: float
    constant: float

    @property
    def enough(self) -> bool:
        """Whether there are as many draws as asked for, if the constant is what it was taken to be."""
        return self.n_draws >= self.required

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        asked = f"the theorem asks for about {_rounded(self.required)} draws and there are {_rounded(self.n_draws)}"
        unknown = f"its constant, which the paper does not state, taken as {self.constant:g}"
        if self.enough:
            return f"With {unknown}, {asked}: enough if the constant is right, which is not known to hold."
        if self.achievable_eps < LARGEST_ERROR:
            suffices = (
                f"These draws would do for a mean squared error of {self.achievable_eps:.3g} on the [-1, 1] scale."
            )
        else:
            suffices = "These draws are too few for any mean squared error below the largest possible, 4 on [-1, 1]."
        times = f"{_rounded(self.required / self.n_draws)} times too few, so its guarantee is not known to hold"
        return f"With {unknown}, {asked}: {times}. {suffices}"


def sample_complexity_max_norm(
    eps: float, delta: float, K: float, shape: tuple[int, int], constant: float = 1.0
) -> int:
    """constant (K^2 (m + n) + log(1/delta)) / eps^2: Proposition 7.1 of the paper, and 9.1 for completing.

    With that many draws, sample and population squared losses differ by at most ``eps`` for every matrix of
    max-norm at most ``K``, with probability 1 - ``delta``. The paper does not state the constant.

    >>> sample_complexity_max_norm(eps=0.1, delta=0.05, K=1.0, shape=(100, 80))
    18300
    """
    owner = "sample_complexity_max_norm"
    return _draws(owner, eps, delta, _class_size(owner, shape, K, None), constant)


def sample_complexity_trace_norm(
    eps: float, delta: float, tau: float, shape: tuple[int, int], constant: float = 1.0
) -> int:
    """constant (tau sqrt(m + n) + log(1/delta)) / eps^2: Proposition 7.2 of the paper, and 9.2 for completing.

    As :func:`sample_complexity_max_norm`, for matrices of trace norm at most ``tau``; of order sqrt(m n (m + n))
    for a matrix of ones, whose trace norm is sqrt(m n), where the max-norm asks for m + n.

    >>> sample_complexity_trace_norm(eps=0.1, delta=0.05, tau=90.0, shape=(100, 80))
    121048
    """
    owner = "sample_complexity_trace_norm"
    return _draws(owner, eps, delta, _class_size(owner, shape, None, tau), constant)


def sample_complexity_rank(eps: float, delta: float, rank: int, shape: tuple[int, int], constant: float = 1.0) -> int:
    """constant (k (m + n) + log(1/delta)) / eps^2, for the paper's M^rk_k: rank at most k, entries in [-1, 1].

    That of :func:`sample_complexity_max_norm` with K^2 = k, since M^rk_k lies in M^max_sqrt(k) (section 2.1); it is
    what Corollary 1 says of a truth of rank k.

    >>> sample_complexity_rank(eps=0.1, delta=0.05, rank=2, shape=(100, 80))
    36300
    """
    owner = "sample_complexity_rank"
    _require_positive(owner, rank=rank)
    return _draws(owner, eps, delta, _class_size(owner, shape, math.sqrt(rank), None), constant)


def efficient_parameters(eps: float, K: float) -> ProgramParameters:
    """gamma = eps/(2 pi K), beta = gamma^2/2 = eps^2/(8 pi^2 K^2), completion accuracy 2 beta (Algorithm 2).

    They turn a bound of gamma on means into one on squares: with D = (M* - M-hat)/2,
    E[(M* - M-hat)^2] = 4 E[D^2] <= 4 (pi K/2) gamma = eps.

    >>> parameters = efficient_parameters(eps=0.5, K=1.0)
    >>> round(parameters.gamma, 4), round(parameters.beta, 4)
    (0.0796, 0.0032)
    """
    _require_positive("efficient_parameters", eps=eps, K=K)
    gamma = eps / (2 * math.pi * K)
    return ProgramParameters(gamma, gamma**2 / 2, gamma**2)


def inefficient_parameters(eps: float) -> ProgramParameters:
    """gamma = eps/4, beta = eps/8, completion accuracy eps/4 (Algorithm 1).

    >>> inefficient_parameters(eps=0.5).gamma
    0.125
    """
    _require_positive("inefficient_parameters", eps=eps)
    return ProgramParameters(eps / 4, eps / 8, eps / 4)


def required_draws(
    program: str,
    eps: float,
    delta: float,
    shape: tuple[int, int],
    *,
    K: float | None = None,
    tau: float | None = None,
    constant: float = 1.0,
) -> int:
    """max{N_FC(completion accuracy, delta/3), N(beta, delta/3)}: Theorem 11 ("linear") or 10 ("quadratic").

    Give ``K`` for the class of max-norm at most K, or, with the quadratic program, ``tau`` for that of trace norm
    at most tau. One ``constant`` stands for both sample sizes; the paper states neither.

    >>> required_draws("quadratic", 0.5, 0.05, (20, 20), K=1.0)
    11289
    >>> required_draws("linear", 0.5, 0.05, (20, 20), K=1.0)
    4398275
    """
    size = _program_size("required_draws", program, shape, K, tau)
    _require_probability("required_draws", delta)
    parameters = inefficient_parameters(eps) if K is None or program == "quadratic" else efficient_parameters(eps, K)
    completing = _draws("required_draws", parameters.completion_accuracy, delta / 3, size, constant)
    agreeing = _draws("required_draws", parameters.beta, delta / 3, size, constant)
    return max(completing, agreeing)


def achievable_eps(
    n_draws: int,
    program: str,
    delta: float,
    shape: tuple[int, int],
    *,
    K: float | None = None,
    tau: float | None = None,
    constant: float = 1.0,
) -> float:
    """The smallest eps for which ``n_draws`` are as many as :func:`required_draws` asks for; its inverse.

    beta = sqrt(constant (K^2 (m + n) + log(3/delta)) / N), and eps = 8 beta for the quadratic program or
    pi K sqrt(8 beta) for the linear one. At 4 or more it says nothing, since no squared error is larger.

    >>> round(achievable_eps(10**6, "quadratic", 0.05, (100, 80), K=1.0), 3)
    0.109
    """
    size = _program_size("achievable_eps", program, shape, K, tau)
    _require_positive("achievable_eps", n_draws=n_draws, constant=constant)
    _require_probability("achievable_eps", delta)
    beta = math.sqrt(constant * (size + math.log(3 / delta)) / n_draws)
    return 8 * beta if K is None or program == "quadratic" else math.pi * K * math.sqrt(8 * beta)


def compare_draws(
    n_draws: int,
    program: str,
    eps: float,
    delta: float,
    shape: tuple[int, int],
    *,
    K: float | None = None,
    tau: float | None = None,
    constant: float = 1.0,
) -> SampleSize:
    """The draws at hand beside those that the theorem of ``program`` asks for; see :func:`required_draws`.

    >>> size = compare_draws(5000, "linear", 0.5, 0.05, (100, 80), K=1.0)
    >>> size.required > 10**7, size.enough
    (True, False)
    """
    required = required_draws(program, eps, delta, shape, K=K, tau=tau, constant=constant)
    achievable = achievable_eps(n_draws, program, delta, shape, K=K, tau=tau, constant=constant)
    return SampleSize(int(n_draws), required, float(eps), achievable, float(constant))


def relaxation_constant(K: float) -> float:
    """pi K / 2 in sup E_nu[M^2] <= (pi K / 2) sup E_nu[M] over a version space of MaxNorm(K) (Proposition 16).

    >>> round(relaxation_constant(K=1.0), 4)
    1.5708
    """
    _require_positive("relaxation_constant", K=K)
    return math.pi * K / 2


def max_norm_of_rank(rank: int) -> float:
    """sqrt(k): no matrix of rank k with entries in [-1, 1] has a larger max-norm (section 2.1).

    >>> max_norm_of_rank(4)
    2.0
    """
    _require_positive("max_norm_of_rank", rank=rank)
    return math.sqrt(rank)


def trace_norm_of_rank(rank: int, shape: tuple[int, int]) -> float:
    """sqrt(k m n): no matrix of rank k with entries in [-1, 1] has a larger trace norm.

    By Cauchy-Schwarz the k singular values add up to at most sqrt(k) |M|_F <= sqrt(k m n), with equality for a
    Hadamard matrix. The paper's section 2.1 says k sqrt(m n), which is true and larger by sqrt(k).

    >>> trace_norm_of_rank(4, (5, 5))
    10.0
    """
    _require_positive("trace_norm_of_rank", rank=rank)
    _require_shape("trace_norm_of_rank", shape)
    return math.sqrt(rank * shape[0] * shape[1])


def _program_size(owner: str, program: str, shape: tuple[int, int], K: float | None, tau: float | None) -> float:
    """The class's size, once program, K and tau fit each other."""
    if program not in PROGRAMS:
        raise invalid_parameter(owner, "program", " or ".join(map(repr, PROGRAMS)), program)
    if (K is None) == (tau is None):
        raise InputError(f"{owner} needs either K, the max-norm's limit, or tau, the trace norm's.")
    if program == "linear" and K is None:
        raise invalid_parameter(owner, "tau", "left out with the linear program, which is for the max-norm alone", tau)
    return _class_size(owner, shape, K, tau)


def _class_size(owner: str, shape: tuple[int, int], K: float | None, tau: float | None) -> float:
    """K^2 (m + n) or tau sqrt(m + n): how rich the class is."""
    _require_shape(owner, shape)
    if K is not None:
        _require_positive(owner, K=K)
        return K**2 * sum(shape)
    assert tau is not None  # callers give one of the two
    _require_positive(owner, tau=tau)
    return tau * math.sqrt(sum(shape))


def _draws(owner: str, eps: float, delta: float, size: float, constant: float) -> int:
    """constant (size + log(1/delta)) / eps^2, rounded up; ``owner`` is the function that errors name."""
    _require_positive(owner, eps=eps, constant=constant)
    _require_probability(owner, delta)
    return math.ceil(constant * (size + math.log(1 / delta)) / eps**2)


def _require_positive(owner: str, **numbers: float) -> None:
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise invalid_parameter(owner, name, "a positive finite number", number)


def _require_probability(owner: str, delta: float) -> None:
    if not 0 < delta < 1:
        raise invalid_parameter(owner, "delta", "a number above 0 and below 1", delta)


def _require_shape(owner: str, shape: tuple[int, int]) -> None:
    if len(shape) != 2 or min(shape) < 1:
        raise invalid_parameter(owner, "shape", "two whole numbers of at least 1", shape)


def _rounded(number: float) -> str:
    """Three digits, with commas between thousands."""
    return f"{float(f'{number:.3g}'):,.15g}"

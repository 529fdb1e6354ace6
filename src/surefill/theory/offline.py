"""The paper's offline Algorithms 1 and 2 end to end: completion, coverage program, theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass

from surefill.completion import Completion, CompletionAlgorithm, MaxNormCompletion, TraceNormCompletion
from surefill.coverage.linear.coverage_result import Coverage
from surefill.coverage.linear.linear_program import solve_coverage
from surefill.coverage.quadratic.quadratic_program import CoverageBracket, solve_quadratic_coverage
from surefill.data import Observations
from surefill.errors import invalid_parameter
from surefill.notebook import card
from surefill.spaces.classes import MaxNorm, TraceNorm
from surefill.spaces.confidence_matrix import Confidence
from surefill.theory.conditions import TheoremGuarantee, guarantee_efficient, guarantee_inefficient
from surefill.theory.sample_sizes import (
    PROGRAMS,
    ProgramParameters,
    SampleSize,
    compare_draws,
    efficient_parameters,
    inefficient_parameters,
)


@dataclass(frozen=True, eq=False)
class OfflineCompletion:
    """(M-hat, C) of the paper's Algorithm 1 or 2, the parameters it used, and the standing of its theorem.

    Attributes
    ----------
    completion : M-hat, a value for every entry in the data's own units.
    coverage : the solution of MP 2 with its certificate, or the bracket of MP 1.
    parameters : gamma, beta and the completion's accuracy, on the [-1, 1] scale.
    theory : the draws that the theorem asks for beside those there are.
    guarantee : what the theorem promises, and which of its conditions hold.
    eps, delta : the mean squared error asked for, in the data's squared units, and the probability of failure.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> found = sf.complete_partially(sim.observations, eps=0.5, delta=0.1, K=1.0)
    >>> found.completion.shape == found.confidence.shape == (30, 20)
    True
    >>> found.theory.enough
    False
    """

    completion: Completion
    coverage: Coverage | CoverageBracket
    parameters: ProgramParameters
    theory: SampleSize
    guarantee: TheoremGuarantee
    eps: float
    delta: float

    @property
    def confidence(self) -> Confidence:
        """C in [0, 1]^(m x n)."""
        return self.coverage.confidence

    def _repr_html_(self) -> str:
        (m, n), found = self.completion.shape, self.coverage
        most = found.upper_bound if isinstance(found, Coverage) else found.upper
        facts = {
            "coverage": f"{found.coverage:,.1f} of {m * n:,} cells, at most {most:,.1f} possible",
            "standing": found.standing if isinstance(found, Coverage) else "certified",
            "error asked for": self.eps,
            "delta": self.delta,
        }
        return card("OfflineCompletion", self.guarantee.sentence, facts)

    def __repr__(self) -> str:
        m, n = self.completion.shape
        standing = "guarantee conditional" if self.guarantee.applies else "guarantee not known to hold"
        return f"OfflineCompletion({self.coverage.coverage:.6g} of {m * n} cells at eps {self.eps:g}, {standing})"


def complete_partially(
    obs: Observations,
    *,
    eps: float,
    delta: float = 0.05,
    K: float = 1.0,
    tau: float | None = None,
    completion: CompletionAlgorithm | None = None,
    program: str = "linear",
    rank: int | None = None,
    method: str = "auto",
    gap: float = 0.01,
    time_limit: float | None = None,
    constant: float = 1.0,
) -> OfflineCompletion:
    """Algorithm 2: M-hat by empirical risk minimisation, then C from MP 2 with gamma = e/(2 pi K), beta = gamma^2/2.

    Here e is ``eps`` on the [-1, 1] scale: eps / s^2 where s is half the width of the data's bounds. If Theorem 11
    applies, then with probability 1 - ``delta`` the mean of (M-hat - M*)^2 weighted by C is at most ``eps`` and
    |C| >= 1 / (largest probability of a cell). The sample size it asks for grows with 1/eps^4 and is seldom met;
    ``guarantee`` says which conditions hold, fail, or cannot be checked, and C stands on its own certificate.

    With ``program="quadratic"`` it is Algorithm 1: C from MP 1 with gamma = e/4 and beta = e/8, and Theorem 10, which
    asks for draws of the order 1/eps^2. MP 1 is bracketed: C is the certified one, and ``coverage`` says how much more
    there could be. For matrices of up to 150 rows and columns.

    Parameters
    ----------
    obs : the sample; ``bounds`` set the scale.
    eps : mean squared error to allow, in the data's own squared units.
    delta : probability with which the promise may fail, in (0, 1).
    K : max-norm, on the [-1, 1] scale, that truth and completion are taken to have at most;
        ``theory.max_norm_of_rank(k)`` does for rank k.
    completion : a completion algorithm. When not given the one that the theorem names, empirical risk minimisation over
        the class: :class:`MaxNormCompletion` (K), or :class:`TraceNormCompletion` (tau). With any other,
        ``guarantee`` says that the theorem is left.
    tau : trace norm, on the [-1, 1] scale, in place of K; with the quadratic program alone.
    program : "linear", the efficient algorithm, or "quadratic", the inefficient one.
    rank : largest rank of the adversaries, with the meaning of docs/theorem_with_rank.md; no limit when not given.
    method, gap : how, and how closely, to solve MP 2; see :func:`solve_coverage`; ``gap`` is that of MP 1 too.
    time_limit : seconds for MP 2, or for the cuts of MP 1, which sharpen its upper bound alone and can take minutes.
    constant : what to take the unknown constant of the paper's sample sizes for.

    Examples
    --------
    >>> from surefill.datasets import make_blocks
    >>> found = complete_partially(make_blocks((5, 5), n_draws=100).observations, eps=1.0)
    >>> found.theory.enough, found.guarantee.applies
    (False, False)
    >>> bool(found.confidence.coverage >= 25)
    True
    >>> found = complete_partially(make_blocks((3, 3), n_draws=60).observations, eps=1.0, program="quadratic")
    >>> found.parameters.gamma, found.coverage.certified_feasible
    (0.25, True)
    """
    _check(eps, delta, K, tau, program, rank)
    named = MaxNormCompletion(K=K) if tau is None else TraceNormCompletion(tau=tau)
    algorithm = named if completion is None else completion
    if not isinstance(algorithm, CompletionAlgorithm) or isinstance(algorithm, type):
        expected = "None or an object with a fit method such as MaxNormCompletion()"
        raise invalid_parameter("complete_partially", "completion", expected, completion)
    unit_eps = float(obs.unit.squared_error_to_unit(eps))
    norm = {"K": K} if tau is None else {"tau": tau}
    theory = compare_draws(obs.n_draws, program, unit_eps, delta, obs.shape, constant=constant, **norm)
    promised = {"eps": float(eps), "delta": float(delta)}
    completed = algorithm.fit(obs)
    if program == "quadratic":
        parameters = inefficient_parameters(unit_eps)
        gamma, beta = parameters.gamma, parameters.beta
        bracket = solve_quadratic_coverage(
            obs,
            matrix_class=MaxNorm(K) if tau is None else TraceNorm(tau),
            gamma=gamma,
            beta=beta,
            gap=gap,
            time_limit=time_limit,
        )
        guarantee = guarantee_inefficient(obs, algorithm, completed, bracket, parameters, theory, **promised)
        return OfflineCompletion(completed, bracket, parameters, theory, guarantee, **promised)
    parameters = efficient_parameters(unit_eps, K)
    gamma, beta = parameters.gamma, parameters.beta
    coverage = solve_coverage(obs, K, gamma=gamma, beta=beta, rank=rank, method=method, gap=gap, time_limit=time_limit)
    guarantee = guarantee_efficient(obs, algorithm, completed, coverage, parameters, theory, rank=rank, **promised)
    return OfflineCompletion(completed, coverage, parameters, theory, guarantee, **promised)


def _check(eps: float, delta: float, K: float, tau: float | None, program: str, rank: int | None) -> None:
    """Refuse what neither program takes, and what only the other one does."""
    owner = "complete_partially"
    if program not in PROGRAMS:
        raise invalid_parameter(owner, "program", " or ".join(map(repr, PROGRAMS)), program)
    for name, number in (("eps", eps), ("K", K), ("tau", 1.0 if tau is None else tau)):
        if not 0 < number < math.inf:
            raise invalid_parameter(owner, name, "a positive finite number", number)
    if not 0 < delta < 1:
        raise invalid_parameter(owner, "delta", "a number above 0 and below 1", delta)
    if program == "linear" and tau is not None:
        expected = "left out with the linear program, which is for the max-norm alone"
        raise invalid_parameter(owner, "tau", expected, tau)
    if program == "quadratic" and rank is not None:
        expected = "left out with the quadratic program, whose classes are convex"
        raise invalid_parameter(owner, "rank", expected, rank)

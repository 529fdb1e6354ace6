"""What the paper's theorems promise of an offline completion, and which of their conditions hold."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surefill.completion import Completion, CompletionAlgorithm, MaxNormCompletion, TraceNormCompletion
from surefill.coverage.linear.coverage_result import Coverage
from surefill.coverage.quadratic.quadratic_program import CoverageBracket
from surefill.data import Observations
from surefill.errors import MissingPackageError
from surefill.spaces.certificates import bound_max_norm
from surefill.spaces.classes import TraceNorm
from surefill.spaces.conic_model import INTERIOR_POINT_LIMIT, SIZE_LIMIT
from surefill.spaces.norms import max_norm
from surefill.theory.sample_sizes import ProgramParameters, SampleSize

Verdict = Literal["holds", "unknown", "not known to hold", "fails"]
"""Checked; an assumption that no sample can show; short of what is proved, or proved up to a constant that nobody
stated; or known to be false."""

ROUND_OFF = 1e-6
"""How far over a limit a computed number may be and still count as within it: a certified norm is known to 1e-8."""


@dataclass(frozen=True)
class Condition:
    """Something a theorem assumes, whether it holds here, and why.

    Examples
    --------
    >>> Condition("sample size", "fails", "there are 100 draws, and the theorem asks for 1000.").verdict
    'fails'
    """

    name: str
    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class TheoremGuarantee:
    """A theorem's promise and the conditions it stands on, each found to hold, to fail, or out of reach.

    Attributes
    ----------
    promise : what the theorem says, if its conditions hold.
    conditions : what it assumes. Some can never be checked from the sample: the promise is then conditional.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> found = sf.complete_partially(sim.observations, eps=0.5, delta=0.1, K=1.0)
    >>> found.guarantee.applies
    False
    >>> [condition.name for condition in found.guarantee.conditions]
    ['draws', 'truth', 'accuracy', 'full completion', 'sample size', 'class', 'feasibility']
    """

    promise: str
    conditions: tuple[Condition, ...]

    @property
    def applies(self) -> bool:
        """False where some condition fails or is not known to hold; True still leaves what is assumed."""
        return not self._with("fails") and not self._with("not known to hold")

    @property
    def sentence(self) -> str:
        """The promise, and plainly what holds, what fails and what cannot be checked."""
        parts = [self.promise]
        if self._with("fails"):
            parts.append(f"It does not apply here: {self._listed('fails')}.")
        if self._with("not known to hold"):
            parts.append(f"Not known to hold: {self._listed('not known to hold')}.")
        if self._with("unknown"):
            parts.append(f"Assumed: {self._listed('unknown')}.")
        if self._with("holds"):
            parts.append(f"Checked: {self._listed('holds')}.")
        return " ".join(parts)

    def _with(self, verdict: Verdict) -> list[Condition]:
        return [condition for condition in self.conditions if condition.verdict == verdict]

    def _listed(self, verdict: Verdict) -> str:
        return "; ".join(condition.sentence for condition in self._with(verdict))


def guarantee_efficient(
    obs: Observations,
    algorithm: CompletionAlgorithm,
    completion: Completion,
    coverage: Coverage,
    parameters: ProgramParameters,
    sample: SampleSize,
    *,
    eps: float,
    delta: float,
    rank: int | None,
) -> TheoremGuarantee:
    """Theorem 11: with probability 1 - delta, |C| >= 1/mu_max and (1/|C|) sum_x C_x (M-hat_x - M*_x)^2 <= eps.

    The theorem is about the maximiser C; one within a relative gap g of it has |C| >= (1 - g)/mu_max.
    """
    unit = _small_dense(obs, completion)
    conditions = [
        *_assumed(obs, parameters, delta, f"max-norm at most {coverage.K:g}"),
        _full_completion_condition(algorithm, MaxNormCompletion(K=coverage.K)),
        _sample_condition(sample),
        _class_condition(unit, coverage.K),
        _feasibility_condition(coverage.standing == "certified"),
    ]
    if rank is not None:
        conditions.append(_rank_condition(unit, rank))
    return TheoremGuarantee(_promise(11, coverage.gap, eps, delta), tuple(conditions))


def guarantee_inefficient(
    obs: Observations,
    algorithm: CompletionAlgorithm,
    completion: Completion,
    bracket: CoverageBracket,
    parameters: ProgramParameters,
    sample: SampleSize,
    *,
    eps: float,
    delta: float,
) -> TheoremGuarantee:
    """Theorem 10: the same promise from MP 1, with draws of the order 1/eps^2 in place of 1/eps^4.

    The certified C is at least (1 - gap) of the maximiser that the theorem is about, and as feasible.
    """
    matrix_class, unit = bracket.matrix_class, _small_dense(obs, completion)
    if isinstance(matrix_class, TraceNorm):
        norm, in_class = f"trace norm at most {matrix_class.tau:g}", _trace_class_condition(unit, matrix_class.tau)
        named: MaxNormCompletion | TraceNormCompletion = TraceNormCompletion(tau=matrix_class.tau)
    else:
        norm, in_class = f"max-norm at most {matrix_class.K:g}", _class_condition(unit, matrix_class.K)
        named = MaxNormCompletion(K=matrix_class.K)
    conditions = (
        *_assumed(obs, parameters, delta, norm),
        _full_completion_condition(algorithm, named),
        _sample_condition(sample),
        in_class,
        _feasibility_condition(bracket.certified_feasible),
    )
    return TheoremGuarantee(_promise(10, bracket.gap, eps, delta), conditions)


def _promise(theorem: int, gap: float, eps: float, delta: float) -> str:
    """What the theorem says of a C within a relative gap of the optimum, in words."""
    share = math.floor((1 - gap) * 1e4) / 1e4  # rounded down: never more than holds
    return (
        f"Theorem {theorem} of the paper: with probability {1 - delta:g} over the draws, the confidence covers at "
        f"least {share:g} / (the largest probability of any cell to be drawn), and the mean squared error of the "
        f"completion, weighted by the confidence, is at most {eps:g} against the expected values."
    )


def _assumed(obs: Observations, parameters: ProgramParameters, delta: float, norm: str) -> tuple[Condition, ...]:
    """What no sample can show: the draws, the truth's norm, the completion's error."""
    accuracy = float(obs.unit.squared_error_from_unit(parameters.completion_accuracy))
    accurate = (
        f"the completion's mean squared error over entries drawn like the observed ones is at most {accuracy:.3g}, "
        f"except with probability {delta / 3:.3g}"
    )
    return (
        Condition("draws", "unknown", "the draws are independent and from one distribution"),
        Condition("truth", "unknown", f"the expected values, on the [-1, 1] scale, have {norm}"),
        Condition("accuracy", "unknown", accurate),
    )


def _small_dense(obs: Observations, completion: Completion) -> NDArray[np.float64] | None:
    """M-hat on [-1, 1], or None where it is too large to look at whole."""
    return obs.unit.to_unit(completion.dense()) if max(obs.shape) <= SIZE_LIMIT else None


CHOICES_OF_THE_CLASS = ("K", "tau", "penalty", "rank", "centre")
"""Parameters of a completion algorithm that decide over which class it minimises; the others say how."""


def _full_completion_condition(
    algorithm: CompletionAlgorithm, named: MaxNormCompletion | TraceNormCompletion
) -> Condition:
    """Whether M-hat minimises the empirical risk over the class, which is what the theorem's sample size is for."""

    def choices(one: CompletionAlgorithm) -> list[object]:
        return [getattr(one, name, None) for name in CHOICES_OF_THE_CLASS]

    over = f"empirical risk minimisation over the class, {type(named).__name__}"
    if type(algorithm) is type(named) and choices(algorithm) == choices(named):
        return Condition("full completion", "holds", f"the completion is by {over}")
    given = type(algorithm).__name__
    return Condition(
        "full completion",
        "not known to hold",
        f"the completion by {given} leaves the theorem, whose sample size is for {over}; for {given} none is proved",
    )


def _sample_condition(sample: SampleSize) -> Condition:
    """Whether there are enough draws; never known to hold, for the paper does not state its constant."""
    if not sample.enough:
        return Condition("sample size", "not known to hold", _as_clause(sample.sentence))
    largest = sample.constant * sample.n_draws / sample.required
    sentence = f"the constant in the theorem's sample size is at most {largest:.3g} (not stated, so not known to hold)"
    return Condition("sample size", "unknown", sentence)


def _class_condition(unit: NDArray[np.float64] | None, K: float) -> Condition:
    """Whether M-hat is in M^max_K: entries in [-1, 1] and max-norm at most K."""
    if unit is None:
        return Condition("class", "unknown", f"the completion has max-norm at most {K:g} (too large to compute)")
    beyond = float(np.abs(unit).max())
    if beyond > 1 + ROUND_OFF:
        return Condition("class", "fails", f"the completion leaves the bounds, by a factor of {beyond:.4g}")
    low, high = _max_norm_between(unit, K + ROUND_OFF)
    if low > K + ROUND_OFF:
        return Condition("class", "fails", f"the completion's max-norm is at least {low:.4g}, above K = {K:g}")
    if high <= K + ROUND_OFF:
        return Condition("class", "holds", f"the completion is within the bounds and has max-norm at most {K:g}")
    between = f"known to lie between {low:.4g} and {high:.4g}"
    return Condition("class", "unknown", f"the completion has max-norm at most {K:g} ({between})")


def _max_norm_between(M: NDArray[np.float64], limit: float) -> tuple[float, float]:
    """Bounds on the max-norm; by its semidefinite program where cheap ones leave ``limit`` between them."""
    low, high = bound_max_norm(M)
    if low <= limit < high and sum(M.shape) <= INTERIOR_POINT_LIMIT:
        with suppress(MissingPackageError):
            exact = max_norm(M)
            return exact.lower, exact.upper
    return low, high


def _trace_class_condition(unit: NDArray[np.float64] | None, tau: float) -> Condition:
    """Whether M-hat is in M^tr_tau: entries in [-1, 1] and singular values that add up to at most tau."""
    if unit is None:
        return Condition("class", "unknown", f"the completion has trace norm at most {tau:g} (too large to compute)")
    beyond, norm = float(np.abs(unit).max()), float(np.linalg.norm(unit, "nuc"))
    if beyond > 1 + ROUND_OFF:
        return Condition("class", "fails", f"the completion leaves the bounds, by a factor of {beyond:.4g}")
    if norm > tau + ROUND_OFF:
        return Condition("class", "fails", f"the completion's trace norm is {norm:.4g}, above tau = {tau:g}")
    return Condition("class", "holds", f"the completion is within the bounds and has trace norm at most {tau:g}")


def _feasibility_condition(certified: bool) -> Condition:
    """Whether C is feasible for its program."""
    if certified:
        return Condition("feasibility", "holds", "no adversary in the class breaks the confidence (certified)")
    return Condition("feasibility", "unknown", "no adversary in the class breaks the confidence (none was found)")


def _rank_condition(unit: NDArray[np.float64] | None, rank: int) -> Condition:
    """rank(M* - M-hat) <= rank(M*) + rank(M-hat) <= r, on the [-1, 1] scale (docs/theorem_with_rank.md)."""
    if unit is None:
        return Condition("rank", "unknown", f"the expected values less the completion have rank at most {rank}")
    left = rank - int(np.linalg.matrix_rank(unit))
    if left < 1:
        return Condition(
            "rank", "fails", f"the completion alone has rank {rank - left}, which leaves none of {rank} for the truth"
        )
    return Condition("rank", "unknown", f"the expected values, on the [-1, 1] scale, have rank at most {left}")


def _as_clause(sentence: str) -> str:
    """The sentence as a part of another: no capital, no full stop."""
    return sentence[0].lower() + sentence[1:].rstrip(".")

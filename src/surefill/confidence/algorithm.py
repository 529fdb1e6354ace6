"""What a confidence algorithm is, what it returns, and what is known of its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

from surefill.completion import Completion
from surefill.data import Observations
from surefill.errors import InputError
from surefill.loop import ProgressCallback
from surefill.registry import storable
from surefill.spaces.confidence_matrix import Confidence


class ExtendableConfidence(Confidence, Protocol):
    """A confidence that can also be asked about rows that were not there when it was found.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(sim.observations)
    >>> confidence: ExtendableConfidence = completer.result_.confidence
    >>> confidence.fold_in(sf.Observations([0, 0], [3, 5], [0.5, 0.1], shape=(1, 20))).shape
    (1, 20)
    """

    def fold_in(self, observations: Observations) -> Self:
        """The confidence for other rows, seen at ``observations``."""
        ...


@storable
@dataclass(frozen=True)
class TriedConfidence:
    """A confidence algorithm that was tried, and the share of held-out cells that it supports."""

    name: str
    supported: float


@storable
@dataclass(frozen=True)
class Certificate:
    """How good a confidence is known to be: bounds on the coverage program's optimum, or why there are none.

    ``standing`` is "certified" (proved), "searched" (no adversary found), "tested" (on cells without support) or
    "heuristic" (no bound), ``statement`` what is known in words. ``floor`` is the confidence from which on an entry
    counts as supported, where the algorithm sets one, and ``false_support`` the share of entries without support that
    pass it. ``name`` is the algorithm's in words, ``tried`` what was tried, in the order of preference.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(sim.observations)
    >>> certificate = completer.result_.certificate
    >>> certificate.standing, certificate.coverage
    ('heuristic', None)
    """

    standing: str
    coverage: float | None
    upper_bound: float | None
    gap: float | None
    statement: str
    name: str = ""
    floor: float | None = None
    false_support: float | None = None
    tried: tuple[TriedConfidence, ...] = ()

    @property
    def sentence(self) -> str:
        """What is known of the confidence and, where several were tried, why this one was taken."""
        return " ".join(part for part in (self._choice, self.statement) if part)

    @property
    def _choice(self) -> str:
        """Why this one was taken among those tried; the first of them proves most."""
        if len(self.tried) < 2:
            return ""
        preferred = self.tried[0]
        best = max((other for other in self.tried[1:]), key=lambda other: other.supported)
        shares = f"{preferred.supported:.0%} of held-out cells where {best.name} supports {best.supported:.0%}"
        chosen = self.name[:1].upper() + self.name[1:]
        if self.name == preferred.name:
            return f"{chosen} was chosen, which proves more and supports {shares}."
        return f"{chosen} was chosen: {preferred.name}, which proves more, supports only {shares}."


@runtime_checkable
class ConfidenceAlgorithm(Protocol):
    """Observations and a completion of them in, a confidence and its certificate out.

    Examples
    --------
    >>> import surefill as sf
    >>> isinstance(sf.confidence.CoverageProgram(), ConfidenceAlgorithm)
    True
    """

    def chosen_for(
        self, observations: Observations, completion: Completion, tolerance: float, held_out_error: float
    ) -> Self:
        """The same algorithm with every parameter that was not given chosen from what held-out cells showed."""
        ...

    def fit(
        self, observations: Observations, completion: Completion, progress: ProgressCallback | None = None
    ) -> tuple[ExtendableConfidence, Certificate]:
        """Find the confidence of every entry."""
        ...


def require_columns(observations: Observations, n: int) -> None:
    """Refuse new rows of another width than the fitted ones."""
    if observations.shape[1] != n:
        raise InputError(f"new rows must have {n} columns; got {observations.shape[1]}.")

"""What a completion is, what makes one, and how far from optimal it may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.data import Observations
from surefill.loop import ProgressCallback, Status
from surefill.notebook import card
from surefill.registry import storable


@runtime_checkable
class Completion(Protocol):
    """M-hat of the paper: a value for every entry, in the user's units, without holding the matrix.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0)
    >>> completion = sf.completion.FactorModel().fit(sim.observations)
    >>> isinstance(completion, Completion)
    True
    >>> completion.block([0, 1], [2, 3, 4]).shape
    (2, 3)
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        ...

    def at(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values at the pairs (rows[t], cols[t])."""
        ...

    def block(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Values on the grid rows x cols."""
        ...

    def dense(self) -> NDArray[np.float64]:
        """The whole m x n matrix; only for matrices small enough to hold."""
        ...

    def fold_in(self, observations: Observations) -> Completion:
        """The completion of other rows, seen at ``observations``, with what was learnt of the columns."""
        ...


@runtime_checkable
class CompletionAlgorithm(Protocol):
    """FC of the paper: observations in, a completion out.

    One that knows of other cells than those it is given, such as predictions made elsewhere, says so by a property
    ``may_have_seen_all`` that is true: what is kept of it is then not promised.

    Examples
    --------
    >>> import surefill as sf
    >>> isinstance(sf.completion.SoftImpute(), CompletionAlgorithm)
    True
    """

    def fit(self, observations: Observations, progress: ProgressCallback | None = None) -> Completion:
        """Complete the whole matrix."""
        ...


Standing = Literal["proved", "probable", "searched"]


@storable
@dataclass(frozen=True)
class OptimalityGap:
    """How far a fitted matrix is from the optimum: lower_bound <= optimum <= objective, its own value.

    ``standing`` is "proved", "probable" (it fails for one random start of Lanczos in 10^9) or "searched": no bound
    but 0 is known.

    Examples
    --------
    >>> gap = OptimalityGap(objective=2.0, lower_bound=1.9, standing="proved")
    >>> round(gap.absolute, 3), round(gap.relative, 3)
    (0.1, 0.05)
    """

    objective: float
    lower_bound: float
    standing: Standing

    @property
    def absolute(self) -> float:
        """objective - lower_bound."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def relative(self) -> float:
        """The gap as a share of the objective."""
        return self.absolute / self.objective if self.objective > 0 else 0.0

    @property
    def sentence(self) -> str:
        """What is known, in words."""
        if self.standing == "searched":
            return f"The objective is {self.objective:.6g}; the problem is not convex and no bound is known."
        sure = "proved to be" if self.standing == "proved" else "but for chance below 10^-9,"
        return (
            f"The objective {self.objective:.6g} is {sure} at most {100 * self.relative:.2g}% above the least possible."
        )


def completion_words(completion: object) -> str:
    """A completion and its chosen parameters in words: "Bayesian factors of rank 20".

    Examples
    --------
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0).observations
    >>> completion_words(sf.completion.BayesianFactorModel().fit(seen))
    'Bayesian factors of rank 10'
    >>> completion_words(sf.completion.SoftImpute(penalty=1.0).fit(seen))
    'low-rank matrix of rank 3, penalty 1'
    """
    kind, rank, chosen = (getattr(completion, name, None) for name in ("kind", "rank", "chosen"))
    words = [str(kind or type(completion).__name__) + ("" if rank is None else f" of rank {rank}")]
    if isinstance(chosen, dict):
        words += [f"{name} {value:.4g}" for name, value in chosen.items() if name != "rank"]
    return ", ".join(words)


def completion_card(completion: object, shape: tuple[int, int]) -> str:
    """A completion as notebooks show it: size, how it was found, and that its values alone promise nothing."""
    facts: dict[str, object] = {"rows": shape[0], "columns": shape[1]}
    rank, gap, status = (getattr(completion, name, None) for name in ("rank", "gap", "status"))
    if rank is not None:
        facts["rank"] = rank
    if isinstance(gap, OptimalityGap):
        facts["how close to the best"] = gap.sentence
    if isinstance(status, Status):
        facts["stopped"] = status.value
    return card(type(completion).__name__, "A value for every entry, trusted or not; nothing is promised of it.", facts)

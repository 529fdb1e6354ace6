"""What a solver needs of a version space, listed once per solver; the error names what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surefill.errors import InputError

if TYPE_CHECKING:
    from surefill.spaces.version_space import VersionSpace


@dataclass(frozen=True)
class Requirement:
    """A condition on a version space: what is needed, whether it holds, what was given, and what to do about it."""

    need: str
    holds: Callable[[VersionSpace], bool]
    given: Callable[[VersionSpace], str]
    advice: str


CONVEX_CLASS = Requirement(
    "a convex class",
    lambda space: space.matrix_class.convex,
    lambda space: space.matrix_class.description,
    "leave the rank out",
)
"""Certificates are for convex classes."""


@dataclass(frozen=True)
class SolverRequirements:
    """All that ``solver`` needs of a version space.

    >>> from surefill import MaxNorm, Observations, VersionSpace
    >>> positive = Requirement("beta > 0", lambda space: space.beta > 0, lambda space: f"{space.beta:g}", "give one")
    >>> space = VersionSpace(Observations([0], [0], [1.0]), beta=0.0, matrix_class=MaxNorm(1.0))
    >>> [missing.need for missing in SolverRequirements("this solver", (positive,)).missing(space)]
    ['beta > 0']
    """

    solver: str
    requirements: tuple[Requirement, ...]

    def missing(self, space: VersionSpace) -> list[Requirement]:
        """The requirements that ``space`` does not meet."""
        return [requirement for requirement in self.requirements if not requirement.holds(space)]

    def check(self, space: VersionSpace) -> None:
        """Raise an error about the first requirement that ``space`` does not meet."""
        for requirement in self.missing(space):
            raise unmet(self.solver, requirement.need, requirement.given(space), requirement.advice)


def unmet(solver: str, need: str, given: str, advice: str) -> InputError:
    """The error of a requirement that is not met."""
    return InputError(f"{solver} needs {need}; got {given}: {advice}.")

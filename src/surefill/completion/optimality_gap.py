"""How far a fitted matrix is from the best one, at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from surefill.arrays import Array
from surefill.completion.spectral.shrinkage import Shrinkage
from surefill.completion.spectral.squared_loss import Sample
from surefill.registry import storable
from surefill.spaces.spectral_norm import SparseOperator, bound_spectral_norm, lanczos

Standing = Literal["proved", "probable", "searched"]


@storable
@dataclass(frozen=True)
class OptimalityGap:
    """lower_bound <= the least value of the problem <= objective, the value of the matrix found.

    ``standing`` is "proved", "probable" (but for one start of Lanczos in 10^9) or "searched": no bound but 0 is known.

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


def certify(sample: Sample, shrinkage: Shrinkage, residual: Array, values: Array, factor: float = 1.0) -> OptimalityGap:
    """The gap of the matrix with residual E and singular values ``values``; ``factor`` changes units."""
    objective = sample.loss(residual) + shrinkage.cost(values)
    if not shrinkage.convex:
        return OptimalityGap(factor * objective, 0.0, "searched")
    norm = bound_spectral_norm(sample.matrix(residual))
    return OptimalityGap(
        factor * objective, factor * shrinkage.lower_bound(sample, residual, norm.upper), norm.standing
    )


def estimate_gap(sample: Sample, shrinkage: Shrinkage, residual: Array, objective: float, steps: int = 100) -> float:
    """The relative gap with Lanczos' own value for the norm: quick, a little too small, to decide when to stop."""
    if not shrinkage.convex:
        return float("inf")
    sigma = float(lanczos(SparseOperator(sample.matrix(residual)), steps).values[0])
    return (objective - shrinkage.lower_bound(sample, residual, sigma)) / max(objective, 1e-6 * sample.null_loss)

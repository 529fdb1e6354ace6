"""What each way keeps of the same candidates, and what it promises of that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefill.guarantee.baselines.cells import Candidates, HeldOut, Kept
from surefill.guarantee.baselines.conformal import conformal_risk_control, marginal_at_equal_promise
from surefill.guarantee.baselines.learn_then_test import learn_then_test, thinned
from surefill.guarantee.baselines.score import score_selection


@dataclass(frozen=True, eq=False)
class BaselineOutcome:
    """What one way keeps of the candidates, what it promises of that, and whether that is the promise of this library.

    Examples
    --------
    >>> import numpy as np
    >>> outcome = BaselineOutcome("SCoRE", "E(mean loss of the kept) <= 0.3", False, np.array([True, False]))
    >>> outcome.share
    0.5
    """

    name: str
    promise: str
    same_promise: bool
    kept: Kept

    @property
    def share(self) -> float:
        """Kept candidates, as a share of all."""
        return float(self.kept.mean()) if len(self.kept) else 0.0


def compare_baselines(
    held_out: HeldOut,
    candidates: Candidates,
    *,
    tolerance: float,
    delta: float,
    largest_loss: float,
    random_state: int = 0,
) -> tuple[BaselineOutcome, ...]:
    """What each way keeps: four at the promise of this library, then two at their own.

    ``largest_loss`` is B, which no loss exceeds; ``random_state`` is the seed of what thinning and SCoRE draw.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.uniform(0.1, 1.0, 2000)
    >>> held_out = HeldOut(risk, np.minimum(risk * rng.chisquare(1, 2000), 4.0), np.ones(2000))
    >>> candidates = Candidates(rng.uniform(0.1, 1.0, 5000), np.ones(5000))
    >>> found = compare_baselines(held_out, candidates, tolerance=0.4, delta=0.1, largest_loss=4.0)
    >>> [(outcome.same_promise, round(outcome.share, 1)) for outcome in found]
    [(True, 0.6), (True, 0.6), (True, 0.0), (True, 0.0), (False, 0.8), (False, 0.7)]
    """
    strict, pruning = delta * tolerance, 1 - np.random.default_rng(random_state).random()
    sample = thinned(held_out, candidates, random_state)
    kept_at_same_promise = {
        "learn-then-test": learn_then_test(held_out, candidates, tolerance, delta, largest_loss),
        "learn-then-test, thinned": learn_then_test(*sample, tolerance, delta, largest_loss),
        "conformal risk control": marginal_at_equal_promise(held_out, candidates, strict, largest_loss),
        "SCoRE": score_selection(held_out, candidates, strict, largest_loss, pruning),
    }
    likely = f"P(mean loss of the kept > {tolerance:.4g}) <= {delta:g}"
    return (
        *(BaselineOutcome(name, likely, True, kept) for name, kept in kept_at_same_promise.items()),
        BaselineOutcome(
            "conformal risk control",
            f"E(loss, 0 if left out) <= {tolerance:.4g}",
            False,
            conformal_risk_control(held_out, candidates, tolerance, largest_loss),
        ),
        BaselineOutcome(
            "SCoRE",
            f"E(mean loss of the kept) <= {tolerance:.4g}",
            False,
            score_selection(held_out, candidates, tolerance, largest_loss, pruning),
        ),
    )

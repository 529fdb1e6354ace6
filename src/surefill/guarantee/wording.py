"""The promise in words."""

from __future__ import annotations

from dataclasses import replace

from surefill.guarantee.plan import SelectionPlan
from surefill.guarantee.selection import Guarantee, Selection
from surefill.guarantee.target_weights import MarginalPropensity, TargetWeights
from surefill.losses import BoundedLoss

ASKED_LATER = (
    " This holds for a tolerance settled without looking at the calibration entries; it does not for one picked "
    "because of how much it keeps."
)
"""Said of a promise at a tolerance that was asked for after the fit."""

SEEN_BEFORE = (
    "the predictions may have been made with the very cells they are tested on; if they were made without them, say "
    "ExternalCompletion(..., held_out=True)."
)
"""Why nothing is promised of predictions that were made elsewhere."""

TARGETS = {
    "observed": "entries drawn like the observed ones",
    "unobserved": "all entries that were not observed",
    "all": "all entries that the model was not fitted on",
}
"""What each aim is about."""


def state_guarantee(
    plan: SelectionPlan,
    selection: Selection,
    weights: TargetWeights,
    loss: BoundedLoss,
    asked_later: bool = False,
    withheld: str = "",
) -> Guarantee:
    """What :func:`surefill.guarantee.selection.select` shows, over which entries, under which conditions.

    ``withheld`` is why nothing can be promised, whatever the calibration entries show, and else empty.
    ``asked_later`` says that the tolerance was given after the calibration entries had been looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from surefill.data import BoundsSource
    >>> from surefill.guarantee import Calibration, select
    >>> from surefill.losses import SquaredError
    >>> plan = SelectionPlan(
    ...     tolerance=0.5, delta=0.1, largest_loss=4.0, floor=0.2, n_calibration=200, n_observed=1000,
    ...     reference=np.linspace(0.1, 1.0, 800), reference_share=1.0,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.uniform(0.1, 1.0, 200)
    >>> calibration = Calibration(risk, np.ones(200), np.minimum(risk * rng.chisquare(1, 200), 4.0), np.ones(200))
    >>> weights = TargetWeights("observed", 0.2, None, 1.0)
    >>> loss = BoundedLoss(SquaredError(), (-1.0, 1.0), BoundsSource.GIVEN, (-1.0, 1.0))
    >>> state_guarantee(plan, select(plan, calibration), weights, loss).promised
    True
    """
    target = TARGETS[weights.aim]
    clipping = f"{loss.clipping} " if loss.clipping else ""
    condition = f" and {loss.condition}" if loss.condition else ""
    if selection.empty:
        sentence = f"Nothing is promised, for nothing is kept. {selection.sentence}"
    elif withheld:
        sentence = f"Nothing is promised of what is kept: {withheld}"
    else:
        sentence = (
            f"With probability at least {1 - plan.delta:g} over the draw of the {plan.n_calibration:,} calibration "
            f"entries, the {loss.loss.mean_name} of the kept set is at most {plan.tolerance:.4g}. {clipping}No "
            "refitting followed: the values, risks and confidences given are those of the model that was tested."
        ) + (ASKED_LATER if asked_later else "")
    holds_over = (
        f"It holds over {target}, restricted to the kept set, each cell counted once, if cells are observed "
        f"independently of one another{condition}."
    )
    if weights.propensity is not None:
        estimated = isinstance(weights.propensity, MarginalPropensity)
        source = "estimated from how often each row and column is observed" if estimated else "as given"
        holds_over += (
            f" It rests on the chances of being observed {source}; entries so rare that their weight exceeds "
            f"{weights.largest:.3g} count with that weight only."
        )
    promised = not (selection.empty or withheld)
    return Guarantee(promised, plan.delta, sentence, holds_over, _not_promised(weights), withheld)


def withdraw_guarantee(guarantee: Guarantee, n_added: int) -> Guarantee:
    """No promise: the model that was tested is not the one that has since taken in ``n_added`` cells.

    Examples
    --------
    >>> tested = Guarantee(True, 0.05, "The mean squared error is at most 1.", "It holds over ...", "Nothing else.")
    >>> withdraw_guarantee(tested, n_added=20).promised
    False
    """
    cells = "cell was" if n_added == 1 else "cells were"
    withheld = (
        f"{n_added:,} {cells} observed after the model was tested on the calibration entries, and values, risks and "
        "confidences have changed since. Fit again for a promise: refit() tests the new model on the same entries."
    )
    sentence = f"Nothing is promised of what is kept: {withheld}"
    return replace(guarantee, promised=False, sentence=sentence, withheld=withheld)


def _not_promised(weights: TargetWeights) -> str:
    elsewhere = (
        "Nothing is promised about entries that are drawn differently, such as those never observed at all; confidence "
        "keeps out what the observations do not support. "
        if weights.aim == "observed"
        else ""
    )
    return f"{elsewhere}Nothing is promised about any single entry, nor about rows that were not there when fitting."

"""The promise in words."""

from __future__ import annotations

from dataclasses import dataclass

from surefill.guarantee.figures import bound, counted, floored, probability
from surefill.guarantee.plan import SelectionPlan
from surefill.guarantee.propensity import GivenPropensity, PropensityFunction
from surefill.guarantee.selection import Selection, survived_sensitivity
from surefill.guarantee.target_weights import TargetWeights
from surefill.guarantee.tested_sets import Calibration
from surefill.losses import ClippedLoss
from surefill.registry import storable

ASKED_LATER = (
    " This holds for a tolerance settled without looking at the calibration cells; it does not for one picked "
    "because of how much it keeps."
)
"""Said of a promise at a tolerance that was asked for after the fit."""

SEEN_BEFORE = (
    "the predictions may have been made with the very cells they are tested on; if they were made without them, say "
    "ExternalCompletion(..., held_out=True)."
)
"""Why nothing is promised of predictions that were made elsewhere."""

NONE_MISSING = "no cell is missing, so that none is filled."
"""Why nothing is promised of filled cells where there can be none."""

NOT_THERE = "these rows were not there when the model was tested on the calibration cells."
"""Why nothing is promised of rows that were folded in."""

TARGETS = {
    "observed": "kept cells drawn like the observed ones, in proportion to their chances of being observed",
    "unobserved": "filled cells (those kept that were not observed, each counted once)",
    "all": "kept cells that the model was not fitted on, each counted once",
}
"""What each aim is about."""


@storable
@dataclass(frozen=True)
class Guarantee:
    """What is promised about the kept set, over which cells, and what is not.

    ``sensitivity`` is G: the promise holds as long as no cell's odds of being observed are off by a factor of more than
    G, because its value plays a part in them or because they were modelled wrongly; None where nothing is promised, or
    where being seen plays no part in it. ``withheld``
    says why nothing is promised although something is kept; it is empty where nothing stands in the way.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> guarantee = completer.result_.guarantee
    >>> guarantee.promised, guarantee.delta, guarantee.sensitivity >= 1
    (True, 0.05, True)
    """

    promised: bool
    delta: float
    sentence: str
    holds_over: str
    not_promised: str
    sensitivity: float | None = None
    withheld: str = ""


def state_guarantee(
    plan: SelectionPlan,
    selection: Selection,
    calibration: Calibration,
    weights: TargetWeights,
    loss: ClippedLoss,
    asked_later: bool = False,
    withheld: str = "",
    shape: tuple[int, int] | None = None,
) -> Guarantee:
    """What :func:`surefill.guarantee.selection.select` shows, over which cells, under which conditions.

    ``asked_later`` says that the tolerance was given after the calibration cells had been looked at; ``withheld`` is
    why nothing can be promised, whatever these show, and else empty. ``shape`` is that of the table by now, which may
    have grown since the first fit.

    Examples
    --------
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> result = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations).result_
    >>> stated = state_guarantee(result.plan, result.selection, result.calibration, result.weights, result.loss)
    >>> stated == result.guarantee
    True
    """
    if selection.n_missing == 0:
        withheld = NONE_MISSING
    if selection.empty or withheld:
        unkept = selection.empty and withheld != NONE_MISSING
        why = f", for nothing is kept. {selection.sentence}" if unkept else f" of what is kept: {withheld}"
        sentence = f"Nothing is promised{why}"
        holds_over = _holds_over(weights, loss, None)
        return Guarantee(False, plan.delta, sentence, holds_over, _not_promised(weights, shape), withheld=withheld)
    survives = None if weights.propensity is None else survived_sensitivity(plan, calibration, selection)
    cells = _cells(selection, weights, exact=plan.population.count == 1)
    clipping = f"{loss.clipping} " if loss.clipping else ""
    sentence = (
        f"With probability at least {probability(plan.delta)} over which cells were observed and held out, the "
        f"{loss.loss.mean_name} over the {cells} is at most {bound(plan.tolerance)}. {clipping}"
        "The values, risks and confidences given are those of the model that was tested."
    ) + (ASKED_LATER if asked_later else "")
    return Guarantee(
        True, plan.delta, sentence, _holds_over(weights, loss, survives), _not_promised(weights, shape), survives
    )  # fmt: skip


def _cells(selection: Selection, weights: TargetWeights, exact: bool) -> str:
    """The cells that the promise is about, with their number where that is of filled cells."""
    if weights.aim != "unobserved" or selection.n_filled is None:
        return TARGETS[weights.aim]
    number = counted(selection.n_filled, exact)
    number = number if exact else f"{number.removeprefix('about ')} or so"
    return f"{number} {TARGETS[weights.aim]}"


def _holds_over(weights: TargetWeights, loss: ClippedLoss, survives: float | None) -> str:
    condition = f" and {loss.condition}" if loss.condition else ""
    text = f"It is about {TARGETS[weights.aim]}, if cells are observed independently of one another{condition}."
    if weights.propensity is None:
        return text
    given = isinstance(weights.propensity, GivenPropensity | PropensityFunction)
    text += f" Chances of being observed, by which cells are weighted, are {'as given' if given else 'modelled'}."
    if weights.misfit is not None:
        text += f" {weights.misfit.sentence_if_given if given else weights.misfit.sentence}"
    if survives is not None:
        text += (
            " It holds as long as no cell's odds of being observed are off by a factor of more than "
            f"{floored(survives)}, be it for its value or for any other reason."
        )
        if given and weights.misfit is not None and weights.misfit.beyond(survives):
            text += " These chances are off by more than that: do not rely on the guarantee with them."
    return text


def observed_since(n_added: int) -> str:
    """Why nothing is promised of a model that has taken in ``n_added`` cells after it was tested.

    >>> observed_since(1)[:65]
    '1 cell was observed after the model was tested on the calibration'
    """
    cells = "cell was" if n_added == 1 else "cells were"
    return (
        f"{n_added:,} {cells} observed after the model was tested on the calibration cells, and values, risks and "
        "confidences have changed since. Fit again for a promise: refit() tests the new model on the same cells."
    )


def _not_promised(weights: TargetWeights, shape: tuple[int, int] | None) -> str:
    elsewhere = (
        "Nothing is promised about the cells that are filled, which are seldom like those observed: "
        "aim='unobserved' is about them. "
        if weights.aim == "observed"
        else ""
    )
    alone = "Nothing is promised about any single entry, nor about rows that were not there when fitting"
    return f"{elsewhere}{alone}{_came_later(weights.shape, shape)}."


def _came_later(first: tuple[int, int] | None, now: tuple[int, int] | None) -> str:
    """Rows and columns that a table has gained since its calibration cells were drawn, to end a sentence with."""
    if first is None or now is None or first == now:
        return ""
    gained = [
        f"{more:,} {kind}{'s' if more > 1 else ''}"
        for more, kind in zip((now[0] - first[0], now[1] - first[1]), ("row", "column"), strict=True)
        if more
    ]
    return f", nor about the {' and '.join(gained)} that came after the first fit, of which no calibration cell is"

"""The set kept at a tolerance, what is promised of it with a finite sample, and intervals."""

from surefill.guarantee.intervals import ConformalScores
from surefill.guarantee.plan import SelectionPlan
from surefill.guarantee.selection import (
    Calibration,
    Guarantee,
    Limit,
    Selection,
    Shortfall,
    rounding_threshold,
    select,
)
from surefill.guarantee.target_weights import TargetWeights, choose_propensity
from surefill.guarantee.wording import state_guarantee

__all__ = [
    "Calibration",
    "ConformalScores",
    "Guarantee",
    "Limit",
    "Selection",
    "SelectionPlan",
    "Shortfall",
    "TargetWeights",
    "choose_propensity",
    "rounding_threshold",
    "select",
    "state_guarantee",
]

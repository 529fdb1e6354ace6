"""Expected squared error, the set kept at a tolerance, what is promised about it, and intervals."""

from surefill.risk.base import Risk, RiskAlgorithm
from surefill.risk.curve import ConfidenceRisk, RiskCurve
from surefill.risk.fitted_risk import FittedRisk
from surefill.risk.intervals import ConformalScores
from surefill.risk.model import RiskModel
from surefill.risk.plan import SelectionPlan
from surefill.risk.promise import state_guarantee
from surefill.risk.propensity import TargetWeights, choose_propensity
from surefill.risk.selection import Calibration, Guarantee, Selection, rounding_threshold, select

__all__ = [
    "Calibration",
    "ConfidenceRisk",
    "ConformalScores",
    "FittedRisk",
    "Guarantee",
    "Risk",
    "RiskAlgorithm",
    "RiskCurve",
    "RiskModel",
    "Selection",
    "SelectionPlan",
    "TargetWeights",
    "choose_propensity",
    "rounding_threshold",
    "select",
    "state_guarantee",
]

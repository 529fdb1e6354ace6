"""Expected squared error, the set kept at a tolerance, and what is promised about it."""

from surefill.risk.curve import RiskCurve
from surefill.risk.fitted_risk import FittedRisk
from surefill.risk.model import RiskModel
from surefill.risk.selection import Guarantee, Selection, rounding_threshold, select_by_threshold

__all__ = [
    "FittedRisk",
    "Guarantee",
    "RiskCurve",
    "RiskModel",
    "Selection",
    "rounding_threshold",
    "select_by_threshold",
]

"""The expected loss of every entry."""

from surefill.risk.chance import ChanceOfLargeError
from surefill.risk.cross_fitting import CrossFit
from surefill.risk.curve import ConfidenceRisk, RiskCurve
from surefill.risk.prior_risk import PriorRisk
from surefill.risk.protocol import Risk, RiskAlgorithm
from surefill.risk.risk_model import FittedRisk, RiskModel, SupportFactor

__all__ = [
    "ChanceOfLargeError",
    "ConfidenceRisk",
    "CrossFit",
    "FittedRisk",
    "PriorRisk",
    "Risk",
    "RiskAlgorithm",
    "RiskCurve",
    "RiskModel",
    "SupportFactor",
]

"""How likely each cell is to be observed: models of the pattern, their choice, and their calibration."""

from surefill.guarantee.propensity.base import MOST_LIKELY, GivenPropensity, Propensity, PropensityFunction
from surefill.guarantee.propensity.calibration import CalibratedPropensity, PropensityMisfit, calibrate
from surefill.guarantee.propensity.choice import AIMS, Aim, choose_propensity, fit_propensity
from surefill.guarantee.propensity.factors import FactorPropensity, InteractionScaling
from surefill.guarantee.propensity.marginal import MarginalPropensity
from surefill.guarantee.propensity.raking import MarginRaking

__all__ = [
    "AIMS",
    "MOST_LIKELY",
    "Aim",
    "CalibratedPropensity",
    "FactorPropensity",
    "GivenPropensity",
    "InteractionScaling",
    "MarginRaking",
    "MarginalPropensity",
    "Propensity",
    "PropensityFunction",
    "PropensityMisfit",
    "calibrate",
    "choose_propensity",
    "fit_propensity",
]

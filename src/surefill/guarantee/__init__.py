"""The set kept at a tolerance, what is promised of it with a finite sample, and intervals."""

from surefill.guarantee.baselines import (
    BaselineOutcome,
    Candidates,
    HeldOut,
    compare_baselines,
    conformal_risk_control,
    hoeffding_bentkus,
    learn_then_test,
    score_e_values,
    score_selection,
    thinned,
)
from surefill.guarantee.calibration_split import CalibrationSplit
from surefill.guarantee.intervals import ConformalScores
from surefill.guarantee.plan import Population, SelectionPlan
from surefill.guarantee.propensity import (
    CalibratedPropensity,
    FactorPropensity,
    GivenPropensity,
    MarginalPropensity,
    MarginRaking,
    PropensityFunction,
    PropensityMisfit,
    calibrate,
    choose_propensity,
    fit_propensity,
)
from surefill.guarantee.reasons import Reason
from surefill.guarantee.selection import Selection, rounding_threshold, select
from surefill.guarantee.shortfall import Limit, ReachableTolerance, Shortfall
from surefill.guarantee.target_weights import HeldOutRate, TargetWeights
from surefill.guarantee.tested_sets import Calibration
from surefill.guarantee.wording import Guarantee, state_guarantee

__all__ = [
    "BaselineOutcome",
    "CalibratedPropensity",
    "Calibration",
    "CalibrationSplit",
    "Candidates",
    "ConformalScores",
    "FactorPropensity",
    "GivenPropensity",
    "Guarantee",
    "HeldOut",
    "HeldOutRate",
    "Limit",
    "MarginRaking",
    "MarginalPropensity",
    "Population",
    "PropensityFunction",
    "PropensityMisfit",
    "ReachableTolerance",
    "Reason",
    "Selection",
    "SelectionPlan",
    "Shortfall",
    "TargetWeights",
    "calibrate",
    "choose_propensity",
    "compare_baselines",
    "conformal_risk_control",
    "fit_propensity",
    "hoeffding_bentkus",
    "learn_then_test",
    "rounding_threshold",
    "score_e_values",
    "score_selection",
    "select",
    "state_guarantee",
    "thinned",
]

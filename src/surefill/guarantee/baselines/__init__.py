"""Other ways to choose a kept set: learn-then-test, conformal risk control, and SCoRE.

All take the same calibration cells (risks s_i, losses L_i in [0, B], weights w_i) and the same candidates (risks s_j
and weights w_j on one scale), where a weight says how much more often a cell is among the candidates than among those
held out. They make different promises about the kept candidates:

    learn-then-test             P(mean loss of the kept > tolerance) <= delta, the promise of this library
    conformal risk control      E(L_j 1{j is kept}) <= level: what is left out counts as no loss
    SCoRE                       E(mean loss of the kept) <= level

By Markov's inequality an expectation of at most delta tolerance makes the first of the others; that is what
:func:`compare_baselines` shows beside the promises of their own.

References: Angelopoulos, Bates, Candes, Jordan, Lei, "Learn then test" (2021); Angelopoulos, Bates, Fisch, Lei,
Schuster, "Conformal risk control" (2022), with the weights of Tibshirani, Barber, Candes, Ramdas, "Conformal
prediction under covariate shift" (2019); Bai, Jin, "Conformal selective prediction with general risk control" (2026).
"""

from surefill.guarantee.baselines.cells import Candidates, HeldOut
from surefill.guarantee.baselines.comparison import BaselineOutcome, compare_baselines
from surefill.guarantee.baselines.conformal import conformal_risk_control
from surefill.guarantee.baselines.learn_then_test import hoeffding_bentkus, learn_then_test, thinned
from surefill.guarantee.baselines.score import score_e_values, score_selection

__all__ = [
    "BaselineOutcome",
    "Candidates",
    "HeldOut",
    "compare_baselines",
    "conformal_risk_control",
    "hoeffding_bentkus",
    "learn_then_test",
    "score_e_values",
    "score_selection",
    "thinned",
]

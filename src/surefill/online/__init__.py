"""Online partial completion: the paper's game between a confidence and the matrices that fit the observations."""

from surefill.online.dual_descent import OnlineDualDescent
from surefill.online.factored_game import FactoredGame
from surefill.online.online_to_offline import OfflineImplication, offline_implication
from surefill.online.parameters import game_weights
from surefill.online.regret import GameRegret
from surefill.online.simplified import BestResponse, GradientAdversary, MatrixPredict, SimplifiedODD

__all__ = [
    "BestResponse",
    "FactoredGame",
    "GameRegret",
    "GradientAdversary",
    "MatrixPredict",
    "OfflineImplication",
    "OnlineDualDescent",
    "SimplifiedODD",
    "game_weights",
    "offline_implication",
]

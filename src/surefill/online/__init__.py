"""Online partial completion: the game between a confidence and the matrices that fit what was seen so far."""

from surefill.online.conversion import OfflineImplication, offline_implication
from surefill.online.dual_descent import OnlineDualDescent
from surefill.online.factored_game import FactoredGame
from surefill.online.matrix_predict import BestResponse, GradientAdversary, MatrixPredict
from surefill.online.parameters import game_weights
from surefill.online.regret import GameRegret
from surefill.online.simplified import SimplifiedODD

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

"""Online partial completion: the paper's game between a confidence and the matrices that fit the observations."""

from surefill.online.completion_pair import CompletionPair
from surefill.online.dual_descent import OnlineDualDescent
from surefill.online.factored_game import FactoredGame
from surefill.online.online_to_offline import OfflineImplication, offline_implication
from surefill.online.parameters import GameWeights, game_weights, rounds_needed, usual_weights
from surefill.online.regret import GameRegret
from surefill.online.simplified import BestResponse, GradientAdversary, MatrixPredict, SimplifiedODD
from surefill.online.uniform_sampling import UniformImplication, uniform_sampling_implication

__all__ = [
    "BestResponse",
    "CompletionPair",
    "FactoredGame",
    "GameRegret",
    "GameWeights",
    "GradientAdversary",
    "MatrixPredict",
    "OfflineImplication",
    "OnlineDualDescent",
    "SimplifiedODD",
    "UniformImplication",
    "game_weights",
    "offline_implication",
    "rounds_needed",
    "uniform_sampling_implication",
    "usual_weights",
]

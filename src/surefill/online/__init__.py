"""Online partial completion: the game between a confidence and the matrices that fit what was seen so far."""

from surefill.online.dual_descent import OnlineDualDescent
from surefill.online.regret import GameRegret

__all__ = ["GameRegret", "OnlineDualDescent"]

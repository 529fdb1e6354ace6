"""Online partial completion: the game between a confidence and the matrices that fit what was seen so far."""

from surefill.online.factored_game import FactoredGame
from surefill.online.stream import StreamingCompleter
from surefill.online.stream_metrics import StreamMetrics

__all__ = ["FactoredGame", "StreamMetrics", "StreamingCompleter"]

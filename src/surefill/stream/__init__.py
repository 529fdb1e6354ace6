"""Completion, confidence and errors that follow a stream of observations."""

from surefill.stream.stream_metrics import StreamMetrics
from surefill.stream.streaming_completer import StreamingCompleter

__all__ = ["StreamMetrics", "StreamingCompleter"]

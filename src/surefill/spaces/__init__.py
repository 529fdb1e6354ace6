"""Sets of matrices: norms with certificates, matrix classes, version spaces, and confidence matrices."""

from surefill.spaces.classes import MatrixClass, MaxNorm, TraceNorm
from surefill.spaces.confidence_matrix import Confidence, DenseConfidence
from surefill.spaces.norms import NormValue, max_norm, trace_norm
from surefill.spaces.version_space import Adversary, Membership, VersionSpace

__all__ = [
    "Adversary",
    "Confidence",
    "DenseConfidence",
    "MatrixClass",
    "MaxNorm",
    "Membership",
    "NormValue",
    "TraceNorm",
    "VersionSpace",
    "max_norm",
    "trace_norm",
]

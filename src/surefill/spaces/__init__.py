"""Matrix norms with certificates, matrix classes, and what an adversary may still play."""

from surefill.spaces.classes import MatrixClass, MaxNorm, TraceNorm
from surefill.spaces.norms import NormValue, max_norm, trace_norm
from surefill.spaces.version_space import Adversary, Membership, VersionSpace

__all__ = [
    "Adversary",
    "MatrixClass",
    "MaxNorm",
    "Membership",
    "NormValue",
    "TraceNorm",
    "VersionSpace",
    "max_norm",
    "trace_norm",
]

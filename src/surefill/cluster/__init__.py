"""Fits past one machine: row blocks on a Ray cluster, kept in a folder that all machines see, with checkpoints.

Ray is imported when a cluster is asked for, and nowhere but in :mod:`surefill.cluster.ray_blocks`.
"""

from surefill.cluster.backend import LocalBackend, RayBackend, choose_backend
from surefill.cluster.blocked_model import BlockedFactorModel

__all__ = ["BlockedFactorModel", "LocalBackend", "RayBackend", "choose_backend"]

"""Fits past one machine: row blocks on a Ray cluster, kept in a folder that all machines see, with checkpoints.

Ray is imported when a cluster is asked for, and nowhere but in :mod:`surefill.cluster.ray_blocks`.
"""

from surefill.cluster.backend import LocalBackend, RayBackend, choose_backend
from surefill.cluster.blocked_model import BlockedFactorModel
from surefill.cluster.folder_shards import ShardedTable, shard_folder_of_files
from surefill.cluster.sharded_fit import FittedFolder, fit_folder

__all__ = [
    "BlockedFactorModel",
    "FittedFolder",
    "LocalBackend",
    "RayBackend",
    "ShardedTable",
    "choose_backend",
    "fit_folder",
    "shard_folder_of_files",
]

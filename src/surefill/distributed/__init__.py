"""The main job past one machine: a folder of files completed on row blocks, with its promise."""

from surefill.distributed.complete_folder import complete_folder

__all__ = ["complete_folder"]

"""What becomes of memory that is freed."""

from __future__ import annotations

import ctypes
import sys

MMAP_THRESHOLD = -3
"""``M_MMAP_THRESHOLD`` of glibc's ``malloc.h``: blocks from this size on are mapped one by one."""

LARGE_BYTES = 128 << 10
"""The threshold that glibc starts with. Left alone it rises to the largest block ever freed, up to 32 MB: the arrays of
models, checkpoints and cells that wait then come from heaps that keep what is freed, and the process holds ever more.
"""


def return_large_blocks() -> bool:
    """Have every large block given back to the system as soon as it is freed; False where malloc is not glibc's."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(MMAP_THRESHOLD, LARGE_BYTES) == 1

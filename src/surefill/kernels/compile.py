"""How kernels are compiled and spread over cores.

Kernels are compiled once per machine (``cache``) and let go of the interpreter lock (``nogil``), so that plain
threads run them on all cores. Numba's own ``parallel=True`` is left alone: together with its cache it is unsafe
across processes, and without the cache every run of the command line would compile again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile ``function`` to machine code on first use, cached on disk."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))


def compiled_sums(function: Function) -> Function:
    """As :func:`compiled`, and sums may be taken in another order, so that they run several terms at a time."""
    return cast(Function, numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function))


def over_ranges(work: Callable[[int, int], None], starts: NDArray[np.int64]) -> None:
    """Call ``work(first, last)`` on ranges of groups that hold about as many entries each, one per core.

    Groups are independent, so the result does not depend on the number of cores.
    """
    n_groups, n_entries = len(starts) - 1, int(starts[-1])
    n_ranges = min(n_cores(), max(1, n_entries // 4096), n_groups)
    if n_ranges <= 1:
        work(0, n_groups)
        return
    cuts = np.searchsorted(starts, np.linspace(0, n_entries, n_ranges + 1))
    cuts[0], cuts[-1] = 0, n_groups
    list(workers().map(work, cuts[:-1].tolist(), cuts[1:].tolist()))


@cache
def workers() -> ThreadPoolExecutor:
    """One pool for the whole process: starting threads anew would cost as much as a small half-step."""
    return ThreadPoolExecutor(n_cores(), thread_name_prefix="surefill")


def n_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

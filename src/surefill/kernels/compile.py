"""How kernels are compiled.

Kernels are compiled once per machine (``cache``) and release the interpreter lock (``nogil``), so that plain threads
run them on all cores (:mod:`surefill.parallel`). Numba's own ``parallel=True`` is left alone: together with its
cache it is unsafe across processes, and without the cache every run of the command line would compile again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from surefill.kernels.compiler_cache import CACHE

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile ``function`` to machine code on first use, cached on disk."""
    return _compiled(function)


def compiled_sums(function: Function) -> Function:
    """As :func:`compiled`, and sums may be taken in another order, so that they run several terms at a time (SIMD)."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def compiled_terms(function: Function) -> Function:
    """As :func:`compiled`, for loops whose iterations can run several at a time (SIMD).

    Products may be fused with sums (fused multiply-add), and a division by 0 gives what NumPy gives.
    """
    return _compiled(function, fastmath={"contract", "nsz"}, error_model="numpy")


def _compiled(function: Function, **how: Any) -> Function:
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, **how)(function))
    except RuntimeError:  # numba has found no folder that it may write to
        return cast(Function, numba.njit(cache=CACHE.usable(), nogil=True, **how)(function))

"""The one way to run independent pieces of work: folds, restarts, ranges of rows.

Whoever has independent pieces asks for :func:`current_map` and calls its ``map(function, items)``. By default that is
:class:`ThreadMap`, all cores of this machine; a cluster is another class with the same method, put in place by
:func:`using_map`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

MIN_RANGE_ENTRIES = 4096
"""Fewest entries per range in :func:`over_ranges`: at rank 10 they take 0.1 ms to solve, ten times what a call of
``ThreadMap.map`` costs (both measured)."""


class PieceMap(Protocol):
    """Runs independent pieces of work, in any order and anywhere."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``[function(item) for item in items]``; if pieces fail, the error of the first one that does."""
        ...


class SerialMap:
    """One piece after the other, in the calling thread.

    >>> SerialMap().map(abs, [-2, 1])
    [2, 1]
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``[function(item) for item in items]``."""
        return [function(item) for item in items]


class ThreadMap:
    """Pieces on all cores, in threads of one pool; what comes back does not depend on the number of cores.

    It pays where pieces release the interpreter lock, as compiled kernels and linear algebra do. The calling thread
    works too, and waits only for pieces that another thread has begun: a piece may therefore call ``map`` itself,
    without deadlock and without more threads.

    >>> ThreadMap().map(abs, [-2, 1])
    [2, 1]
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``[function(item) for item in items]``; if pieces fail, the error of the first one, later ones not begun."""
        queue = _Queue(function, list(items))
        n_helpers = min(n_cores(), len(queue.items)) - 1
        # Each helper gets a copy of the caller's context, so that ``np.errstate`` and the like hold in every piece.
        helpers = [_pool().submit(copy_context().run, queue.work) for _ in range(n_helpers)]
        try:
            with one_blas_thread() if helpers else nullcontext():  # the pieces have all cores already
                queue.work()
        finally:
            # Helpers that have not begun are not needed any more; those at work finish their piece.
            queue.close()
            wait([helper for helper in helpers if not helper.cancel()])
        if queue.errors:
            raise queue.errors[min(queue.errors)]
        return [queue.results[i] for i in range(len(queue.items))]


class _Queue(Generic[Item, Result]):
    """Items handed out in order to whichever thread is free, until one fails.

    Since they are handed out in order, all items before one that failed were begun: the first error in the order of
    the items is the one a serial run would meet.
    """

    def __init__(self, function: Callable[[Item], Result], items: list[Item]) -> None:
        self.function, self.items = function, items
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self._next, self._lock = 0, Lock()

    def work(self) -> None:
        """Run pieces until none is left to begin."""
        while (i := self._take()) is not None:
            try:
                self.results[i] = self.function(self.items[i])
            except BaseException as error:  # also KeyboardInterrupt: raised again in the thread that called map
                self.errors[i] = error

    def close(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._next = len(self.items)

    def _take(self) -> int | None:
        with self._lock:
            if self.errors or self._next == len(self.items):
                return None
            self._next += 1
            return self._next - 1


_CURRENT: ContextVar[PieceMap] = ContextVar("surefill_map", default=ThreadMap())  # noqa: B039  (it holds no state)


def current_map() -> PieceMap:
    """Where independent pieces run now."""
    return _CURRENT.get()


@contextmanager
def using_map(pieces: PieceMap) -> Iterator[None]:
    """Run independent pieces by ``pieces`` inside.

    >>> with using_map(SerialMap()):
    ...     type(current_map()).__name__
    'SerialMap'
    """
    token = _CURRENT.set(pieces)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class _OneBlasThread:
    """How many callers want linear algebra on one core; the setting is the process's own, so that they share it."""

    def __init__(self) -> None:
        self._callers, self._before, self._lock = 0, list[int](), Lock()

    def reset(self) -> None:
        """No callers, and a lock that nobody holds: a forked child has none of its parent's other threads."""
        self._callers, self._lock = 0, Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._callers += 1
            if self._callers == 1:
                self._before = [library.num_threads for library in _blas()]
                for library in _blas():
                    library.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._callers -= 1
            if self._callers == 0:
                for library, before in zip(_blas(), self._before, strict=True):
                    library.set_num_threads(before)


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Linear algebra on one core inside: for small matrices, where a second thread waits busily and works little.

    On MovieLens 100K a fit takes 2.2 times the processor time with two threads (measured), most of it spent waiting.
    """
    return _ONE_BLAS_THREAD


@cache
def _blas() -> list[Any]:
    """The BLAS libraries that are loaded."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def over_ranges(work: Callable[[int, int], None], starts: NDArray[np.int64]) -> None:
    """Call ``work(first, last)`` on ranges of groups that hold about as many entries each, one per core.

    Group ``g`` holds the entries from ``starts[g]`` to ``starts[g + 1]``. Groups are independent, so the result does
    not depend on the number of cores.
    """
    n_groups, n_entries = len(starts) - 1, int(starts[-1])
    n_ranges = min(n_cores(), max(1, n_entries // MIN_RANGE_ENTRIES), n_groups)
    if n_ranges <= 1:
        work(0, n_groups)
        return
    bounds = np.searchsorted(starts, np.linspace(0, n_entries, n_ranges + 1))
    bounds[0], bounds[-1] = 0, n_groups
    ThreadMap().map(lambda ends: work(*ends), zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def n_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    """One pool for the whole process: starting threads anew would cost as much as a small half-step."""
    return ThreadPoolExecutor(n_cores(), thread_name_prefix="surefill")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool but not its threads, and would wait for them forever.
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_ONE_BLAS_THREAD.reset)

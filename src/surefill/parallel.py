"""The one way to run independent pieces of work: folds, restarts, ranges of rows.

Whoever has independent pieces asks for :func:`current_map` and calls its ``map(function, items)``. By default that is
:class:`ThreadMap`, all cores of this machine, or as many as :func:`using_jobs` says; a cluster is another class with
the same method, put in place by :func:`using_map`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cache
from itertools import islice
from threading import Event, Lock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from surefill.errors import invalid_parameter, is_number
from surefill.loop import Cancelled, stopping_at

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
    without deadlock and without more threads. When a signal interrupts one piece, solvers at work in others end after
    their step.

    >>> ThreadMap().map(abs, [-2, 1])
    [2, 1]
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``[function(item) for item in items]``; if pieces fail, the error of the first one, later ones not begun."""
        queue = _Queue(function, list(items))
        n_helpers = min(n_workers(), len(queue.items)) - 1
        # Each helper gets a copy of the caller's context, so that ``np.errstate`` and the like hold in every piece.
        helpers = [_current_pool().submit(copy_context().run, queue.help) for _ in range(n_helpers)]
        try:
            with one_blas_thread() if helpers else nullcontext():  # the pieces have all cores already
                queue.work()
        finally:
            # Helpers that have not begun are not needed any more; those at work finish their piece.
            queue.close()
            wait([helper for helper in helpers if not helper.cancel()])
        if queue.errors:
            raise queue.first_error()
        return [queue.results[i] for i in range(len(queue.items))]


def ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """``function(item)`` for one item after the other, those to come computed on all cores meanwhile.

    At most as many results as there are cores are computed and not yet taken, so that memory stays flat however many
    items there are. While it waits, the calling thread works at items that no other has begun.

    >>> list(ahead(abs, [-2, 1]))
    [2, 1]
    """
    pieces, n = current_map(), n_workers()
    if n == 1 or not isinstance(pieces, ThreadMap):
        left = iter(items)
        while batch := list(islice(left, n)):
            yield from pieces.map(function, batch)
        return
    begun: deque[_Ahead[Item, Result]] = deque()
    with one_blas_thread():
        try:
            for item in items:
                begun.append(_Ahead(function, item))
                if len(begun) > n:
                    yield _first(begun)
            while begun:
                yield _first(begun)
        finally:
            wait([piece.future for piece in begun if not piece.future.cancel()])


class _Ahead(Generic[Item, Result]):
    """One item handed to the pool, or taken back by the caller."""

    def __init__(self, function: Callable[[Item], Result], item: Item) -> None:
        self.function, self.item = function, item
        self.future: Future[Result] = _current_pool().submit(copy_context().run, function, item)

    def taken_back(self) -> bool:
        """Whether nobody had begun: then it is computed here and now."""
        if not self.future.cancel():
            return False
        own: Future[Result] = Future()
        try:
            own.set_result(self.function(self.item))
        except BaseException as error:  # raised where the result is asked for
            own.set_exception(error)
        self.future = own
        return True


def _first(begun: deque[_Ahead[Item, Result]]) -> Result:
    """The first result; until it is there, what nobody has begun is computed here."""
    while not begun[0].future.done():
        if not any(piece.taken_back() for piece in begun if not piece.future.done()):
            break
    return begun.popleft().future.result()


class _Queue(Generic[Item, Result]):
    """Items handed out in order to whichever thread is free, until one fails.

    Since they are handed out in order, all items before one that failed were begun: the first error in the order of
    the items is the one a serial run would meet.
    """

    def __init__(self, function: Callable[[Item], Result], items: list[Item]) -> None:
        self.function, self.items = function, items
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self._next, self._lock, self._interrupted = 0, Lock(), Event()

    def help(self) -> None:
        """Run pieces in another thread than the caller's, until none is left to begin or the caller is interrupted."""
        with stopping_at(self._interrupted):
            self.work()

    def work(self) -> None:
        """Run pieces until none is left to begin."""
        while (i := self._take()) is not None:
            try:
                self.results[i] = self.function(self.items[i])
            except BaseException as error:  # also KeyboardInterrupt: raised again in the thread that called map
                self.errors[i] = error
                if not isinstance(error, Exception):
                    self._interrupted.set()

    def first_error(self) -> BaseException:
        """The first in the order of the items; a piece that was only told to stop has none of its own."""
        own = [i for i, error in self.errors.items() if not isinstance(error, Cancelled)]
        return self.errors[min(own or self.errors)]

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


@dataclass(frozen=True)
class _Jobs:
    """At most ``n`` threads at a time: the calling one, and those of a pool of its own."""

    n: int
    pool: ThreadPoolExecutor | None


_JOBS: ContextVar[_Jobs | None] = ContextVar("surefill_jobs", default=None)


@contextmanager
def using_jobs(n_jobs: int | None) -> Iterator[None]:
    """Use at most ``n_jobs`` cores inside, linear algebra included: None or -1 for all, -2 for all but one.

    It holds for what is called inside and for nothing else, except that linear algebra is limited in the whole process
    meanwhile, since libraries know no other way. Results do not depend on it.

    >>> with using_jobs(1):
    ...     n_workers()
    1
    """
    check_n_jobs("using_jobs", n_jobs)
    if n_jobs is None:
        yield
        return
    n = int(n_jobs) if n_jobs > 0 else max(1, n_cores() + 1 + int(n_jobs))
    pool = ThreadPoolExecutor(n - 1, thread_name_prefix="surefill") if n > 1 else None
    token = _JOBS.set(_Jobs(n, pool))
    try:
        with _BLAS_LIMIT.of(n):
            yield
    finally:
        _JOBS.reset(token)
        if pool is not None:
            pool.shutdown(wait=False)


def check_n_jobs(owner: str, given: object) -> None:
    """Refuse what is not a number of jobs, as scikit-learn counts them.

    >>> check_n_jobs("PartialCompleter", -1)
    """
    if given is not None and not (is_number(given) and given == int(given) and given != 0):  # type: ignore[call-overload]
        raise invalid_parameter(owner, "n_jobs", "None, a whole number of at least 1, or -1 for all cores", given)


def n_workers() -> int:
    """How many threads may work at once here: all cores, or as many as :func:`using_jobs` says."""
    jobs = _JOBS.get()
    return n_cores() if jobs is None else jobs.n


def _current_pool() -> ThreadPoolExecutor:
    jobs = _JOBS.get()
    return _pool() if jobs is None or jobs.pool is None else jobs.pool


class _BlasLimit:
    """The least of the numbers of cores that callers want linear algebra on; the setting is the process's own."""

    def __init__(self) -> None:
        self._limits, self._before, self._lock = list[int](), list[int](), Lock()

    def reset(self) -> None:
        """No callers, and a lock that nobody holds: a forked child has none of its parent's other threads."""
        self._limits, self._lock = [], Lock()

    @contextmanager
    def of(self, n: int) -> Iterator[None]:
        """At most ``n`` cores inside."""
        with self._lock:
            if not self._limits:
                self._before = [library.num_threads for library in _blas()]
            self._limits.append(n)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._limits.remove(n)
                self._apply()

    def _apply(self) -> None:
        for library, before in zip(_blas(), self._before, strict=True):
            library.set_num_threads(min([before, *self._limits]))


_BLAS_LIMIT = _BlasLimit()


def one_blas_thread() -> AbstractContextManager[None]:
    """Linear algebra on one core inside: for small matrices, where a second thread waits busily and works little.

    On MovieLens 100K a fit takes 2.2 times the processor time with two threads (measured), most of it spent waiting.
    """
    return _BLAS_LIMIT.of(1)


@cache
def _blas() -> list[Any]:
    """The BLAS libraries that are loaded."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def over_ranges(work: Callable[[int, int], None], starts: NDArray[np.int64]) -> None:
    """Call ``work(first, last)`` on ranges of groups that hold about as many entries each, one per core to be used.

    Group ``g`` holds the entries from ``starts[g]`` to ``starts[g + 1]``. Groups are independent, so the result does
    not depend on the number of cores.
    """
    n_groups, n_entries = len(starts) - 1, int(starts[-1])
    n_ranges = min(n_workers(), max(1, n_entries // MIN_RANGE_ENTRIES), n_groups)
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
    os.register_at_fork(after_in_child=_BLAS_LIMIT.reset)

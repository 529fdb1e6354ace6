"""One estimate over the whole of a job, from the parts that it has and how long those took that are done.

A job says with :func:`plan` which parts it has and about how long each takes, and opens each with :func:`part`; a part
may plan parts of its own. With E_p the seconds that part p was expected to take and T_p those it took,

    R = sum over parts to come of E_p r_p,  r_p = (sum T + s r) / (sum E + s) over parts of its kind that are done,

is what is left, with r the same over parts of all kinds, drawn towards 1, and s two seconds: short parts tell little.
Of the part that is running, the steps of its solvers tell the share f that is done; with t the seconds spent on it,
(1 - f) ((1 - f) E r + t) are left: what was expected at first, what the steps say towards the end. The share of the
whole is t / (t + R), t being that of the whole, and never falls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp, inf
from threading import RLock

from surefill.loop import Progress

SURE = 0.8
"""Share of a part up to which it moves as expected; beyond, it creeps towards 1, for it may take longer."""

SOME_SECONDS = 2.0
"""Parts that were expected to take less than this say little of others: programs are loaded and compiled in them."""

ALMOST = 0.99
"""A job that runs is not done."""

ENOUGH = 0.05
"""Share of a part of known length from which on what is left is told, if no part is done yet."""

LONGER, LONGER_SECONDS = 2.0, 10.0
"""An estimate that rises replaces the one shown only above so many times that and so many seconds more."""


@dataclass(frozen=True)
class Part:
    """A part of a job: what it is called, about how long it takes, and how many steps solvers report in it.

    Attributes
    ----------
    name : what people read while it runs.
    seconds : expected, of one core; only ratios matter once a first part is done.
    steps : progress reports that are expected in it; 0 where there are none, and time tells.
    kind : parts of one kind take more or less than expected alike; the name where empty.

    Examples
    --------
    >>> from surefill.waiting import Part
    >>> Part("fit", seconds=2.0, steps=40, kind="completion").name
    'fit'
    """

    name: str
    seconds: float
    steps: float = 0.0
    kind: str = ""


@dataclass(frozen=True)
class WaitingState:
    """The share of the job that is done, the seconds that are left (None while that is unknown), what is being done.

    Examples
    --------
    >>> from surefill.waiting import WaitingState
    >>> WaitingState(0.5, 118.0, "fit").words
    'about 2 min left'
    """

    share: float
    seconds_left: float | None
    doing: str

    @property
    def words(self) -> str:
        """What is left, with no more digits than are known."""
        if self.seconds_left is None:
            return ""
        seconds = self.seconds_left
        if seconds < 5:
            return "a few seconds left"
        if seconds < 55:
            return f"about {10 * max(1, round(seconds / 10))} s left"
        if seconds < 3300:
            minutes = max(1, round(seconds / 60))
            return f"about {minutes if minutes < 10 else 5 * round(minutes / 5)} min left"
        return f"about {round(seconds / 1800) / 2:g} h left"


@dataclass(eq=False)
class _Node:
    """A part that is to come, runs or is done, with parts of its own."""

    part: Part
    parent: _Node | None = None
    parts: list[_Node] = field(default_factory=list)
    begun: float | None = None
    seconds: float | None = None
    steps: float = 0
    reached: float | None = None

    @property
    def kind(self) -> str:
        return self.part.kind or self.part.name


@dataclass
class _Sums:
    """What parts of a kind were expected to take, and took."""

    expected: float = 0.0
    taken: float = 0.0
    steps_expected: float = 0.0
    steps_taken: float = 0.0


class Waiting:
    """The estimate over a job's parts; called with each :class:`surefill.loop.Progress`, from any thread.

    Examples
    --------
    >>> from surefill.waiting import Part, Waiting
    >>> now = 0.0
    >>> waiting = Waiting(clock=lambda: now)
    >>> waiting.plan([Part("fit", 2.0), Part("write", 8.0)])
    >>> with waiting.part("fit"):
    ...     now = 4.0  # twice as long as expected
    >>> state = waiting.state()
    >>> state.share, state.seconds_left
    (0.25, 12.0)
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._lock = clock, RLock()
        self._root = self._open = _Node(Part("", 0.0), begun=clock())
        self._sums: dict[str, _Sums] = {}
        self._share, self._shown, self._looked = 0.0, inf, clock()

    def plan(self, parts: Sequence[Part]) -> None:
        """The part that is open consists of these, after those that were begun; what was planned before is dropped."""
        with self._lock:
            begun = [node for node in self._open.parts if node.begun is not None]
            self._open.parts = begun + [_Node(each, self._open) for each in parts]

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Inside, the part of that name runs; parts planned before it are taken to be skipped."""
        node = self._begin(name)
        try:
            yield
        finally:
            self._end(node)

    def __call__(self, step: Progress) -> None:
        """A solver has made a step in the part that is open."""
        with self._lock:
            self._open.steps += 1

    def reached(self, share: float) -> None:
        """This share of the part that is open is done, where that is known."""
        with self._lock:
            self._open.reached = share

    def state(self) -> WaitingState:
        """Where the job is now; the share never falls, nor do the seconds rise unless they double and more."""
        with self._lock:
            now = self._clock()
            left, spent, passed = self._left(self._root, now), now - (self._root.begun or 0.0), now - self._looked
            known = bool(self._sums) or (self._open.reached or 0.0) >= ENOUGH
            if left > 0:  # else nothing is planned, or what is planned is done
                creeping = self._share + (1 - self._share) * passed / (passed + left)
                self._share = min(max(spent / (spent + left), creeping), ALMOST)
                if known and (left < self._shown or left > LONGER * self._shown + LONGER_SECONDS):
                    self._shown = left
            self._looked = now
            return WaitingState(self._share, self._shown if known and self._shown < inf else None, self._doing())

    def _doing(self) -> str:
        """The part that is open, after the one of several alike that it belongs to, such as a fold."""
        done = [node for node in self._root.parts if node.begun is not None]
        last = done[-1] if self._open is self._root and done else self._open
        names, above = [last.part.name], last.parent
        while above is not None:
            names += [above.part.name] if above.part.kind else []
            above = above.parent
        return ", ".join(reversed(names))

    def _begin(self, name: str) -> _Node:
        with self._lock:
            waiting = [node for node in self._open.parts if node.begun is None]
            place = next((k for k, node in enumerate(waiting) if node.part.name == name), None)
            if place is None:
                node = _Node(Part(name, 0.0), self._open)
                self._open.parts.append(node)
            else:
                node = waiting[place]
                for skipped in waiting[:place]:
                    self._open.parts.remove(skipped)
            node.begun = self._clock()
            self._open = node
            return node

    def _end(self, node: _Node) -> None:
        with self._lock:
            node.seconds = self._clock() - (node.begun or 0.0)
            self._open = node.parent or self._root
            if node.part.seconds > 0:
                sums = self._sums.setdefault(node.kind, _Sums())
                sums.expected += node.part.seconds
                sums.taken += node.seconds
                sums.steps_expected += node.part.steps
                sums.steps_taken += node.steps if node.part.steps else 0

    def _left(self, node: _Node, now: float) -> float:
        """R of a part."""
        if node.seconds is not None:
            return 0.0
        expected = node.part.seconds * self._ratio(node.kind)
        if node.parts:
            return sum(self._left(each, now) for each in node.parts)
        if node.begun is None:
            return expected
        spent = now - node.begun
        if node.reached is not None:
            return (1 - node.reached) * ((1 - node.reached) * expected + spent)
        if node.part.steps:
            done = _eased(node.steps / (node.part.steps * self._step_ratio(node.kind)))
            return (1 - done) * ((1 - done) * expected + spent)
        return expected * (1 - _eased(spent / expected)) if expected > 0 else 0.0

    def _ratio(self, kind: str) -> float:
        """Seconds taken for each expected, of parts of this kind and, where they are few, of all."""
        overall = _drawn_towards(1.0, list(self._sums.values()))
        return _drawn_towards(overall, [self._sums[kind]] if kind in self._sums else [])

    def _step_ratio(self, kind: str) -> float:
        sums = self._sums.get(kind)
        return sums.steps_taken / sums.steps_expected if sums is not None and sums.steps_taken > 0 else 1.0


def _drawn_towards(ratio: float, sums: list[_Sums]) -> float:
    expected, taken = sum(each.expected for each in sums), sum(each.taken for each in sums)
    return (taken + SOME_SECONDS * ratio) / (expected + SOME_SECONDS)


def _eased(share: float) -> float:
    """``share`` up to SURE, then ever more slowly towards 1."""
    return share if share <= SURE else 1 - (1 - SURE) * exp(-(share - SURE) / (1 - SURE))


def plan(progress: object, parts: Sequence[Part]) -> None:
    """Tell whoever waits which parts are to come; a plain callback is told nothing.

    >>> waiting = Waiting()
    >>> plan(waiting, [Part("fit", 1.0)])
    """
    if isinstance(progress, Waiting):
        progress.plan(parts)


@contextmanager
def part(progress: object, name: str) -> Iterator[None]:
    """Tell whoever waits that inside a part runs; a plain callback is told nothing.

    >>> waiting = Waiting()
    >>> with part(waiting, "fit"):
    ...     print(waiting.state().doing)
    fit
    """
    if isinstance(progress, Waiting):
        with progress.part(name):
            yield
    else:
        yield

"""Blocks on a Ray cluster: actors that own them, calls that survive the loss of actors and of machines."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from surefill.blocks import Sums, TreeSum
from surefill.cluster.block_owner import Behind, BlockKind, BlockOwner, Call, Saved
from surefill.cluster.stored_block import StoredBlock
from surefill.errors import InputError
from surefill.parallel import using_jobs

LASTING = ("place", "select_rows", "select_cols", "select_cells", "index", "forget")
"""Calls that a worker started anew is always told again, once it has the states saved: which cells there are."""

SMALL = 50_000
"""Bytes of arrays up to which what goes to all workers goes with the call, in place of an object of the cluster, which
takes milliseconds to make."""

MOST_DEATHS = 5
"""How often a worker may die in one step before it is taken that the step itself kills it."""

PATIENCE = 600.0
"""Seconds that a worker may be away before the fit ends with a sentence; one that works may take as long as it does."""


def ray_module() -> Any:
    """Ray, imported now; InputError where it is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Processes that Ray starts before any are asked for took half of what an idle cluster takes, and seconds to start.
    os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
    try:
        import ray
    except ImportError:
        raise InputError("a Ray cluster needs Ray, which is not installed: pip install 'surefill[ray]'.") from None
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to the cluster at ``address``, or to one of its own on this machine that ends with it."""
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        ray.init(**quiet, **({"include_dashboard": False} if address is None else {"address": address}))
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {address or 'this machine'}: {str(error).splitlines()[0]}"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def map_on(ray: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """``[function(item) for item in items]``, each as a task on a core of the cluster, again where it was lost."""

    def run(call: Callable[[Any], Any], item: Any) -> Any:
        with using_jobs(1):
            return call(item)

    task, shared = ray.remote(num_cpus=1, max_retries=-1)(run), ray.put(function)
    try:
        return list(ray.get([task.remote(shared, item) for item in items]))
    except ray.exceptions.RayTaskError as error:
        raise _as_own(error) from None


@dataclass
class Traffic:
    """Bytes of arrays that went to workers and came back, and how many calls and restarts there were."""

    sent: int = 0
    received: int = 0
    calls: int = 0
    restarts: int = 0


@dataclass(frozen=True, eq=False)
class _Told:
    """A call as it was told: what goes to all, as an object of the cluster, and what goes to each worker."""

    call: Call
    common: Any
    own: list[list[Any]] | None


class RayBlocks:
    """The blocks of a folder of shards, owned by as many actors as asked for, consecutive ones by one.

    Every call is numbered and kept, until states are saved, so that a worker that died can be told again.
    """

    def __init__(
        self,
        ray: Any,
        shards: Path,
        states: Path,
        n_blocks: int,
        n_workers: int,
        n_jobs: int = 1,
        kind: BlockKind = StoredBlock,
    ) -> None:
        self._ray, self._n_blocks = ray, n_blocks
        bounds = np.linspace(0, n_blocks, min(n_workers, n_blocks) + 1).round().astype(int).tolist()
        self._ranges = list(pairwise(bounds))
        # Actors ask for no cores, so that those of a lost machine find a place on the others.
        actor = ray.remote(max_restarts=-1, num_cpus=0, scheduling_strategy="SPREAD")(BlockOwner)
        places = str(shards.absolute()), str(states.absolute())
        self._actors = [actor.remote(*places, first, last, n_blocks, n_jobs, kind) for first, last in self._ranges]
        self._told: list[_Told] = []
        self._number = 0
        self.saved: dict[str, Saved] = {}
        self.traffic = Traffic()

    def __len__(self) -> int:
        return self._n_blocks

    def processes(self) -> list[int]:
        """The process ids of the workers."""
        return [int(self._ray.get(actor.process.remote())) for actor in self._actors]

    def each(self, method: str, *common: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """What ``method`` of each block gives."""
        answers = self._call(method, False, common, own)
        if method == "drop":
            self.saved.pop(common[0], None)
        return [result for answer in answers for result in answer]

    def total(self, method: str, *common: Any, own: Sequence[Any] | None = None) -> Sums:
        """The sums of what ``method`` of each block gives."""
        tree = TreeSum(self._n_blocks)
        for nodes in self._call(method, True, common, own):
            for node, sums in nodes.items():
                tree.add(node, sums)
        return tree.total()

    def save(self, name: str, table: str, keep: Sequence[Saved]) -> Saved:
        """Have all workers write the rows of a state; calls before are not needed any more then."""
        for _ in self._call("save", False, (name, [*keep, *self.saved.values()]), None):
            pass
        saved = self.saved[name] = (name, table, self._number)
        self._forget_calls()
        return saved

    def load(self, saved: Sequence[Saved]) -> None:
        """Have all workers read the rows of states that were saved, perhaps by others before them."""
        for _ in self._call("load", False, (list(saved),), None):
            pass
        self._number = max(self._number, *(tag for _, _, tag in saved))
        self.saved = {each[0]: each for each in saved}
        self._forget_calls()

    def close(self) -> None:
        """Let the workers go."""
        for actor in self._actors:
            self._ray.kill(actor)

    def _forget_calls(self) -> None:
        """Keep a call that loads the states saved, and those that say which cells there are."""
        lasting = [told for told in self._told if told.call.method in LASTING]
        last, self._told = self._told[-1].call.number, []
        states, nothing = self._ray.put((list(self.saved.values()),)), self._ray.put(())
        self._append(Call(-last, 0, "load", False), states, None)
        for told in lasting:
            self._append(told.call._replace(before=self._last_number), told.common, told.own)
        # Workers that were not started again have done the call of this number.
        self._append(Call(last, self._last_number, "nothing", False), nothing, None)

    @property
    def _last_number(self) -> int:
        return self._told[-1].call.number if self._told else 0

    def _append(self, call: Call, common: Any, own: list[list[Any]] | None) -> _Told:
        self._told.append(_Told(call, common, own))
        return self._told[-1]

    def _call(self, method: str, summed: bool, common: tuple[Any, ...], own: Sequence[Any] | None) -> Iterator[Any]:
        """The answers of all workers, in their order; all work at the same time."""
        self._number += 1
        call = Call(self._number, self._last_number, method, summed)
        parts = None if own is None else [list(own[first:last]) for first, last in self._ranges]
        told = self._append(call, common if _bytes(common) < SMALL else self._ray.put(common), parts)
        pending = [self._tell(worker, told) for worker in range(len(self._actors))]
        self.traffic.calls += 1
        self.traffic.sent += _bytes(common) * len(self._actors) + _bytes(parts)
        answers = []
        for worker, answer in enumerate(pending):
            answers.append(self._wait(worker, told, answer))
            self.traffic.received += _bytes(answers[-1])
        return iter(answers)

    def _tell(self, worker: int, told: _Told) -> Any:
        own = None if told.own is None else told.own[worker]
        return self._actors[worker].run.remote(told.call, told.common, own)

    def _wait(self, worker: int, told: _Told, pending: Any) -> Any:
        """The answer; a worker that was started again is told all calls before."""
        deaths, begun, errors = 0, time.monotonic(), self._ray.exceptions
        while True:
            try:
                answer = self._ray.get(pending)
                if not isinstance(answer, Behind):
                    return answer
                deaths += 1
                self.traffic.restarts += 1
                for earlier in self._told[: self._told.index(told)]:
                    self._ray.get(self._tell(worker, earlier))
            except errors.RayTaskError as error:
                raise _as_own(error) from None
            except (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError, errors.RpcError) as error:
                self._check_patience(worker, deaths, begun, error)
                time.sleep(0.2)
            pending = self._tell(worker, told)

    def _check_patience(self, worker: int, deaths: int, begun: float, error: Exception) -> None:
        first, last = self._ranges[worker]
        blocks = f"blocks {first} to {last - 1}"
        if deaths > MOST_DEATHS:
            raise InputError(
                f"the worker that owns {blocks} died {deaths} times in one step, most likely for want of memory: use "
                f"more workers, machines with more memory, or a lower rank ({str(error).splitlines()[0]})."
            ) from None
        if time.monotonic() - begun > PATIENCE:
            raise InputError(
                f"the worker that owns {blocks} has been away for {PATIENCE:g} seconds: look whether the cluster "
                "has a machine left for it, start one, and go on with --resume."
            ) from None


def _as_own(error: Any) -> Exception:
    """The error that a worker met, where it is a sentence for the user."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, InputError):
        return InputError(str(cause))
    if isinstance(cause, MemoryError):
        return InputError("a worker has no memory left: use more workers, larger machines, or a lower rank.")
    return error if isinstance(error, Exception) else RuntimeError(str(error))


def _bytes(content: Any) -> int:
    """Bytes of all arrays in it."""
    if isinstance(content, np.ndarray):
        return content.nbytes
    if isinstance(content, dict):
        return sum(map(_bytes, content.values()))
    return sum(map(_bytes, content)) if isinstance(content, list | tuple) else 0

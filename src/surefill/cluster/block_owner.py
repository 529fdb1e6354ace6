"""What one worker does: it owns consecutive blocks, answers numbered calls once each, and keeps its rows on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surefill.blocks import TreeSum
from surefill.cluster.stored_block import StoredBlock
from surefill.errors import InputError
from surefill.io.numpy_files import read_npy
from surefill.parallel import using_jobs

Saved = tuple[str, str, int]
"""A state on disk: its name, the table it is about, and the number of the call that saved it."""


BlockKind = Callable[[Path, int], Any]
"""Makes the block of a number that lies in a folder."""


class Call(NamedTuple):
    """A call to all blocks: its number, that of the call before it, a method, and whether its results are summed."""

    number: int
    before: int
    method: str
    summed: bool


class Behind(NamedTuple):
    """The answer of a worker that has not had all calls before: it was started again."""

    done: int


class BlockOwner:
    """The blocks first <= i < last of the shards in a folder.

    A call with the number of the last one gets the same answer again, without being done twice; one whose predecessor
    is not the last one done is not done, and answered by :class:`Behind`: whoever asks tells all calls again, from the
    state last saved on. So a worker may be killed and started again at any time.
    """

    def __init__(
        self,
        shards: str,
        states: str,
        first: int,
        last: int,
        n_blocks: int,
        n_jobs: int = 1,
        kind: BlockKind = StoredBlock,
    ) -> None:
        self._states, self._n_blocks, self._n_jobs = Path(states), n_blocks, n_jobs
        self._blocks = {index: kind(Path(shards), index) for index in range(first, last)}
        self._done = 0
        self._answer: Any = None

    def process(self) -> int:
        """The id of this process."""
        return os.getpid()

    def run(self, call: Call, common: tuple[Any, ...], own: Sequence[Any] | None = None) -> Any:
        """The results of all blocks, by block or summed by node of the tree."""
        if call.number == self._done:
            return self._answer
        if call.before != self._done:
            return Behind(self._done)
        self._answer = None  # whoever tells another call has this one's answer; two at once would take twice the memory
        with using_jobs(self._n_jobs):
            self._answer = self._result(call, common, own)
        self._done = call.number
        return self._answer

    def _result(self, call: Call, common: tuple[Any, ...], own: Sequence[Any] | None) -> Any:
        if call.method == "nothing":
            return None
        if call.method in ("save", "load"):
            getattr(self, f"_{call.method}")(call.number, *common)
            return None
        results = (
            getattr(block, call.method)(*common, *([] if own is None else [own[at]]))
            for at, block in enumerate(self._blocks.values())
        )
        if not call.summed:
            return list(results)
        tree = TreeSum(self._n_blocks)
        for index, sums in zip(self._blocks, results, strict=True):
            tree.add((0, index), sums)
        return tree.nodes

    def _save(self, number: int, name: str, keep: Sequence[Saved]) -> None:
        """Write the rows of a state, and remove what is not in ``keep``."""
        for index, block in self._blocks.items():
            place = self._states / f"rows-{index:06d}"
            place.mkdir(parents=True, exist_ok=True)
            partial = place / f"{name}.part"
            _write(partial, block.get(name))
            os.replace(partial, place / _file_name(name, number))
            kept = {_file_name(name, number), *(_file_name(saved, tag) for saved, _, tag in keep)}
            for path in place.iterdir():
                if path.name not in kept:
                    path.unlink(missing_ok=True)

    def _load(self, number: int, saved: Sequence[Saved]) -> None:
        """Read the rows of states that were saved."""
        for name, table, tag in saved:
            for index, block in self._blocks.items():
                path = self._states / f"rows-{index:06d}" / _file_name(name, tag)
                try:
                    block.put(name, table, _read(path))
                except (OSError, ValueError, EOFError, KeyError):
                    raise InputError(
                        f"the rows of block {index} were saved as {path}, which is missing or damaged: every machine "
                        "of the cluster must see this folder; without these rows the fit starts again."
                    ) from None


def _write(path: Path, arrays: dict[str, Any]) -> None:
    """Write named arrays one after the other, their names first: a zip file of them takes twice the time, for sums that
    nobody looks at."""
    with open(path, "wb") as file:
        for array in (np.array(list(arrays)), *arrays.values()):
            np.save(file, np.asarray(array), allow_pickle=False)


def _read(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        names = read_npy(file).tolist()
        return {name: read_npy(file) for name in names}


def _file_name(name: str, number: int) -> str:
    return f"{name}-{number}.arrays"

"""Row blocks: the interface between an algorithm whose rows lie in several places and whatever runs it there.

An algorithm is a class with one object per block of rows and methods that take arrays and give arrays. Whoever drives
it holds a :class:`Blocks`: ``each`` calls a method of every block, ``total`` sums what the blocks give. Blocks are cut
from the table alone and sums are taken along one fixed binary tree over them, so that results do not depend on how
many threads, processes or machines the blocks are on, to the last bit. :class:`LocalBlocks` is threads of this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from surefill.parallel import ahead

Node = tuple[int, int]
"""Level l and index i of a node of the tree: the blocks from i 2^l up to (i + 1) 2^l."""

Sums = tuple[Any, ...]
"""Arrays and numbers, each summed by itself."""


class Blocks(Protocol):
    """The objects of an algorithm, one per block of rows, wherever they are."""

    def __len__(self) -> int:
        """How many blocks there are."""
        ...

    def each(self, method: str, *common: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """What ``method`` of each block gives for ``common``, and last the block's own argument, where there are."""
        ...

    def total(self, method: str, *common: Any, own: Sequence[Any] | None = None) -> Sums:
        """The sums of what ``method`` of each block gives, along the tree."""
        ...


class LocalBlocks:
    """Blocks in this process, as many at a time as there are cores.

    >>> from types import SimpleNamespace
    >>> blocks = LocalBlocks([SimpleNamespace(count=lambda k, n=n: (n * k,)) for n in range(4)])
    >>> blocks.total("count", 10), len(blocks)
    ((60,), 4)
    """

    def __init__(self, blocks: Iterable[Any]) -> None:
        self._blocks = list(blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def each(self, method: str, *common: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """What ``method`` of each block gives."""
        return list(self._results(method, common, own))

    def total(self, method: str, *common: Any, own: Sequence[Any] | None = None) -> Sums:
        """The sums of what ``method`` of each block gives."""
        tree = TreeSum(len(self))
        for index, sums in enumerate(self._results(method, common, own)):
            tree.add((0, index), sums)
        return tree.total()

    def _results(self, method: str, common: tuple[Any, ...], own: Sequence[Any] | None) -> Iterator[Any]:
        return ahead(partial(self._result, method, common, own), range(len(self)))

    def _result(self, method: str, common: tuple[Any, ...], own: Sequence[Any] | None, index: int) -> Any:
        return getattr(self._blocks[index], method)(*common, *([] if own is None else [own[index]]))


class TreeSum:
    """Sums over ``n`` blocks along one binary tree, whichever of them are added where.

    What was added is held as few nodes: of consecutive blocks at most two on each level, so that a worker that has
    many blocks sends little, and whoever adds the nodes of all workers arrives at the same sums.

    >>> halves = TreeSum(3), TreeSum(3)
    >>> for index, value in enumerate([0.1, 0.2, 0.3]):
    ...     halves[index // 2].add((0, index), (value,))
    >>> whole = TreeSum(3)
    >>> for half in halves:
    ...     for node, sums in half.nodes.items():
    ...         whole.add(node, sums)
    >>> whole.total() == (0.1 + 0.2 + 0.3,)
    True
    """

    def __init__(self, n: int) -> None:
        self._n, self._top = n, (n - 1).bit_length()
        self.nodes: dict[Node, Sums] = {}

    def add(self, node: Node, sums: Sums) -> None:
        """Add the sums of one node, and go up as long as those of its sibling are there or have no blocks."""
        level, index = node
        while level < self._top:
            if (index ^ 1) << level < self._n:
                sibling = self.nodes.pop((level, index ^ 1), None)
                if sibling is None:
                    break
                sums = _added(sibling, sums) if index & 1 else _added(sums, sibling)
            level, index = level + 1, index >> 1
        self.nodes[level, index] = sums

    def total(self) -> Sums:
        """The sums over all blocks."""
        return self.nodes[self._top, 0]


def _added(left: Sums, right: Sums) -> Sums:
    """left + right, in the memory of ``left`` where it may be written to."""
    return tuple(_plus(a, b) for a, b in zip(left, right, strict=True))


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray) and a.flags.writeable:
        a += b
        return a
    return a + b

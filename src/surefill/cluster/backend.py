"""Where row blocks live: in threads of this process, or on a Ray cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from surefill.blocks import Blocks, LocalBlocks
from surefill.cluster.block_owner import BlockKind
from surefill.cluster.checkpoints import CheckpointedRuns
from surefill.cluster.ray_blocks import RayBlocks, connected, map_on
from surefill.cluster.shards import write_shards
from surefill.cluster.stored_block import StoredBlock
from surefill.completion.bayes.blocked_solver import PlainRuns, Runs
from surefill.completion.bayes.row_block import RowBlock, blocks_of
from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter
from surefill.parallel import current_map

Item = TypeVar("Item")
Result = TypeVar("Result")


class Backend(Protocol):
    """Puts the rows of a table into blocks and says where they are."""

    def opened(
        self, observations: Observations, name: str, settings: dict[str, Any]
    ) -> Any:  # a context manager of (Blocks, Runs)
        """The blocks of the table for one fit, called ``name``, and what runs its solvers."""
        ...


@dataclass(frozen=True)
class LocalBackend:
    """Row blocks in this process, on all its cores.

    Parameters
    ----------
    block_cells : cells of a block at least; when None as many as the number of columns calls for.

    Examples
    --------
    >>> import surefill as sf
    >>> from surefill.cluster import BlockedFactorModel, LocalBackend
    >>> seen = sf.datasets.make_low_rank((40, 30), rank=2, n_draws=900, random_state=0).observations
    >>> blocked = BlockedFactorModel(sf.completion.BayesianFactorModel(rank=2), LocalBackend(block_cells=200)).fit(seen)
    >>> table = sf.completion.BayesianFactorModel(rank=2).fit(seen)
    >>> bool(abs(blocked.dense() - table.dense()).max() < 1e-9)
    True
    """

    block_cells: int | None = None

    @contextmanager
    def opened(self, observations: Observations, name: str, settings: dict[str, Any]) -> Iterator[tuple[Blocks, Runs]]:
        """The blocks of the table; nothing is kept."""
        yield LocalBlocks([RowBlock(cells) for cells in blocks_of(observations, self.block_cells)]), PlainRuns()

    resume = False

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``[function(item) for item in items]``."""
        return current_map().map(function, items)

    @contextmanager
    def session(self) -> Iterator[Path]:
        """A folder for blocks, as long as it is needed."""
        with tempfile.TemporaryDirectory(prefix="surefill-") as folder:
            yield Path(folder)

    @contextmanager
    def stored(
        self, shards: Path, n_blocks: int, name: str, settings: dict[str, Any], kind: BlockKind = StoredBlock
    ) -> Iterator[tuple[Blocks, Runs]]:
        """The blocks that lie in a folder; nothing is kept."""
        yield LocalBlocks([kind(shards, index) for index in range(n_blocks)]), PlainRuns()


@dataclass(frozen=True)
class RayBackend:
    """Row blocks on a Ray cluster, in actors that own them and survive the loss of processes and machines.

    Parameters
    ----------
    address : of the cluster, such as "10.0.0.1:6379" or "auto"; when None one is started on this machine and ended
        with the fit.
    workers : actors that own the blocks; when None as many as the cluster has cores for. The result does not depend on
        it.
    cores : of each worker. Fewer workers with more cores move less; the result does not depend on it either.
    folder : for the blocks and for checkpoints after every sweep; all machines must see it. When None a temporary one,
        where the cluster is this machine.
    resume : go on from the checkpoints in ``folder``, of the same table and settings.
    block_cells : cells of a block at least; when None as many as the number of columns calls for. Sums are taken along
        blocks, so results of different sizes of blocks differ by rounding.

    Examples
    --------
    >>> import surefill as sf
    >>> backend = sf.cluster.RayBackend(address="10.0.0.1:6379", workers=64, folder="/shared/ratings")
    >>> completer = sf.PartialCompleter(tolerance=0.5, backend=backend)
    """

    address: str | None = None
    workers: int | None = None
    cores: int = 1
    folder: str | Path | None = None
    resume: bool = False
    block_cells: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and not (isinstance(self.workers, int) and self.workers >= 1):
            raise invalid_parameter("RayBackend", "workers", "a whole number of at least 1, or None", self.workers)
        if not (isinstance(self.cores, int) and self.cores >= 1):
            raise invalid_parameter("RayBackend", "cores", "a whole number of at least 1", self.cores)
        if self.folder is None and (self.address is not None or self.resume):
            raise InputError(
                "a cluster of several machines, or a fit that is resumed, needs a folder that all of them see for the "
                "table's blocks and the checkpoints: give folder=... (--checkpoint on the command line)."
            )

    @contextmanager
    def opened(self, observations: Observations, name: str, settings: dict[str, Any]) -> Iterator[tuple[Blocks, Runs]]:
        """The blocks of the table, written to the folder and owned by actors, and runs with checkpoints."""
        with self._place() as place:
            shards = place / name / "shards"
            n_blocks = write_shards(shards, blocks_of(observations, self.block_cells))
            with self._owned(shards, n_blocks, place / name / "checkpoint", settings) as owned:
                yield owned

    @contextmanager
    def session(self) -> Iterator[Path]:
        """The folder for blocks and checkpoints, and one connection to the cluster for all that is done inside."""
        with connected(self.address), self._place() as place:
            yield place

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``[function(item) for item in items]``, each on some worker, again on another where that is lost."""
        with connected(self.address) as ray:
            return map_on(ray, function, items)

    @contextmanager
    def stored(
        self, shards: Path, n_blocks: int, name: str, settings: dict[str, Any], kind: BlockKind = StoredBlock
    ) -> Iterator[tuple[Blocks, Runs]]:
        """The blocks that lie in a folder, owned by actors, and runs with checkpoints."""
        with (
            self._place() as place,
            self._owned(shards, n_blocks, place / name / "checkpoint", settings, kind) as owned,
        ):
            yield owned

    @contextmanager
    def _owned(
        self, shards: Path, n_blocks: int, states: Path, settings: dict[str, Any], kind: BlockKind = StoredBlock
    ) -> Iterator[tuple[Blocks, Runs]]:
        with connected(self.address) as ray:
            blocks = RayBlocks(ray, shards, states, n_blocks, self._n_workers(ray), self.cores, kind)
            try:
                yield blocks, CheckpointedRuns(blocks, states, settings, self.resume)
            finally:
                blocks.close()

    def _n_workers(self, ray: Any) -> int:
        return self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)) // self.cores)

    @contextmanager
    def _place(self) -> Iterator[Path]:
        if self.folder is not None:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
            yield Path(self.folder)
            return
        with tempfile.TemporaryDirectory(prefix="surefill-") as folder:
            yield Path(folder)


def choose_backend(given: object) -> Any:
    """The backend that the user named or gave; None for tables in memory.

    >>> choose_backend(None) is None, choose_backend("ray")
    (True, RayBackend(address=None, workers=None, cores=1, folder=None, resume=False, block_cells=None))
    """
    if given is None or given == "local":
        return None
    if given == "ray":
        return RayBackend()
    if hasattr(given, "opened"):
        return given
    raise invalid_parameter("PartialCompleter", "backend", "None, 'local', 'ray' or a RayBackend", given)

"""Checkpoints of a fit on blocks: after every sweep the columns' state here, the rows' where they are.

A fit is a sequence of runs (two starts, the better one, more factors), each named by its path. A file for each holds
the columns' state, how many sweeps it had and which rows were saved with it. A fit that is resumed takes what runs
arrived at from their files, and goes on after the last sweep of the last one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from surefill.blocks import Blocks
from surefill.cluster.block_owner import Saved
from surefill.completion.bayes.blocked_solver import BlockedSolver, BlockedState
from surefill.errors import InputError
from surefill.io.archive import read_archive, write_archive
from surefill.io.durable import replacing
from surefill.loop import Outcome, ProgressCallback, Status, run
from surefill.registry import storable

FORM, VERSION = "surefill checkpoint of a fit", 1
"""What the files say they are."""

PART = "part"
"""What stands in place of a table in the record of rows that are no state of a fit."""


class SavingBlocks(Blocks, Protocol):
    """Blocks that can write the rows of a state, and read them again."""

    saved: dict[str, Saved]

    def save(self, name: str, table: str, keep: Sequence[Saved]) -> Saved:
        """Write the rows of a state; what is neither in ``keep`` nor saved otherwise may be removed."""
        ...

    def load(self, saved: Sequence[Saved]) -> None:
        """Read the rows of states that were saved."""
        ...


@storable
@dataclass(frozen=True, eq=False)
class RunRecord:
    """How far a run has come: its state, its sweeps, why it ended if it did, the rows saved with it; ``order`` counts
    the records of the fit."""

    state: BlockedState
    sweeps: int
    status: Status | None
    saved: tuple[Saved, ...]
    order: int


@storable
@dataclass(frozen=True, eq=False)
class StageRecord:
    """What a stage that is no run gave, and the rows saved by then; ``order`` counts the records of the fit."""

    value: Any
    saved: tuple[Saved, ...]
    order: int


class CheckpointedRuns:
    """Runs whose state is kept in ``folder`` after every sweep, and stages; ``settings`` say which fit it is."""

    def __init__(self, blocks: SavingBlocks, folder: Path, settings: dict[str, Any], resume: bool) -> None:
        self._blocks, self._folder = blocks, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._records: dict[str, RunRecord] = {}
        self._stages: dict[str, StageRecord] = {}
        known = folder / "fit.json"
        if resume and known.exists():
            _check_settings(known, settings)
            self._records = {path.stem: _read(path, RunRecord) for path in folder.glob("*.run")}
            self._stages = {path.stem: _read(path, StageRecord) for path in folder.glob("*.stage")}
        else:
            for path in [*folder.glob("*.run"), *folder.glob("*.stage")]:
                path.unlink()
        with replacing(known) as partial:
            partial.write_text(json.dumps(settings), encoding="utf-8")
        known_records: list[RunRecord | StageRecord] = [*self._records.values(), *self._stages.values()]
        last = max(known_records, key=lambda each: each.order, default=None)
        self._order: int = 0 if last is None else last.order
        self._kept: tuple[Saved, ...] = () if last is None else last.saved
        if self._kept:
            blocks.load(self._kept)

    def stage(self, name: str, compute: Callable[[], Any], parts: Sequence[str] = ()) -> Any:
        """What ``compute`` gave, or gives now; then its ``parts`` are written, and the file that refers to them."""
        if name not in self._stages:
            value = compute()
            for part in parts:
                self._blocks.save(part, PART, self._kept)
            self._kept, self._order = tuple(self._blocks.saved.values()), self._order + 1
            self._stages[name] = StageRecord(value, self._kept, self._order)
            write_archive(self._folder / f"{name}.stage", FORM, VERSION, self._stages[name])
        return self._stages[name].value

    def run(self, solver: BlockedSolver, max_steps: int, progress: ProgressCallback | None) -> Outcome[BlockedState]:
        """As :func:`surefill.loop.run`, from where it stopped."""
        record = self._records.get(solver.path)
        if record is not None and (record.status is not None or record.sweeps >= max_steps):
            status = record.status or solver.terminate(record.state) or Status.STEP_LIMIT
            return Outcome(record.state, status, record.sweeps, 0.0)
        kept = _KeptSolver(solver, self, record)
        outcome = run(kept, max_steps=max_steps - kept.sweeps, progress=progress)
        self.keep(solver, outcome.state, kept.sweeps, outcome.status)
        return replace(outcome, steps=kept.sweeps)

    def keep(self, solver: BlockedSolver, state: BlockedState, sweeps: int, status: Status | None) -> None:
        """Write the rows, then the file that refers to them; rows of the record before stay until then."""
        if status is None:
            self._blocks.save(state.name, solver.table.name, self._kept)
        self._kept, self._order = tuple(self._blocks.saved.values()), self._order + 1
        record = RunRecord(state, sweeps, status, self._kept, self._order)
        write_archive(self._folder / f"{solver.path}.run", FORM, VERSION, record)


class _KeptSolver:
    """A solver whose every state is kept."""

    def __init__(self, solver: BlockedSolver, runs: CheckpointedRuns, record: RunRecord | None) -> None:
        self._solver, self._runs, self._record = solver, runs, record
        self.sweeps = 0 if record is None else record.sweeps
        self.task, self.measure, self.terminate = solver.task, solver.measure, solver.terminate

    def init(self) -> BlockedState:
        """Where it stopped, or the solver's own."""
        if self._record is not None:
            return self._record.state
        state = self._solver.init()
        self._runs.keep(self._solver, state, 0, None)
        return state

    def step(self, state: BlockedState) -> BlockedState:
        """The solver's step."""
        state = self._solver.step(state)
        self.sweeps += 1
        self._runs.keep(self._solver, state, self.sweeps, None)
        return state


Record = TypeVar("Record", RunRecord, StageRecord)


def _read(path: Path, kind: type[Record]) -> Record:
    def rebuild(content: Any) -> Record:
        if not isinstance(content, kind):
            raise TypeError("not a record of this kind")
        return content

    return read_archive(path, FORM, VERSION, rebuild)


def _check_settings(path: Path, settings: dict[str, Any]) -> None:
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        before = None
    differing = [name for name, value in settings.items() if not isinstance(before, dict) or before.get(name) != value]
    if differing:
        raise InputError(
            f"{path.parent} is a checkpoint of another fit, of another {differing[0]}: resume with the same table and "
            "settings, or start anew without --resume."
        )

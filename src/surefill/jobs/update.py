"""New observations taken into a saved model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators import PartialCompleter, load
from surefill.estimators.long_columns import cells_of
from surefill.estimators.observing import joined
from surefill.io import ReadOptions
from surefill.io.durable import check_distinct
from surefill.io.files import check_folder
from surefill.io.pairs import first_fields
from surefill.jobs.stages import about, check_observed, read_file, stage
from surefill.loop import ProgressCallback


@dataclass(frozen=True)
class UpdatedModel:
    """What :func:`update_model` read, learnt and wrote.

    Attributes
    ----------
    cells, new_rows, new_columns : cells taken in, and rows and columns that the model had not seen.
    repeated, differing : cells of the file that the model has already, which were left out, and how many of them have
        another value now.
    rows, columns, observed_cells : of the model after the update.
    refitted : whether the model was fitted again.
    promised, guarantee, holds_over, not_promised : what is promised now, in sentences.
    sensitivity : the factor by which odds of being observed may be off; None where nothing is promised, or where they
        play no part.
    output : the model written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     _ = (Path(folder) / "new.csv").write_text("row,column,value\\n30,4,0.5\\n30,7,0.1\\n")
    ...     done = update_model(Path(folder) / "model.surefill", Path(folder) / "new.csv", Path(folder) / "b.surefill")
    >>> done.cells, done.new_rows, done.new_columns, done.promised
    (2, 1, 0, False)
    """

    cells: int
    new_rows: int
    new_columns: int
    repeated: int
    differing: int
    rows: int
    columns: int
    observed_cells: int
    refitted: bool
    promised: bool
    guarantee: str
    holds_over: str
    not_promised: str
    sensitivity: float | None
    output: Path

    def as_json(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self) | {"output": str(self.output)}


def update_model(
    model: str | Path,
    file: str | Path,
    output: str | Path,
    *,
    refit: bool = False,
    read: ReadOptions | None = None,
    progress: ProgressCallback | None = None,
) -> UpdatedModel:
    """Take the observations of ``file`` into a saved model, and write it to ``output``, which may be the same file.

    Rows and columns may be new. Cells that the model has already are left out and counted: one of them may be a
    calibration cell, which a promise rests on and which nothing may be added to; to use repeats, complete all data
    anew. What was promised is withdrawn until the model is fitted again, which ``refit`` does, with a promise on the
    calibration cells of the first fit.

    Parameters
    ----------
    model : a file written by :meth:`surefill.PartialCompleter.save`, or by ``surefill complete --save``.
    read : how ``file`` is read; columns called as at the fit are taken, or guessed.
    progress : called after each step.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.3, confidence="posterior", aim="observed").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = Path(folder) / "model.surefill"
    ...     completer.save(model)
    ...     _ = (Path(folder) / "new.csv").write_text("row,column,value\\n30,3,0.5\\n30,4,0.1\\n")
    ...     done = update_model(model, Path(folder) / "new.csv", Path(folder) / "updated.surefill")
    >>> done.new_rows, done.cells, done.promised
    (1, 2, False)
    """
    source, target = Path(file), Path(output)
    check_folder(target)
    check_distinct(FILE=source, output=target)
    completer = load(model)
    seen: Observations = completer.observations_
    new = read_file(source, _as_fitted(read or ReadOptions(), source, seen), progress)
    check_observed(source, read or ReadOptions())
    with about(source):
        cells, repeated, differing = _unseen(new, seen)
        added = joined(seen, *cells_of(cells, seen))
        completer.progress = progress
        with stage("learning", progress):
            if refit:
                completer._add(added)
                completer.refit()
            else:
                completer._take_in(added)
    completer.save(target)
    return _summary(completer, seen, len(added.new), repeated, differing, refit, target)


def _as_fitted(options: ReadOptions, source: Path, seen: Observations) -> ReadOptions:
    """Columns called as at the fit, where none are given and the file has them."""
    given = options.wide or any(column is not None for column in options.choice.values())
    if given or not set(seen.names) <= set(first_fields(source, options)):
        return options
    row, col, value = seen.names
    return replace(options, row=row, col=col, value=value)


def _unseen(new: Observations, seen: Observations) -> tuple[Observations, int, int]:
    """The cells that the model has not, how many it has already, and how many of these differ now."""
    i, j = seen.locate(new.row_names(new.rows), new.col_names(new.cols))
    place = np.where((i >= 0) & (j >= 0), seen.find(i, j), -1)
    again = place >= 0
    if again.all():
        raise InputError("the model has all of its cells already, so that nothing would change.")
    differing = int(np.count_nonzero(seen.values[place[again]] != new.values[again]))
    return new.select(~again), int(again.sum()), differing


def _summary(
    completer: PartialCompleter,
    before: Observations,
    cells: int,
    repeated: int,
    differing: int,
    refitted: bool,
    output: Path,
) -> UpdatedModel:
    now, guarantee = completer.observations_, completer.result_.guarantee
    return UpdatedModel(
        cells=cells,
        new_rows=now.shape[0] - before.shape[0],
        new_columns=now.shape[1] - before.shape[1],
        repeated=repeated,
        differing=differing,
        rows=now.shape[0],
        columns=now.shape[1],
        observed_cells=len(now),
        refitted=refitted,
        promised=guarantee.promised,
        guarantee=guarantee.sentence,
        holds_over=guarantee.holds_over,
        not_promised=guarantee.not_promised,
        sensitivity=guarantee.sensitivity,
        output=output,
    )

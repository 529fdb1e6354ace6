"""Pairs of a file scored by a saved model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.arrays import Array
from surefill.data import Observations
from surefill.errors import InputError
from surefill.estimators import PartialCompleter, load
from surefill.estimators.scoring import check_added, check_level, score
from surefill.guarantee import Reason
from surefill.io import ReadOptions, write_table
from surefill.io.durable import check_distinct
from surefill.io.pairs import Pairs, read_pairs
from surefill.io.writers import check_table_target
from surefill.jobs.stages import about, stage
from surefill.loop import ProgressCallback


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """What :func:`predict_file` found: the file's columns and beside them value, confidence, risk, keep and reason.

    Attributes
    ----------
    table : the columns, by name.
    kept, observed : how many lines are kept, and how many are of cells that the model has seen.
    reasons : why the others are not kept, and how many lines each.
    loss : what errors are measured by, such as "mean squared error".
    n_compared, error, kept_error : lines that have a value in the file, their mean loss, and that of the kept ones
        among them; None where there are none.
    promised, guarantee : whether anything is promised of what is kept, and the sentence.
    output : the file written, if any.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    >>> completer = sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     _ = (Path(folder) / "pairs.csv").write_text("row,column\\n3,4\\n3,99\\n")
    ...     scored = predict_file(Path(folder) / "model.surefill", Path(folder) / "pairs.csv")
    >>> list(scored.table), scored.reasons["column never seen"]
    (['row', 'column', 'value', 'confidence', 'risk', 'keep', 'reason'], 1)
    """

    table: dict[str, NDArray[Any]]
    kept: int
    observed: int
    reasons: dict[str, int]
    loss: str
    n_compared: int
    error: float | None
    kept_error: float | None
    promised: bool
    guarantee: str
    output: Path | None

    @property
    def lines(self) -> int:
        """How many pairs there are."""
        return len(self.table["keep"])

    def as_json(self) -> dict[str, Any]:
        """The figures as plain values, and the lines where they were not written to a file."""
        names = ("kept", "observed", "reasons", "loss", "n_compared", "error", "kept_error", "promised", "guarantee")
        plain: dict[str, Any] = {"lines": self.lines} | {name: getattr(self, name) for name in names}
        if self.output is not None:
            return plain | {"output": str(self.output)}
        columns = [_plain(column) for column in self.table.values()]
        return plain | {"pairs": [dict(zip(self.table, line, strict=True)) for line in zip(*columns, strict=True)]}


def predict_file(
    model: str | Path,
    file: str | Path,
    output: str | Path | None = None,
    *,
    level: float | None = None,
    read: ReadOptions | None = None,
    progress: ProgressCallback | None = None,
) -> ScoredPairs:
    """Score the pairs of ``file``, a row and a column in each line, by a saved model, and write them to ``output``.

    Parameters
    ----------
    model : a file written by :meth:`surefill.PartialCompleter.save`, or by ``surefill complete --save``.
    output : the table to write; its suffix says how, see :func:`surefill.io.write_table`. None writes nothing.
    level : probability of the intervals, given as columns low and high; none when None.
    read : how ``file`` is read; guessed where None. A column of values is not needed; where there is one, the error of
        the predictions is measured on it. With a column of times, values are predicted at these.
    progress : called after each stage.

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
    ...     _ = (Path(folder) / "pairs.csv").write_text("row,column\\n0,3\\n99,3\\n")
    ...     scored = predict_file(model, Path(folder) / "pairs.csv")
    >>> scored.table["reason"].tolist()[1], scored.table["confidence"].tolist()[1]
    ('row never seen', 0.0)
    """
    check_level(level)
    source, target = Path(file), None if output is None else Path(output)
    if target is not None:
        check_table_target(output)  # type: ignore[arg-type]
        check_distinct(PAIRS=source, output=target)
        check_distinct(MODEL=Path(model), output=target)
    completer = load(model)
    with stage("reading", progress):
        if level is not None and read is not None and read.time is not None:
            raise InputError("intervals are about values at no date in particular: give level or time, not both.")
        pairs = read_pairs(source, read or ReadOptions(), completer.observations_.names)
    name = check_added(list(pairs.table), str(source), level)
    with stage("scoring", progress), about(source):
        rows, cols = completer.observations_.locate(pairs.rows, pairs.cols)
        times = completer._checked_times(pairs.times)
        blocks = list(score(completer, rows, cols, level, times))
    found = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    scored = _summary(completer, pairs, found, name, target)
    if target is not None:
        write_table(target, [scored.table], exact=(name,))
    return scored


def _summary(
    completer: PartialCompleter, pairs: Pairs, found: dict[str, NDArray[Any]], name: str, output: Path | None
) -> ScoredPairs:
    result, keep = completer.result_, found["keep"]
    n_compared, error, kept_error = 0, None, None
    if pairs.values is not None and (there := np.isfinite(pairs.values)).any():
        losses = _losses(completer, pairs.values[there], found["value"][there])
        n_compared, error = len(losses), float(losses.mean())
        kept_error = float(losses[keep[there]].mean()) if keep[there].any() else None
    counts = Counter(found["reason"][~keep].tolist())
    columns = {name if key == "value" else key: column for key, column in found.items()}
    return ScoredPairs(
        table=pairs.table | columns,
        kept=int(keep.sum()),
        observed=int(np.count_nonzero(found["reason"] == Reason.OBSERVED)),
        reasons=dict(counts.most_common()),
        loss=result.loss.loss.mean_name,
        n_compared=n_compared,
        error=error,
        kept_error=kept_error,
        promised=result.guarantee.promised,
        guarantee=result.guarantee.sentence,
        output=output,
    )


def _losses(completer: PartialCompleter, values: Array, predicted: Array) -> Array:
    """The loss of each prediction of a value; each line is a draw of its own."""
    lines = np.arange(len(values))
    draws = Observations(lines, np.zeros(len(values), dtype=np.int64), values, (len(values), 1))
    return completer.result_.loss.loss.at(draws, predicted)


def _plain(column: NDArray[Any]) -> list[Any]:
    """Values for JSON, which has no NaN and no infinity."""
    if column.dtype.kind != "f":
        return list(column.tolist())
    return [value if np.isfinite(value) else None for value in column.tolist()]

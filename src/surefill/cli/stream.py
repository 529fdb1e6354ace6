"""``surefill stream FILE``: observations one after the other, each predicted before it is learnt."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from surefill.cli.options import PATH, ColumnName, reading_options, seed_option, skipped, typed_delimiter
from surefill.cli.progress import Interrupted, Interruption, ProgressBars
from surefill.cli.sections import SectionedCommand
from surefill.cli.stream_output import ScoresWriter, check_output, open_writer
from surefill.cli.terminal import say
from surefill.errors import InputError

if TYPE_CHECKING:
    from surefill.io.records import Place, RecordReader, Records, SortedRecords
    from surefill.stream.stream_metrics import StreamMetrics
    from surefill.stream.streaming_completer import StreamingCompleter

CHECKPOINTED_OPTIONS = (
    "row", "col", "value", "delimiter", "header", "bounds", "skip_missing", "decimal", "order_by", "rank", "seed",
)  # fmt: skip
"""Options that change the result, so that a run can only be resumed with the same ones."""


@click.command(cls=SectionedCommand, short_help="Predict and learn a stream of observations, one after the other.")
@click.argument("file", type=PATH)
@click.option(
    "-o", "--output", type=PATH, help="Where to write predictions: .csv, .tsv, .jsonl, or - for csv to a pipe."
)
@click.option("--checkpoint", type=PATH, help="Save everything here every so often, and go on from it if it exists.")
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Observations between two checkpoints, and between two lines of --rolling.",
)
@click.option("--rolling", is_flag=True, help="Print a line with the error of the last so many observations.")
@reading_options(bounds="learnt", tables=False)
@click.option(
    "--order-by",
    type=ColumnName(),
    help="Column of times (numbers, ISO dates or date-times): learn the observations of a file in this order, held in "
    "memory; standard input comes in its own order.",
)
@click.option("--rank", type=click.IntRange(min=1), default=10, show_default=True, help="Factors of the completion.")
@seed_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary, and the lines of --rolling, as JSON.")
def stream(file: Path, output: Path | None, checkpoint: Path | None, as_json: bool, **options: Any) -> None:
    """Read observations from FILE (or - for standard input) in order; predict each, then learn it.

    FILE has one observation per line: a row id, a column id and a value, as csv, tsv, MovieLens .dat or JSON
    lines; files may be gzipped. The output repeats them with the prediction and the confidence (0 to 1) that
    each had before it was learnt. Confidence says how far the observations so far determine a cell; the summary
    says how large the errors were at each confidence. Rows and columns never seen before are added on the way.

    With --checkpoint, the state, the place in the input and the length of the output are saved together, also on
    Ctrl-C. The same command then goes on from there: nothing is lost or counted twice, and the result is that of
    a run that was never interrupted. Standard input must be fed from its beginning again; what was already read
    is skipped.

    \b
    Examples:
      surefill stream ratings.csv -o scored.csv --bounds 1 5
      surefill stream ratings.csv --checkpoint state.surefill --every 50000
      surefill stream ratings.dat.gz --no-header --rolling --json
      surefill stream ratings.csv --order-by timestamp
      tail -n +1 -f events.jsonl | surefill stream - -o - --row user --col item --value stars
    """
    from surefill.io.durable import check_distinct, locked
    from surefill.io.files import check_folder

    suffix = check_output(output, checkpoint is not None)
    if checkpoint is not None:
        check_folder(checkpoint)
    if options["order_by"] is not None and str(file) == "-":
        raise InputError("standard input is learnt as it comes and cannot be sorted; --order-by needs a file.")
    named = {"FILE": _redirected(file, 0), "--output": _redirected(output, 1), "--checkpoint": checkpoint}
    check_distinct(**named)
    start = time.perf_counter()
    growing = None if checkpoint is None else output  # without a checkpoint an output is replaced once it is whole
    with (
        Interruption() as interruption,
        _input(file) as source,
        nullcontext() if checkpoint is None else locked(checkpoint, "stream"),
        nullcontext() if growing is None else locked(growing, "stream"),
        ProgressBars() as bars,
    ):
        with interruption.at_once():
            reader = _reader(source, "standard input" if str(file) == "-" else str(file), options)
            run, kept = _start_or_resume(checkpoint, reader, options, output)
        kept_bytes = kept if checkpoint is not None else None
        with open_writer(output, suffix, reader.columns, kept_bytes) as out, bars.through("learning", _size(file)):
            run.learn_all(reader, out, interruption, bars, options["rolling"], as_json)
    summary = run.summary(reader, output, time.perf_counter() - start)
    say(json.dumps(summary, indent=2) if as_json else describe(summary), err=str(output) == "-")


def _redirected(path: Path | None, descriptor: int) -> Path | None:
    """The path; of -, the file that a shell has put in the place of standard input or output, if it is one."""
    if path is None or str(path) != "-":
        return path
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:  # it is closed
        return None
    return Path(f"/dev/fd/{descriptor}") if is_file else None


def _size(file: Path) -> int | None:
    """Bytes to read; None of a pipe, and of a packed file, whose places are those of what it unpacks to."""
    return file.stat().st_size if file.is_file() and file.suffix.lower() != ".gz" else None


@contextmanager
def _input(file: Path) -> Iterator[IO[bytes]]:
    from surefill.io.unpacking import open_bytes

    if str(file) == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; feed it, or name a file.")
        yield sys.stdin.buffer
        return
    with open_bytes(file) as source:
        yield source


def _reader(source: IO[bytes], name: str, options: dict[str, Any]) -> RecordReader | SortedRecords:
    from surefill.io.records import RecordReader, SortedRecords

    choice = {axis: options[axis] for axis in ("row", "col", "value")}
    named = {each: options[each] for each in ("header", "bounds", "decimal", "skip_missing", "order_by")}
    reader = RecordReader(source, name, choice, typed_delimiter(options), **named)
    return reader if options["order_by"] is None else SortedRecords(reader)


def _start_or_resume(
    checkpoint: Path | None, reader: RecordReader | SortedRecords, options: dict[str, Any], output: Path | None
) -> tuple[StreamRun, int]:
    """A run from the beginning, or from the checkpoint, and how many bytes of the output are kept."""
    from surefill.io.records import Place
    from surefill.stream.stream_metrics import StreamMetrics
    from surefill.stream.streaming_completer import StreamingCompleter

    chosen = {name: options[name] for name in CHECKPOINTED_OPTIONS}
    chosen |= {"output": str(output), "first_line": reader.first_line}
    if checkpoint is None or not checkpoint.exists():
        model = StreamingCompleter(bounds=options["bounds"], rank=options["rank"], random_state=options["seed"])
        return StreamRun(model, chosen, checkpoint, options["every"], StreamMetrics.empty()), 0
    model, note = StreamingCompleter.load_with_note(checkpoint)
    if note is None:
        raise InputError(f"{checkpoint} was not written by surefill stream; give another file name.")
    try:
        before, place, length = dict(note["chosen"]), Place.from_note(note["place"]), int(note["length"])
        reported = StreamMetrics.from_state(note["reported"])
    except (LookupError, TypeError, ValueError):
        raise InputError(f"{checkpoint} is damaged; give another file name to start anew.") from None
    differing = [name for name in chosen if before.get(name) != chosen[name]]
    if differing:
        what = "another input" if differing[0] == "first_line" else f"another {differing[0]}"
        raise InputError(f"{checkpoint} was made with {what}; give the same again, or another checkpoint.")
    reader.resume(place)
    return StreamRun(model, chosen, checkpoint, options["every"], reported, place), max(0, length)


@dataclass
class StreamRun:
    """A run over the input: the model, the options chosen, and the place up to which the input was learnt.

    ``reported`` are the metrics at the last line of --rolling or checkpoint, ``saved`` the observations in the
    checkpoint; ``is_open`` says that the input ended within a line, which is learnt but never saved.
    """

    model: StreamingCompleter
    chosen: dict[str, Any]
    checkpoint: Path | None
    every: int
    reported: StreamMetrics
    place: Place | None = None
    is_open: bool = False
    learnt_before: int = field(init=False)
    saved: int = field(init=False)

    def __post_init__(self) -> None:
        self.learnt_before = self.saved = self.model.n_observed

    def learn_all(
        self,
        reader: RecordReader | SortedRecords,
        out: ScoresWriter,
        interruption: Interruption,
        bars: ProgressBars,
        rolling: bool,
        as_json: bool,
    ) -> None:
        """Learn to the end of the input, saving every so often; when interrupted, save and leave."""
        pieces = iter(reader.pieces(lambda: self.every - self.model.n_observed % self.every))
        try:
            for records in interruption.between(self._saved_before_errors(pieces, out)):
                bars.at(records.place.position)
                if not records.line_end:
                    # more may be written to this line: a later run is to read it again, and whole
                    self.save(out)
                    self.is_open = True
                if len(records.values):
                    out.write(records, self.model.learn_many(records.rows, records.cols, records.values))
                self.place = records.place
                if len(records.values) and self.model.n_observed % self.every == 0:
                    if rolling:
                        say(_rolling_line(self.model, self.reported, as_json), err=out.to_stdout)
                    self.reported = self.model.metrics
                    self.save(out)
        except Interrupted as stop:
            self.save(out)
            saved = (
                f"everything up to observation {self.saved:,} is in {self.checkpoint}, and the same command goes on "
                "from there"
            )
            nothing = "nothing was saved, and the same command starts anew"
            if self.checkpoint is None:
                nothing += "; --checkpoint would keep what was learnt"
            has_saved = self.checkpoint is not None and self.place is not None
            say(f"surefill: interrupted; {saved if has_saved else nothing}.", err=True)
            sys.exit(128 + stop.number)
        out.finish()
        self.save(out)

    def _saved_before_errors(self, pieces: Iterator[Records], out: ScoresWriter) -> Iterator[Records]:
        """The pieces; at one that cannot be read, what was learnt before it is saved."""
        try:
            yield from pieces
        except InputError:
            self.save(out)
            raise

    def save(self, out: ScoresWriter) -> None:
        """Save the state, the place in the input and the length of the output atomically in one file."""
        if self.checkpoint is not None and self.place is not None and not self.is_open:
            note = {"chosen": self.chosen, "place": tuple(self.place), "length": out.length()}
            self.model.save(self.checkpoint, note | {"reported": self.reported.state()})
            self.saved = self.model.n_observed

    def summary(self, reader: RecordReader | SortedRecords, output: Path | None, seconds: float) -> dict[str, Any]:
        """What was learnt and how well it was predicted, for machines."""
        metrics, learnt = self.model.metrics, self.model.n_observed - self.learnt_before
        return {
            "columns_read": list(reader.columns),
            "order_by": self.chosen["order_by"],
            "observations": self.model.n_observed,
            "learnt_in_this_run": learnt,
            "skipped_lines": 0 if self.place is None else self.place.skipped,
            "last_line_is_open": self.is_open,
            "rows": self.model.shape[0],
            "columns": self.model.shape[1],
            "range": list(self.model.range) if self.model.n_observed else None,
            "rmse": metrics.rmse if metrics.count else None,
            "by_confidence": metrics.by_confidence(),
            "seconds": round(seconds, 3),
            "observations_per_second": round(learnt / seconds) if seconds else None,
            "output": str(output) if output is not None else None,
            "checkpoint": str(self.checkpoint) if self.checkpoint is not None else None,
            "promise": "none: confidence ranks cells, and the errors by confidence are what was seen so far.",
        }


def _rolling_line(model: StreamingCompleter, earlier: StreamMetrics, as_json: bool) -> str:
    recent = model.metrics.since(earlier)
    share, kept_rmse = recent.kept(0.5)
    line = {"observations": model.n_observed, "rmse": recent.rmse, "confident": share, "confident_rmse": kept_rmse}
    if as_json:
        return json.dumps({name: None if number != number else number for name, number in line.items()})
    return (
        f"{model.n_observed:>12,} observations: RMSE {recent.rmse:.4f} lately; "
        f"{share:.0%} with confidence from 0.5 on, RMSE {kept_rmse:.4f}"
    )


def describe(summary: dict[str, Any]) -> str:
    """The summary for a person."""
    row, column, value = summary["columns_read"]
    before = summary["observations"] - summary["learnt_in_this_run"]
    earlier = f", {before:,} of them in earlier runs" if before else ""
    lines = [
        f"Learnt {summary['observations']:,} observations of {summary['rows']:,} rows and "
        f"{summary['columns']:,} columns{earlier}. "
        f"Rows are {row}, columns {column}, values {value}.",
    ]
    if summary["skipped_lines"]:
        lines.append(skipped(summary["skipped_lines"]))
    if summary["last_line_is_open"] and summary["checkpoint"] is not None:
        lines.append("The last line has no line end, so more may come: it is learnt, but read again by the next run.")
    if summary["order_by"] is not None:
        lines.append(f"They were learnt in the order of {summary['order_by']}.")
    if summary["rmse"] is not None:
        lines.append(f"Predicted before learning, with a root mean squared error of {summary['rmse']:.4f}:")
        lines += [
            f"  confidence {band['low']:.2f} to {band['high']:.2f}: {band['rmse']:.4f} on {band['count']:,}"
            for band in summary["by_confidence"]
        ]
    for what in ("output", "checkpoint"):
        if summary[what] is not None and summary[what] != "-":
            lines.append(f"The {what} is {summary[what]}.")
    return "\n".join(lines)

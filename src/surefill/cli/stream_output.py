"""Where ``surefill stream`` writes its predictions, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from surefill.errors import InputError
from surefill.inputs import cannot

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_SUFFIXES = (".jsonl", ".ndjson")
NEW_COLUMNS = ("prediction", "confidence")
"""Columns added to those of the input."""


class ScoresWriter:
    """Writes scored observations to a file, to standard output, or nowhere; the header goes with the first of them."""

    def __init__(self, file: ByteTarget | None, suffix: str, columns: tuple[str, ...], to_stdout: bool = False) -> None:
        self._file, self._suffix, self._columns, self.to_stdout = file, suffix, columns, to_stdout
        self._header = b"" if file is None or file.tell() else self._names()

    def write(self, records: Any, scores: Any) -> None:
        """One line for each record: row, column, value, prediction, confidence."""
        if self._file is None:
            return
        columns = (records.rows, records.cols, records.values, scores.predictions, scores.confidences)
        block = dict(zip(self._columns, columns, strict=True))
        lines = (_json_lines(block) if self._suffix in JSON_SUFFIXES else self._text(block)).encode()
        self._file.write(self._header + lines)
        self._header = b""
        if self.to_stdout:
            self._file.flush()

    def finish(self) -> None:
        """Write the header if there was nothing to write after it, and cut off what an earlier run left behind."""
        if self._file is not None:
            self._file.write(self._header)
            self._header = b""

    def _names(self) -> bytes:
        """The line with the names of the columns, where there is one."""
        from surefill.io.text_lines import quoted

        if self._suffix not in DELIMITERS:
            return b""
        delimiter = DELIMITERS[self._suffix]
        return (delimiter.join(quoted(list(self._columns), delimiter)) + "\n").encode()

    def _text(self, block: dict[str, Any]) -> str:
        from surefill.io.text_lines import format_lines

        return format_lines(block, DELIMITERS[self._suffix], (self._columns[2],)).decode()

    def length(self) -> int:
        """Bytes written and synchronised to disk."""
        return 0 if not isinstance(self._file, GrowingFile) else self._file.sync()


class ByteTarget(Protocol):
    """What lines are written to."""

    def write(self, data: bytes, /) -> Any:
        """Add bytes."""

    def flush(self) -> None:
        """Pass on what was added."""

    def tell(self) -> int:
        """Where the next bytes go."""
        ...


class GrowingFile:
    """The first ``kept`` bytes of a file and what comes after them; nothing is touched before there is something.

    A file that was begun here and of which nothing was synchronised is removed again if the run fails.
    """

    def __init__(self, path: Path, kept: int) -> None:
        self._path, self._kept = path, kept
        self._file: IO[bytes] | None = None
        self._may_go = not path.exists()
        if kept and (not path.exists() or path.stat().st_size < kept):
            raise InputError(f"{path} is shorter than the checkpoint says; start anew without the checkpoint.")

    def write(self, data: bytes) -> None:
        """Add bytes."""
        if self._file is None:
            self._file = open(self._path, "r+b" if self._kept else "wb")  # noqa: SIM115
            self._file.truncate(self._kept)
            self._file.seek(self._kept)
        self._file.write(data)

    def flush(self) -> None:
        """Pass on what was added."""
        if self._file is not None:
            self._file.flush()

    def tell(self) -> int:
        """Where the next bytes go."""
        return self._kept if self._file is None else self._file.tell()

    def sync(self) -> int:
        """Put all on disk, the name of the file too; returns its length."""
        from surefill.io.durable import sync, sync_folder

        if self._file is not None:
            self._file.flush()
            sync(self._file.fileno())
            if self._may_go:
                sync_folder(self._path.parent)
            self._may_go = False
        return self.tell()

    def close(self, failed: bool) -> None:
        """Close, and remove a file that is of no use."""
        if self._file is not None:
            try:
                self._file.close()
            finally:
                if failed and self._may_go:
                    self._path.unlink(missing_ok=True)


def _json_lines(block: dict[str, Any]) -> str:
    columns = [[None if cell != cell else cell for cell in column.tolist()] for column in block.values()]
    return "".join(json.dumps(dict(zip(block, cells, strict=True))) + "\n" for cells in zip(*columns, strict=True))


def check_output(output: Path | None, resumable: bool) -> str:
    """The suffix that says how lines are written; refuse, before any work, what cannot be written."""
    from surefill.io.files import check_folder

    if output is None:
        return ""
    if str(output) == "-":
        if resumable:
            raise InputError("--checkpoint needs an output that can be cut back: a file, or none, instead of '-'.")
        return ".csv"
    check_folder(output)
    if resumable and output.exists() and not output.is_file():
        raise InputError(f"--checkpoint needs an output that can be cut back: a plain file, or none, not {output}.")
    suffix = output.suffix.lower()
    if suffix not in (*DELIMITERS, *JSON_SUFFIXES):
        raise InputError(f"{output} must end in .csv, .tsv, .jsonl or .ndjson, which says how to write it.")
    return suffix


@contextmanager
def open_writer(output: Path | None, suffix: str, columns: tuple[str, ...], kept: int | None) -> Iterator[ScoresWriter]:
    """A writer to a file that appears on success, or, where ``kept`` bytes are to stay, to one that grows in place."""
    from surefill.io.durable import replacing

    names = columns if not set(NEW_COLUMNS) & set(columns) else ("row", "column", "value")
    written = (*names, *NEW_COLUMNS)
    if output is None:
        yield ScoresWriter(None, suffix, written)
    elif str(output) == "-":
        if sys.stdout is None:
            raise InputError("standard output is closed; name a file to write to.")
        yield ScoresWriter(_StandardOutput(), suffix, written, to_stdout=True)
    elif kept is None:
        with replacing(output) as partial, open(partial, "wb") as file:
            yield ScoresWriter(file, suffix, written)
    else:
        with _growing(output, kept) as growing:
            yield ScoresWriter(growing, suffix, written)


class _StandardOutput:
    """Standard output, which has no place of its own: what is written comes first."""

    def write(self, data: bytes) -> None:
        """Add bytes."""
        sys.stdout.buffer.write(data)

    def flush(self) -> None:
        """Pass on what was added."""
        sys.stdout.buffer.flush()

    def tell(self) -> int:
        """The beginning, as far as a header is concerned."""
        return 0


@contextmanager
def _growing(output: Path, kept: int) -> Iterator[GrowingFile]:
    failed = True
    try:
        growing = GrowingFile(output, kept)
        try:
            yield growing
            failed = False
        finally:
            growing.close(failed)
    except OSError as error:
        raise cannot(output, "be written", error) from None

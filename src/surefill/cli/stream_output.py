"""Where ``surefill stream`` writes its predictions, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from surefill.errors import InputError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_SUFFIXES = (".jsonl", ".ndjson")
NEW_COLUMNS = ("prediction", "confidence")
"""Columns added to those of the input."""


class ScoresWriter:
    """Writes scored observations to a file, to standard output, or nowhere."""

    def __init__(self, file: IO[bytes] | None, suffix: str, columns: tuple[str, ...]) -> None:
        self._file, self._suffix, self._columns = file, suffix, columns
        self._to_stdout = file is not None and file is sys.stdout.buffer

    @property
    def to_stdout(self) -> bool:
        """Whether lines go to standard output, which then holds nothing else."""
        return self._to_stdout

    def write(self, records: Any, scores: Any) -> None:
        """One line for each record: row, column, value, prediction, confidence."""
        if self._file is None:
            return
        columns = (records.rows, records.cols, records.values, scores.predictions, scores.confidences)
        block = dict(zip(self._columns, columns, strict=True))
        self._file.write((_json_lines(block) if self._suffix in JSON_SUFFIXES else self._text(block)).encode())
        if self._to_stdout:
            self._file.flush()

    def header(self) -> None:
        """The line with the names of the columns, where there is one."""
        if self._file is not None and self._suffix in DELIMITERS:
            from surefill.io.writers import quoted

            delimiter = DELIMITERS[self._suffix]
            self._file.write((delimiter.join(quoted(list(self._columns), delimiter)) + "\n").encode())

    def _text(self, block: dict[str, Any]) -> str:
        from surefill.io.writers import format_lines

        return (
            format_lines(block, DELIMITERS[self._suffix], (self._columns[2],)) if len(block[self._columns[2]]) else ""
        )

    def length(self) -> int:
        """Bytes written and synchronised to disk."""
        if self._file is None:
            return 0
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()


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
    suffix = output.suffix.lower()
    if suffix not in (*DELIMITERS, *JSON_SUFFIXES):
        raise InputError(f"{output} must end in .csv, .tsv, .jsonl or .ndjson, which says how to write it.")
    return suffix


@contextmanager
def open_writer(output: Path | None, suffix: str, columns: tuple[str, ...], kept: int | None) -> Iterator[ScoresWriter]:
    """A writer to a file that appears on success, or, where ``kept`` bytes are to stay, to one that grows in place."""
    from surefill.io.files import replacing

    names = columns if not set(NEW_COLUMNS) & set(columns) else ("row", "column", "value")
    if output is None or str(output) == "-":
        stdout = None if output is None else sys.stdout.buffer
        yield ScoresWriter(stdout, suffix, (*names, *NEW_COLUMNS))
    elif kept is None:
        with replacing(output) as partial, open(partial, "xb") as file:
            yield ScoresWriter(file, suffix, (*names, *NEW_COLUMNS))
    else:
        try:
            with open(output, "r+b" if kept else "wb") as file:
                if file.seek(0, os.SEEK_END) < kept:
                    raise InputError(
                        f"{output} is shorter than the checkpoint says; start anew without the checkpoint."
                    )
                file.truncate(kept)
                file.seek(kept)
                yield ScoresWriter(file, suffix, (*names, *NEW_COLUMNS))
        except OSError as error:
            raise InputError(f"{output} cannot be written: {error.strerror or error}.") from None

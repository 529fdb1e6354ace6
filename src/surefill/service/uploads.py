"""Observations as clients send them: JSON, JSON lines or csv, checked so that whatever is stored can be learnt."""

from __future__ import annotations

import hashlib
import io
import re
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from surefill.data.column_roles import Choice
from surefill.errors import InputError
from surefill.inputs import LARGEST_VALUE
from surefill.io.records import RecordReader
from surefill.service.sentences import sentence_of
from surefill.service.store.observations import Columns

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
MEDIA_TYPES = (JSON, NDJSON, CSV)

BODY = "the body"
"""What errors call what was sent."""

LONGEST_LABEL = 200
"""Letters of a label: ids and titles are shorter, and a label is repeated in every observation of its row."""

LABEL_PATTERN = r"^[^\x00-\x1f\x7f]+$"
"""A label has no control characters: they cannot be shown, and PostgreSQL stores no zero byte."""

FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

COMMAND_LINE = re.compile(r" \(--[^)]*\)|; if [^;]*--limit .*(?=\.$)")
"""A reader's hints for the command line, which do not help whoever sends a request."""

Text = Annotated[str, Field(min_length=1, max_length=LONGEST_LABEL, pattern=LABEL_PATTERN, strict=True)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True)]
Label = Text | Whole
"""A row or column: text, or a whole number, which is the same as its text."""

Value = Annotated[float, Field(ge=-LARGEST_VALUE, le=LARGEST_VALUE, strict=True, allow_inf_nan=False)]


@with_config(ConfigDict(extra="forbid"))
class Observation(TypedDict):
    """One observed cell."""

    row: Label
    col: Label
    value: Value


@with_config(ConfigDict(extra="forbid"))
class ObservationList(TypedDict):
    """A batch of observed cells."""

    observations: Annotated[list[Observation], Field(min_length=1)]


SENT = TypeAdapter(ObservationList)


def digest(body: bytes, *options: object) -> str:
    """What tells two batches apart.

    >>> digest(b"1,2,3", "text/csv") == digest(b"1,2,3", "text/csv"), digest(b"1,2,3") == digest(b"1,2,4")
    (True, False)
    """
    return hashlib.sha256(repr(options).encode() + b"\n" + body).hexdigest()


def parse(
    body: bytes,
    media_type: str,
    most: int,
    bounds: tuple[float, float] | None = None,
    choice: Choice | None = None,
    skip_missing: bool = False,
) -> Columns:
    """The observations of a body, at most ``most``; InputError says in one sentence which is wrong.

    >>> parse(b'{"observations": [{"row": 1, "col": "Alien", "value": 5}]}', "application/json", 10)
    Columns(rows=['1'], cols=['Alien'], values=[5.0])
    >>> parse(b"user,film,stars\\n1,Alien,5\\n", "text/csv", 10)
    Columns(rows=['1'], cols=['Alien'], values=[5.0])
    """
    if media_type == JSON:
        return _from_json(body, most, bounds)
    named: Choice = {axis: (choice or {}).get(axis) for axis in ("row", "col", "value")}
    try:
        reader = RecordReader(io.BytesIO(body), BODY, named, bounds=bounds, skip_missing=skip_missing)
        pieces = list(reader.pieces(lambda: most + 1))
    except InputError as error:
        raise InputError(_renamed(str(error))) from None
    _check_size(sum(len(piece.values) for piece in pieces), most)
    rows, cols = ([label for piece in pieces for label in getattr(piece, axis).tolist()] for axis in ("rows", "cols"))
    values = [value for piece in pieces for value in piece.values.tolist()]
    for axis, labels in (("row", rows), ("column", cols)):
        for label in set(labels):
            check_label(BODY, axis, label)
    return Columns(rows, cols, values)


def check_label(place: str, axis: str, label: str) -> None:
    """Refuse a label that is empty, too long or not text that can be shown."""
    if not label or len(label) > LONGEST_LABEL or FORBIDDEN.search(label):
        shown = label[:20] + "..." if len(label) > 20 else label
        raise InputError(
            f"{place}: a {axis} is 1 to {LONGEST_LABEL} letters without control characters; got {shown!r}."
        )


def _from_json(body: bytes, most: int, bounds: tuple[float, float] | None) -> Columns:
    try:
        sent = SENT.validate_json(body)["observations"]
    except ValidationError as error:
        raise InputError(sentence_of(error.errors()[0], BODY)) from None
    _check_size(len(sent), most)
    columns = Columns(
        [str(each["row"]) for each in sent], [str(each["col"]) for each in sent], [each["value"] for each in sent]
    )
    if bounds is not None:
        values = np.array(columns.values)
        outside = np.flatnonzero((values < bounds[0]) | (values > bounds[1]))
        if outside.size:
            first, (low, high) = int(outside[0]), bounds
            raise InputError(
                f"{BODY}: observation {first} has the value {values[first]:g}, outside the bounds ({low:g}, {high:g})."
            )
    return columns


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise InputError(f"a batch holds at most {most:,} observations; send these in several.")
    if size == 0:
        raise InputError(f"{BODY} holds no observation.")


def _renamed(sentence: str) -> str:
    """A reader's sentence with its options called as they are in an address."""
    return COMMAND_LINE.sub("", sentence).replace("--skip-missing", "skip_missing=true")

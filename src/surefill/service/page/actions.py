"""What people do on the page: make a data set, upload a file, answer a suggestion, have a data set fitted."""

from __future__ import annotations

import io
import json
import re
import secrets
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ValidationError

from surefill.data.column_roles import Choice
from surefill.errors import InputError
from surefill.io.records import RecordReader
from surefill.service.api import data_sets as data_sets_api
from surefill.service.api import jobs as jobs_api
from surefill.service.api.found import TheDataSet, TheService, TheThreads
from surefill.service.api.observations import ColumnName, store_batch
from surefill.service.api.schemas import NewDataSet
from surefill.service.folders import NAME_PATTERN
from surefill.service.page.rendering import render
from surefill.service.page.sessions import page_requires
from surefill.service.sentences import sentence_of
from surefill.service.store.observations import Batch
from surefill.service.uploads import BODY, CSV, JSON, NDJSON, digest, parse

router = APIRouter(include_in_schema=False)
WRITE = Depends(page_requires("write"))

LONGEST_FORM = 10_000
"""Bytes of a form: some fields of at most 200 letters."""


class Uploaded(BaseModel):
    """A part of a file that is stored; ``header`` is whether its first line names columns."""

    stored: int
    repeated: bool
    header: bool


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form that are not empty."""
    body = await request.body()
    if len(body) > LONGEST_FORM:
        raise HTTPException(413, "this form is too long.")
    return {name: values[0].strip() for name, values in parse_qs(body.decode("utf-8", "replace")).items()}


@router.post("/page/data-sets", dependencies=[Depends(page_requires("admin"))])
async def create(request: Request, service: TheService, threads: TheThreads) -> Response:
    """Make a data set and show it."""
    new = new_data_set(await form_of(request))
    made = await data_sets_api.create_data_set(service, threads, new)
    return Response(headers={"HX-Redirect": f"/page/data-sets/{made.name}#add"})


def new_data_set(form: dict[str, str]) -> NewDataSet:
    """A data set as a form describes it; InputError says in one sentence what is wrong.

    >>> new_data_set({"name": "films", "low": "1", "high": "5"}).bounds
    Bounds(low=1.0, high=5.0)
    """
    if not re.fullmatch(NAME_PATTERN, form.get("name", "")):
        raise InputError(
            "A name has 1 to 64 small letters, digits, hyphens or underscores, and begins with neither sign."
        )
    if ("low" in form) != ("high" in form):
        raise InputError("Give both bounds, or neither.")
    given: dict[str, object] = {"name": form["name"]}
    if "low" in form:
        given["bounds"] = {
            "low": _number(form["low"], "The lower bound"),
            "high": _number(form["high"], "The upper bound"),
        }
    if "tolerance" in form:
        given["tolerance"] = _number(form["tolerance"], "The tolerance")
    try:
        return NewDataSet.model_validate(given)
    except ValidationError as error:
        raise InputError(sentence_of(error.errors()[0], "the form:")) from None


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} must be a number; got {text[:40]!r}.") from None


@router.post("/page/data-sets/{name}/upload", dependencies=[WRITE])
async def upload(
    request: Request,
    threads: TheThreads,
    service: TheService,
    data_set: TheDataSet,
    before: Annotated[int, Query(ge=-1, lt=2**53)] = 0,
    skip_missing: bool = False,
    row: ColumnName = None,
    col: ColumnName = None,
    value: ColumnName = None,
) -> Uploaded:
    """Store a part of a file that begins after ``before`` lines; the same part sent again is not stored again."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (CSV, NDJSON):
        raise HTTPException(415, f"a part of a file is sent as {CSV} or {NDJSON}.")
    body, choice = await request.body(), Choice(row=row, col=col, value=value)
    limits, bounds = service.settings.limits, data_set.options.bounds
    try:
        columns = await threads.run(parse, body, media_type, limits.batch, bounds, choice, skip_missing)
    except InputError as error:
        raise InputError(in_file(str(error), before)) from None
    mark = digest(body, before, media_type, skip_missing, row, col, value)
    stored = await store_batch(request, data_set, Batch(f"upload-{mark}", mark, columns, False))
    return Uploaded(stored=stored.size, repeated=stored.repeated, header=has_header(body, choice))


def has_header(body: bytes, choice: Choice) -> bool:
    """Whether the first line of a file names columns.

    >>> found = dict.fromkeys(("row", "col", "value"))
    >>> [has_header(body, found) for body in (b"row,column,value\\n1,2,3\\n", b"u,i,r\\n1,2,3\\n", b"1,2,3\\n")]
    [True, True, False]
    """
    columns = RecordReader(io.BytesIO(body), BODY, choice).columns
    first = body.partition(b"\n")[0]
    return not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and columns[2].encode() in first


def in_file(sentence: str, before: int) -> str:
    """A sentence about a part of a file, as one about the file: parts have lines before them.

    >>> in_file("the body, line 3: the value 9 is outside the bounds (1, 5).", 1000)
    'The file, line 1,003: the value 9 is outside the bounds (1, 5).'
    """
    named = re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + before:,}", sentence).replace(
        BODY, "the file"
    )
    return named[0].upper() + named[1:]


@router.post("/page/data-sets/{name}/answers", dependencies=[WRITE])
async def answer(request: Request, threads: TheThreads, data_set: TheDataSet) -> HTMLResponse:
    """Store the answer to a suggestion: learnt from, and no promise is tested on it."""
    form = await form_of(request)
    given = {
        "row": form.get("row", ""),
        "col": form.get("col", ""),
        "value": _number(form.get("value", ""), "The answer"),
    }
    body = json.dumps({"observations": [given]}).encode()
    columns = await threads.run(parse, body, JSON, 1, data_set.options.bounds)
    await store_batch(request, data_set, Batch(secrets.token_hex(16), digest(body), columns, True))
    return render("answered.html", value=given["value"])


@router.post("/page/data-sets/{name}/fit", dependencies=[WRITE])
async def fit(service: TheService, threads: TheThreads, data_set: TheDataSet) -> HTMLResponse:
    """Have the data set fitted again, and show the jobs."""
    await jobs_api.fit_again(service, threads, data_set)
    found = await jobs_api.jobs(service, threads, data_set, 8, None)
    return render("jobs.html", name=data_set.name, jobs=found.items)

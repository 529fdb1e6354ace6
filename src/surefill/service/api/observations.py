"""Observations sent by clients: stored once, acknowledged when durable."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request, Response

from surefill.data.column_roles import Choice
from surefill.service.api.found import TheDataSet, TheService, TheThreads
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import Acknowledgement
from surefill.service.api.security import requires
from surefill.service.data_set import DataSet
from surefill.service.service import Service
from surefill.service.store.observations import Batch, Stored
from surefill.service.uploads import JSON, MEDIA_TYPES, NDJSON, SENT, digest, parse

router = APIRouter(prefix="/v1/data-sets/{name}", tags=["observations"], responses=documented(*ALWAYS, 404))

KEY_PATTERN = r"^[\x21-\x7e]{1,128}$"
"""Keys of batches: letters that a header can carry."""

ColumnName = Annotated[str | None, Query(min_length=1, max_length=200, description="Its name in csv or JSON lines.")]

ONE = {"row": "ann", "col": "Alien", "value": 5}
BODY: dict[str, Any] = {
    "required": True,
    "content": {
        JSON: {"schema": {"$ref": "#/components/schemas/ObservationList"}, "example": {"observations": [ONE]}},
        NDJSON: {"schema": {"type": "string"}, "example": '{"row": "ann", "col": "Alien", "value": 5}\n'},
        "text/csv": {"schema": {"type": "string"}, "example": "row,col,value\nann,Alien,5\n"},
    },
}


@router.post(
    "/observations",
    status_code=201,
    dependencies=[Depends(requires("write"))],
    responses=documented(409, 415, 507),
    openapi_extra={"requestBody": BODY},
)
async def add_observations(
    request: Request,
    response: Response,
    service: TheService,
    threads: TheThreads,
    data_set: TheDataSet,
    idempotency_key: Annotated[str | None, Header(pattern=KEY_PATTERN)] = None,
    asked: Annotated[bool, Query(description="They answer suggestions; no promise is tested on them.")] = False,
    skip_missing: Annotated[bool, Query(description="Leave out lines without a value.")] = False,
    row: ColumnName = None,
    col: ColumnName = None,
    value: ColumnName = None,
) -> Acknowledgement:
    """Store a batch, as JSON, JSON lines or csv: all of it or nothing, and once for each `Idempotency-Key`.

    The answer comes when the batch is durable and the stream has learnt it. Sent again under the same key, it gets the
    same answer and is not stored again; if no answer came, send it again.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in MEDIA_TYPES:
        raise HTTPException(415, f"the content type of observations is one of {', '.join(MEDIA_TYPES)}.")
    body = await request.body()
    choice: Choice = {"row": row, "col": col, "value": value}
    limits, bounds = service.settings.limits, data_set.options.bounds
    key = idempotency_key or secrets.token_hex(16)

    def read() -> Batch:
        columns = parse(body, media_type, limits.batch, bounds, choice, skip_missing)
        return Batch(key, digest(body, media_type, asked, skip_missing, row, col, value), columns, asked)

    stored = await store_batch(request, data_set, await threads.run(read))
    if stored.repeated:
        response.headers["Idempotent-Replayed"] = "true"
    first = stored.last_sequence - stored.size + 1
    return Acknowledgement(key=key, stored=stored.size, first=first, last=stored.last_sequence)


async def store_batch(request: Request, data_set: DataSet, batch: Batch) -> Stored:
    """Store and count a batch; returns when it is durable."""
    service: Service = request.app.state.service
    storing = asyncio.wrap_future(service.observe(data_set, batch))
    try:
        stored = await asyncio.wait_for(asyncio.shield(storing), service.settings.limits.answer_seconds)
    except TimeoutError:
        storing.add_done_callback(lambda late: late.exception())
        raise TimeoutError(
            "it is not known yet whether the batch is stored; send it again with the same key."
        ) from None
    if not stored.repeated:
        request.app.state.metrics.stored.labels(data_set.name).inc(stored.size)
    return stored


def schemas() -> dict[str, Any]:
    """The schemas of bodies that are read here and not by the framework."""
    schema = SENT.json_schema(ref_template="#/components/schemas/{model}")
    inner: dict[str, Any] = schema.pop("$defs")
    return inner | {"ObservationList": schema}

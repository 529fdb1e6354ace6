"""The promise of the model in use, the models so far, and the report."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Response
from sqlalchemy import Engine

from surefill.service.api.found import TheDataSet, TheService, TheThreads, model_of
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import ModelDescription, Page, Promise
from surefill.service.api.security import requires
from surefill.service.data_set import DataSet
from surefill.service.refit import report_name
from surefill.service.store.models import last_models

router = APIRouter(
    prefix="/v1/data-sets/{name}",
    tags=["promise"],
    dependencies=[Depends(requires("read"))],
    responses=documented(*ALWAYS, 404),
)

REPORT_POLICY = "sandbox allow-scripts; frame-ancestors 'self'"
"""The report states its own policy, by the hashes of its style and script; here it is kept from everything else."""


@router.get("/promise")
async def promise(data_set: TheDataSet) -> Promise:
    """What is promised about the cells that are kept, over which cells, and what is not."""
    return Promise.of(data_set, data_set.in_use)


@router.get("/models")
async def list_models(
    service: TheService,
    threads: TheThreads,
    data_set: TheDataSet,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> Page[ModelDescription]:
    """The models so far, the latest first: kept share, error and promise over time."""
    return await threads.run(_models, service.engine, data_set, limit, after)


def _models(engine: Engine, data_set: DataSet, limit: int, after: int | None) -> Page[ModelDescription]:
    with engine.connect() as connection:
        found = last_models(connection, data_set.record.id, limit + 1, after)
    items = [ModelDescription.of(record) for record in found[:limit]]
    return Page(items=items, next=str(items[-1].number) if len(found) > limit else None)


@router.get(
    "/report",
    response_class=Response,
    responses=documented(409)
    | {200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A page for the browser."}},
)
async def report(threads: TheThreads, data_set: TheDataSet) -> Response:
    """The report about the model in use, a page for the browser."""
    file = data_set.folder / report_name(model_of(data_set).record.file)
    try:
        page = await threads.run(file.read_bytes)
    except FileNotFoundError:
        raise HTTPException(404, "the model in use has no report; one is written with the next fit.") from None
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

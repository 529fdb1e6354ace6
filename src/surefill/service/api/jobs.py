"""Jobs that fit a data set again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Query
from sqlalchemy import Engine

from surefill.service.api.found import TheDataSet, TheService, TheThreads
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import JobDescription, Page
from surefill.service.api.security import requires
from surefill.service.data_set import DataSet
from surefill.service.store.jobs import find_job, list_jobs

router = APIRouter(prefix="/v1/data-sets/{name}/jobs", tags=["jobs"], responses=documented(*ALWAYS, 404))

Number = Annotated[int, Path(ge=1, lt=2**31, description="Number of the job.")]


@router.get("", dependencies=[Depends(requires("read"))])
async def jobs(
    service: TheService,
    threads: TheThreads,
    data_set: TheDataSet,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> Page[JobDescription]:
    """The jobs of a data set, the latest first."""
    return await threads.run(_jobs, service.engine, data_set, limit, after)


def _jobs(engine: Engine, data_set: DataSet, limit: int, after: int | None) -> Page[JobDescription]:
    with engine.connect() as connection:
        found = list_jobs(connection, data_set.record.id, limit + 1, after)
    items = [JobDescription.of(job) for job in found[:limit]]
    return Page(items=items, next=str(items[-1].id) if len(found) > limit else None)


@router.post("", status_code=202, dependencies=[Depends(requires("write"))], responses=documented(507))
async def fit_again(service: TheService, threads: TheThreads, data_set: TheDataSet) -> JobDescription:
    """Fit the data set again, on all that is stored when the job begins; a job that waits already is the answer."""
    return JobDescription.of(await threads.run(service.refit, data_set))


@router.get("/{number}", dependencies=[Depends(requires("read"))])
async def job(service: TheService, threads: TheThreads, data_set: TheDataSet, number: Number) -> JobDescription:
    """One job."""
    found = await threads.run(_job, service.engine, data_set, number)
    if found is None:
        raise HTTPException(404, f"there is no job {number} of this data set.")
    return found


def _job(engine: Engine, data_set: DataSet, number: int) -> JobDescription | None:
    with engine.connect() as connection:
        found = find_job(connection, number)
    return JobDescription.of(found) if found is not None and found.data_set == data_set.record.id else None

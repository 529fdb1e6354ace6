"""Data sets: made, listed, described, deleted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query

from surefill.service.api.found import TheDataSet, TheService, TheThreads
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import DataSetDescription, NewDataSet, Page
from surefill.service.api.security import requires
from surefill.service.folders import NAME_PATTERN

router = APIRouter(prefix="/v1/data-sets", tags=["data sets"], responses=documented(*ALWAYS))


@router.get("", dependencies=[Depends(requires("read"))])
async def list_data_sets(
    service: TheService,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(pattern=NAME_PATTERN)] = None,
) -> Page[DataSetDescription]:
    """The data sets in the order of their names."""
    names = sorted(name for name in service.data_sets if after is None or name > after)
    items = [DataSetDescription.of(service.data_sets[name]) for name in names[:limit] if name in service.data_sets]
    return Page(items=items, next=names[limit - 1] if len(names) > limit else None)


@router.post("", status_code=201, dependencies=[Depends(requires("admin"))], responses=documented(409, 507))
async def create_data_set(service: TheService, threads: TheThreads, new: NewDataSet) -> DataSetDescription:
    """Make an empty data set."""
    return DataSetDescription.of(await threads.run(service.create, new.name, new.options()))


@router.get("/{name}", dependencies=[Depends(requires("read"))], responses=documented(404))
async def describe_data_set(data_set: TheDataSet) -> DataSetDescription:
    """A data set and how it is completed."""
    return DataSetDescription.of(data_set)


@router.delete(
    "/{name}", status_code=204, dependencies=[Depends(requires("admin"))], responses=documented(404, 409, 507)
)
async def delete_data_set(service: TheService, threads: TheThreads, data_set: TheDataSet) -> None:
    """Forget a data set with all its observations and models."""
    if not await threads.run(service.delete, data_set):
        raise HTTPException(409, "it is being fitted; try again when its job has ended.")

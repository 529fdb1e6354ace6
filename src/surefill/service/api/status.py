"""How a data set is doing."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from sqlalchemy import Engine

from surefill.service.answers import finite
from surefill.service.api.found import TheDataSet, TheService, TheThreads
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import DataSetStatus, ErrorAtConfidence, JobDescription, ModelInUse
from surefill.service.api.security import requires
from surefill.service.data_set import DataSet
from surefill.service.store.jobs import list_jobs

router = APIRouter(
    prefix="/v1/data-sets/{name}",
    tags=["status"],
    dependencies=[Depends(requires("read"))],
    responses=documented(*ALWAYS, 404),
)


@router.get("/status")
async def status(service: TheService, threads: TheThreads, data_set: TheDataSet) -> DataSetStatus:
    """How many observations there are, how well the stream predicts them, which model is in use, what is being done."""
    return await threads.run(_status, service.engine, data_set, service.writer.pending)


def _status(engine: Engine, data_set: DataSet, pending: int) -> DataSetStatus:
    in_use, progress = data_set.in_use, data_set.progress
    with engine.connect() as connection:
        active = [job for job in list_jobs(connection, data_set.record.id, 2) if job.state in ("queued", "running")]
    return DataSetStatus(
        name=data_set.name,
        observations=progress.sequence,
        pending=pending,
        rows=progress.shape[0],
        columns=progress.shape[1],
        stream_rmse=finite(progress.metrics.rmse),
        stream_by_confidence=[ErrorAtConfidence.model_validate(line) for line in progress.metrics.by_confidence()],
        model=ModelInUse.of(data_set, in_use),
        job=JobDescription.of(active[-1]) if active else None,
    )

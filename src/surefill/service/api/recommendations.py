"""The best columns of a row."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from surefill.service.api.found import LabelQuery, TheDataSet, TheThreads
from surefill.service.api.predictions import described
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import ModelInUse, Recommendations
from surefill.service.api.security import requires
from surefill.service.data_set import DataSet
from surefill.service.recommending import recommend

router = APIRouter(
    prefix="/v1/data-sets/{name}",
    tags=["recommendations"],
    dependencies=[Depends(requires("read"))],
    responses=documented(*ALWAYS, 404),
)


@router.get("/recommendations")
async def recommend_columns(
    threads: TheThreads,
    data_set: TheDataSet,
    row: LabelQuery,
    n: Annotated[int, Query(ge=1, le=1000)] = 10,
    trusted: Annotated[bool, Query(description="False to rank what is not kept, too, with the reason.")] = True,
) -> Recommendations:
    """The columns of largest value for a row among those kept and not observed.

    A row that is not known gets no columns and a sentence.
    """
    return await threads.run(_recommended, data_set, row, n, trusted)


def _recommended(data_set: DataSet, row: str, n: int, trusted: bool) -> Recommendations:
    in_use = data_set.in_use
    found, reason = recommend(data_set, in_use, row, n, trusted)
    model = ModelInUse.of(data_set, in_use)
    return Recommendations(model=model, row=row, recommendations=[described(each) for each in found], reason=reason)

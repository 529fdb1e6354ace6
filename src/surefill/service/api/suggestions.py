"""What to ask next."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from surefill.service.answers import finite
from surefill.service.api.found import LabelQuery, TheDataSet, TheThreads, model_of
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import ModelInUse, SuggestedCell, Suggestions
from surefill.service.api.security import requires
from surefill.service.data_set import DataSet

router = APIRouter(
    prefix="/v1/data-sets/{name}",
    tags=["suggestions"],
    dependencies=[Depends(requires("read"))],
    responses=documented(*ALWAYS, 404, 409),
)

StrategyName = Literal["coverage", "variance", "risk", "random"]


@router.get("/suggestions")
async def suggest_cells(
    threads: TheThreads,
    data_set: TheDataSet,
    n: Annotated[int, Query(ge=1, le=1000)] = 10,
    strategy: StrategyName = "coverage",
    row: LabelQuery | None = None,
) -> Suggestions:
    """The cells whose answers would help most, of one row or of all. It may take seconds."""
    return await threads.run_heavy(_suggested, data_set, n, strategy, row)


def _suggested(data_set: DataSet, n: int, strategy: StrategyName, row: str | None) -> Suggestions:
    in_use, model = data_set.in_use, model_of(data_set)
    asked = None if row is None else [row]
    rows, cols, utilities = model.completer.suggest(n, strategy=strategy, return_utilities=True, rows=asked)
    answer = model.completer.result_.answer(*model.completer.observations_.locate(rows, cols))
    cells = zip(rows.tolist(), cols.tolist(), answer.value, answer.risk, utilities, strict=True)
    found = [
        SuggestedCell(row=str(i), col=str(j), value=finite(value), risk=finite(risk), utility=float(utility))
        for i, j, value, risk, utility in cells
    ]
    told = ModelInUse.of(data_set, in_use)
    assert told is not None
    return Suggestions(model=told, strategy=strategy, suggestions=found)

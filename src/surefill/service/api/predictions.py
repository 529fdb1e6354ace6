"""Predictions of one cell and of many."""

from __future__ import annotations

from fastapi import APIRouter, Depends, HTTPException, Request

from surefill.service.answers import Prediction, predict
from surefill.service.api.found import DEFAULT_LEVEL, LabelQuery, Level, TheDataSet, TheService, TheThreads
from surefill.service.api.problems import ALWAYS, documented
from surefill.service.api.schemas import CellPrediction, CellsAsked, ModelInUse, OnePrediction, Predictions
from surefill.service.api.security import requires
from surefill.service.data_set import DataSet

router = APIRouter(
    prefix="/v1/data-sets/{name}",
    tags=["predictions"],
    dependencies=[Depends(requires("read"))],
    responses=documented(*ALWAYS, 404),
)


@router.get("/predictions")
async def predict_one(
    request: Request, data_set: TheDataSet, row: LabelQuery, col: LabelQuery, level: Level = DEFAULT_LEVEL
) -> OnePrediction:
    """The value of one cell, how far it can be trusted, and which model says so."""
    prediction, in_use = await request.app.state.gatherer.ask(data_set, row, col, level)
    model = ModelInUse.of(data_set, in_use)
    return OnePrediction.model_construct(model=model, level=level, prediction=described(prediction))


@router.post("/predictions")
async def predict_many(
    service: TheService, threads: TheThreads, data_set: TheDataSet, asked: CellsAsked
) -> Predictions:
    """The same for many cells, in the order in which they were given, all from one model."""
    most = service.settings.limits.cells
    if len(asked.cells) > most:
        raise HTTPException(413, f"at most {most:,} cells can be asked at once; ask in several.")
    return await threads.run(_many, data_set, asked)


def _many(data_set: DataSet, asked: CellsAsked) -> Predictions:
    in_use, cells = data_set.in_use, asked.cells
    found = predict(data_set, in_use, [cell.row for cell in cells], [cell.col for cell in cells], asked.level)
    model = ModelInUse.of(data_set, in_use)
    return Predictions(model=model, level=asked.level, predictions=[described(each) for each in found])


def described(prediction: Prediction) -> CellPrediction:
    """A prediction as it goes over the wire; it was made here, so that nothing is checked again."""
    return CellPrediction.model_construct(**prediction._asdict())

"""What requests are about: the service, its threads, and the data set in the address."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, HTTPException, Path, Query, Request

from surefill.service.api.limits import Threads
from surefill.service.data_set import DataSet
from surefill.service.folders import NAME_PATTERN
from surefill.service.served_model import LEVEL, ServedModel
from surefill.service.service import Service
from surefill.service.uploads import LABEL_PATTERN, LONGEST_LABEL

NAME = Path(pattern=NAME_PATTERN, description="Name of the data set.", examples=["films"])


async def _service(request: Request) -> Service:
    """The service, once it has started."""
    service: Service = request.app.state.service
    if not service.ready:
        raise HTTPException(503, "the service is starting or ending.")
    return service


async def _threads(request: Request) -> Threads:
    threads: Threads = request.app.state.threads
    return threads


TheService = Annotated[Service, Depends(_service)]
TheThreads = Annotated[Threads, Depends(_threads)]


async def _data_set(request: Request, name: Annotated[str, NAME]) -> DataSet:
    # Asked directly and not by a dependency of its own, each of which costs a prediction a tenth of its time.
    data_set = (await _service(request)).data_sets.get(name)
    if data_set is None:
        raise HTTPException(404, f"there is no data set {name!r}.")
    return data_set


TheDataSet = Annotated[DataSet, Depends(_data_set)]

LabelQuery = Annotated[str, Query(min_length=1, max_length=LONGEST_LABEL, pattern=LABEL_PATTERN)]
Level = Annotated[float, Query(gt=0, lt=1, description="Probability with which an interval holds a new value.")]
DEFAULT_LEVEL = LEVEL


def model_of(data_set: DataSet) -> ServedModel:
    """The model in use; a problem before there is one."""
    model = data_set.in_use.model
    if model is None:
        raise HTTPException(409, "no model is fitted yet: send more observations, or ask for a fit by POST to jobs.")
    return model

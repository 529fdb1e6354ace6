"""Whether the service lives, and whether it can answer."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request

from surefill.service.api.problems import documented
from surefill.service.api.schemas import Health
from surefill.service.service import Service

router = APIRouter(prefix="/health", tags=["service"], responses=documented(400))


@router.get("/live")
async def live() -> Health:
    """The process answers."""
    return Health(status="ok")


@router.get("/ready", responses=documented(503))
async def ready(request: Request) -> Health:
    """The data sets are loaded, the store answers and observations are being stored."""
    service: Service = request.app.state.service
    problem = await request.app.state.threads.run(service.problem)
    if problem is not None:
        raise HTTPException(503, problem)
    return Health(status="ok")

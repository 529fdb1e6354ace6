"""The application: routers, limits, security, logs, and the service behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI

from surefill import __version__
from surefill.service.api import (
    data_sets,
    health,
    jobs,
    metrics,
    observations,
    predictions,
    problems,
    promise,
    recommendations,
    status,
    suggestions,
    tokens,
)
from surefill.service.api.gathering import Gatherer
from surefill.service.api.limits import LimitRequests, Threads
from surefill.service.api.logs import LogRequests
from surefill.service.api.security import Secure
from surefill.service.page import router as page
from surefill.service.service import Service
from surefill.service.settings import Settings

ROUTERS = (
    data_sets, observations, predictions, recommendations, suggestions, promise, status, jobs, tokens, metrics, health,
)  # fmt: skip

ABOUT = """Values of cells that were not observed, how far each can be trusted, and what is promised of those kept.

Every answer says which model it comes from and how many observations that model has not seen."""


def create_app(settings: Settings, model: Path | None = None) -> FastAPI:
    """The ASGI application of a service; it opens the data folder when it starts and leaves it when it ends.

    ``model`` is a saved model that becomes a data set.

    Examples
    --------
    >>> from surefill.service import Settings, create_app
    >>> app = create_app(Settings("served"))
    >>> "/v1/data-sets/{name}/predictions" in app.openapi()["paths"]
    True
    """
    service = Service(settings)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        if not service.ready:
            await anyio.to_thread.run_sync(service.start, model)
        yield
        await anyio.to_thread.run_sync(service.stop)

    app = FastAPI(
        title="surefill", version=__version__, description=ABOUT, lifespan=life, docs_url=None, redoc_url=None
    )
    app.state.service, app.state.threads = service, Threads(settings.limits)
    app.state.gatherer = Gatherer(app.state.threads)
    app.state.metrics = metrics.Metrics(service)
    for noun in ROUTERS:
        app.include_router(noun.router)
    app.include_router(page)
    problems.install(app)
    # The last one added is the first to see a request.
    app.add_middleware(LimitRequests, limits=settings.limits)
    app.add_middleware(Secure, settings=settings)
    app.add_middleware(LogRequests, count=app.state.metrics.count)
    described = app.openapi
    app.openapi = lambda: _made_true(described(), settings)  # type: ignore[method-assign]
    return app


def _made_true(description: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The description with the schemas of problems and of bodies that are read without the framework.

    It asks for tokens only where the service does.
    """
    own = observations.schemas() | {"Problem": problems.Problem.model_json_schema()}
    description["components"]["schemas"] |= own
    if not settings.needs_token:
        description["components"].pop("securitySchemes", None)
        for methods in description["paths"].values():
            for operation in methods.values():
                operation.pop("security", None)
    return description

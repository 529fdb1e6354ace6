"""The server that runs the application."""

from __future__ import annotations

from pathlib import Path

import uvicorn

from surefill.service.api.app import create_app
from surefill.service.settings import Settings

GRACE_SECONDS = 30
"""How long requests that are being answered have to end, once the service was told to."""


def make_server(settings: Settings, model: Path | None = None) -> uvicorn.Server:
    """A server for the application; its ``run()`` returns when the process is told to end.

    Examples
    --------
    >>> from surefill.service import Settings, make_server
    >>> make_server(Settings("served", port=8081)).config.port
    8081
    """
    config = uvicorn.Config(
        create_app(settings, model),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)

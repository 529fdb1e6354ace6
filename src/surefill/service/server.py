"""The server that runs the application."""

from __future__ import annotations

import socket
from pathlib import Path

import uvicorn

from surefill.errors import InputError
from surefill.service.api.app import create_app
from surefill.service.connections import PatientProtocol
from surefill.service.settings import Settings

BACKLOG = 2048
"""Connections that may wait to be taken, as uvicorn has it."""

GRACE_SECONDS = 30
"""How long requests that are being answered have to end, once the service was told to."""


SWITCH_SECONDS = 5e-4
"""How long a thread keeps the interpreter while another waits for it: a tenth of Python's own choice, since an answer
waits several times, for the thread that listens and for the one that predicts, while batches are read and stored."""


def listen(settings: Settings) -> socket.socket:
    """The socket of a service; InputError where its address is taken or not this machine's."""
    try:
        address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[4][:2], family=address[0], backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{settings.host}:{settings.port} cannot be listened on: {reason}.") from None


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
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)

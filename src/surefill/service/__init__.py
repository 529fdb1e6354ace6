"""A service over HTTP: observations in, trusted predictions out, each with the model it came from.

It needs the ``serve`` extra; nothing else in the library imports it but the command ``surefill serve``.
"""

from surefill.errors import MissingPackageError

try:
    import fastapi as _fastapi  # noqa: F401
    import jinja2 as _jinja2  # noqa: F401
    import prometheus_client as _prometheus_client  # noqa: F401
    import sqlalchemy as _sqlalchemy  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ImportError as error:
    raise MissingPackageError("a service", "'surefill[serve]'") from error

from surefill.service.api.app import create_app
from surefill.service.server import make_server
from surefill.service.service import Service
from surefill.service.settings import ServiceLimits, Settings

__all__ = ["Service", "ServiceLimits", "Settings", "create_app", "make_server"]

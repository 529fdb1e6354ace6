"""Templates and files of the page, and the headers that keep a browser to them."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from surefill.service.page.words import FILTERS, STATES

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts, styles and frames from here only, none of them inline; nothing is fetched from or sent to elsewhere."""

HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
"""Of every page; with no referrer at all, a form that is sent would not say where it comes from."""

HTMX = {
    "allowEval": False, "allowScriptTags": False, "includeIndicatorStyles": False, "selfRequestsOnly": True,
    "disableInheritance": True, "historyCacheSize": 0, "refreshOnHistoryMiss": True, "timeout": 90_000,
}  # fmt: skip
"""How htmx is told to behave: it runs no code from attributes or answers, and keeps no copy of what was shown."""

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".LICENSE": "text/plain"}


def _read() -> dict[str, tuple[bytes, str]]:
    """Every file that may be asked for, by name, with its type: the style of the report is the page's, too."""
    found = [*files("surefill.service.page").joinpath("static").iterdir(), files("surefill.report") / "report.css"]
    kinds = {file.name: TYPES.get(file.name[file.name.rfind(".") :]) for file in found}
    return {file.name: (file.read_bytes(), kind) for file in found if (kind := kinds[file.name])}


STATIC = _read()


def address(name: str) -> str:
    """Where a file is; its content is part of the address, so that browsers may keep it.

    >>> address("page.css").startswith("/page/static/page.css?v=")
    True
    """
    return f"/page/static/{name}?v={hashlib.sha256(STATIC[name][0]).hexdigest()[:12]}"


def _environment() -> Environment:
    templates = Environment(
        loader=PackageLoader("surefill.service.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= FILTERS | {"json": lambda content: json.dumps(content, allow_nan=False)}
    templates.globals |= {"asset": address, "htmx_config": HTMX, "states": STATES}
    return templates


TEMPLATES = _environment()


def render(template: str, code: int = 200, **context: Any) -> HTMLResponse:
    """A page or a part of one; whatever is put into it is escaped."""
    return HTMLResponse(TEMPLATES.get_template(template).render(context), code, HEADERS)

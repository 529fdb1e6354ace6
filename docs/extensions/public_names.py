"""``.. public-names:: MODULE``: one entry per public name, so that a new one is documented without editing a page.

A name that ``surefill`` itself offers is listed there (``surefill.completion.SoftImpute``), others at their module
(``surefill.completion.Completion``). References to the file a thing is defined in lead to that entry.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

import surefill

MODULES = (
    "active", "client", "cluster", "completion", "confidence", "coverage", "data", "datasets", "errors", "estimators",
    "guarantee", "inputs", "io", "jobs", "loop", "losses", "metrics", "online", "report", "risk", "service", "spaces",
    "stream", "testing", "theory", "waiting",
)  # fmt: skip


def public_names(module: str) -> list[str]:
    """What a module offers: ``__all__``, else its own public classes and functions, as they are spelt in use."""
    home = importlib.import_module(f"surefill.{module}")
    own = [
        name
        for name, thing in vars(home).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == home.__name__
    ]
    offered = getattr(home, "__all__", own)
    if module in ("errors", "report"):
        offered = [name for name in offered if name in surefill.__all__]
    return [f"surefill.{name}" if name in surefill.__all__ else f"surefill.{module}.{name}" for name in offered]


def resolve(name: str) -> Any:
    """The thing behind a public name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def kind_of(thing: object) -> str:
    """What autodoc calls it."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, Exception) else "class"
    return "function" if inspect.isfunction(thing) else "data"


class PublicNames(SphinxDirective):
    """An autodoc entry for each public name of a module, those of ``surefill`` itself and classes first."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the entries in place."""
        names = public_names(self.arguments[0])
        names.sort(key=lambda name: (name.count("."), not inspect.isclass(resolve(name))))
        lines = [line for name in names for line in (f".. auto{kind_of(resolve(name))}:: {name}", "")]
        return self.parse_text_to_nodes("\n".join(lines))


@cache
def entries() -> dict[str, Any]:
    """Every public name and the thing behind it."""
    return {name: resolve(name) for module in MODULES for name in public_names(module)}


def lead_to_entry(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Node) -> nodes.Node | None:
    """A reference to ``surefill.risk.risk_model.RiskModel``, or to ``RiskModel`` alone, means the public entry.

    What exists but is not public is left as text; what does not exist stays missing.
    """
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    if not target.startswith("surefill."):
        found = [name for name in entries() if name.rpartition(".")[2] == target]
    else:
        try:
            thing = pkgutil.resolve_name(target)
        except (ImportError, AttributeError):
            return None
        found = [name for name, public in entries().items() if public is thing]
    if found:
        return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, content)
    return content if target.startswith("surefill.") else None


def skip(app: Sphinx, what: str, name: str, thing: object, skipped: bool, options: object) -> bool | None:
    """scikit-learn adds methods for metadata routing, which mean nothing here."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("public-names", PublicNames)
    app.connect("missing-reference", lead_to_entry)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}

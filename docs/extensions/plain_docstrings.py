"""Docstrings are written to be read in an editor; make them what Sphinx expects.

Formulas (paragraphs that are indented or spaced out) keep their shape, ``name : meaning`` becomes a field, and the
signs of mathematics (| * _) are not markup.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.*?``|:[a-z:]+:`.*?`|(?<!\S)\*[a-z ]+\*(?!\w))")
ARRAY_LIKE = re.compile(r"~?[\w.]*_Buffer \| .*?_NestedSequence\[complex \| bytes \| str\]")
ARRAY = re.compile(r"~?[\w.]*ndarray\[tuple\[~?[\w.]*Any, \.\.\.\], ~?[\w.]*dtype\[(.*?)\]\]")
SECTIONS = ("Parameters", "Attributes")


def escape(line: str) -> str:
    """Signs of mathematics outside literals and references, taken as they are."""
    pieces = LITERAL.split(line)
    pieces[::2] = [re.sub(r"([|*`]|_(?!\w))", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def is_formula(paragraph: list[str]) -> bool:
    """Indented, or with gaps wider than prose has."""
    if re.match(r"(\d\.|-|\*) ", paragraph[0]) or any(">>>" in line for line in paragraph):
        return False
    return any(re.search(r"^ |\S {2,}\S", line) for line in paragraph)


def paragraphs(lines: list[str]) -> list[list[str]]:
    """Runs of lines that are not blank."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [paragraph for paragraph in found if paragraph]


def as_field(line: str) -> list[str]:
    """``name : meaning`` on two lines, as napoleon reads it."""
    field = re.match(r"(\w[\w, ]*) : (.*)$", line)
    return [field[1], "    " + escape(field[2])] if field else [escape(line)]


def rewrite(paragraph: list[str], after_colons: bool) -> list[str]:
    """One paragraph in reStructuredText."""
    if len(paragraph) > 1 and set(paragraph[1]) == {"-"}:
        body = paragraph[2:]
        if paragraph[0] in SECTIONS:
            body = [new for line in body for new in as_field(line)]
        return [*paragraph[:2], *body]
    if any(line.startswith(">>>") for line in paragraph) or after_colons:
        return paragraph
    if is_formula(paragraph):
        return ["::", "", *("    " + line for line in paragraph)]
    return [escape(line) for line in paragraph]


def process(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """For ``autodoc-process-docstring``, before napoleon."""
    if not getattr(thing, "__module__", "surefill").startswith("surefill"):
        return
    new: list[str] = []
    for paragraph in paragraphs(lines):
        if paragraph[0].startswith(">>>") and "Examples" not in new:
            new += ["Examples", "--------"]
        after_colons = bool(new) and new[-2].endswith("::")
        new += [*rewrite(paragraph, after_colons), ""]
    lines[:] = new


def shorten(app: Sphinx, what: str, name: str, thing: object, options: object, signature: str, returns: str) -> Any:
    """NumPy's aliases by their names, for ``autodoc-process-signature``."""
    return tuple(text and ARRAY.sub(r"NDArray[\1]", ARRAY_LIKE.sub("ArrayLike", text)) for text in (signature, returns))


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True}

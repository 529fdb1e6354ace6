"""Labels that are markup and script, in the report and in the service's page: text always, never an element.

What a page is made of, its elements and the names of their attributes, must be the same whatever the labels are. So
pages with random pieces of markup for labels are compared with one whose labels are plain words.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np

from surefill.report.contents import ReportContents
from surefill.report.page import render

PIECES = (
    "<script>alert(1)</script>", "</script>", "<!--", "-->", "]]>", "<", ">", '"', "'", "`", "&lt;", "&", "onerror=",
    "<svg/onload=alert(1)>", "javascript:alert(1)", "{{7*7}}", "${title}", "$$", "%s", "\u2028", "\u202e", "\0", "\n",
    " ", "<img src=x ",
    "</title>", "</style>", "\ud800", "=1+1", "é", "x", "\\u003c", "</pre>", "<base href=//x>", "hx-get='/x'",
)  # fmt: skip


def label(rng: np.random.Generator, whole: bool = False) -> str:
    """Some pieces in a row; only ``whole`` characters where half ones are refused before."""
    text = "".join(rng.choice(PIECES, rng.integers(1, 6)))
    return text.replace("\ud800", "?") if whole else text


class _Skeleton(HTMLParser):
    """Elements and names of attributes, in order; what they say is left out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[Any] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more."""
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        """One ends."""
        self.found.append(tag)

    def handle_comment(self, data: str) -> None:
        """The page has none."""
        self.found.append("comment")


def report(contents: ReportContents, words: Any) -> list[Any]:
    """What the report is made of if labels, names, title and command are such ``words``."""
    axes = {
        name: replace(axis, name=words(), labels=np.array([words() for _ in range(len(axis))], dtype=object))
        for name, axis in (("rows", contents.rows), ("columns", contents.columns))
    }
    page = render(replace(contents, value_name=words(), **axes), words(), words())
    assert len(re.findall("<script", page)) == len(re.findall("</script>", page)), "a script that was not there"
    return _Skeleton(page).found


def page(words: Any) -> list[Any]:
    """What lists of rows and questions of the service's page are made of."""
    from surefill.service.page.rendering import TEMPLATES

    matches = TEMPLATES.get_template("matches.html").render(
        name="films", matches=[words() for _ in range(5)], asked=words()
    )
    cells = [SimpleNamespace(row=words(), col=words(), value=1.0, risk=0.5) for _ in range(5)]
    found = SimpleNamespace(suggestions=cells)
    asked = TEMPLATES.get_template("suggestions.html").render(name="films", found=found, bounds=None, scope="write")
    return _Skeleton(matches + asked).found

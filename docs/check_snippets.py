"""Prose that nothing executes goes stale: run every snippet of the README and the docs, and follow every link.

The blocks of a page run in order in a folder that holds a small ``ratings.csv``: Python in one namespace, and of shell
blocks the lines that call surefill. A block of text after one of them is what it prints: the words must be the same,
and the numbers about the same, since other processors round otherwise.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import surefill
from surefill.cli.main import commands
from surefill.datasets import make_low_rank

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(python|sh|text)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e-?\d+)?")


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, code) of the blocks that are run or printed."""
    found = BLOCK.findall(page.read_text())
    return [
        (language, "\n".join(line.removeprefix(indent) for line in code.split("\n")))
        for indent, language, code in found
    ]


def run_python(code: str, page: Path, namespace: dict[str, object]) -> str:
    """What a block prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(page), "exec"), namespace)
    return out.getvalue()


def run_shell(code: str) -> str:
    """What the lines that call surefill print."""
    printed = ""
    for line in code.splitlines():
        if line.startswith("surefill "):
            done = CliRunner().invoke(commands, shlex.split(line, comments=True)[1:], catch_exceptions=False)
            assert done.exit_code == 0, done.stderr
            printed += done.stdout
    return printed


def assert_printed(shown: str, printed: str) -> None:
    """The same words, and numbers within a tenth of one another."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split()
    pairs = zip(*([float(x.replace(",", "")) for x in NUMBER.findall(text)] for text in (shown, printed)), strict=True)
    for here, there in pairs:
        assert there == pytest.approx(here, rel=0.1, abs=0.02), (here, there)


@pytest.fixture
def folder_with_ratings(tmp_path, monkeypatch):
    seen = make_low_rank((40, 30), rank=2, n_draws=800, noise=0.2, random_state=0).observations
    people, films = ["ann", *(f"person {i}" for i in range(1, 40))], ["Alien", *(f"film {j}" for j in range(1, 30))]
    lines = [
        f"{people[i]},{films[j]},{3 + 2 * value:.2f}"
        for i, j, value in zip(seen.rows, seen.cols, seen.values, strict=True)
    ]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.usefixtures("folder_with_ratings")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_snippets_run(page):
    namespace: dict[str, object] = {}
    printed = ""
    for language, code in blocks(page):
        if language == "python":
            printed = run_python(code, page, namespace)
        elif language == "sh":
            printed = run_shell(code)
        else:
            assert_printed(code, printed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_notation_names_what_exists():
    rows = re.findall(r"^\| .*? \| (.*?) \| `(.*?)` \|$", (ROOT / "docs" / "notation.md").read_text(), re.MULTILINE)
    assert len(rows) > 15
    for names, file in rows:
        source = (ROOT / file).read_text()
        for name in re.findall(r"`([A-Za-z_.]+)", names):
            assert re.search(rf"\b{name.rpartition('.')[2]}\b", source) or hasattr(surefill, name), (name, file)

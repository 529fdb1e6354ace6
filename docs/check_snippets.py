"""Prose that nothing executes goes stale: run every snippet of the README and the docs, and follow every link.

Python blocks of a page run in order in one namespace; of the shell blocks, the lines that call surefill. They run in a
folder that holds a small ``ratings.csv``.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import surefill
from surefill.datasets import make_low_rank

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text())
    return [
        "\n".join(line.removeprefix(indent) for line in code.split("\n"))
        for indent, kind, code in found
        if kind == language
    ]


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


@pytest.mark.usefixtures("folder_with_ratings")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_snippets_run(page):
    namespace: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)
    assert "sf" in namespace


@pytest.mark.usefixtures("folder_with_ratings")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=lambda page: page.name)
def test_shell_snippets_run(page):
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            if line.startswith("surefill "):
                words = shlex.split(line, comments=True)
                done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
                assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
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

"""The built site: every public name is there with an example that runs, and nothing is loaded from the network."""

from __future__ import annotations

import html
import inspect
import re
import sys
import typing
from pathlib import Path

import click
import pytest

import surefill

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

from command_reference import anchor, context_of, walk
from public_names import entries

from surefill.cli.main import commands

SITE = Path(__file__).parents[1] / "build" / "docs"
PAGES = sorted(SITE.rglob("*.html"))


@pytest.mark.parametrize(
    "name", [name for name, thing in entries().items() if callable(thing) and typing.get_origin(thing) is None]
)
def test_every_public_name_has_an_example(name):
    assert ">>> " in (entries()[name].__doc__ or ""), f"the docstring of {name} has no example"


def test_what_surefill_offers_is_in_the_reference():
    missing = {f"surefill.{name}" for name in surefill.__all__} - set(entries())
    assert not {name for name in missing if not inspect.ismodule(getattr(surefill, name.rpartition(".")[2]))}


def test_every_public_name_has_an_entry():
    anchors = {anchor for page in PAGES for anchor in re.findall(r'<dt [^>]*id="([\w.]+)"', page.read_text())}
    assert set(entries()) <= anchors


@pytest.mark.parametrize(("path", "command"), walk(commands, "surefill"), ids=lambda each: str(each))
def test_every_command_has_a_section_with_its_options_and_examples(path, command):
    page = (SITE / "reference" / "command_line.html").read_text()
    section = page.split(f'id="{anchor(path)}"')[1].partition("<section")[0]
    shown = html.unescape(re.sub(r"<[^>]*>", "", section))
    context = context_of(command, path)
    options = [each for each in command.get_params(context) if isinstance(each, click.Option) and not each.hidden]
    assert all(option.opts[-1] in shown for option in options)
    examples = re.findall(r"^ +(surefill .*)$", command.help or "", re.MULTILINE)
    assert all(example in shown for example in examples)
    assert f"{path} [OPTIONS]" in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_nothing_is_loaded_from_elsewhere(page):
    loaded = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"', page.read_text())
    loaded += re.findall(r'<link\b[^>]*\brel="(?:stylesheet|preload|icon)"[^>]*\bhref="([^"]*)"', page.read_text())
    loaded += [
        url for style in SITE.rglob("*.css") for url in re.findall(r"url\(['\"]?(https?:[^)]*)\)", style.read_text())
    ]
    assert not [address for address in loaded if re.match(r"(https?:)?//", address)]

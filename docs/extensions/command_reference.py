"""``.. command-reference::``: a section for each command, made of what ``--help`` prints as of this checkout.

Usage, what it does, its options in tables under their headings, and its examples. A command or option that is added is
there without editing a page.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from surefill.cli.main import commands
from surefill.cli.sections import options_by_section

WIDTHS = (30, 54, 16)
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*(?: [A-Z]+\b)?)")
BRACKETS = re.compile(r"\s*\[([^\[\]]*)\]$")


@dataclass(frozen=True)
class OptionLine:
    """What a table says of an option: how it is typed, what it does, what is taken where it is not given."""

    typed: str
    meaning: str
    default: str

    @classmethod
    def of(cls, option: click.Option, context: click.Context) -> OptionLine:
        """Take the words that ``--help`` prints apart."""
        typed, meaning = option.get_help_record(context) or (option.opts[0], "")
        default, limits = "", ""
        while found := BRACKETS.search(meaning):
            meaning = meaning[: found.start()]
            for extra in found[1].split("; "):
                if extra.startswith("default: "):
                    default = extra.removeprefix("default: ")
                elif extra == "required":
                    default = "required"
                else:
                    limits = f" ({extra})"
        return cls(typed, meaning + limits, default)


def walk(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    """A command and those below it, by name."""
    below = command.commands if isinstance(command, click.Group) else {}
    return [(path, command), *(found for name in sorted(below) for found in walk(below[name], f"{path} {name}"))]


def context_of(command: click.Command, path: str) -> click.Context:
    """What click needs to describe a command."""
    return click.Context(command, info_name=path, max_content_width=10_000)


def paragraphs(command: click.Command) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """What a command's docstring says: paragraphs, and lists of examples under their titles."""
    texts, examples = [], []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        title, *lines = part.replace("\b\n", "").strip("\n").split("\n")
        if part.startswith("\b") and lines and all(line.startswith("  ") for line in lines):
            examples.append((title.strip().removesuffix(":"), [line.strip() for line in lines]))
        else:
            texts.append(" ".join(part.replace("\b", "").split()))
    return texts, examples


def table_of(rows: list[tuple[list[nodes.Node], ...]], head: tuple[str, ...], widths: tuple[int, ...]) -> nodes.table:
    """A table with a header, each cell a paragraph."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=width) for width in widths]
    lines = [tuple([nodes.Text(word)] for word in head), *rows]
    built = []
    for line in lines:
        row = nodes.row()
        for cell in line:
            row += nodes.entry("", nodes.paragraph("", "", *cell))
        built.append(row)
    group += nodes.thead("", built[0])
    group += nodes.tbody("", *built[1:])
    return nodes.table("", group, classes=["options", "colwidths-given"])


def prose(text: str) -> list[nodes.Node]:
    """Text in which options are set as they are typed."""
    pieces = OPTION.split(text)
    return [nodes.literal(each, each) if k % 2 else nodes.Text(each) for k, each in enumerate(pieces) if each]


def describe(command: click.Command, path: str) -> list[nodes.Node]:
    """The body of a command's section."""
    context = context_of(command, path)
    texts, examples = paragraphs(command)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    found: list[nodes.Node] = [nodes.paragraph("", "", *prose(text)) for text in texts[:1]]
    found.append(nodes.literal_block(usage, usage, language="none"))
    found += [nodes.paragraph("", "", *prose(text)) for text in texts[1:]]
    if isinstance(command, click.Group):
        below = [(f"{path} {name}", command.commands[name]) for name in sorted(command.commands)]
        lines = [([_link(name)], prose(each.get_short_help_str(200))) for name, each in below]
        found.append(table_of(lines, ("command", "what it does"), (30, 70)))
    for heading, options in options_by_section(context).items():
        shown = [OptionLine.of(option, context) for option in options]
        lines = [([nodes.literal(line.typed, line.typed)], prose(line.meaning), prose(line.default)) for line in shown]
        found.append(nodes.rubric("", heading))
        found.append(table_of(lines, ("option", "meaning", "default"), WIDTHS))
    for title, commands_shown in examples:
        found.append(
            nodes.rubric("", title if title.startswith(("Example", "Start")) else f"Examples: {title.lower()}")
        )
        text = "\n".join(commands_shown)
        found.append(nodes.literal_block(text, text, language="text"))
    return found


def anchor(path: str) -> str:
    """The id of a command's section."""
    return path.replace(" ", "-")


def _link(path: str) -> nodes.Node:
    return nodes.reference("", "", nodes.literal(path, path), refid=anchor(path), internal=True)


class CommandReference(SphinxDirective):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """The program first, then its commands by name."""
        sections: list[nodes.Node] = []
        for path, command in walk(commands, "surefill"):
            section = nodes.section(ids=[anchor(path)], names=[path])
            section += nodes.title(path, "", nodes.literal(path, path))
            section += describe(command, path)
            self.state.document.note_explicit_target(section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}

"""``.. command-help::``: what each command prints with --help, as of this checkout."""

from __future__ import annotations

from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from surefill.cli.main import commands

WIDTH = 88


def help_text(command: click.Command, path: str) -> str:
    """The text that ``path --help`` prints."""
    context = click.Context(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH)
    return command.get_help(context)


def walk(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    """A command and those below it."""
    below = command.commands if isinstance(command, click.Group) else {}
    return [(path, command), *(found for name, child in below.items() for found in walk(child, f"{path} {name}"))]


class CommandHelp(SphinxDirective):
    """A section for each command, with its help as it is printed."""

    def run(self) -> list[nodes.Node]:
        """Sections in the order of the program's own help."""
        sections: list[nodes.Node] = []
        for path, command in walk(commands, "surefill"):
            section = nodes.section(ids=[path.replace(" ", "-")], names=[path])
            section += nodes.title(path, "", nodes.literal(path, path))
            text = help_text(command, path)
            section += nodes.literal_block(text, text, language="none")
            self.state.document.note_explicit_target(section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}

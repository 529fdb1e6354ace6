"""Options of a command under headings, in ``--help`` and in the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import click

Command = TypeVar("Command", bound=Callable[..., Any])

OTHER = "Options"
"""The heading of options that were put under none."""

_HEADINGS: WeakKeyDictionary[click.Parameter, str] = WeakKeyDictionary()


def section(heading: str, *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """One decorator for several options, listed in this order under a heading."""

    def decorate(command: Command) -> Command:
        before = len(_declared(command))
        for option in reversed(options):
            command = option(command)
        for parameter in _declared(command)[before:]:
            _HEADINGS.setdefault(parameter, heading)
        return command

    return decorate


def _declared(command: Any) -> list[click.Parameter]:
    """What click has noted on a function that is to become a command, the last option first."""
    return getattr(command, "__click_params__", [])


def options_by_section(context: click.Context) -> dict[str, list[click.Option]]:
    """The options of a command that are shown, by heading, in the order in which headings first appear; others last."""
    shown = [each for each in context.command.get_params(context) if isinstance(each, click.Option) and not each.hidden]
    found: dict[str, list[click.Option]] = {}
    for option in shown:
        found.setdefault(_HEADINGS.get(option, OTHER), []).append(option)
    others = found.pop(OTHER, [])
    return found | ({OTHER: others} if others else {})


class SectionedCommand(click.Command):
    """A command whose ``--help`` lists options under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each heading with its options."""
        for heading, options in options_by_section(ctx).items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])

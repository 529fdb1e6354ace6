"""The command that was given, to be given again."""

from __future__ import annotations

import shlex

import click
from click.core import ParameterSource


def command_line(context: click.Context) -> str:
    """What was typed, with the options that were given and quotes where a shell needs them."""
    words = context.command_path.split()
    for parameter in context.command.params:
        if context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE:
            words += _typed(parameter, context.params[str(parameter.name)])
    return shlex.join(words)


def _typed(parameter: click.Parameter, value: object) -> list[str]:
    values = [str(each) for each in value] if isinstance(value, tuple) else [str(value)]
    if isinstance(parameter, click.Argument):
        return values
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [parameter.opts[0] if value else parameter.secondary_opts[0]]
    return [parameter.opts[0], *values]

"""What --help shows can be typed: every example is a command line that its command takes."""

from __future__ import annotations

import inspect
import re
import shlex

import click
import pytest

from surefill.cli.main import commands
from surefill.cli.sections import OTHER, options_by_section


def walk(command):
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return [command, *(found for child in below for found in walk(child))]


EXAMPLES = [
    line.strip()
    for command in walk(commands)
    for line in inspect.cleandoc(command.help or "").splitlines()
    if line.startswith("  surefill ")
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_command_line(example):
    words = shlex.split(re.split(r" [|<>] ", example)[0])[1:]
    command = commands
    # a group may be run by itself, as 'surefill serve --port 8080' is
    while isinstance(command, click.Group) and words != ["--help"] and set(words[:1]) & set(command.commands):
        command = command.commands[words.pop(0)]
    assert command is not commands or words == ["--help"]
    if words != ["--help"]:
        with command.make_context("surefill", words) as context:
            assert context.params


@pytest.mark.parametrize("command", walk(commands), ids=lambda command: command.name)
def test_every_option_is_shown_once_with_a_text(command):
    context = click.Context(command, info_name="surefill")
    shown = [option for options in options_by_section(context).values() for option in options]
    expected = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    assert sorted(map(id, shown)) == sorted(map(id, (each for each in expected if not each.hidden)))
    assert all(option.help for option in shown)
    printed = command.get_help(context)
    assert all(printed.count(f"  {option.opts[0]}") >= 1 for option in shown)


def test_options_of_complete_stand_under_headings(run, capsys):
    assert run("complete", "--help") == 0
    said = capsys.readouterr().out
    headings = ["What is written:", "What is promised:", "How FILE is read:", "How it is computed:", f"{OTHER}:"]
    places = [said.index(f"\n{heading}\n") for heading in headings]
    assert places == sorted(places)
    assert said.index("--top-n") < said.index("--tolerance NUMBER") < said.index("--delimiter") < said.index("--seed")

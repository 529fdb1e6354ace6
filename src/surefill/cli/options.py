"""Options that several commands share, their types, and the command line that was typed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from surefill.cli.sections import Command, section
from surefill.errors import InputError
from surefill.inputs import LARGEST_SEED, Limits, check_range, position_or_name, using_limits
from surefill.registry import Entry

if TYPE_CHECKING:
    from surefill.io import ReadOptions


class NamedPath(click.Path):
    """A path that is not empty: an empty one would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or an error in one sentence."""
        if value == "":
            self.fail("an empty text names no file or folder; give a name.", param, ctx)
        return super().convert(value, param, ctx)


PATH = NamedPath(path_type=Path)


class ColumnName(click.ParamType[str | int]):
    """A column's name, or its position counted from 0."""

    name = "column"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """Digits are a position, anything else a name."""
        return position_or_name(value) if isinstance(value, str) else value


class Positive(click.ParamType[float]):
    """A finite number above 0."""

    name = "number"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or an error in one sentence."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            self.fail(f"{value!r} is not a number above 0.", param, ctx)
        return number


TIME_COLUMN = "Column that says when each observation was made: numbers, ISO dates or date-times."
"""The start of the help of --time."""


def reading_options(
    bounds: str = "the scale that values lie on, or the range seen",
    tables: bool = True,
    wide: bool = True,
    time: str | None = None,
    features: bool = False,
) -> Callable[[Command], Command]:
    """Options for reading a file of observations; ``bounds`` describes the default range of values.

    ``tables`` adds options for Excel sheets and, unless ``wide`` is False, for wide files; both need a command that
    reads the whole file. ``time`` adds --time and says what it is for, ``features`` adds side tables.
    """
    return section(
        "How FILE is read",
        click.option("--row", type=ColumnName(), help="Column with row ids: a name, or a position from 0."),
        click.option("--col", type=ColumnName(), help="Column with column ids."),
        click.option("--value", type=ColumnName(), help="Column with values."),
        *([] if time is None else [click.option("--time", type=ColumnName(), help=f"{TIME_COLUMN} {time}")]),
        click.option("--delimiter", help="What separates fields, such as ';' or '\\t'. [default: guessed]"),
        click.option(
            "--header/--no-header", default=None, help="Whether the first line names the columns. [default: guessed]"
        ),
        click.option(
            "--bounds",
            type=float,
            nargs=2,
            metavar="LOW HIGH",
            callback=_check_bounds,
            help=f"Range values may take. [default: {bounds}]",
        ),
        click.option(
            "--skip-missing",
            is_flag=True,
            help="Skip lines whose value is empty, NA or the like, and say how many they were.",
        ),
        click.option(
            "--decimal",
            type=click.Choice([".", ","]),
            help="Decimal sign of values. [default: a point, or a comma where values show it]",
        ),
        *(_table_options()[not wide :] if tables else ()),
        *(_side_tables() if features else ()),
        click.option(
            "--limit",
            metavar="NAME=NUMBER",
            multiple=True,
            expose_value=False,
            callback=_use_limits,
            help="Take longer lines (line=BYTES), longer ids (id=BYTES) or packed files that grow more (ratio=TIMES) "
            f"than usual. [default: line={Limits().line}, id={Limits().id}, ratio={Limits().ratio:g}]",
        ),
    )


def _check_bounds(_: click.Context, __: click.Parameter, bounds: tuple[float, float] | None) -> Any:
    if bounds is not None:
        check_range(*bounds)
    return bounds


def _use_limits(context: click.Context, _: click.Parameter, given: tuple[str, ...]) -> None:
    changed = {}
    for text in given:
        name, _sign, number = text.partition("=")
        try:
            changed[name] = float(number) if name == "ratio" else int(number)
        except ValueError:
            changed = {"": 0}
        if not changed.keys() <= set(vars(Limits())):
            raise click.BadParameter(f"{text!r} is not line=BYTES, id=BYTES or ratio=TIMES.")
    if changed and not context.resilient_parsing:
        context.with_resource(using_limits(**changed))


def _side_tables() -> tuple[Callable[[Command], Command], ...]:
    about = "its label, in the column called as in FILE or else the first, and numbers or kinds."
    return (
        click.option("--row-features", type=PATH, help=f"A side table (csv, parquet), a line for each row: {about}"),
        click.option("--col-features", type=PATH, help="The same for columns."),
    )


def _table_options() -> tuple[Callable[[Command], Command], ...]:
    return (
        click.option(
            "--wide",
            is_flag=True,
            help="FILE is a wide table: a line for each row, its label first or in the column --row, and a column for "
            "each column, named in the first line; empty cells and NA are holes.",
        ),
        click.option("--sheet", help="Sheet of an Excel workbook. [default: the only one that is not empty]"),
    )


def as_read_options(options: Mapping[str, Any]) -> ReadOptions:
    """What was given for :func:`reading_options`, for a job."""
    from surefill.io import ReadOptions

    names = ("row", "col", "value", "header", "bounds", "wide", "skip_missing", "decimal", "sheet", "time")
    named = {name: options[name] for name in (*names, "row_features", "col_features") if name in options}
    return ReadOptions(**named, delimiter=typed_delimiter(options))


def typed_delimiter(options: Mapping[str, Any]) -> str | None:
    """The delimiter given, ``\\t`` for a tab as shells pass it on."""
    return options["delimiter"].replace("\\t", "\t") if options["delimiter"] else None


class LossName(click.ParamType[str]):
    """A loss by its name, or ``beyond:DISTANCE`` for the share of errors beyond a distance."""

    name = "loss"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is, if it is one."""
        from surefill.losses import choose_loss

        try:
            choose_loss(value)
        except InputError:
            self.fail(f"{value!r} is not 'squared', 'absolute' or 'beyond:DISTANCE', such as beyond:0.5.", param, ctx)
        return value


def promise_options(tolerance: str) -> Callable[[Command], Command]:
    """What is to be promised, and with which probability."""
    return section(
        "What is promised",
        click.option("--tolerance", type=Positive(), help=f"{tolerance} [default: half that of the best constant]"),
        click.option(
            "--loss",
            type=LossName(),
            default="squared",
            show_default=True,
            help="What the tolerance is about: 'squared' errors, 'absolute' ones, or 'beyond:DISTANCE', the share of "
            "errors beyond a distance.",
        ),
        click.option(
            "--delta",
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            default=0.05,
            show_default=True,
            help="Probability with which the promise may fail.",
        ),
    )


def aim_options() -> Callable[[Command], Command]:
    """Which cells the promise is about, and how much of a dependence on values it is to survive."""
    return section(
        "What is promised",
        click.option(
            "--aim",
            type=click.Choice(["unobserved", "all", "observed"]),
            default="unobserved",
            show_default=True,
            help="Cells that the promise is about: 'unobserved', those that are filled, each counted once; 'all', kept "
            "cells that were not learnt from, each counted once; 'observed', kept cells drawn like those in FILE, "
            "which keeps more and says nothing of the cells that are filled.",
        ),
        click.option(
            "--sensitivity",
            type=click.FloatRange(min=1),
            default=1.0,
            show_default=True,
            metavar="G",
            help="Ask for a promise that holds even if values influence what is observed: if people rate what they "
            "like up to twice as often as they would otherwise, 2. More is kept with 1, which takes values to play "
            "no part beyond row and column; the G that the promise then survives is printed all the same.",
        ),
    )


seed_option = click.option(
    "--seed", type=click.IntRange(0, LARGEST_SEED), default=0, show_default=True, help="Same seed, same result."
)


def jobs_option(command: Command) -> Command:
    """How many cores all that the command does may use; the command itself need not know."""
    return click.option(
        "--jobs",
        type=int,
        default=-1,
        show_default=True,
        expose_value=False,
        callback=_use_jobs,
        help="Cores to use: 1, 2, ..., or -1 for all. Results do not depend on it.",
    )(command)


def _use_jobs(context: click.Context, _: click.Parameter, jobs: int) -> None:
    from surefill.parallel import using_jobs

    if jobs == 0:
        raise click.BadParameter("0 cores do no work; give 1 or more, or -1 for all.")
    if jobs != -1 and not context.resilient_parsing:
        context.with_resource(using_jobs(jobs))


def command_line(context: click.Context) -> str:
    """What was typed, with the options that were given and quotes where a shell needs them."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name = str(parameter.name)
        # what a command is not told, such as --jobs, changes nothing that it does
        if name in context.params and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words += _typed(parameter, context.params[name])
    return shlex.join(words)


def _typed(parameter: click.Parameter, value: object) -> list[str]:
    values = [str(each) for each in value] if isinstance(value, tuple) else [str(value)]
    if isinstance(parameter, click.Argument):
        return values
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [parameter.opts[0] if value else parameter.secondary_opts[0]]
    return [parameter.opts[0], *values]


def described(entries: Mapping[str, Entry]) -> str:
    """Every named algorithm with its few words, for ``--help``."""
    return "; ".join(f"{name}: {entry.summary}" for name, entry in entries.items()) + "."


def skipped(lines: int) -> str:
    """What --skip-missing left out."""
    return f"{lines:,} lines without a value were skipped." if lines > 1 else "1 line without a value was skipped."

"""Entry point: commands, and one clear sentence with exit code 2 for anything wrong with the input."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import click

from surefill import __version__
from surefill.cli.complete import complete
from surefill.cli.demo import demo
from surefill.cli.evaluate import evaluate
from surefill.cli.predict import predict
from surefill.cli.progress import NOTHING_WRITTEN
from surefill.cli.recommend import recommend
from surefill.cli.reproduce import reproduce
from surefill.cli.serve import serve
from surefill.cli.stream import stream
from surefill.cli.suggest import suggest
from surefill.cli.terminal import PrintingError, fail, fail_to_print, flush, say
from surefill.cli.update import update
from surefill.errors import InputError, MissingPackageError, OutOfMemoryError, SolverError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="surefill")
def commands() -> None:
    """Fill in the part of a matrix that can be trusted, and leave the rest empty.

    \b
    Start here:
      surefill demo
      surefill complete ratings.csv -o filled.csv --tolerance 0.5
      surefill evaluate ratings.csv
      surefill complete ratings.csv -o filled.csv --save model.surefill
      surefill predict model.surefill pairs.csv -o scored.csv
      surefill recommend model.surefill --row 42 -n 10
      surefill update model.surefill new.csv -o newer.surefill
      surefill suggest model.surefill -n 20
      surefill serve --model model.surefill
      surefill complete --help
      surefill stream --help
      surefill reproduce --help
    """


commands.add_command(complete)
commands.add_command(demo)
commands.add_command(evaluate)
commands.add_command(predict)
commands.add_command(recommend)
commands.add_command(reproduce)
commands.add_command(serve)
commands.add_command(stream)
commands.add_command(suggest)
commands.add_command(update)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 done, 2 bad input, 1 no answer, 130 or 143 interrupted, with a sentence each."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        commands.main(args=arguments, prog_name="surefill", standalone_mode=False)
        flush()
        _tell_of_cache()
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
    except click.UsageError as error:
        hint = f" Try '{error.ctx.command_path} --help'." if error.ctx is not None else ""
        fail(error.format_message() + hint)
    except click.ClickException as error:
        fail(error.format_message())
    except (InputError, MissingPackageError) as error:
        fail(str(error))
    except SolverError as error:
        fail(str(error), exit_code=1)
    except OutOfMemoryError as error:
        fail(str(error), exit_code=1)
    except MemoryError:
        fail("the matrix is too large for this machine's memory; complete a part of its rows or columns.", exit_code=1)
    except (KeyboardInterrupt, click.Abort) as stop:
        number = next(iter((stop.__cause__ or stop).args), signal.SIGINT)
        fail(NOTHING_WRITTEN, exit_code=128 + number)
    except PrintingError as error:
        fail_to_print(error.error)
    except OSError as error:
        fail_to_print(error)


def _tell_of_cache() -> None:
    """Say where compiled code is cached, if not in the usual place; imports nothing to find out."""
    compiler_cache = sys.modules.get("surefill.kernels.compiler_cache")
    if compiler_cache is not None and compiler_cache.CACHE.sentence is not None:
        say(f"surefill: {compiler_cache.CACHE.sentence}", err=True)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)

"""``surefill serve``: a service over HTTP; ``surefill serve token``: who may use it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefill.cli.options import PATH
from surefill.cli.terminal import say
from surefill.errors import InputError

if TYPE_CHECKING:
    from surefill.service import Settings

FOLDER = Path("surefill-data")

data_option = click.option(
    "--data", "folder", type=PATH, help=f"Folder of the service; made where missing.  [default: {FOLDER}]"
)
database_option = click.option(
    "--database",
    envvar="SUREFILL_DATABASE",
    help="Address of a PostgreSQL database, postgresql://user@host/name, in place of SQLite in the folder. "
    "[environment: SUREFILL_DATABASE]",
)


@click.group(invoke_without_command=True, short_help="Answer over HTTP: observations in, trusted predictions out.")
@data_option
@click.option("--model", type=PATH, help="A saved model to serve; it becomes a data set of its name.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Port to listen on.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--allow-host", "hosts", multiple=True, help="A name, beside localhost, that the service answers to.")
@click.option("--require-token", is_flag=True, help="Ask for a token on loopback, too, as behind a proxy.")
@database_option
@click.pass_context
def serve(
    context: click.Context, /, folder: Path | None, model: Path | None, database: str | None, **options: Any
) -> None:
    """Take observations in over HTTP and answer: values, how far they can be trusted, what to show, what to ask.

    A stream answers at once for what just arrived; the full model, which promises, is fitted again in a process of
    its own when enough is new, and every answer says which model it comes from. Everything acknowledged is on disk.

    It listens on this machine only and then asks for no token. On another address every request needs one; 'surefill
    serve token' makes it. The description of the API is at /openapi.json.

    \b
    Examples:
      surefill serve
      surefill serve --model model.surefill
      surefill serve --data /var/lib/surefill --host 0.0.0.0 --allow-host films.example.org
      surefill serve token --data /var/lib/surefill --scope write
    """
    if context.invoked_subcommand is not None:
        return
    from surefill.service import Settings

    options["hosts"] = tuple(options["hosts"])
    run(Settings(folder or FOLDER, database, **options), model)


def run(settings: Settings, model: Path | None) -> None:
    """Serve until SIGTERM or SIGINT."""
    import logging
    import sys

    from surefill.service import make_server
    from surefill.service.allocator import return_large_blocks
    from surefill.service.api.logs import JsonLines
    from surefill.service.server import SWITCH_SECONDS, listen

    if settings.needs_token:
        _require_a_token(settings)
    if model is not None and not model.is_file():
        raise InputError(f"{model} does not exist.")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    sys.setswitchinterval(SWITCH_SECONDS)
    return_large_blocks()
    listener = listen(settings)
    port = listener.getsockname()[1]
    tokens = "every request needs a token" if settings.needs_token else "no token is needed on this machine"
    say(f"surefill serves {settings.folder} at http://{settings.host}:{port}; {tokens}.", err=True)
    server = make_server(settings)
    server.config.app.state.service.start(model)  # type: ignore[union-attr]
    with contextlib.suppress(KeyboardInterrupt):  # the server has ended in good order, and tells how it was told to
        server.run(sockets=[listener])


def _require_a_token(settings: Settings) -> None:
    from surefill.service.store import open_engine
    from surefill.service.store.tokens import all_tokens

    settings.folder.mkdir(parents=True, exist_ok=True)
    engine = open_engine(settings.address)
    with engine.connect() as connection:
        known = all_tokens(connection)
    engine.dispose()
    if not known:
        raise InputError(
            f"nobody could use this service, for it asks for tokens and there is none: make one with 'surefill serve "
            f"token --data {settings.folder} --scope admin'."
        )


@serve.command(short_help="Make a token, shown once.")
@data_option
@click.option(
    "--scope",
    type=click.Choice(["read", "write", "admin"]),
    default="read",
    show_default=True,
    help="What it allows: to ask; to send observations as well; to make and delete data sets and tokens as well.",
)
@click.option("--note", default="", help="Whose it is, to recognise it in lists.")
@database_option
@click.pass_context
def token(context: click.Context, /, folder: Path | None, scope: Any, note: str, database: str | None) -> None:
    """Make a token for a service and print it; only its hash is stored, so it cannot be shown again.

    \b
    Examples:
      surefill serve token --scope write --note importer
      curl -H "Authorization: Bearer $TOKEN" https://films.example.org/v1/data-sets
    """
    from surefill.service import Settings
    from surefill.service.store import open_engine, writing
    from surefill.service.store.tokens import create_token

    given = context.parent.params if context.parent is not None else {}
    settings = Settings(folder or given.get("folder") or FOLDER, database or given.get("database"))
    settings.folder.mkdir(parents=True, exist_ok=True)
    if len(note) > 128:
        raise InputError("a note has at most 128 letters.")
    with writing(open_engine(settings.address)) as connection:
        secret, _ = create_token(connection, scope, note)
    say(secret)

"""Fault injection below the library: every write, rename, sync and new file fails once, in turn, in each command.

A shim that the loader puts before the system's library (``faults.c``, which needs a C compiler) counts the calls that
change files in the working folder and lets one fail as a full disk does. After each: an exit code and a sentence that
say so, the old files as they were or the new ones whole, and nothing half-written beside them; a stream goes on to the
same output. Each command runs in a child that is forked when everything is compiled; ``complete`` has its fit and its
page from the parent, for what is tried is how they are written.

    python tests/hostile/faults.py
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

OLD = "old"
LINES, EVERY = 50, 30
"""Lines of the table, and of them between two checkpoints: one is new, and one replaces it."""
NAMES = ("out.csv", "model", "page.html")


def _stream(work: Path, *more: str) -> None:
    _command("stream", str(work / "t.csv"), "-o", str(work / "out.csv"), *more)


def _complete(work: Path) -> None:
    import surefill.jobs.complete as job

    fitted, page = _fitted(work / "t.csv")
    job.PartialCompleter = lambda **_: fitted  # type: ignore[assignment,misc]
    job.render_report = lambda *_, **__: page
    written = ("-o", work / "out.csv", "--save", work / "model", "--report", work / "page.html")
    _command("complete", str(work / "t.csv"), *map(str, written), "--confidence", "posterior")


def _command(*arguments: str) -> None:
    from surefill.cli import main as surefill_main

    surefill_main(list(arguments))


class _Fitted:
    """A completer that was fitted already: fitting it again changes nothing."""

    def __init__(self, completer: Any) -> None:
        self._completer = completer

    def fit(self, _: Any) -> Any:
        """What was fitted."""
        return self._completer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completer, name)


@cache
def _fitted(table: Path) -> tuple[Any, str]:
    """A completer of the table, and its page."""
    import surefill as sf
    from surefill.report import render_report

    completer = sf.PartialCompleter(tolerance=0.3, confidence="posterior").fit(sf.read_observations(table))
    return _Fitted(completer), render_report(completer)


def _save(work: Path) -> None:
    from surefill import InputError
    from surefill.cli.terminal import fail

    try:
        _fitted(work / "t.csv")[0].save(work / "model")
    except InputError as error:
        fail(str(error))


COMMANDS: dict[str, Callable[[Path], None]] = {
    "save": _save,
    "stream with a checkpoint": lambda work: _stream(work, "--checkpoint", str(work / "state"), "--every", str(EVERY)),
    "stream": _stream,
    "complete": _complete,
}


def run(command: Callable[[Path], None], work: Path, fault: int) -> tuple[int, str, int]:
    """(exit code, what was said, calls counted) of a command in a child in which one call fails."""
    said, counted = work.parent / "said", work.parent / "counted"
    child = os.fork()
    if child == 0:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        shim, code = ctypes.CDLL(None), 0
        shim.faults_begin(os.fsencode(work), ctypes.c_long(fault))
        try:
            command(work)
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = 99
        sys.stderr.flush()
        counted.write_text(str(shim.faults_counted()))
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, said.read_text(), int(counted.read_text())


def _warm_up(command: Callable[[Path], None], work: Path) -> None:
    """Run it here, so that children find everything imported and compiled."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        command(work)


def prepare(work: Path) -> None:
    """A table, and old files where new ones are to go."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    lines = [f"u{k % 20},i{k % 13 * (k % 7) % 15},{1 + k % 5}" for k in range(LINES)]
    (work / "t.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    for name in NAMES:
        (work / name).write_text(OLD)


def files(work: Path) -> dict[str, bytes]:
    """The files that are there now."""
    return {path.name: path.read_bytes() for path in work.iterdir()}


def problems(name: str, work: Path, fault: int, whole: dict[str, bytes]) -> list[str]:
    """What is wrong after one fault."""
    prepare(work)
    code, said, _ = run(COMMANDS[name], work, fault)
    found, now, resumable = list[str](), files(work), "checkpoint" in name
    if code not in (0, 1, 2) or "Traceback" in said:
        found.append(f"exit code {code}: {said[-400:]}")
    elif code and "cannot be written: no space left" not in said:
        found.append(f"a sentence that does not say what failed: {said[-400:]}")
    if extra := set(now) - set(whole):
        found.append(f"left behind: {sorted(extra)}")
    for each in NAMES:
        growing = resumable and each == "out.csv"
        if not growing and len(now.get(each, b"")) not in (len(OLD), len(whole[each])):
            found.append(f"{each} is neither old nor whole")
        if not code and len(now[each]) != len(whole[each]):
            found.append(f"{each} is not what was asked for, at exit code 0")
    if resumable and code:
        code, said, _ = run(COMMANDS[name], work, 0)
        if code or files(work)["out.csv"] != whole["out.csv"]:
            found.append(f"a second run does not end as an undisturbed one does: {said[-400:]}")
    return found


def inject() -> int:
    """Inject every fault into every command; print the number of points and what went wrong; how many did."""
    wrong = 0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # synchronising a disk takes most of the time
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        work = Path(os.path.realpath(folder)) / "work"
        prepare(work)
        _fitted(work / "t.csv")  # once, before any child is made
        for name in sys.argv[1:] or COMMANDS:
            command = COMMANDS[name]
            prepare(work)
            _warm_up(command, work)
            prepare(work)
            code, said, points = run(command, work, 0)
            if code:
                sys.exit(said)
            whole = files(work)
            turns = range(1, points + 1)
            found = [(k, problem) for k in turns for problem in problems(name, work, k, whole)]
            print(f"{name}: {points} points, {len(found)} faults", flush=True)
            for k, problem in found[:10]:
                print(f"  at {k}: {problem}", flush=True)
            wrong += len(found)
    return wrong


def main() -> None:
    """Build the shim, start again under it, and inject."""
    if os.environ.get("SUREFILL_FAULTS"):
        sys.exit(bool(inject()))
    with tempfile.TemporaryDirectory() as folder:
        shim, source = Path(folder) / "faults.so", Path(__file__).with_name("faults.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
        environment = os.environ | {"LD_PRELOAD": str(shim), "SUREFILL_FAULTS": "1", "OMP_NUM_THREADS": "1"}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)


if __name__ == "__main__":
    main()

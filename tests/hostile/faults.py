"""Fault injection below the library: every write, rename, sync and new file fails once, in turn, in each command.

A shim that the loader puts before the system's library (``faults.c``, which needs a C compiler) counts the calls that
change files in the working folder and lets one fail as a full disk does. After each: exit code 2 and one sentence, the
old files as they were or the new ones whole, and nothing half-written beside them.

    python tests/hostile/faults.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SAVE = (
    "import sys; from pathlib import Path; import surefill as sf; from surefill.cli.terminal import fail\n"
    "seen = sf.datasets.make_low_rank((20, 15), rank=1, n_draws=200, noise=0.1, random_state=0).observations\n"
    "completer = sf.PartialCompleter(tolerance=0.3, confidence='posterior').fit(seen)\n"
    "try:\n    completer.save(Path.cwd() / 'model')\n"
    "except sf.InputError as error:\n    fail(str(error))\n"
)
COMMANDS = {
    "stream": ["-m", "surefill", "stream", "t.csv", "-o", "{}/out.csv", "--checkpoint", "{}/state", "--every", "100"],
    "stream without checkpoint": ["-m", "surefill", "stream", "t.csv", "-o", "{}/out.csv"],
    "save": ["-c", SAVE],
    "complete": [
        "-m", "surefill", "complete", "t.csv", "-o", "{}/out.csv", "--save", "{}/model", "--report", "{}/page.html",
        "--confidence", "posterior",
    ],
}  # fmt: skip


class Case:
    """A command in a folder with old files, run with or without a fault."""

    def __init__(self, base: Path, shim: Path, command: list[str]) -> None:
        self.base, self.shim, self.command = base, shim, command
        self.work = base / "work"

    def run(self, fault: int) -> tuple[subprocess.CompletedProcess[str], int]:
        """What came of it, and how many calls were made."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        lines = [f"u{k % 20},i{k % 13 * (k % 7) % 15},{1 + k % 5}" for k in range(300)]
        (self.work / "t.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
        for name in ("out.csv", "model", "page.html"):
            (self.work / name).write_text("old")
        count = self.base / "count"
        count.unlink(missing_ok=True)
        environment = os.environ | {
            "LD_PRELOAD": str(self.shim), "FAULT_FOLDER": str(self.work), "FAULT_AT": str(fault),
            "FAULT_COUNT": str(count), "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        words = [word.format(self.work) if "{}/" in word else word for word in self.command]
        done = subprocess.run([sys.executable, *words], cwd=self.work, env=environment, capture_output=True, text=True)
        return done, int(count.read_text())

    def files(self) -> dict[str, bytes]:
        """The files that are there now."""
        return {path.name: path.read_bytes() for path in self.work.iterdir()}


def problems(case: Case, fault: int, whole: dict[str, bytes], resumable: bool) -> list[str]:
    """What is wrong after one fault."""
    done, _ = case.run(fault)
    found, files = list[str](), case.files()
    if done.returncode not in (0, 2) or "Traceback" in done.stderr:
        found.append(f"exit code {done.returncode}: {done.stderr[-300:]}")
    if done.returncode == 2 and "cannot be written" not in done.stderr:
        found.append(f"a sentence that does not say what failed: {done.stderr[-300:]}")
    extra = set(files) - set(whole) - {"t.csv"}
    if extra:
        found.append(f"left behind: {sorted(extra)}")
    for name in ("out.csv", "model", "page.html"):
        growing = resumable and name == "out.csv"
        if not growing and len(files.get(name, b"")) not in (3, len(whole[name])):
            found.append(f"{name} is neither old nor whole")
    if resumable and done.returncode:
        again = subprocess.run(
            [sys.executable, *(word.format(case.work) for word in case.command)],
            cwd=case.work, capture_output=True, text=True,
        )  # fmt: skip
        if again.returncode or case.files()["out.csv"] != whole["out.csv"]:
            found.append(f"a second run does not end as an undisturbed one does: {again.stderr[-300:]}")
    return found


def main() -> None:
    """Inject every fault into every command; print the number of points and what went wrong."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        shim = base / "faults.so"
        source = Path(__file__).with_name("faults.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
        for name in sys.argv[1:] or COMMANDS:
            case = Case(base, shim, COMMANDS[name])
            done, points = case.run(0)
            if done.returncode:
                sys.exit(done.stderr)
            whole = case.files()
            found = [
                (k, problem) for k in range(1, points + 1) for problem in problems(case, k, whole, name == "stream")
            ]
            print(f"{name}: {points} points, {len(found)} faults", flush=True)
            for k, problem in found[:10]:
                print(f"  at {k}: {problem}")
            wrong += len(found)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

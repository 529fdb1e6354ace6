"""Run demo, complete, stream and a Python fit as somebody who has no home and may not write to the program.

The package is copied to a folder without leave to write, as a container's image is, and the home is such a folder.
Where the tests run as root, the rights of root to write anywhere are given up by ``setpriv`` first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import surefill

FIT = (
    "import surefill as sf; s = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=400, noise=0.1, random_state=0);"
    "print(sf.PartialCompleter(tolerance=0.3, confidence='posterior').fit(s.observations).predict([0], [0]).shape)"
)


def prefix() -> list[str]:
    """What gives up the rights of root, where there are any."""
    if os.getuid() or not shutil.which("setpriv"):
        return []
    none = "-dac_override,-dac_read_search,-fowner"
    return ["setpriv", f"--bounding-set={none}", f"--inh-caps={none}"]


def read_only(folder: Path) -> None:
    """Take away all leave to write."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def main() -> None:
    """Run each command twice, the second time from what the first compiled; print what it took."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        program, home, work = base / "program", base / "home", base / "work"
        shutil.copytree(
            Path(surefill.__file__).parent, program / "surefill", ignore=shutil.ignore_patterns("__pycache__")
        )
        home.mkdir()
        work.mkdir()
        lines = [f"u{k % 20},i{k % 13 * (k % 7) % 15},{1 + k % 5}" for k in range(300)]
        (work / "t.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
        read_only(program)
        read_only(home)
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(program), "TMPDIR": str(work),
            "PYTHONDONTWRITEBYTECODE": "1", "MPLCONFIGDIR": str(work),
        }  # fmt: skip
        commands = {
            "complete": ["-m", "surefill", "complete", "t.csv", "-o", "o.csv", "--confidence", "posterior"],
            "again": ["-m", "surefill", "complete", "t.csv", "-o", "o.csv", "--confidence", "posterior"],
            "stream": ["-m", "surefill", "stream", "t.csv", "-o", "s.csv", "--checkpoint", "state"],
            "fit": ["-c", FIT],
            "demo": ["-m", "surefill", "demo", "--size", "10", "--images", "100", "-o", "pictures"],
        }
        try:
            for what, command in commands.items():
                done = subprocess.run(
                    [*prefix(), sys.executable, *command], cwd=work, env=environment, capture_output=True, text=True
                )
                notes = [line for line in done.stderr.splitlines() if line.startswith("surefill: ")]
                print(f"{what}: exit code {done.returncode} {' '.join(notes)}", flush=True)
                if done.returncode or "Traceback" in done.stderr or len(notes) != (what == "complete"):
                    sys.exit(done.stderr)
        finally:
            for path in (program, *program.rglob("*"), home):
                path.chmod(0o755)


if __name__ == "__main__":
    main()

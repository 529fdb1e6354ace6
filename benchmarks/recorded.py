"""Run a benchmark and keep what it prints, with its date, command and versions, as a page of the documentation site.

    python benchmarks/recorded.py promise.py --only ml-100k

writes docs/recorded/promise_only_ml-100k.md. What a page shows was printed by that command, and nobody copied it.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent
RECORDED = BENCHMARKS.parent / "docs" / "recorded"
PACKAGES = ("surefill", "numpy", "scipy", "numba", "scikit-learn")

PAGE = """# Recorded: `{title}`

`{command}`

{about}

```none
{printed}
```

Recorded on {date} in {minutes:.1f} minutes: {system}, {cores} cores, a load of {load:.1f} at the end,
Python {python}, {versions}.
"""


def run(arguments: list[str]) -> str:
    """What the benchmark prints, shown while it runs."""
    command = [sys.executable, str(BENCHMARKS / arguments[0]), *arguments[1:]]
    printed = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    if running.returncode:
        sys.exit(running.returncode)
    return "".join(printed).strip("\n")


def about(script: str) -> str:
    """The first sentence of the benchmark's docstring."""
    return (BENCHMARKS / script).read_text().split('"""')[1].split("\n\n")[0].strip().replace("\n", " ")


def main(arguments: list[str]) -> None:
    """Run, and write the page once all went well."""
    if not arguments or not (BENCHMARKS / arguments[0]).is_file():
        scripts = ", ".join(sorted(path.name for path in BENCHMARKS.glob("*.py") if path != Path(__file__)))
        sys.exit(f"say which benchmark to run, with its options: {scripts}.")
    start = datetime.datetime.now(datetime.UTC)
    printed = run(arguments)
    name = "_".join(re.findall(r"[\w.-]*\w", " ".join([Path(arguments[0]).stem, *arguments[1:]]).replace("--", "")))
    page = PAGE.format(
        title=shlex.join([Path(arguments[0]).stem, *arguments[1:]]),
        command=shlex.join(["python", f"benchmarks/{arguments[0]}", *arguments[1:]]),
        about=about(arguments[0]),
        printed=printed,
        date=start.date().isoformat(),
        minutes=(datetime.datetime.now(datetime.UTC) - start).total_seconds() / 60,
        system=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count(),
        load=os.getloadavg()[0],
        python=platform.python_version(),
        versions=", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES),
    )
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{name}.md").write_text(page)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The numerical tests as other processors would run them: ``python tests/processors.py``, which ends in a table.

OpenBLAS, NumPy and Numba choose their kernels by the processor, and kernels differ in the order of their sums and so in
the last digits. Each setting here chooses as an older processor would, or with fewer threads, or perturbs all drawn
numbers by one part in 10^14. A test that fails in one of them has no room.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent

NUMERICAL = (
    "completion", "confidence", "coverage", "estimators", "guarantee", "kernels", "online", "reproduction", "risk",
    "spaces", "stream", "theory", "test_metrics.py",
)  # fmt: skip

KERNELS = {
    "Prescott": {"pni"},
    "Nehalem": {"sse4_2"},
    "Sandybridge": {"avx"},
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Cooperlake": {"avx512_bf16"},
}
"""OpenBLAS's kernels by name, and what a processor must be able to do to run them."""

PERTURBATIONS = 3


class Setting(NamedTuple):
    """A name, the environment that makes it so, and options of pytest."""

    name: str
    environment: dict[str, str]
    options: tuple[str, ...] = ()


def processor_flags() -> set[str]:
    """What this processor can do, as Linux tells it; nothing elsewhere."""
    told = Path("/proc/cpuinfo")
    found = re.search(r"^flags\s*:(.*)$", told.read_text(), re.MULTILINE) if told.exists() else None
    return set(found.group(1).split()) if found else set()


def kernels() -> list[str]:
    """OpenBLAS's kernels that this processor can run, oldest first."""
    flags = processor_flags()
    return [name for name, needed in KERNELS.items() if needed <= flags]


def numpy_features() -> list[str]:
    """What NumPy uses here beyond the oldest processor that it supports."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [feature for feature in __cpu_dispatch__ if __cpu_features__[feature]]


def settings(perturbations: int = PERTURBATIONS) -> list[Setting]:
    """All that are tried: each kernel, one thread, NumPy's and Numba's plainest code, and perturbed draws."""
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(numpy_features())}
    return [
        Setting("as it is", {}),
        *(Setting(f"OpenBLAS {name}", {"OPENBLAS_CORETYPE": name}) for name in kernels()),
        Setting("one thread", one),
        Setting("two threads", dict.fromkeys(one, "2")),
        Setting("NumPy without extensions", plain),
        Setting("Numba generic", {"NUMBA_CPU_NAME": "generic"}),
        *(Setting(f"perturbed {seed}", {}, ("--perturb", str(seed))) for seed in range(1, perturbations + 1)),
    ]


def run(setting: Setting, tests: list[str], options: tuple[str, ...] = ()) -> tuple[bool, str, list[str]]:
    """Whether all went well, pytest's last line, and the tests that failed."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", *options, *setting.options, *tests]
    environment = os.environ | setting.environment
    done = subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing was told"]
    failed = [line.split(" ")[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return done.returncode == 0, lines[-1].strip("= "), failed


def main() -> None:
    """Run every setting, or those whose names are asked for, and print what failed where."""
    parser = argparse.ArgumentParser(description="The numerical tests as other processors would run them.")
    parser.add_argument("tests", nargs="*", help="files or folders; all numerical tests when not given")
    parser.add_argument("--only", default="", help="settings whose name contains this")
    parser.add_argument("--perturbations", type=int, default=PERTURBATIONS, help="seeds of perturbed draws")
    parser.add_argument("--fuzz", type=int, default=40, help="tiny random instances for each factored solver")
    parser.add_argument("--jobs", type=int, default=2, help="processes of each run")
    told = parser.parse_args()
    tests = told.tests or [str(TESTS / name) for name in NUMERICAL]
    options = ("-n", str(told.jobs), "--fuzz", str(told.fuzz))
    well = True
    for setting in [one for one in settings(told.perturbations) if told.only in one.name]:
        start = time.perf_counter()
        passed, summary, failed = run(setting, tests, options)
        well = well and passed
        print(f"{setting.name:26} {summary} ({time.perf_counter() - start:.0f} s)", flush=True)
        for name in failed:
            print(f"{'':26}   {name}", flush=True)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()

"""A stream killed by ``kill -9`` a hundred times, at any moment, and resumed: output and state to the bit.

python tests/hostile/kills.py --kills 100
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from crafted import load_parts

from surefill import StreamingCompleter
from surefill.cli import main as surefill_main

N_LINES, EVERY = 40_000, 200


def stream(out: str, state: str) -> int:
    """Run the command in this process, silently."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            surefill_main(["stream", "t.csv", "-o", out, "--checkpoint", state, "--every", str(EVERY)])
        except SystemExit as stop:
            return int(stop.code or 0)
    return 0


def killed(seconds: float) -> bool:
    """Run it in a child that is killed after so long; whether it was still at work."""
    child = os.fork()
    if child == 0:
        os._exit(stream("out.csv", "state"))
    time.sleep(seconds)
    ended, _ = os.waitpid(child, os.WNOHANG)
    if ended:
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def main() -> None:
    """Kill and resume, then compare with a run that was never touched."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    wanted, rng = parser.parse_args().kills, np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        cells = zip(rng.integers(0, 300, N_LINES), rng.integers(0, 200, N_LINES), strict=True)
        lines = [f'"u, {i}",{j},{(i * j) % 5}\n' for i, j in cells]
        Path("t.csv").write_text("user,item,rating\n" + "".join(lines))
        start = time.perf_counter()
        assert stream("whole.csv", "whole") == 0
        took, kills, places = time.perf_counter() - start, 0, set[int]()
        while kills < wanted:
            if not killed(rng.uniform(0, 2.5 * took / wanted + 0.02)):
                for name in ("out.csv", "state"):  # it was through: from the beginning
                    Path(name).unlink(missing_ok=True)
                continue
            kills += 1
            if Path("state").exists():
                places.add(StreamingCompleter.load("state").n_observed)
        assert stream("out.csv", "state") == 0
        same = Path("out.csv").read_bytes() == Path("whole.csv").read_bytes()
        one, other = (load_parts(Path(name))[0] for name in ("state", "whole"))
        same &= all(one[name].tobytes() == other[name].tobytes() for name in one.keys() | other.keys())
        left = {path.name for path in Path().iterdir()} - {"t.csv", "out.csv", "state", "whole.csv", "whole"}
        print(f"{kills} kills at {len(places)} places; output and state are {'the same' if same else 'NOT the same'}")
        sys.exit(f"left behind: {left}" if left else not same)


if __name__ == "__main__":
    main()

"""Where benchmarks find real data: SUREFILL_DATA, else ``shared/data`` beside the project."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("SUREFILL_DATA") or Path(__file__).parents[2] / "shared" / "data")

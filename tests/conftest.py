"""Shared by all tests: where real data live, and hypothesis without a clock (CI machines are slow at times)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """SUREFILL_DATA, else ``shared/data`` beside the project; tests that need real data skip where it is missing."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SUREFILL_DATA", beside))
    if not (folder / "ml-100k").is_dir():
        pytest.skip(f"real data are not at {folder}; set SUREFILL_DATA to the folder that holds ml-100k")
    return folder

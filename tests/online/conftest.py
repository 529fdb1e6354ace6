"""The oracle of the matrix player, shared by tests here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def literal() -> ModuleType:
    """``literal.py`` beside this file: the paper's A_M to the letter."""
    spec = importlib.util.spec_from_file_location("literal", Path(__file__).parent / "literal.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["literal"] = module
    spec.loader.exec_module(module)
    return module

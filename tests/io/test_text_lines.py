"""Text of tables, number by number as Python writes it."""

import numpy as np
import pytest

from surefill.io import text_lines
from surefill.io.files import Coded
from surefill.io.text_lines import format_lines, format_lines_reference


@pytest.fixture(autouse=True)
def _few_lines_too(monkeypatch):
    monkeypatch.setattr(text_lines, "MANY_LINES", 0)


ODD = [0.0, -0.0, 1.0, -1.5, 1e-5, 1e-4, 9.99999e-5, 99999.95, 999999.5, 1e15, 1e16, 1e300, -1e-300, np.nan, np.inf,
       -np.inf, 123456.5, 0.1 + 0.2, 1 / 3, 2.5e-4, 100000.0, 1234567.0, 0.00012345678, 1.0000005, 1.0000015, 0.9999995,
       0.99999949, 4.35, 2.675, -1.7976931348623157e308]  # fmt: skip


def numbers(kind):
    rng = np.random.default_rng(0)
    return {
        "odd": np.array(ODD),
        "rounded": np.round(rng.normal(0, 10, 3000), 2),
        "shares": rng.random(3000),
        "sizes": rng.normal(size=3000) * 10.0 ** rng.integers(-8, 8, 3000),
        "long": np.round(1e5 * rng.random(3000), 7),
        "halves": (rng.integers(0, 10**6, 3000) + 0.5) / 10.0 ** rng.integers(0, 10, 3000),
        "single": rng.random(3000).astype(np.float32).astype(np.float64),
    }[kind]


@pytest.mark.parametrize("kind", ["odd", "rounded", "shares", "sizes", "long", "halves", "single"])
def test_numbers_are_written_as_python_writes_them(kind):
    block = {"risk": numbers(kind), "value": numbers(kind)}
    assert format_lines(block, ",", ("value",)) == format_lines_reference(block, ",", ("value",))


def test_columns_of_all_kinds_beside_one_another():
    rng = np.random.default_rng(1)
    block = {
        "row": Coded(rng.integers(5, size=50), np.arange(5) + 1000),
        "column": Coded(rng.integers(3, size=50), np.array(["Ålien", "b, c", ""])),
        "value": rng.normal(size=50),
        "keep": rng.random(50) < 0.5,
        "count": rng.integers(-9, 9, 50),
        "name": np.array([f"n{k}" for k in range(50)]),
    }
    assert format_lines(block, ",", ()) == format_lines_reference(block, ",", ())


def test_no_lines_are_no_text():
    block = {"row": Coded(np.empty(0, int), np.arange(5)), "value": np.empty(0), "keep": np.empty(0, bool)}
    assert format_lines(block, ",", ("value",)) == b""


def test_the_twin_writes_what_python_does():
    block = {"a": np.array([1 / 3, np.nan]), "value": np.array([0.1 + 0.2, 2.0]), "keep": np.array([True, False])}
    assert format_lines_reference(block, ";", ("value",)) == b"0.333333;0.30000000000000004;true\n;2;false\n"

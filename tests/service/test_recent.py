"""Cells that wait for the next model: few bytes each, one sum however they came, and never half an observation."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from surefill.service.recent import RUN_RATIO, RecentCells
from surefill.service.store.observations import Columns


def drawn(count, rows, cols, seed=0):
    """Observations with many cells more than once, and values whose sums depend on their order."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=count) * 10.0 ** rng.integers(-8, 8, count)
    labels = [[f"{kind}{k}" for k in rng.integers(0, size, count)] for kind, size in (("r", rows), ("c", cols))]
    return Columns(*labels, values.tolist())


def parts(columns, size):
    return [Columns(*(column[k : k + size] for column in columns)) for k in range(0, len(columns.values), size)]


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_what_was_seen_is_the_sum_in_order_whatever_the_batches(size):
    columns, recent = drawn(2000, 20, 30), RecentCells()
    times, totals, of_row = defaultdict[tuple, int](int), defaultdict[tuple, float](float), defaultdict[str, set](set)
    for part in parts(columns, size):
        recent.add(part)
    for row, col, value in zip(*columns, strict=True):
        times[row, col] += 1
        totals[row, col] += value
        of_row[row].add(col)
    asked = [(f"r{i}", f"c{j}") for i in range(22) for j in range(32)]  # two rows and columns nobody has seen
    seen = recent.find(*zip(*asked, strict=True))
    assert seen.times.tolist() == [times[cell] for cell in asked]
    assert seen.totals.tolist() == [totals[cell] for cell in asked]
    assert (sorted(recent.rows), sorted(recent.cols)) == (sorted(set(columns.rows)), sorted(set(columns.cols)))
    for row in (f"r{i}" for i in range(22)):
        found = recent.cols_of(row)
        assert recent.has_row(row) == (row in of_row)
        assert len(found) == len(set(found))
        assert set(found) == of_row[row]


def test_nothing_was_seen_of_anything_before_the_first():
    recent = RecentCells()
    recent.add(Columns([], [], []))
    assert recent.find(["ann"], ["Alien"]).times.tolist() == [0]
    assert recent.find([], []).times.tolist() == recent.cols_of("ann") == recent.rows == recent.cols == []


def test_a_waiting_cell_takes_twenty_bytes_in_few_runs():
    columns, recent = drawn(60_000, 300, 400), RecentCells()
    for part in parts(columns, 50):
        recent.add(part)
    cells = len(set(zip(columns.rows, columns.cols, strict=True)))
    lengths = [len(run.keys) for run in recent._runs]
    assert sum(lengths) == cells
    assert sum(array.nbytes for run in recent._runs for array in run) == 20 * cells
    assert all(array.base is None for run in recent._runs for array in run)  # no larger one is kept for it
    assert all(longer >= RUN_RATIO * shorter for longer, shorter in pairwise(lengths))


def test_nobody_reads_half_an_observation():
    """Each value is 3, so that every sum is three times the count, while another thread adds."""
    recent, done, wrong = RecentCells(), threading.Event(), []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def read():
        while not done.is_set():
            seen = recent.find(["r"] * 40, [f"c{k}" for k in range(40)])
            wrong.extend(np.flatnonzero(seen.totals != 3.0 * seen.times))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    rng = np.random.default_rng(0)
    for _ in range(400):
        recent.add(Columns(["r"] * 60, [f"c{k}" for k in rng.integers(0, 40, 60)], [3.0] * 60))
    done.set()
    for reader in readers:
        reader.join()
    sys.setswitchinterval(before)
    assert not wrong
    assert recent.find(["r"] * 40, [f"c{k}" for k in range(40)]).times.sum() == 400 * 60


FREED = """
import ctypes, sys
import numpy as np
from surefill.service.allocator import return_large_blocks
libc = ctypes.CDLL(None)
if not hasattr(libc, "mallinfo2"):
    sys.exit("no glibc")
class Info(ctypes.Structure):
    _fields_ = [(f"f{k}", ctypes.c_size_t) for k in range(10)]
libc.mallinfo2.restype = Info
if sys.argv[1] == "settled":
    assert return_large_blocks()
np.ones(3 << 20)
before = libc.mallinfo2().f4  # hblkhd, bytes that are mapped
held = np.ones(1 << 20)
print(libc.mallinfo2().f4 - before >= held.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc is set")
@pytest.mark.parametrize(("how", "mapped"), [("settled", "True"), ("left alone", "False")])
def test_large_blocks_are_mapped_and_so_given_back_even_after_larger_ones_were_freed(how, mapped):
    ran = subprocess.run([sys.executable, "-c", FREED, how], capture_output=True, text=True, timeout=120)
    if "no glibc" in ran.stderr:
        pytest.skip("this malloc is not glibc's, or an old one")
    assert ran.stdout.strip() == mapped, ran.stderr

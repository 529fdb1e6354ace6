"""What the kernels of the Bayesian fit take of the machine's limits.

    python benchmarks/kernel_limits.py [--size 1e7] [--ranks 10 20]

One thread. For each half-sweep (rows given columns, columns given rows) of the table of ``scale.py``: nanoseconds per
entry; useful multiply-adds per entry, (k + 1)(k + 2) / 2 for the normal equations, k for the variances, and a share of
solving them; bytes gathered per entry. The limit is the time of these multiply-adds at the rate of a large
matrix product plus that of copying the same lines in the same order and nothing else; the share is limit / measured.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import scale
from surefill.data.groups import Groups
from surefill.kernels.compile import compiled
from surefill.kernels.factor_updates import (
    GroupedEntries,
    GroupPosterior,
    GroupPrior,
    regressors_of,
    update_groups,
)
from surefill.kernels.gram import whole_lanes
from surefill.kernels.line_sums import sum_lines
from surefill.kernels.registers import LANES, load, store

REPEATS = 3


def seconds(work):
    """The least processor time of a few runs, after one that compiles."""
    work()
    taken = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def product_rate(dtype, size=1500):
    """Multiply-adds per nanosecond of a large matrix product."""
    a = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
    return size**3 / seconds(lambda: a @ a) / 1e9


def copy_rate(megabytes=200):
    """Gigabytes per second read and written by a long copy."""
    source = np.ones(megabytes * 10**6 // 8)
    target = np.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: np.copyto(target, source)) / 1e9


@compiled
def copy_lines(other, table, room):
    """Copy the lines of all entries, one after the other, into the same few places."""
    stride, lines = table.shape[1], table.reshape(-1)
    for t in range(len(other)):
        into = t % 128 * stride
        for a in range(0, stride, LANES):
            store(room, into + a, load(lines, other[t] * stride + a))


def half_sweeps(n_cells):
    """(name, starts, other, values, number of others) of both half-sweeps."""
    rows, cols, values = scale.load(scale.table_of(n_cells), "train")
    m, n = scale.SHAPES[n_cells]
    by_row, by_col = Groups.of(rows), Groups.of(cols)
    yield "rows", by_row.starts, by_row.take(cols), by_row.take(values), n
    yield "columns", by_col.starts, by_col.take(rows), by_col.take(values), m


def show(name, k, taken, limits, multiply_adds, gathered):
    products, copies = limits
    print(
        f"{name:<24} rank {k - 1:<3} {taken:6.1f} ns  {multiply_adds:6.0f} multiply-adds ({products:5.1f} ns)  "
        f"{gathered:4d} bytes ({copies:5.1f} ns)  share {100 * (products + copies) / taken:3.0f}%",
        flush=True,
    )


def measure(name, starts, other, values, n_other, k, rate):
    rng, groups, n = np.random.default_rng(0), len(starts) - 1, len(other)
    z, w = rng.normal(0, 0.3, (n_other + 1, k)), np.full((n_other + 1, k), 0.01)
    lines = regressors_of(z, w, np.ones(n_other + 1), np.float32)
    one, none, number = np.ones(1, np.float32), np.zeros(1, np.float32), np.float32(0.5)
    mean, pull = np.zeros((groups + 1, k), np.float32), np.zeros((groups, k), np.float32)
    entries = GroupedEntries(starts, other, values, one, none, number, number)
    prior = GroupPrior(np.eye(k), pull, np.ones(groups + 1), 0.1, 1e-6)
    posterior = GroupPosterior(mean, np.empty_like(mean), np.empty(groups))
    taken = seconds(lambda: update_groups(0, groups, entries, lines, prior, posterior)) / n * 1e9
    multiply_adds = (k + 1) * (k + 2) / 2 + k + groups * k**3 / 6 / n
    room = np.empty(128 * lines.shape[1], np.float32)
    copies = seconds(lambda: copy_lines(other, lines, room)) / n * 1e9
    show(f"update of {name}", k, taken, (multiply_adds / rate, copies), multiply_adds, lines.shape[1] * 4)
    table, total = np.ascontiguousarray(lines[:, : whole_lanes(k)]), np.empty((groups, k), np.float32)
    taken = seconds(lambda: sum_lines(0, groups, starts, other, table, total)) / n * 1e9
    copies = seconds(lambda: copy_lines(other, table, room)) / n * 1e9
    show(f"implicit sums of {name}", k, taken, (k / rate, copies), k, table.shape[1] * 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=lambda x: int(float(x)), default=10**7)
    parser.add_argument("--ranks", nargs="+", type=int, default=[10, 20])
    given = parser.parse_args()
    single, double = product_rate(np.float32), product_rate(np.float64)
    print(f"matrix product: {single:.1f} multiply-adds per ns in float32, {double:.1f} in float64")
    print(f"long copy: {copy_rate():.1f} GB/s read and written")
    for half_sweep in half_sweeps(given.size):
        for rank in given.ranks:
            measure(*half_sweep, rank + 1, single)


if __name__ == "__main__":
    main()

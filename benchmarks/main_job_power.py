"""As much filled on row blocks as of one table? Several tables, several seeds, both ways.

``python benchmarks/main_job_power.py`` gives simulated tables of 20,000 x 2,000, whose rows and columns are seen as
often as those of the large one of ``main_job.py``, to ``PartialCompleter`` and to the job on row blocks, and prints for
each tolerance the mean number of cells filled, and the mean difference with its standard error. The numbers of cells
from which on a fit counts as one of many are lowered, so that both ways take the steps of a large table;
``--as-it-is`` leaves them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import surefill.completion.bayes.bayesian_model as bayesian_model
import surefill.distributed.learning as learning
import surefill.risk.cross_fitting as cross_fitting
from cluster import simulated
from main_job import OTHERS, in_memory, put_files, settle

MANY = 200_000
"""Cells from which on a table counts as one of many: two million in the library, for 4.9 million in the large table."""

APART = 100
"""Added to the seed of a table for that of its job."""


def lower_limits() -> None:
    """Have small tables take the steps of large ones."""
    cross_fitting.MANY_CELLS = cross_fitting.MOST_IN_BLOCKS = MANY
    cross_fitting.COMPACT_CELLS = 1  # below this number cells are looked at in detail
    bayesian_model.SAMPLED_CELLS = learning.SAMPLED_CELLS = MANY


def filled(seed: int, cells: int, shape: tuple[int, int], tolerance: float) -> tuple[list[float], list[float]]:
    """Cells filled at each tolerance, and AURC at the calibration cells, of one table and on blocks."""
    with tempfile.TemporaryDirectory() as place:
        put_files(simulated(cells, shape, seed)[0], Path(place), 4)
        memory = in_memory(Path(place) / "files", tolerance, APART + seed)
        _, blocks = settle(Path(place) / "blocks", 0, tolerance, APART + seed)
    both = []
    for told in (memory, blocks):
        at: dict[float, float] = told["filled_at"]  # type: ignore[assignment]
        both.append([told["filled"], *(at[each] for each in OTHERS), told["aurc"]])
    return both[0], both[1]  # type: ignore[return-value]


def main(given: argparse.Namespace) -> None:
    if not given.as_it_is:
        lower_limits()
    shape = given.shape[0], given.shape[1]
    runs = np.array([filled(seed, given.cells, shape, given.tolerance) for seed in range(1, given.seeds + 1)])
    runs[:, :, :-1] /= 1e6
    print(f"{given.cells:,} draws of {shape[0]:,} x {shape[1]:,}, {given.seeds} tables; millions of cells filled\n")
    print("| tolerance | one table | on row blocks | difference | its standard error |\n|---|---|---|---|---|")
    for place, name in enumerate([given.tolerance, *OTHERS, "AURC at calibration cells"]):
        memory, blocks = runs[:, 0, place], runs[:, 1, place]
        away = blocks - memory
        error = away.std(ddof=1) / np.sqrt(len(away))
        print(f"| {name} | {memory.mean():.4f} | {blocks.mean():.4f} | {away.mean():+.4f} | {error:.4f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=560_000)
    parser.add_argument("--shape", type=int, nargs=2, default=(20_000, 2_000))
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--tolerance", type=float, default=0.75)
    parser.add_argument("--as-it-is", action="store_true")
    main(parser.parse_args())

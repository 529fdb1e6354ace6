import numpy as np
import pytest

from surefill import Observations, PartialCompleter
from surefill.report.contents import gather


@pytest.fixture(scope="session")
def uneven():
    """150 x 60, noise that rises from row to row, few draws in the last columns: a part of it is kept."""
    rng = np.random.default_rng(0)
    rows, cols = np.indices((150, 60)).reshape(2, -1)
    seen = rng.random(len(rows)) < np.where(cols < 50, 0.6, 0.06)
    rows, cols = rows[seen], cols[seen]
    truth = np.multiply.outer(rng.uniform(-1, 1, 150), rng.uniform(-1, 1, 60))
    values = truth[rows, cols] + rng.normal(size=len(rows)) * np.linspace(0.02, 1, 150)[rows]
    seen = Observations(rows, cols, np.clip(values, -2, 2), (150, 60), (-2, 2))
    return PartialCompleter(tolerance=0.2, confidence="posterior").fit(seen)


@pytest.fixture(scope="session")
def contents(uneven):
    return gather(uneven)

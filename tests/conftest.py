"""Shared by all tests: where real data live, hypothesis without a clock, and draws perturbed in their last digits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# CI machines are slow at times, so no example has a deadline.
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


PERTURBATION = 1e-14
"""Largest relative change by ``--perturb``: a few dozen units in the last place, more than kernels differ by."""

DRAWS = ("normal", "standard_normal", "uniform", "random", "exponential", "beta", "gamma")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--perturb",
        type=int,
        metavar="SEED",
        help="change every real number drawn by up to one part in 10^14: tests with room do not notice",
    )
    parser.addoption(
        "--kills", type=int, default=2, metavar="N", help="random moments at which a service under load is killed"
    )
    parser.addoption(
        "--thorough", action="store_true", help="run what is marked thorough as well: slower cases of a make target"
    )
    parser.addoption(
        "--fuzz", type=int, default=6, metavar="N", help="random instances that each test of tiny instances gets"
    )


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--perturb")
    if seed is not None:
        perturb_draws(seed)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--thorough"):
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def perturb_draws(seed: int) -> None:
    """Let ``default_rng`` make generators whose real numbers are perturbed; the same each time for the same seed."""

    def perturbed(name: str) -> Any:
        def draw(self: np.random.Generator, *args: Any, **kwargs: Any) -> Any:
            return shrink(getattr(np.random.Generator, name)(self, *args, **kwargs), seed)

        return draw

    perturbed_generator = type("Perturbed", (np.random.Generator,), {name: perturbed(name) for name in DRAWS})
    make = np.random.default_rng

    def default_rng(seed: Any = None) -> np.random.Generator:
        made = make(seed)
        return made if made is seed else perturbed_generator(made.bit_generator)

    np.random.default_rng = default_rng


def shrink(numbers: Any, seed: int) -> Any:
    """Numbers times 1 - 1e-14 h, h in [0, 1) from each number's own digits, so that equal numbers stay equal."""
    digits = np.asarray(numbers, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (digits ^ np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing
    return numbers * (1 - PERTURBATION * (mixed >> np.uint64(40)) / 2**24)

"""Patterns of observed cells with known chances."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from surefill import Observations


def power_law(rng, shape, density, form="odds", exponents=(0.6, 1.0)):
    """Chances by row and column, x = t i^-e j^-f: x / (1 + x), or min(x, 0.95)."""
    x = np.outer(*(rng.permutation(1.0 + np.arange(size)) ** -e for size, e in zip(shape, exponents, strict=True)))
    low, high = -30.0, 30.0
    for _ in range(60):
        t = (low + high) / 2
        chance = expit(t + np.log(x)) if form == "odds" else np.minimum(np.exp(t) * x, 0.95)
        low, high = (t, high) if chance.mean() < density else (low, t)
    return chance


def blocks(rng, shape, density, groups=3, contrast=5.0):
    """A power law whose cells are more often seen where the groups of row and column agree."""
    row, col = (rng.integers(groups, size=size) for size in shape)
    logits = np.log(contrast) * np.where(row[:, None] == col, 1.0, -0.5)
    base = power_law(rng, shape, density, exponents=(0.3, 0.5))
    return expit(np.log(base / (1 - base)) + logits)


def observed(mask):
    """Observations at the cells of a mask."""
    rows, cols = np.nonzero(mask)
    return Observations(rows, cols, np.zeros(len(rows)), mask.shape, (-1, 1))


def halves(rng, chance, share):
    """(O1, O2): each observed cell is in the first with probability ``share``."""
    seen, first = rng.random(chance.shape) < chance, rng.random(chance.shape) < share
    return seen & first, seen & ~first


def everywhere(propensity, shape):
    """The m x n chances."""
    return propensity.at(*np.indices(shape).reshape(2, -1)).reshape(shape)


@pytest.fixture(scope="session")
def patterns():
    """The functions above."""
    return SimpleNamespace(power_law=power_law, blocks=blocks, observed=observed, halves=halves, everywhere=everywhere)

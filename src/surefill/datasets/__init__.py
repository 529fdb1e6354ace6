"""Matrices with known truth, and real ones that people compare on."""

from surefill.datasets.digits import HiddenDigits, make_hidden_digits
from surefill.datasets.movielens import load_movielens
from surefill.datasets.synthetic import Simulation, make_blocks, make_low_rank, make_pattern

__all__ = [
    "HiddenDigits",
    "Simulation",
    "load_movielens",
    "make_blocks",
    "make_hidden_digits",
    "make_low_rank",
    "make_pattern",
]

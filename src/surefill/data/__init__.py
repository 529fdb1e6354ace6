"""What was observed: the sample, its groups by row and column, its units, and ways to hold a part of it out."""

from surefill.data.bounds import BoundsSource
from surefill.data.compact import COMPACT_CELLS
from surefill.data.dominance import Dominance
from surefill.data.entries import Entries
from surefill.data.features import Features
from surefill.data.groups import Groups
from surefill.data.observations import Observations
from surefill.data.splits import split_entries, split_folds, split_rows, split_times
from surefill.data.units import UnitMap

__all__ = [
    "COMPACT_CELLS",
    "BoundsSource",
    "Dominance",
    "Entries",
    "Features",
    "Groups",
    "Observations",
    "UnitMap",
    "split_entries",
    "split_folds",
    "split_rows",
    "split_times",
]

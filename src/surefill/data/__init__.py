"""What was observed: the sample itself, and the ways in and out of files."""

from surefill.data.groups import Groups
from surefill.data.observations import Observations
from surefill.data.readers import read_observations
from surefill.data.splits import split_entries, split_folds, split_rows
from surefill.data.units import UnitMap
from surefill.data.writers import write_table

__all__ = [
    "Groups",
    "Observations",
    "UnitMap",
    "read_observations",
    "split_entries",
    "split_folds",
    "split_rows",
    "write_table",
]

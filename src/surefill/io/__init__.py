"""Files in and out: readers, writers, and archives of what was learnt."""

from surefill.io.readers import ReadOptions, read_observations
from surefill.io.writers import write_table

__all__ = ["ReadOptions", "read_observations", "write_table"]

"""Where the files of a data set are."""

from __future__ import annotations

import re
from pathlib import Path

from surefill.errors import InputError
from surefill.service.store.data_sets import DataSetRecord

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
"""Names of data sets: they are part of addresses and of folders, and cannot lead out of either."""


def folder_of(folder: Path, data_set: DataSetRecord) -> Path:
    """The folder of a data set; its number tells it from a deleted one of the same name."""
    if not re.fullmatch(NAME_PATTERN, data_set.name):
        raise InputError(f"{data_set.name!r} is no name of a data set.")
    return folder / "data-sets" / f"{data_set.name}-{data_set.id}"

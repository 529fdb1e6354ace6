"""Side tables from files: a line for each row (or column) of the matrix, its label and what is known of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefill.data import Features, Observations
from surefill.data.side_tables import join_features
from surefill.errors import InputError
from surefill.io.delimited import TextColumns, TextFile
from surefill.io.files import PARQUET_SUFFIXES
from surefill.io.parquet import read_parquet
from surefill.kernels.decimal_spans import MISSING

Source = str | os.PathLike[str] | None


def with_side_files(observations: Observations, rows: Source, cols: Source) -> Observations:
    """The observations with the side tables of rows and columns in these files, each a csv with a header, or parquet.

    The label is in the column that is called as in the observations, or else in the first.

    Examples
    --------
    >>> import tempfile
    >>> seen = Observations([0, 1], [0, 1], [4.0, 3.0], row_labels=["ann", "bob"], names=("user", "item", "stars"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,user\\n30,bob\\n,ann\\n")
    ...     with_side_files(seen, file, None).row_features.table.ravel()
    array([nan, 30.])
    """
    for axis, path in enumerate((rows, cols)):
        if path is not None:
            try:
                observations = _with_side_file(observations, axis, Path(path))
            except InputError as error:
                raise error if str(path) in str(error) else InputError(f"{path}: {error}") from None
    return observations


def _with_side_file(observations: Observations, axis: int, path: Path) -> Observations:
    if not path.exists():
        raise InputError(f"{path} does not exist; a file with a line for each row or column is expected.")
    if path.is_dir() or path.suffix.lower() in PARQUET_SUFFIXES:
        table = read_parquet(path)
        return observations.with_features(**{("rows", "cols")[axis]: table})
    file = TextFile(path, None)
    names, columns = file.fields, file.columns(range(len(file.fields)), header=True)
    label = names.index(observations.names[axis]) if observations.names[axis] in names else 0
    ids = columns.ids(label)[0]
    known = {name: _column(columns, place) for place, name in enumerate(names) if place != label}
    return join_features(observations, axis, ids.labels[ids.codes], Features.of(known))


def _column(columns: TextColumns, place: int) -> NDArray[Any]:
    """Numbers, NaN where missing, if all others are numbers; else the texts."""
    texts = columns.texts(place)
    try:
        return np.array([np.nan if text.lower() in MISSING else float(text) for text in texts])
    except ValueError:
        return np.array(texts)

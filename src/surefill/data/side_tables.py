"""Side tables joined to observations by their labels."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np

from surefill.data.containers import as_frame, without_nulls
from surefill.data.features import Features
from surefill.data.observations import Observations

Same = TypeVar("Same", bound=Observations)

SOURCE = "the side table"
"""What errors call it."""


def with_side_table(observations: Same, axis: int, table: Any) -> Same:
    """``observations`` with a side table of rows (axis 0) or columns (1); labels only the table has are added."""
    frame = as_frame(table, SOURCE)
    name = observations.names[axis] if observations.names[axis] in frame.columns else frame.columns[0]
    labels = without_nulls(frame.get_column(name), SOURCE).to_numpy()
    columns = {str(each): frame.get_column(each).to_numpy() for each in frame.columns if each != name}
    return join_features(observations, axis, np.asarray(labels), Features.of(columns))


def join_features(observations: Same, axis: int, labels: Any, features: Features) -> Same:
    """``observations`` with the ``features`` of the labelled rows (axis 0) or columns (1)."""
    own = (observations._row_label_index, observations._col_label_index)[axis]
    grown = own.grown(labels)
    shape, known = list(observations.shape), [observations.row_labels, observations.col_labels]
    shape[axis], known[axis] = grown.size, grown.labels
    same = copy.copy(observations.in_shape((shape[0], shape[1]), *known))
    object.__setattr__(same, ("row_features", "col_features")[axis], features.placed(grown.positions, grown.size))
    return same

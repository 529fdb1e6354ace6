"""A saved model as a data set: what it has observed goes into the log, and it is the first model in use."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from surefill.data.labels import as_text
from surefill.errors import InputError
from surefill.estimators import PartialCompleter, load
from surefill.io.durable import replacing
from surefill.losses import LOSSES, Misclassification
from surefill.service.folders import folder_of
from surefill.service.refit import model_name
from surefill.service.store import writing
from surefill.service.store.data_sets import Options, create_data_set, find_data_set
from surefill.service.store.models import ModelRecord, add_model
from surefill.service.store.observations import Batch, Columns, KeyReusedError, add_batch
from surefill.service.uploads import check_label


def import_model(engine: Engine, folder: Path, file: Path) -> str:
    """Make a data set of a model file, named like it; once: at the next start the same file changes nothing."""
    name, completer = name_of(file), load(file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with writing(engine) as connection:
        record = find_data_set(connection, name)
        found = record is not None
        if record is None:
            record = create_data_set(connection, name, options_of(completer))
        batch = Batch("model", digest, columns_of(completer))
        try:
            stored = add_batch(connection, record.id, batch)
        except KeyReusedError:
            raise InputError(f"the data set {name!r} was made from another model; rename the file {file}.") from None
        if stored.repeated:
            return name
        if found:
            raise InputError(f"there is a data set {name!r} already that was not made from a model; rename {file}.")
        target = folder_of(folder, record) / model_name(1)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as partial:
            shutil.copyfile(file, partial)
        result = completer.result_
        line = ModelRecord(
            data_set=record.id,
            number=1,
            file=target.name,
            sequence=stored.last_sequence,
            promised=result.guarantee.promised,
            kept_share=result.kept_share(),
            error=result.selection.held_out_error,
            tolerance=result.selection.tolerance,
            seconds=sum(result.timings.values()),
            created=min(time.time(), file.stat().st_mtime),
        )
        add_model(connection, line)
    return name


def name_of(file: Path) -> str:
    """The name of a data set made from a file.

    >>> name_of(Path("My films (2).surefill"))
    'my-films-2'
    """
    name = re.sub(r"[^a-z0-9_]+", "-", file.name.partition(".")[0].lower()).strip("-_")[:64]
    return name or "model"


def options_of(completer: PartialCompleter) -> Options:
    """The options by which a model like this one is fitted again."""
    seen, result = completer.observations_, completer.result_
    bounds = completer.bounds or (seen.bounds if seen.bounds_from.name == "GIVEN" else None)
    given = None if bounds is None else (float(bounds[0]), float(bounds[1]))
    return Options(
        bounds=given,
        tolerance=result.selection.tolerance,
        delta=completer.delta,
        loss=_loss_name(completer.loss),
        aim=completer.aim,
    )


def _loss_name(loss: Any) -> str:
    """What a loss is called where it is chosen by name."""
    if isinstance(loss, Misclassification):
        return f"beyond:{loss.distance:g}"
    named = [name for name, each in LOSSES.items() if loss in (name, each)]
    return loss if isinstance(loss, str) else named[0] if named else "squared"


def columns_of(completer: PartialCompleter) -> Columns:
    """Its observations, a cell that was drawn several times as often with its mean."""
    seen = completer.observations_
    each = np.repeat(np.arange(len(seen)), seen.counts)
    rows, cols = as_text(seen.row_names(seen.rows[each])), as_text(seen.col_names(seen.cols[each]))
    for axis, labels in (("row", rows), ("column", cols)):
        for label in np.unique(labels).tolist():
            check_label("the model", axis, label)
    return Columns(rows.tolist(), cols.tolist(), seen.values[each].tolist())

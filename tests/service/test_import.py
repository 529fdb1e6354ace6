"""A saved model that is served: as old as its file, and only with labels that can be asked for."""

from __future__ import annotations

import os

import numpy as np
import pytest

import surefill as sf
from surefill.errors import InputError
from surefill.service.import_model import columns_of, import_model
from surefill.service.store import open_engine
from surefill.service.store.data_sets import find_data_set
from surefill.service.store.models import last_models


def test_a_model_is_as_old_as_its_file_and_imported_once(settings, model_file, tmp_path):
    settings.folder.mkdir()
    file = tmp_path / "films.surefill"
    file.write_bytes(model_file.read_bytes())
    os.utime(file, (1_500_000_000, 1_500_000_000))
    engine = open_engine(settings.address)
    assert import_model(engine, settings.folder, file) == import_model(engine, settings.folder, file) == "films"
    with engine.connect() as connection:
        films = find_data_set(connection, "films")
        (model,) = last_models(connection, films.id, 10)
    engine.dispose()
    assert (model.created, model.sequence) == (1_500_000_000, films.last_sequence)


@pytest.mark.parametrize("label", ["a\tb", "", "x" * 201])
def test_labels_that_no_request_could_name_are_refused_in_one_sentence(simulated, label):
    seen = simulated.observations
    names = np.array([label, *(f"film {number}" for number in range(1, seen.shape[1]))])
    labelled = sf.Observations(seen.rows, seen.cols, seen.values, seen.shape, col_labels=names)
    completer = type("Fitted", (), {"observations_": labelled})
    with pytest.raises(InputError, match="the model: a column is 1 to 200 letters without control characters; got"):
        columns_of(completer)

"""The process that fits: what was asked for is learnt from and never tested on, and a job says why it failed."""

from __future__ import annotations

import numpy as np
import pytest

from surefill.errors import InputError
from surefill.service import Service
from surefill.service.folders import folder_of
from surefill.service.served_model import ServedModel
from surefill.service.store import writing
from surefill.service.store.data_sets import Options, find_data_set
from surefill.service.store.jobs import MOST_ATTEMPTS, begin_job, find_job, queue_job, requeue_lost
from surefill.service.store.models import last_models
from surefill.service.store.observations import Batch, Columns
from surefill.service.worker import fit, gather, run


@pytest.fixture
def service(settings, many):
    if settings.database is not None and not many:
        pytest.skip("make test-serve does this on PostgreSQL")
    service = Service(settings)
    service.start()
    service.refitter.stop()  # jobs are run by hand here
    service.refitter.stop = lambda: None
    yield service
    service.stop()


def columns(cells):
    rows, cols, values = zip(*cells, strict=True)
    return Columns([f"r{i}" for i in rows], [f"c{j}" for j in cols], list(values))


def test_what_was_asked_for_is_trained_on_and_never_calibrated_on(service, triples):
    films = service.create("films", Options(tolerance=0.1))
    drawn, asked = triples[:1400], [(i, 50 + i % 3, 0.1) for i in range(60)]
    service.observe(films, Batch("drawn", "1", columns(drawn))).result()
    both = columns([*asked, drawn[0]])
    service.observe(films, Batch("asked", "2", both, asked=True)).result()
    with service.engine.connect() as connection:
        record = find_data_set(connection, "films")
        observations, extra = gather(connection, record, record.last_sequence)
    assert (observations.n_draws, len(extra[0])) == (1400, 60), "a cell that was drawn as well is a drawn one"
    completer = fit(record, observations, extra)
    assert int(completer.asked_.sum()) == 60
    chosen = completer.observations_.find(*completer.result_.calibration_cells)
    assert not completer.asked_[chosen].any()
    assert completer.result_.guarantee.promised
    assert np.isfinite(completer.predict(["r3"], ["c50"])).all()


def test_a_job_leaves_a_model_its_report_and_one_line_that_puts_it_in_use(service, triples):
    films = service.create("films", Options(tolerance=0.1))
    service.observe(films, Batch("drawn", "1", columns(triples))).result()
    with writing(service.engine) as connection:
        job = queue_job(connection, films.record.id, "asked for")
        begin_job(connection, job.id, len(triples))
        job, record = find_job(connection, job.id), find_data_set(connection, "films")
    folder = folder_of(service.settings.folder, record)
    run(service.engine, job, record, folder, None)
    with service.engine.connect() as connection:
        (model,) = last_models(connection, record.id, 10)
        assert find_job(connection, job.id).state == "done"
    assert (model.number, model.sequence, model.promised) == (1, len(triples), True)
    assert (folder / "model-000001.html").read_text().startswith("<!doctype html>")
    assert service.refitter.take_up(films)
    assert isinstance(films.in_use.model, ServedModel)
    assert not service.refitter.take_up(films)


def test_nothing_and_only_asked_cells_are_refused_in_one_sentence(service):
    films = service.create("films", Options())
    with service.engine.connect() as connection, pytest.raises(InputError, match="nothing was observed yet"):
        gather(connection, films.record, 0)
    service.observe(films, Batch("asked", "1", columns([(0, 0, 1.0), (1, 1, 2.0)]), asked=True)).result()
    with service.engine.connect() as connection, pytest.raises(InputError, match="cells that nobody chose"):
        gather(connection, films.record, 2)


def test_a_job_whose_process_dies_is_begun_again_a_few_times(service):
    films = service.create("films", Options())
    with writing(service.engine) as connection:
        job = queue_job(connection, films.record.id, "asked for")
        assert queue_job(connection, films.record.id, "again").id == job.id
        for attempt in range(1, MOST_ATTEMPTS + 1):
            begin_job(connection, job.id, 5)
            assert find_job(connection, job.id).attempts == attempt
            requeue_lost(connection)
        ended = find_job(connection, job.id)
    assert ended.state == "failed"
    assert ended.problem == "its process ended 3 times before it was done."

"""A disk that is full, a store that cannot be written, models that cannot be read: a clear error, and nothing lost."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import event

import surefill as sf
from surefill.errors import InputError
from surefill.service import Service
from surefill.service.answers import predict
from surefill.service.refit import UNREADABLE
from surefill.service.store.data_sets import Options
from surefill.service.store.jobs import is_busy, list_jobs
from surefill.service.store.observations import Batch, Columns
from surefill.service.writer import BusyError, StorageError, Writer


def batch(key, size, start=0):
    rows = [f"r{k}" for k in range(start, start + size)]
    return Batch(key, key, Columns(rows, [f"c{k % 7}" for k in range(size)], [k % 5 / 4 for k in range(size)]))


@pytest.fixture
def service(on_sqlite):
    service = Service(on_sqlite)
    service.start()
    yield service
    service.stop()


@pytest.mark.parametrize(
    ("pragma", "undo", "words"),
    [
        ("max_page_count=60", "max_page_count=1073741823", "database or disk is full"),
        ("query_only=ON", "query_only=OFF", "attempt to write a readonly database"),
    ],
)
def test_a_store_that_cannot_be_written_says_so_and_loses_nothing(service, on_sqlite, pragma, undo, words):
    films = service.create("films", Options())
    service.observe(films, batch("first", 100)).result()

    def limit(connection, *_):
        connection.execute(f"PRAGMA {pragma}")

    event.listen(service.engine, "checkout", limit)
    for k in range(3):
        with pytest.raises(StorageError, match=f"nothing was stored: {words}."):
            service.observe(films, batch(f"large {k}", 20_000, start=1000)).result()
        assert films.sequence == 100
    event.remove(service.engine, "checkout", limit)
    event.listen(service.engine, "checkout", lambda connection, *_: connection.execute(f"PRAGMA {undo}"))
    assert service.observe(films, batch("first", 100)).result().repeated
    assert service.observe(films, batch("large 0", 20_000, start=1000)).result().last_sequence == 20_100
    before = predict(films, films.in_use, ["r1"], ["c5"])
    service.stop()
    service.start()
    again = service.data_sets["films"]
    assert again.sequence == 20_100
    assert predict(again, again.in_use, ["r1"], ["c5"]) == before


def test_a_checkpoint_that_cannot_be_read_is_no_loss(service):
    films = service.create("films", Options())
    service.observe(films, batch("first", 500)).result()
    before = predict(films, films.in_use, ["r1"], ["c5"])
    service.stop()
    (films.folder / "stream.surefill").write_bytes(b"half a file")
    service.start()
    again = service.data_sets["films"]
    assert predict(again, again.in_use, ["r1"], ["c5"]) == before


def test_a_model_that_cannot_be_read_leaves_the_one_before_in_use(service, model_file, caplog):
    service.stop()
    service.start(model_file)
    films = service.data_sets["films"]
    assert films.in_use.model.record.number == 1
    service.stop()
    (films.folder / "model-000001.surefill").write_bytes(b"half a file")
    service.start()
    again = service.data_sets["films"]
    assert again.in_use.model is None
    assert "a model cannot be read" in caplog.text
    (prediction,) = predict(again, again.in_use, ["1"], ["2"])
    assert not prediction.keep
    with service.engine.connect() as connection:
        assert [job.why for job in list_jobs(connection, again.record.id, 9)] == [UNREADABLE]


def test_a_folder_that_cannot_be_made_and_a_second_service_are_refused(on_sqlite, service, tmp_path):
    with pytest.raises(InputError, match="another service uses the folder"):
        Service(on_sqlite).start()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written: not a directory"):
        Service(dataclasses.replace(on_sqlite, folder=tmp_path / "file" / "inside")).start()


def test_too_much_that_waits_is_refused(service):
    films = service.create("films", Options())
    writer = Writer(service.engine, pending=100, checkpoint_every=10**9)
    writer.submit(films, batch("a", 90))
    with pytest.raises(BusyError, match="90 observations wait to be stored"):
        writer.submit(films, batch("b", 20))
    writer.start()
    writer.stop()
    assert (films.sequence, writer.pending) == (90, 0)


def test_concurrent_batches_are_stored_together_and_in_order(service):
    films = service.create("films", Options())
    waiting = [service.observe(films, batch(f"k{k}", 7, start=7 * k)) for k in range(50)]
    told = [each.result() for each in waiting]
    assert [each.last_sequence for each in told] == list(range(7, 357, 7))


def test_the_same_model_is_taken_in_once_and_another_of_its_name_refused(service, model_file, tmp_path, simulated):
    service.stop()
    service.start(model_file)
    assert service.data_sets["films"].sequence == simulated.observations.n_draws
    service.stop()
    service.start(model_file)
    assert service.data_sets["films"].sequence == simulated.observations.n_draws
    service.stop()
    other = tmp_path / "films.surefill"
    sf.PartialCompleter(tolerance=0.2, confidence="posterior").fit(simulated.observations).save(other)
    with pytest.raises(InputError, match="was made from another model"):
        service.start(other)
    service.start()


def test_a_model_that_was_taken_in_is_not_fitted_again_until_enough_is_new(service, model_file):
    service.stop()
    service.start(model_file)
    films = service.data_sets["films"]
    service.refitter._look()
    with service.engine.connect() as connection:
        assert not is_busy(connection, films.record.id)
    service.observe(films, batch("new", 1_000)).result()
    service.refitter._queue_if_due(films)
    with service.engine.connect() as connection:
        assert is_busy(connection, films.record.id)

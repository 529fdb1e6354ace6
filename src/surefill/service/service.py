"""The service itself, without HTTP: data sets, the store, the writer and the refitter, started and stopped together."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from surefill.errors import InputError
from surefill.service.data_set import DataSet
from surefill.service.files import claim_folder
from surefill.service.folders import folder_of
from surefill.service.import_model import import_model
from surefill.service.refit import ASKED, Refitter
from surefill.service.settings import Settings
from surefill.service.store import open_engine, writing
from surefill.service.store.data_sets import Options, all_data_sets, create_data_set, delete_data_set
from surefill.service.store.engine import first_line
from surefill.service.store.jobs import JobRecord, is_busy, queue_job
from surefill.service.store.observations import Batch, Stored
from surefill.service.store.tokens import TokenRecord, all_tokens
from surefill.service.uploads import CSV, parse
from surefill.service.writer import StorageError, Writer, checkpoint
from surefill.stream import StreamingCompleter

log = logging.getLogger("surefill.service")

LOCK_NUMBER = 7203445
"""Of the lock that a service holds in PostgreSQL: two of them would number observations each in its own memory."""

CLAIM_SECONDS = 5.0
"""How long a service that was killed may still hold the lock: until its database notices that it is gone."""

TOKENS_SECONDS = 2.0
"""How long the list of tokens is believed before it is read again: so soon a revoked one is refused."""


class Service:
    """Data sets that take observations in and answer, one writer, one refitter.

    Examples
    --------
    >>> import tempfile
    >>> from surefill.service import Settings
    >>> from surefill.service.store.data_sets import Options
    >>> from surefill.service.store.observations import Batch, Columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(Settings(folder))
    ...     service.start()
    ...     films = service.create("films", Options(bounds=(1, 5)))
    ...     stored = service.observe(films, Batch("key 1", "digest", Columns(["ann"], ["Alien"], [5.0]))).result()
    ...     service.stop()
    >>> stored.last_sequence, stored.repeated
    (1, False)
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ready = False
        self.data_sets: dict[str, DataSet] = {}
        self._tokens: tuple[float, list[TokenRecord]] = (float("-inf"), [])
        self._changing = threading.Lock()

    def start(self, model: Path | None = None) -> None:
        """Open the store, read and replay every data set, then take requests; ``model`` becomes a data set first."""
        with ExitStack() as opened:
            opened.enter_context(claim_folder(self.settings.folder))
            self.engine = open_engine(self.settings.address)
            opened.callback(self.engine.dispose)
            self._claim_database(opened)
            warm_up()
            if model is not None:
                import_model(self.engine, self.settings.folder, model)
            self.writer = Writer(self.engine, self.settings.limits.pending, self.settings.checkpoint_every)
            self.refitter = Refitter(self.settings, self.engine, self.writer, lambda: list(self.data_sets.values()))
            opened.callback(self._save_streams)
            self.writer.start()
            opened.callback(self.writer.stop)
            self._open_data_sets()
            self.refitter.start()
            opened.callback(self.refitter.stop)
            self._opened = opened.pop_all()
        self.ready = True

    def stop(self) -> None:
        """End the process that fits, store what waits, save the streams, and leave the folder."""
        self.ready = False
        self._opened.close()

    def _open_data_sets(self) -> None:
        with self.engine.connect() as connection:
            records = all_data_sets(connection)
        for record in records:
            data_set = DataSet.open(record, folder_of(self.settings.folder, record))
            data_set.replay(self.engine)
            if not self.refitter.take_up(data_set):
                data_set.use(None, self.engine)
            self.data_sets[record.name] = data_set
            log.info("a data set is open", extra={"data_set": record.name, "observations": record.last_sequence})

    def _save_streams(self) -> None:
        for data_set in self.data_sets.values():
            checkpoint(data_set)

    def _claim_database(self, opened: ExitStack) -> None:
        """In PostgreSQL, a lock for as long as this process lives; SQLite lies in the folder, which is claimed."""
        if self.engine.dialect.name != "postgresql":
            return
        connection = opened.enter_context(self.engine.connect()).execution_options(isolation_level="AUTOCOMMIT")
        ends = time.monotonic() + CLAIM_SECONDS
        while not connection.execute(text(f"select pg_try_advisory_lock({LOCK_NUMBER})")).scalar():
            if time.monotonic() > ends:
                raise InputError("another service uses this database; give each a database of its own.")
            time.sleep(CLAIM_SECONDS / 50)

    def create(self, name: str, options: Options) -> DataSet:
        """A new data set."""
        with self._changing, storing(), writing(self.engine) as connection:
            record = create_data_set(connection, name, options)
            data_set = DataSet.open(record, folder_of(self.settings.folder, record))
        self.data_sets[name] = data_set
        return data_set

    def delete(self, data_set: DataSet) -> bool:
        """Forget a data set and its files; False while it is being fitted."""
        with self._changing, storing(), writing(self.engine) as connection:
            if is_busy(connection, data_set.record.id):
                return False
            delete_data_set(connection, data_set.record.id)
        self.data_sets.pop(data_set.name, None)
        shutil.rmtree(data_set.folder, ignore_errors=True)
        return True

    def observe(self, data_set: DataSet, batch: Batch) -> Future[Stored]:
        """Store and learn a batch; the future is done when it is durable."""
        return self.writer.submit(data_set, batch)

    def refit(self, data_set: DataSet) -> JobRecord:
        """Queue a job that fits a data set again, or find the one that waits."""
        with storing(), writing(self.engine) as connection:
            job = queue_job(connection, data_set.record.id, ASKED)
        self.refitter.wake()
        return job

    def tokens(self) -> list[TokenRecord]:
        """Tokens that are valid, as of a moment ago."""
        read, found = self._tokens
        if time.monotonic() - read > TOKENS_SECONDS:
            with self.engine.connect() as connection:
                found = all_tokens(connection)
            self._tokens = time.monotonic(), found
        return found

    def problem(self) -> str | None:
        """Why no request can be answered now, in one sentence; None where they can."""
        if not self.ready:
            return "the service is starting or ending."
        if not self.writer.alive:
            return "the thread that stores has ended."
        try:
            with self.engine.connect() as connection:
                connection.execute(text("select 1"))
        except SQLAlchemyError as error:
            return f"the store cannot be reached: {first_line(error)}."
        return None


def warm_up() -> None:
    """Read, learn and predict once, so that no client waits for compilation."""
    columns = parse(b"row,col,value\n1,1,1\n", CSV, 1)
    stream = StreamingCompleter()
    stream.learn_many(*columns)
    stream.predict(columns.rows, columns.cols)
    stream.confidence(columns.rows, columns.cols)


@contextmanager
def storing() -> Iterator[None]:
    """Turns what a database or disk says when it cannot be written into StorageError."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StorageError(f"nothing was stored: {first_line(error)}.") from None
    except OSError as error:
        raise StorageError(f"nothing was stored: {(error.strerror or str(error)).lower()}.") from None

"""Jobs: each is queued, then running, then done or failed; one that lost its process is queued again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, func, insert, select, update

from surefill.service.store.tables import jobs, models

State = Literal["queued", "running", "done", "failed"]

MOST_ATTEMPTS = 3
"""How often a job is begun whose process dies under it, before it is given up."""

MOST_RESTARTS = 10
"""The same where the service ended with it: a restart is not the job's fault, unless there is no end to them."""


@dataclass(frozen=True)
class JobRecord:
    """One line of the table of jobs."""

    id: int
    data_set: int
    state: State
    why: str
    created: float
    started: float | None
    heartbeat: float | None
    ended: float | None
    attempts: int
    sequence: int
    model: int | None
    problem: str | None


def queue_job(connection: Connection, data_set: int, why: str) -> JobRecord:
    """The job of this data set that waits already, or a new one."""
    waiting = select(jobs).where(jobs.c.data_set == data_set, jobs.c.state == "queued").limit(1)
    found = connection.execute(waiting).one_or_none()
    if found is not None:
        return _record(found)
    line = {"data_set": data_set, "state": "queued", "why": why, "created": time.time(), "attempts": 0, "sequence": 0}
    made = connection.execute(insert(jobs).returning(jobs.c.id), line).scalar_one()
    job = find_job(connection, made)
    assert job is not None
    return job


def find_job(connection: Connection, number: int) -> JobRecord | None:
    """The job of that number, if there is one."""
    line = connection.execute(select(jobs).where(jobs.c.id == number)).one_or_none()
    return None if line is None else _record(line)


def list_jobs(connection: Connection, data_set: int, limit: int, before: int | None = None) -> list[JobRecord]:
    """The latest jobs of a data set first, those numbered below ``before`` where it is given."""
    wanted = select(jobs).where(jobs.c.data_set == data_set).order_by(jobs.c.id.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(jobs.c.id < before)
    return [_record(line) for line in connection.execute(wanted)]


def next_job(connection: Connection) -> JobRecord | None:
    """The job that has waited longest."""
    line = connection.execute(select(jobs).where(jobs.c.state == "queued").order_by(jobs.c.id).limit(1)).one_or_none()
    return None if line is None else _record(line)


def last_sequence_tried(connection: Connection, data_set: int) -> int:
    """Up to where the observations were fitted, here or before they came here, or tried to be."""
    of_each = (select(func.max(each.c.sequence)).where(each.c.data_set == data_set) for each in (jobs, models))
    return max(connection.execute(largest).scalar() or 0 for largest in of_each)


def is_busy(connection: Connection, data_set: int) -> bool:
    """Whether a job of this data set waits or runs."""
    active = jobs.c.state.in_(("queued", "running"))
    return connection.execute(select(jobs.c.id).where(jobs.c.data_set == data_set, active).limit(1)).first() is not None


def begin_job(connection: Connection, number: int, sequence: int) -> None:
    """queued -> running, on the observations up to ``sequence``."""
    now = time.time()
    change = {
        "state": "running",
        "started": now,
        "heartbeat": now,
        "sequence": sequence,
        "attempts": jobs.c.attempts + 1,
    }
    connection.execute(update(jobs).where(jobs.c.id == number, jobs.c.state == "queued").values(**change))


def beat(connection: Connection, number: int) -> None:
    """Say that a running job is alive."""
    alive = jobs.c.id == number, jobs.c.state == "running"
    connection.execute(update(jobs).where(*alive).values(heartbeat=time.time()))


def end_job(connection: Connection, number: int, *, model: int | None = None, problem: str | None = None) -> bool:
    """running -> done with a model, or failed with a sentence; False where it was not running any more."""
    change: dict[str, Any] = {"state": "failed" if model is None else "done", "ended": time.time()}
    change |= {"model": model, "problem": problem}
    mine = jobs.c.id == number, jobs.c.state == "running"
    return connection.execute(update(jobs).where(*mine).values(**change)).rowcount == 1


def requeue_lost(connection: Connection, most: int = MOST_ATTEMPTS) -> list[JobRecord]:
    """Jobs that run nowhere, for their process is gone: queued again, or failed after so many attempts."""
    lost = [_record(line) for line in connection.execute(select(jobs).where(jobs.c.state == "running"))]
    for job in lost:
        if job.attempts >= most:
            end_job(connection, job.id, problem=f"its process ended {job.attempts} times before it was done.")
        else:
            connection.execute(update(jobs).where(jobs.c.id == job.id).values(state="queued"))
    return lost


def _record(line: Any) -> JobRecord:
    return JobRecord(**line._mapping)

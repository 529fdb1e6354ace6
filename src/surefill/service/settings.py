"""What a service is told when it starts, and the limits that it keeps."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from surefill.errors import InputError

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Names by which a service on loopback is asked for; any other name in ``Host`` may be another site's."""


@dataclass(frozen=True)
class ServiceLimits:
    """How much one request, and all of them together, may ask for.

    Attributes
    ----------
    body_bytes, batch, cells : largest body of observations, observations in a batch, cells asked at once.
    question_bytes : largest body of anything else, which is read by the one thread that listens.
    bodies_bytes : all bodies that are held at a time; more are refused with 429.
    pending : observations that may wait to be stored; more are refused with 429.
    requests, heavy : requests worked on at a time, and of these the costly ones (suggestions, reports).
    body_seconds, answer_seconds : how long a body may take to arrive, and an answer to be made.

    Examples
    --------
    >>> ServiceLimits(batch=500).batch
    500
    """

    body_bytes: int = 32 << 20
    batch: int = 100_000
    cells: int = 10_000
    question_bytes: int = 4 << 20
    bodies_bytes: int = 256 << 20
    pending: int = 400_000
    requests: int = 256
    heavy: int = 2
    body_seconds: float = 30.0
    answer_seconds: float = 60.0


@dataclass(frozen=True)
class Settings:
    """Where a service keeps what it is told, where it listens, and when it fits again.

    Attributes
    ----------
    folder : the data folder; it holds the models, the streams and, unless ``database`` is given, the database.
    database : an address such as ``postgresql://user@host/name``; None for SQLite in the folder.
    host, port : where it listens; loopback by default.
    hosts : names in addition to the local ones by which it may be asked for.
    require_token : ask for a token on loopback too; elsewhere one is always asked for.
    checkpoint_every : observations between two checkpoints of a stream.
    poll_seconds : how often it looks whether a data set is due to be fitted again.
    refit_jobs : cores for fitting; None for all.

    Examples
    --------
    >>> settings = Settings(folder="served", port=8080)
    >>> settings.loopback, settings.needs_token, settings.address.rpartition("/")[2]
    (True, False, 'surefill.sqlite')
    >>> Settings(folder="served", host="0.0.0.0").needs_token
    True
    """

    folder: Path
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    hosts: tuple[str, ...] = ()
    require_token: bool = False
    checkpoint_every: int = 100_000
    poll_seconds: float = 1.0
    refit_jobs: int | None = None
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))
        if self.database is not None and not self.database.startswith(("sqlite:///", "postgresql://")):
            raise InputError("a database address starts with postgresql:// or sqlite:///.")

    @cached_property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @cached_property
    def needs_token(self) -> bool:
        """Whether every request must carry a token."""
        return self.require_token or not self.loopback

    @property
    def address(self) -> str:
        """The database as SQLAlchemy spells it."""
        if self.database is None:
            return f"sqlite:///{(self.folder / 'surefill.sqlite').absolute()}"
        return self.database.replace("postgresql://", "postgresql+psycopg://", 1)

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Names in ``Host`` that are answered, without their port."""
        return frozenset({*LOCAL_NAMES, self.host, *self.hosts})

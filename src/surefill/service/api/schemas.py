"""What goes over the wire, as the description of the API states it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from surefill.guarantee import Guarantee
from surefill.inputs import LARGEST_TOLERANCE, LARGEST_VALUE, check_range
from surefill.service.answers import NO_MODEL
from surefill.service.data_set import DataSet, InUse
from surefill.service.folders import NAME_PATTERN
from surefill.service.store.data_sets import Options
from surefill.service.store.jobs import JobRecord
from surefill.service.store.models import ModelRecord
from surefill.service.store.tokens import Scope, TokenRecord
from surefill.service.uploads import LABEL_PATTERN, LONGEST_LABEL

Name = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of a data set.")]
Label = Annotated[str, Field(min_length=1, max_length=LONGEST_LABEL, pattern=LABEL_PATTERN)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-LARGEST_VALUE, le=LARGEST_VALUE)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=LARGEST_TOLERANCE)]
Chance = Annotated[float, Field(strict=True, gt=0, lt=1)]
LOSS_PATTERN = r"^(squared|absolute|beyond:[0-9]{1,9}(\.[0-9]{1,9})?)$"
"""Losses by name; the last is the share of errors beyond a distance."""

Item = TypeVar("Item")


def moment(seconds: float) -> datetime:
    """A time as it is stored, for people."""
    return datetime.fromtimestamp(seconds, UTC)


class Sent(BaseModel):
    """What a client sends: nothing else than is named here."""

    model_config = ConfigDict(extra="forbid")


class Bounds(Sent):
    """The range that values may take; one outside is refused."""

    low: Finite
    high: Finite


class NewDataSet(Sent):
    """A data set to be made."""

    name: Name
    bounds: Bounds | None = Field(None, description="The range that values may take; learnt where not given.")
    tolerance: Positive | None = Field(None, description="Largest mean loss over what is kept; chosen where not given.")
    delta: Chance = Field(0.05, description="Probability with which a promise may fail.")
    loss: Annotated[str, Field(pattern=LOSS_PATTERN)] = Field(
        "squared", description='"squared", "absolute" or "beyond:0.5".'
    )
    aim: Literal["unobserved", "all", "observed"] = Field("unobserved", description="Cells the promise is about.")
    refit_after: Annotated[int, Field(strict=True, ge=1, le=10**12)] = Field(
        1_000, description="Fit again when so many observations are new,"
    )
    refit_share: Annotated[float, Field(strict=True, ge=0, le=1_000)] = Field(
        0.2, description="and this share of those that the last fit has seen."
    )

    @field_validator("bounds")
    @classmethod
    def _ordered(cls, bounds: Bounds | None) -> Bounds | None:
        if bounds is not None:
            check_range(bounds.low, bounds.high)
        return bounds

    def options(self) -> Options:
        """As they are stored."""
        given = self.model_dump(exclude={"name", "bounds"})
        return Options(bounds=None if self.bounds is None else (self.bounds.low, self.bounds.high), **given)


class DataSetDescription(BaseModel):
    """A data set and how it is completed."""

    name: str
    bounds: Bounds | None
    tolerance: float | None
    delta: float
    loss: str
    aim: str
    refit_after: int
    refit_share: float
    created: datetime
    observations: int

    @classmethod
    def of(cls, data_set: DataSet) -> Self:
        """The description of a data set."""
        options = vars(data_set.options)
        bounds = options["bounds"] and {"low": options["bounds"][0], "high": options["bounds"][1]}
        return cls.model_validate(
            options
            | {"name": data_set.name, "bounds": bounds, "created": moment(data_set.record.created)}
            | {"observations": data_set.sequence}
        )


class Page(BaseModel, Generic[Item]):
    """Some items, and what to ask for to get the next ones."""

    items: list[Item]
    next: str | None = Field(description="Give it as `after` to get the next items; null at the end.")


class Acknowledgement(BaseModel):
    """A batch that is stored: its observations are numbered ``first`` to ``last``."""

    key: str = Field(description="The key of the batch; the same batch under the same key is stored once.")
    stored: int
    first: int
    last: int


class ModelInUse(BaseModel):
    """The model that answers: how old it is, and what it has not seen."""

    number: int
    fitted_at: datetime
    observations: int = Field(description="Observations that it was fitted on.")
    observations_behind: int = Field(description="Observations that came after; none is part of its promise.")
    promised: bool

    @classmethod
    def of(cls, data_set: DataSet, in_use: InUse) -> Self | None:
        """The model in use, None before the first."""
        if in_use.model is None:
            return None
        record = in_use.model.record
        return cls(
            number=record.number,
            fitted_at=moment(record.created),
            observations=record.sequence,
            observations_behind=max(0, data_set.sequence - record.sequence),
            promised=in_use.model.guarantee.promised,
        )


class CellPrediction(BaseModel):
    """What is said of one cell."""

    row: str
    col: str
    value: float | None = Field(description="In the data's own units; null where nothing is known at all.")
    confidence: float = Field(ge=0, le=1, description="How well the observations support the value.")
    risk: float | None = Field(description="Expected loss; null from the stream, and where the cell was observed.")
    keep: bool = Field(description="Whether the cell is among those that the promise of the model in use is about.")
    low: float | None = Field(description="Lower end of the interval that holds a new value with probability `level`.")
    high: float | None
    reason: str = Field(description="Why it is not kept; empty where it is.")
    source: Literal["model", "stream", "observed"] = Field(
        description='"stream" for what came after the model, "observed" where the value is the mean of what was seen.'
    )


class Predictions(BaseModel):
    """Answers for cells, all from one model."""

    model: ModelInUse | None
    level: float
    predictions: list[CellPrediction]


class OnePrediction(BaseModel):
    """The answer for one cell."""

    model: ModelInUse | None
    level: float
    prediction: CellPrediction


class Cell(Sent):
    """A row and a column."""

    row: Label
    col: Label


class CellsAsked(Sent):
    """Cells to be predicted."""

    cells: Annotated[list[Cell], Field(min_length=1)]
    level: Chance = Field(0.9, description="Probability with which an interval holds a new value.")


class Recommendations(BaseModel):
    """The best columns of a row, the best first."""

    model: ModelInUse | None
    row: str
    recommendations: list[CellPrediction]
    reason: str = Field(description="Why there are none, or fewer than asked for; empty where there are enough.")


class SuggestedCell(BaseModel):
    """A cell worth asking about."""

    row: str
    col: str
    value: float | None
    risk: float | None
    utility: float = Field(description="What its answer adds to those before it, in the strategy's own measure.")


class Suggestions(BaseModel):
    """Cells to ask next, the most useful first. Send the answers with `asked=true`."""

    model: ModelInUse
    strategy: str
    suggestions: list[SuggestedCell]


class Promise(BaseModel):
    """What the model in use promises about the cells it keeps, in words."""

    model: ModelInUse | None
    promised: bool
    sentence: str
    holds_over: str
    not_promised: str
    tolerance: float | None
    delta: float
    sensitivity: float | None
    kept_share: float | None
    error: float | None = Field(description="Mean loss of the kept calibration cells.")

    @classmethod
    def of(cls, data_set: DataSet, in_use: InUse) -> Self:
        """The promise of the model in use; before the first, that there is none."""
        if in_use.model is None:
            stated = Guarantee(False, data_set.options.delta, f"Nothing is promised: {NO_MODEL}.", "", "")
            figures = dict.fromkeys(("tolerance", "kept_share", "error"))
        else:
            stated, record = in_use.model.guarantee, in_use.model.record
            figures = {"tolerance": record.tolerance, "kept_share": record.kept_share, "error": record.error}
        words = {name: value for name, value in vars(stated).items() if name in cls.model_fields}
        return cls.model_validate({"model": ModelInUse.of(data_set, in_use)} | words | figures)


class ModelDescription(BaseModel):
    """A model that was fitted: one point of the history."""

    number: int
    fitted_at: datetime
    observations: int
    promised: bool
    kept_share: float
    error: float | None
    tolerance: float
    seconds: float

    @classmethod
    def of(cls, record: ModelRecord) -> Self:
        """The description of a model."""
        named = {"fitted_at": moment(record.created), "observations": record.sequence}
        return cls.model_validate(vars(record) | named)


class ErrorAtConfidence(BaseModel):
    """The error of observations whose confidence was in [low, high) before they were learnt."""

    low: float
    high: float
    count: int
    rmse: float


class DataSetStatus(BaseModel):
    """How a data set is doing."""

    name: str
    observations: int
    pending: int = Field(description="Observations of all data sets that wait to be stored.")
    rows: int
    columns: int
    stream_rmse: float | None = Field(
        description="Error of the stream, each observation predicted before it was learnt."
    )
    stream_by_confidence: list[ErrorAtConfidence]
    model: ModelInUse | None
    job: JobDescription | None = Field(description="The job that waits or runs.")


class JobDescription(BaseModel):
    """A job that fits a data set again."""

    id: int
    state: Literal["queued", "running", "done", "failed"]
    why: str
    created: datetime
    started: datetime | None
    heartbeat: datetime | None
    ended: datetime | None
    attempts: int
    observations: int = Field(description="Observations that it fits on; 0 before it runs.")
    model: int | None = Field(description="Number of the model that it made.")
    problem: str | None

    @classmethod
    def of(cls, job: JobRecord) -> Self:
        """The description of a job."""
        times: dict[str, Any] = {
            name: None if (value := getattr(job, name)) is None else moment(value)
            for name in ("created", "started", "heartbeat", "ended")
        }
        return cls.model_validate(vars(job) | times | {"observations": job.sequence})


class NewToken(Sent):
    """A token to be made."""

    scope: Scope
    note: Annotated[str, Field(max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""


class TokenDescription(BaseModel):
    """A token, without its secret."""

    id: int
    scope: Scope
    note: str
    created: datetime

    @classmethod
    def of(cls, token: TokenRecord) -> Self:
        """The description of a token."""
        return cls(id=token.id, scope=token.scope, note=token.note, created=moment(token.created))


class CreatedToken(TokenDescription):
    """A token with its secret, which is shown this once."""

    token: str


class Health(BaseModel):
    """Whether the service can answer."""

    status: Literal["ok"]


DataSetStatus.model_rebuild()

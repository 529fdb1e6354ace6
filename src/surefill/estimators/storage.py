"""Fitted completers on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from surefill.data import Observations
from surefill.estimators.partial_completer import PartialCompleter
from surefill.estimators.result import PartialCompletion
from surefill.io.archive import dump_archive, read_archive, write_archive

FORMAT, VERSION = "surefill model", 10
"""Name and version of the file; a change of what is stored raises the version."""

PARAMETERS = (
    "tolerance",
    "delta",
    "completion",
    "confidence",
    "risk",
    "loss",
    "aim",
    "propensity",
    "sensitivity",
    "bounds",
)
"""What is stored of the parameters as given; the seed is stored as it was used."""


def save(completer: PartialCompleter, path: str | Path) -> None:
    """Write a fitted completer; the file appears only when it is complete.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(completer, Path(folder) / "model.surefill")
    ...     [file.name for file in Path(folder).iterdir()]
    ['model.surefill']
    """
    write_archive(Path(path), FORMAT, VERSION, _content(completer))


def dump(completer: PartialCompleter, path: Path) -> None:
    """As :func:`save`, straight to a file that somebody else will put in its place."""
    dump_archive(path, FORMAT, VERSION, _content(completer))


def _content(completer: PartialCompleter) -> dict[str, Any]:
    result, seed = completer._fitted(), completer.random_state_
    parameters = {name: getattr(completer, name) for name in PARAMETERS} | {"random_state": seed}
    return {
        "parameters": parameters,
        "result": result,
        "observations": completer.observations_,
        "asked": completer.asked_,
        "feature_names": getattr(completer, "feature_names_in_", None),
    }


def load(path: str | Path) -> PartialCompleter:
    """Read a fitted completer written by :meth:`PartialCompleter.save`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> sim = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = sf.PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     completer.save(Path(folder) / "model.surefill")
    ...     again = sf.load(Path(folder) / "model.surefill")
    >>> bool((again.predict([0], [3]) == completer.predict([0], [3])).all())
    True
    """
    return read_archive(Path(path), FORMAT, VERSION, _rebuilt)


def _check_parts(result: PartialCompletion, seen: Observations) -> None:
    """Parts that fit each other and that answer: ValueError or another of its kind where they do not.

    The corners are asked about, one by one and as a grid.
    """
    if result.confidence.shape != seen.shape:
        raise ValueError("parts of different tables")
    (m, n), one = seen.shape, np.zeros(1, dtype=np.int64)
    rows, cols = np.unique([0, m - 1]), np.unique([0, n - 1])
    with np.errstate(all="ignore"):
        answers = (result.answer(np.repeat(rows, len(cols)), np.tile(cols, len(rows))), result.answer_block(rows, cols))
        result.interval_at(one, one, 0.5)
    if not all(answer.value.shape == answer.risk.shape == answer.keep.shape for answer in answers):
        raise ValueError("answers that do not fit the questions")


def _rebuilt(content: dict[str, Any]) -> PartialCompleter:
    completer = PartialCompleter(**content["parameters"])
    completer._validate()
    completer.result_, completer.observations_ = content["result"], content["observations"]
    if not (isinstance(completer.result_, PartialCompletion) and isinstance(completer.observations_, Observations)):
        raise TypeError
    if completer.result_.completion.shape != completer.observations_.shape:
        raise ValueError
    completer.random_state_ = content["parameters"]["random_state"]
    completer.asked_ = content["asked"]
    if len(completer.asked_) != len(completer.observations_):
        raise ValueError
    _check_parts(completer.result_, completer.observations_)
    completer.n_features_in_ = completer.observations_.shape[1]
    if content["feature_names"] is not None:
        completer.feature_names_in_ = content["feature_names"].astype(object)
    return completer

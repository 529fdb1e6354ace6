"""The MovieLens ratings, from a folder at hand or downloaded once."""

from __future__ import annotations

import hashlib
import io
import os
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np

from surefill.data import Observations
from surefill.errors import InputError, invalid_parameter
from surefill.io import read_observations
from surefill.io.durable import replacing

ADDRESS = "https://files.grouplens.org/datasets/movielens/{name}.zip"
FOLD_SIZE = 20_000
"""Lines of each of the five official test sets of ml-100k."""


@dataclass(frozen=True)
class Edition:
    """The file of ratings inside an edition's archive, and the checksum of its content."""

    file: str
    sha256: str


EDITIONS = {
    "ml-100k": Edition("u.data", "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"),
    "ml-1m": Edition("ratings.dat", "506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f"),
}
"""What can be loaded by name."""


@overload
def load_movielens(name: str = ..., path: str | Path | None = ..., *, fold: None = ...) -> Observations: ...
@overload
def load_movielens(
    name: str = ..., path: str | Path | None = ..., *, fold: int
) -> tuple[Observations, Observations]: ...
def load_movielens(
    name: str = "ml-100k", path: str | Path | None = None, *, fold: int | None = None
) -> Observations | tuple[Observations, Observations]:
    """Ratings of 1 to 5 stars: "ml-100k" (943 x 1682, 100,000) or "ml-1m" (6040 x 3706, 1,000,209).

    Looked for in ``path``, else in the folder named by the environment variable SUREFILL_DATA, else in the
    user's cache; where they are in none of these and no ``path`` was given, they are downloaded into the cache
    and their checksum verified. The data are GroupLens's and may not be redistributed.

    With ``fold`` from 1 to 5 (ml-100k only), the official (base, test) pair: the test set is lines
    20000 (fold - 1) + 1 to 20000 fold of ``u.data``, the base all others.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import surefill as sf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "u.data").write_text("1\\t2\\t5\\t881250949\\n3\\t2\\t4\\t881250950\\n")
    ...     len(sf.datasets.load_movielens("ml-100k", path=folder))
    2
    """
    if name not in EDITIONS:
        raise invalid_parameter("load_movielens", "name", " or ".join(map(repr, EDITIONS)), name)
    if fold is not None and (name != "ml-100k" or fold not in range(1, 6)):
        raise invalid_parameter("load_movielens", "fold", "from 1 to 5, and only for 'ml-100k'", fold)
    ratings = read_observations(_locate(name, path), row=0, col=1, value=2, header=False, bounds=(1, 5))
    if fold is None:
        return ratings
    in_test = np.arange(len(ratings)) // FOLD_SIZE == fold - 1
    return ratings.select(~in_test), ratings.select(in_test)


def _locate(name: str, path: str | Path | None) -> Path:
    file = EDITIONS[name].file
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "surefill"
    given = Path(path) if path is not None else None
    roots = [given] if given is not None else [Path(os.environ.get("SUREFILL_DATA", cache)), cache]
    for root in roots:
        for candidate in (
            root,
            root / file,
            root / f"{file}.gz",
            root / name / file,
            root / name / f"{file}.gz",
        ):
            if candidate.is_file():
                return candidate
    if given is not None:
        raise InputError(f"{given} holds no {name}: expected {file} or {file}.gz in it or in its folder {name}.")
    return _download(name, cache / name / file)


def _download(name: str, target: Path) -> Path:
    """Fetch the archive, check the ratings' checksum, and only then put the file in place."""
    address = ADDRESS.format(name=name)
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            archive = answer.read()
        content = zipfile.ZipFile(io.BytesIO(archive)).read(f"{name}/{target.name}")
    except (urllib.error.URLError, TimeoutError, zipfile.BadZipFile, KeyError) as error:
        raise InputError(
            f"{name} could not be downloaded from {address} ({error}): download it by hand and give path=, "
            "or set SUREFILL_DATA to its folder."
        ) from None
    if hashlib.sha256(content).hexdigest() != EDITIONS[name].sha256:
        raise InputError(f"{name} from {address} does not have the expected checksum; nothing was kept.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        partial.write_bytes(content)
    return target

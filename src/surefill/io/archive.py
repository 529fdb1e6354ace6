"""What was learnt, on disk: numpy arrays and one JSON text in a zip file, never pickle."""

from __future__ import annotations

import dataclasses
import enum
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefill.errors import InputError
from surefill.io.files import check_folder, replacing
from surefill.registry import STORABLE

HEADER = "surefill.json"
UNREADABLE = (
    OSError, ValueError, LookupError, EOFError, TypeError, AttributeError, RuntimeError, MemoryError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a damaged, foreign or forged file may raise."""

Arrays = dict[str, NDArray[Any]]
Built = TypeVar("Built")


def write_archive(target: Path, form: str, version: int, content: Any) -> None:
    """Write ``content``: numbers, text, arrays, tuples, dictionaries, and dataclasses and enums that are storable.

    The file appears only when it is complete.
    """
    arrays: Arrays = {}
    header = {"format": form, "version": version, "content": _pack(content, arrays)}
    arrays[HEADER] = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    check_folder(target)
    with replacing(target) as partial, open(partial, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_archive(target: Path, form: str, version: int, rebuild: Callable[[Any], Built]) -> Built:
    """What ``rebuild`` makes of the content written by :func:`write_archive`; only storable kinds are ever built."""
    try:
        with open(target, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop(HEADER).tobytes())
        known = header["format"] == form and header["version"] == version
    except FileNotFoundError:
        raise InputError(f"{target} does not exist.") from None
    except UNREADABLE:
        raise InputError(f"{target} is not a {form}, or it is damaged.") from None
    if not known:
        raise InputError(
            f"{target} is another kind of file, or was written by another version of surefill; a {form} of "
            f"version {version} is expected."
        )
    try:
        return rebuild(_unpack(header["content"], arrays))
    except UNREADABLE:
        raise InputError(f"{target} is a damaged {form}.") from None


def _pack(value: Any, arrays: Arrays) -> Any:
    """A JSON tree for ``value``; its arrays go to ``arrays`` and leave their key behind."""
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        key = f"array{len(arrays)}"
        arrays[key] = value.astype(str) if value.dtype == object else value
        return {"array": key}
    if isinstance(value, list | tuple):
        return {"tuple": [_pack(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": {name: _pack(item, arrays) for name, item in value.items()}}
    kind = type(value).__name__
    if STORABLE.get(kind) is not type(value):
        raise InputError(f"a {kind} cannot be saved; only models made of surefill's own parts can.")
    if isinstance(value, enum.Enum):
        return {"kind": kind, "name": value.name}
    fields = {field.name: _pack(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
    return {"kind": kind, "fields": fields}


def _unpack(tree: Any, arrays: Arrays) -> Any:
    """The inverse of :func:`_pack`."""
    if not isinstance(tree, dict):
        return tree
    if "float" in tree:
        return float(tree["float"])
    if "array" in tree:
        return arrays[tree["array"]]
    if "tuple" in tree:
        return tuple(_unpack(item, arrays) for item in tree["tuple"])
    if "dict" in tree:
        return {name: _unpack(item, arrays) for name, item in tree["dict"].items()}
    kind = STORABLE[tree["kind"]]
    if "name" in tree:
        return kind[tree["name"]]
    values = {name: _unpack(item, arrays) for name, item in tree["fields"].items()}
    made_at_start = {field.name: values[field.name] for field in dataclasses.fields(kind) if field.init}
    result = kind(**made_at_start)
    for name in values.keys() - made_at_start.keys():
        object.__setattr__(result, name, values[name])
    return result

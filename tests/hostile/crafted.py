"""Models and checkpoints changed on purpose: every array and every number of the text in turn, and random damage.

A file of ours is a zip file of arrays and one JSON text. :func:`one` gives variants of it that are still such
files, with other numbers, types or sizes in one place, and :func:`damaged` ones with bytes changed, cut or doubled.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from surefill.io.archive import HEADER


def load_parts(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays and the JSON tree of a file."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return arrays, json.loads(arrays.pop(HEADER).tobytes())


def save_parts(path: Path, arrays: dict[str, Any], tree: Any, packed: bool = False) -> None:
    """Write arrays and tree as a file of ours, or with its members packed."""
    text = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        (np.savez_compressed if packed else np.savez)(file, **arrays, **{HEADER: text})


def _other_arrays(array: np.ndarray, rng: np.random.Generator) -> list[Any]:
    """Arrays in place of one: other numbers, far numbers, other types, other sizes."""
    variants: list[Any] = [array[:-1] if array.ndim else array, np.concatenate([array, array]) if array.ndim else array]
    variants += [array.astype(complex) if array.dtype.kind in "biuf" else array, np.zeros(0, array.dtype)]
    variants += [array.reshape(1, *array.shape), np.asarray(["text"] * max(1, array.size)), array.astype(bool)]
    if array.dtype.kind in "iu" and array.size:
        for far in (-1, -(2**62), 2**31, 2**62, 10**9):
            wide = array.astype(np.int64).copy()
            wide.flat[rng.integers(wide.size)] = far
            variants += [wide, np.full_like(wide, far)]
    if array.dtype.kind == "f" and array.size:
        for odd in (np.nan, np.inf, -np.inf, 1e308, -1.0):
            other = array.copy()
            other.flat[rng.integers(other.size)] = odd
            variants += [other, np.full_like(array, odd)]
    return variants


def _numbers(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every leaf of a JSON tree."""
    if isinstance(tree, dict | list):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, item in items:
            yield from _numbers(item, (*way, key))
    else:
        yield way


def _changed(tree: Any, way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[way[0]] = _changed(tree[way[0]], way[1:], value)
    return copy


LEAVES = (None, "text", -1, 0, 10**9, 2**62, 10**30, 1.5, True, [], {}, {"float": "nan"}, {"shape": [10**12]})
"""What is put in place of a number, text or truth value of the JSON tree."""


@cache
def _changes(path: Path) -> tuple[dict[str, Any], Any, list[tuple[str, Any, Any]]]:
    """Arrays and tree of a file, and all changes of one place."""
    arrays, tree = load_parts(path)
    rng, changes = np.random.default_rng(0), list[tuple[str, Any, Any]]()
    for name, array in arrays.items():
        changes += [("array", name, other) for other in _other_arrays(array, rng)]
    for way in _numbers(tree["content"]):
        changes += [("tree", ("content", *way), value) for value in LEAVES]
    return arrays, tree, changes


def one(path: Path, rng: np.random.Generator) -> tuple[dict[str, Any], Any]:
    """(arrays, tree) of one variant, drawn at random."""
    arrays, tree, changes = _changes(path)
    kind, where, value = changes[rng.integers(len(changes))]
    return (arrays | {where: value}, tree) if kind == "array" else (arrays, _changed(tree, where, value))


def damaged(path: Path, rng: np.random.Generator) -> bytes:
    """The bytes of a file with some changed, cut off, doubled, or packed as zip files can be."""
    data = bytearray(path.read_bytes())
    kind = rng.integers(5)
    if kind == 0:
        for at in rng.integers(len(data), size=rng.integers(1, 20)):
            data[at] = rng.integers(256)
    elif kind == 1:
        del data[rng.integers(len(data)) :]
    elif kind == 2:
        at, size = rng.integers(len(data)), rng.integers(1, 2000)
        data[at : at + size] = data[at : at + size] * 2
    elif kind == 3:
        at = rng.integers(len(data))
        del data[at : at + rng.integers(1, 2000)]
    else:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(bytes(data))) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        return out.getvalue()
    return bytes(data)

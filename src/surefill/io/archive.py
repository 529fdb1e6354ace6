"""What was learnt, on disk: numpy arrays and one JSON text in a zip file, never pickle."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surefill.data.labels import as_text
from surefill.errors import InputError
from surefill.inputs import FREE, MEGABYTE, cannot
from surefill.io.durable import replacing
from surefill.io.files import check_folder
from surefill.io.numpy_files import ONE_READER
from surefill.io.stored_types import check_fields
from surefill.registry import STORABLE

HEADER = "surefill.json"
"""The member of the zip file that holds the JSON text, as bytes in a numpy array."""

UNREADABLE = (
    ValueError, LookupError, EOFError, TypeError, AttributeError, RuntimeError, MemoryError, ArithmeticError,
    SyntaxError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
"""What reading a damaged, foreign or forged file may raise."""

KINDS = "biufUSMm"
"""Numpy's kinds of arrays that are stored: truth values, numbers, text and times, nothing that points elsewhere."""

LARGEST_HEADER = 16 * MEGABYTE
"""Bytes of the JSON text, which has a line for each object and none for each number: models take some 30 kilobytes."""

LARGEST_GROWTH = 32
"""How many times larger a file's arrays may be than the file, beyond 64 megabytes: integers of one byte become eight,
and one number may stand for the few columns of a table whose other columns are stored."""

Arrays = dict[str, NDArray[Any]]
Built = TypeVar("Built")


def write_archive(target: Path, form: str, version: int, content: Any) -> None:
    """Write ``content``: numbers, text, arrays, tuples, dictionaries, and dataclasses and enums that are storable.

    An object or array that is reached in several ways is written once. The file appears only when it is complete.
    """
    check_folder(target)
    with replacing(target) as partial:
        dump_archive(partial, form, version, content)


def dump_archive(path: Path, form: str, version: int, content: Any) -> None:
    """As :func:`write_archive`, straight to a file that somebody else will put in its place."""
    packer = _Packer()
    header = {"format": form, "version": version, "content": packer.pack(content)}
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **packer.arrays, **{HEADER: text})  # type: ignore[arg-type]


def read_archive(target: Path, form: str, version: int, rebuild: Callable[[Any], Built]) -> Built:
    """What ``rebuild`` makes of the content written by :func:`write_archive`; what was one object is one again.

    Only storable kinds are ever built.
    """
    try:
        with open(target, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            arrays = _read_arrays(file, size)
        header = json.loads(arrays.pop(HEADER).tobytes())
        known = header["format"] == form and header["version"] == version
    except FileNotFoundError:
        raise InputError(f"{target} does not exist.") from None
    except OSError as error:
        raise cannot(target, "be read", error) from None
    except UNREADABLE:
        raise InputError(f"{target} is not a {form}, or it is damaged.") from None
    if not known:
        raise InputError(
            f"{target} is another kind of file, or was written by another version of surefill; a {form} of "
            f"version {version} is expected."
        )
    try:
        return rebuild(_Unpacker(arrays, FREE + LARGEST_GROWTH * size).unpack(header["content"]))
    except UNREADABLE:
        raise InputError(f"{target} is a damaged {form}.") from None


def _read_arrays(file: IO[bytes], size: int) -> Arrays:
    """The arrays of a zip file, none packed and none larger than what is there for it; ValueError otherwise."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        stored = all(each.compress_type == zipfile.ZIP_STORED for each in members)
        if not stored or sum(each.file_size for each in members) > size:
            raise ValueError("packed members")
        with ONE_READER:
            arrays = {each.filename.removesuffix(".npy"): _read_array(archive, each) for each in members}
    if len(arrays) < len(members):
        raise ValueError("two members of one name")
    return arrays


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """An array whose header says what its bytes are; it is looked at before room is made for them."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[version[0]]
        shape, _, dtype = read_header(file)
        promised, there = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
    if dtype.kind not in KINDS or min(shape, default=0) < 0 or promised != there:
        raise ValueError("an array that is not what its header says")
    if member.filename == f"{HEADER}.npy" and there > LARGEST_HEADER:
        raise ValueError("too long a text")
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


class _Packer:
    """Turns a tree of objects into a JSON tree and a table of arrays, each object and each array written once.

    A dataclass that is reached again leaves ``{"same": id}``, and an array that shares the memory of one already
    stored leaves that one's key.
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._trees: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._ids: dict[int, int] = {}
        self._open: set[int] = set()

    def pack(self, value: Any) -> Any:
        """The JSON tree of ``value``."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            return {"float": repr(value)}  # JSON has no infinities
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        kind = type(value).__name__
        if isinstance(value, enum.Enum) and STORABLE.get(kind) is type(value):
            return {"kind": kind, "name": value.name}
        if id(value) in self._open:
            raise InputError(f"a {kind} that contains itself cannot be saved.")
        self._open.add(id(value))
        tree = self._compound(value, kind)
        self._open.remove(id(value))
        return tree

    def _array(self, array: NDArray[Any]) -> dict[str, Any]:
        # Two views of the same numbers are one array: address, shape, strides and type say which numbers.
        memory = (array.ctypes.data, array.shape, array.strides, array.dtype.str)
        if memory not in self._trees:
            texts = as_text(array) if array.dtype == object else array
            self._trees[memory] = self._texts(texts) if texts.dtype == object else self._stored(texts)
        return self._trees[memory]

    def _stored(self, array: NDArray[Any]) -> dict[str, Any]:
        key = f"array{len(self.arrays)}"
        self.arrays[key], how = _shortened(array)
        return {"array": key} | how

    def _texts(self, array: NDArray[Any]) -> dict[str, Any]:
        """Text of any length: all of it as UTF-8, and where each ends."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in array.tolist()]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        return {"texts": self._stored(np.frombuffer(b"".join(encoded), np.uint8)), "ends": self._stored(ends)}

    def _compound(self, value: Any, kind: str) -> dict[str, Any]:
        if isinstance(value, list | tuple):
            return {"tuple": [self.pack(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": {name: self.pack(item) for name, item in value.items()}}
        if STORABLE.get(kind) is not type(value):
            raise InputError(f"a {kind} cannot be saved; only models made of surefill's own parts can.")
        if id(value) in self._ids:
            return {"same": self._ids[id(value)]}
        fields = {field.name: self.pack(getattr(value, field.name)) for field in dataclasses.fields(value)}
        self._ids[id(value)] = number = len(self._ids)
        return {"kind": kind, "id": number, "fields": fields}


def _shortened(array: NDArray[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """The array in fewer bytes, and what :func:`_restored` needs to undo that.

    Counts and scatters are mostly one number repeated, of which one is enough; integers are mostly small, and are
    written in the narrowest type that holds them.
    """
    how: dict[str, Any] = {}
    if array.size > 1 and array.dtype.kind in "biuf" and _repeats_one_number(array):
        array, how["shape"] = array.reshape(-1)[:1], list(array.shape)
    if array.size and array.dtype.kind in "iu":
        narrowest = np.promote_types(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
        if narrowest.itemsize < array.itemsize:
            array, how["type"] = array.astype(narrowest), array.dtype.str
    return array, how


def _repeats_one_number(array: NDArray[Any]) -> bool:
    """Whether all numbers are the same one; 0 and -0 are two, and NaN is none."""
    first, signs = array.flat[0], np.signbit(array) if array.dtype.kind == "f" else np.zeros(1)
    return bool((array == first).all() and (signs == signs.flat[0]).all())


def _restored_bytes(array: NDArray[Any], tree: dict[str, Any]) -> int:
    """How many bytes :func:`_restored` needs."""
    itemsize = max(array.itemsize, np.dtype(tree.get("type", array.dtype)).itemsize)
    return int(itemsize) * math.prod(max(0, int(size)) for size in tree.get("shape", array.shape))


def _restored(array: NDArray[Any], tree: dict[str, Any]) -> NDArray[Any]:
    """The inverse of :func:`_shortened`."""
    if "type" in tree:
        wider = np.dtype(tree["type"])
        if wider.kind not in "iu":
            raise ValueError(f"integers cannot be {wider}")
        array = array.astype(wider)
    return np.full(tree["shape"], array[0]) if "shape" in tree else array


class _Unpacker:
    """The inverse of :class:`_Packer`: what was one object is one object again, in at most ``room`` bytes of arrays."""

    def __init__(self, arrays: Arrays, room: float) -> None:
        self._stored, self._arrays, self._room = arrays, dict[str, NDArray[Any]](), room
        self._objects: dict[int, Any] = {}

    def unpack(self, tree: Any) -> Any:
        """The value of a JSON tree."""
        if not isinstance(tree, dict):
            return tree
        if "float" in tree:
            return float(tree["float"])
        if "array" in tree:
            return self._array(tree)
        if "texts" in tree:
            return self._texts(tree)
        if "tuple" in tree:
            return tuple(self.unpack(item) for item in tree["tuple"])
        if "dict" in tree:
            return {name: self.unpack(item) for name, item in tree["dict"].items()}
        if "same" in tree:
            return self._objects[tree["same"]]
        kind = STORABLE[tree["kind"]]
        return kind[tree["name"]] if "name" in tree else self._dataclass(kind, tree)

    def _array(self, tree: dict[str, Any]) -> NDArray[Any]:
        key = tree["array"]
        if key not in self._arrays:
            self._room -= _restored_bytes(self._stored[key], tree)
            if self._room < 0:
                raise ValueError("arrays far larger than the file")
            self._arrays[key] = _restored(self._stored[key], tree)
        return self._arrays[key]

    def _texts(self, tree: dict[str, Any]) -> NDArray[Any]:
        """Text of any length, each piece within the bytes that there are."""
        text, ends = self._array(tree["texts"]).tobytes(), self._array(tree["ends"]).astype(np.int64, casting="safe")
        if ends.ndim != 1 or (np.diff(ends, prepend=0) < 0).any() or ends[-1:].tolist() != [len(text)]:
            raise ValueError("text that ends before it begins")
        starts = [0, *ends[:-1].tolist()]
        pieces = [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends.tolist(), strict=True)]
        return np.array(pieces, dtype=object)

    def _dataclass(self, kind: Any, tree: dict[str, Any]) -> Any:
        values = {name: self.unpack(item) for name, item in tree["fields"].items()}
        check_fields(kind, values)
        given = {field.name: values[field.name] for field in dataclasses.fields(kind) if field.init}
        built = kind(**given)
        for field in dataclasses.fields(kind):
            if not field.init and field.name in values:
                object.__setattr__(built, field.name, values[field.name])
        self._objects[tree["id"]] = built
        return built

"""Bytes of a file, unpacked where it is packed, with an eye on how much they become."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Any, cast

from surefill.errors import InputError
from surefill.inputs import cannot, check_ratio

DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)
"""What unpacking a damaged file raises."""

PIECE = 1 << 20
"""Bytes unpacked between two looks at the ratio."""


def is_packed(path: Path) -> bool:
    """Whether the name says that a file is packed by gzip."""
    return path.suffix.lower() == ".gz"


def open_bytes(path: Path) -> IO[bytes]:
    """A file opened for reading what it holds, unpacked where its name says that it is packed."""
    try:
        file = open(path, "rb")  # noqa: SIM115  (whoever asked closes it)
    except (OSError, ValueError) as error:
        raise cannot(path, "be read", error) from None
    return cast(IO[bytes], _Unpacked(path, file)) if is_packed(path) else file


def read_bytes(path: Path) -> bytes:
    """All that a file holds, as :func:`open_bytes` reads it."""
    pieces = list[bytes]()
    with open_bytes(path) as file:
        try:
            while piece := file.read(PIECE):
                pieces.append(piece)
        except (*DAMAGED, OSError) as error:
            raise unreadable(path, error) from None
    return b"".join(pieces)


def unreadable(name: object, error: Exception) -> InputError:
    """What to say of a file that stopped being readable."""
    if isinstance(error, DAMAGED):
        return InputError(f"{name} is damaged and cannot be decompressed as gzip: {str(error).rstrip('.')}.")
    return cannot(name, "be read", error)


class _Unpacked(io.RawIOBase):
    """A packed file that refuses to become many times larger than it is (:func:`surefill.inputs.check_ratio`)."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._packed, self._count = path, file, 0
        self._unpacked = gzip.GzipFile(fileobj=file, mode="rb")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes, at most a piece, so that a look at the ratio is never far."""
        some = self._unpacked.read1(min(len(buffer), PIECE))
        buffer[: len(some)] = some
        self._count += len(some)
        check_ratio(self._path, self._packed.tell(), self._count)
        return len(some)

    def close(self) -> None:
        """Both files."""
        self._unpacked.close()
        self._packed.close()
        super().close()

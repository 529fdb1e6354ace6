"""Arrays of ``.npy`` and ``.npz`` files, read by one thread at a time.

NumPy parses the header of an array by ``ast``, which in Python 3.11 and 3.12 counts its recursion for all threads
together (CPython's issue 106905): of two headers parsed at once one now and then ends in a SystemError.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

ONE_READER = threading.Lock()
"""Held while a header is parsed."""


def read_npy(file: Path | IO[bytes], mmap_mode: Literal["r"] | None = None) -> NDArray[Any]:
    """The array of a file, or the next one of an open file; never a pickled one.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3))
    >>> _ = file.seek(0)
    >>> read_npy(file)
    array([0, 1, 2])
    """
    with ONE_READER:
        array: NDArray[Any] = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    return array


def read_member(archive: NpzFile, name: str) -> NDArray[Any]:
    """One array of an open ``.npz`` file."""
    with ONE_READER:
        array: NDArray[Any] = archive[name]
    return array

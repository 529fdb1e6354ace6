"""Files that appear whole or not at all, and stay: the one way in which anything is written.

What is written goes to a temporary file beside its target, is synchronised to disk, and takes the target's name in one
step, which is synchronised too. Until then the target is as it was; afterwards a loss of power leaves it as it is. A
file that is replaced keeps its mode and, where that is allowed, its owner; a link stays a link to what is replaced; a
pipe or device gets the bytes once they are complete. Temporary files are locked while they are written: what a killed
process left behind has no lock, and goes when its target is written next.
"""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from surefill.errors import InputError
from surefill.inputs import cannot

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None
"""Locks on files; None on a system without, where nothing is removed and nothing refused."""

LONGEST_STEM = 200
"""Bytes of a name that its temporary ones repeat; file systems take 255 with what is added."""

NO_SYNC = (PermissionError, NotADirectoryError, IsADirectoryError)
"""What systems say that do not synchronise folders."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside ``target`` that takes its place when all went well and vanishes otherwise."""
    with _errors_of(target):
        end = _end_of_links(target)
        if end.exists() and not end.is_file():
            with _filling(end) as temporary:
                yield temporary
            return
        _remove_leftovers(end)
        with _temporary_file(end) as temporary:
            yield temporary
            _take_place(temporary, end)


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside ``target`` that takes its place when all went well and vanishes otherwise."""
    with _errors_of(target):
        end = _end_of_links(target)
        _remove_leftovers(end)
        with _temporary_folder(end) as temporary:
            yield temporary
            _sync_files(temporary)
            _swap_folders(temporary, end)


@contextmanager
def adding_files(target: Path) -> Iterator[Path]:
    """A temporary folder whose files are put into ``target`` when all went well and vanish otherwise.

    Files of the same names are replaced, others in ``target`` stay; it is made where it does not exist.
    """
    with _errors_of(target):
        end = _end_of_links(target)
        _remove_leftovers(end)
        with _temporary_folder(end) as temporary:
            yield temporary
            _sync_files(temporary)
            if not end.exists():
                _swap_folders(temporary, end)
                return
            for path in sorted(temporary.iterdir()):
                _take_place(path, end / path.name)


@contextmanager
def locked(target: Path, user: str) -> Iterator[None]:
    """Nobody else holds ``target`` inside; InputError, which names the ``user``, where another process does."""
    if fcntl is None:
        yield
        return
    end = _end_of_links(target)
    lock = end.with_name(f".{_stem(end)}.lock")
    with _errors_of(lock):
        descriptor = _lock_file(lock)
    if descriptor is None:
        raise InputError(f"{target} is in use by another {user}; wait until that has ended, or name another file.")
    try:
        yield
    finally:
        # while it is still held, so that nobody else holds a file without a name
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def sync(descriptor: int) -> None:
    """Have the system put on disk what was written; a pipe or a terminal has none."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fsync(descriptor)


def check_distinct(**paths: Path | None) -> None:
    """Refuse two names of one file, whatever links they go through: one would overwrite the other.

    >>> check_distinct(input=Path("ratings.csv"), output=Path("filled.csv"), model=None)
    """
    given = {name: path for name, path in paths.items() if path is not None}
    names = list(given)
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            if _same(given[one], given[other]):
                raise InputError(
                    f"{one} and {other} must be different files, or one would overwrite the other; {given[one]} and "
                    f"{given[other]} are the same."
                )


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.realpath(one) == os.path.realpath(other) or os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


@contextmanager
def _errors_of(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot(target, "be written", error) from error


def _end_of_links(target: Path) -> Path:
    """Where a chain of links ends, which is what is replaced; it has a name, as "." has not."""
    return Path(os.path.realpath(target))


def _stem(target: Path) -> str:
    """What the temporary names of a target begin with, after a dot."""
    name = os.fsencode(target.name)
    return target.name if len(name) <= LONGEST_STEM else hashlib.sha256(name).hexdigest()[:32]


def _temporary_name(target: Path, ending: str = "part") -> Path:
    return target.with_name(f".{_stem(target)}.{secrets.token_hex(4)}.{ending}")


@contextmanager
def _temporary_file(target: Path) -> Iterator[Path]:
    """A new file beside the target, locked, and nobody else's to read while it may replace one that is not."""
    temporary = _temporary_name(target)
    mode = 0o600 if target.exists() else 0o666  # less what the user's mask takes
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    try:
        _lock(descriptor)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        os.close(descriptor)


@contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    temporary, descriptor = _temporary_name(target), -1
    temporary.mkdir()
    try:
        descriptor = os.open(temporary, os.O_RDONLY)
        _lock(descriptor)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if descriptor >= 0:
            os.close(descriptor)


@contextmanager
def _filling(target: Path) -> Iterator[Path]:
    """A temporary file whose bytes go into a pipe or device, once they are complete."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "part"
        yield temporary
        with open(temporary, "rb") as source, open(target, "wb") as sink:
            shutil.copyfileobj(source, sink)


def _take_after(descriptor: int, replaced: os.stat_result) -> None:
    """Give a file the mode of the one it replaces, and its owner if that is allowed."""
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (replaced.st_uid, replaced.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
    with suppress(PermissionError):
        os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode))


def _take_place(temporary: Path, target: Path) -> None:
    """One file in place of another, its bytes on disk before and its name after."""
    with open(temporary, "rb") as file:
        if target.exists():
            _take_after(file.fileno(), target.stat())
        os.fsync(file.fileno())
    os.replace(temporary, target)
    sync_folder(target.parent)


def _swap_folders(temporary: Path, target: Path) -> None:
    """One folder in place of another; what is killed between two renames is put back by :func:`_remove_leftovers`."""
    old = _temporary_name(target, "old")
    had = target.exists()
    if had:
        os.replace(target, old)
    try:
        os.replace(temporary, target)
    except BaseException:
        if had:
            os.replace(old, target)
        raise
    if had:
        shutil.rmtree(old, ignore_errors=True)
    sync_folder(target.parent)


def _sync_files(folder: Path) -> None:
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder put on disk."""
    with suppress(*NO_SYNC):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files and folders of the target that no living process has locked; put back what it was."""
    if fcntl is None:
        return
    with suppress(OSError):  # a folder that may not be listed keeps what it has
        for ending in ("part", "old"):
            for path in target.parent.glob(f".{glob.escape(_stem(target))}.{'[0-9a-f]' * 8}.{ending}"):
                if ending == "old" and not target.exists():
                    os.replace(path, target)
                else:
                    remove_if_unlocked(path)


def remove_if_unlocked(path: Path) -> None:
    """Remove a temporary file or folder, unless a living process still writes it."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            if _lock(descriptor):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether the open file is ours alone now; not where another process has it, or the file system knows no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, AttributeError):
        return False
    return True


def _lock_file(lock: Path) -> int | None:
    """The descriptor of a lock file that is ours and has its name; None where another process holds it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # no locks on this file system: nothing can be said
            return descriptor
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                return descriptor
        os.close(descriptor)  # whoever held it removed its name meanwhile

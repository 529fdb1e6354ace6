"""Where compiled code is cached for accounts that can write neither to the program's folder nor to a home.

Numba caches it beside the program or in the user's cache folder. In a container's unprivileged account neither may be
writable; then a private folder is made among the temporary files. Numba unpickles what it finds in the cache, so that
the folder must belong to the user and be closed to everybody else; without such a folder nothing is cached.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import numba


class CompilerCache:
    """The cache folder that replaces numba's own where numba found none.

    Attributes
    ----------
    sentence : what to tell the user; None where numba found a folder, or an earlier run made this one.
    """

    def __init__(self) -> None:
        self.sentence: str | None = None
        self._usable: bool | None = None

    def usable(self) -> bool:
        """Whether there is such a folder; the first call makes it and sets it in numba's configuration."""
        if self._usable is None:
            self._usable = self._arrange()
        return self._usable

    def _arrange(self) -> bool:
        try:
            folder = Path(tempfile.gettempdir()) / f"surefill-{os.getuid()}"
            made = _make_private(folder)
        except (OSError, AttributeError):  # no folder for temporary files, or no such thing as a user
            self.sentence = (
                "no folder may be written to, so that compiled code is not kept, and every run compiles anew."
            )
            return False
        if made:
            self.sentence = (
                f"neither the program's folder nor a home may be written to: compiled code is kept in {folder}."
            )
        vars(numba.config)["CACHE_DIR"] = str(folder)
        return True


def _make_private(folder: Path) -> bool:
    """Make the folder if it does not exist, and say whether; OSError if others can access it."""
    try:
        folder.mkdir(mode=0o700)
        made = True
    except FileExistsError:  # by an earlier run or by somebody else: checked next
        made = False
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} belongs to somebody else")
    return made


CACHE = CompilerCache()
"""The one of this process."""

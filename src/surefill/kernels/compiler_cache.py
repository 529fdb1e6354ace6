"""Where compiled code is kept between runs, also for who has no home and may write neither there nor to the program.

Numba keeps it beside the program or in the user's cache folder. In a container's unprivileged account neither may be
writable; then a folder of the user's own is made where temporary files go. Numba unpickles what it finds there, so the
folder must belong to the user and be closed to everybody else; where no such folder can be had, nothing is kept.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import numba


class CompilerCache:
    """The folder that is used in place of numba's own, once that was found missing.

    Attributes
    ----------
    sentence : what to tell the user about it; None where numba found a place, or the folder was made by an earlier run.
    """

    def __init__(self) -> None:
        self.sentence: str | None = None
        self._usable: bool | None = None

    def usable(self) -> bool:
        """Whether there is a folder after all; it is made, and numba told of it, when this is first asked."""
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
    """Make the folder if it is not there; OSError where it is not ours alone."""
    try:
        folder.mkdir(mode=0o700)
        made = True
    except FileExistsError:  # made by an earlier run, or by somebody else: whose it is, is looked at next
        made = False
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} belongs to somebody else")
    return made


CACHE = CompilerCache()
"""That of this process."""

"""What is written: whole or not at all, on disk before it is named, with the mode it had, through links, into pipes."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from surefill import InputError
from surefill.io import write_table
from surefill.io.durable import adding_files, replacing, replacing_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def replace(path, text="new"):
    with replacing(path) as partial:
        partial.write_text(text)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o444])
def test_modes_are_kept(tmp_path, mode):
    path = tmp_path / "out.csv"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        partial.write_text("new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_new_file_has_the_mode_that_the_user_asks_of_files(tmp_path):
    before = os.umask(0o027)
    try:
        replace(tmp_path / "out.csv")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o640


def test_links_stay_links(tmp_path):
    (tmp_path / "deep").mkdir()
    end, link, chain = tmp_path / "deep" / "end.csv", tmp_path / "link.csv", tmp_path / "chain.csv"
    link.symlink_to(end)
    chain.symlink_to(link)
    for text in ("first", "second"):
        replace(chain, text)
        assert chain.is_symlink()
        assert link.is_symlink()
        assert end.read_text() == text
    assert names(tmp_path / "deep") == ["end.csv"]


def test_pipes_get_the_bytes(tmp_path):
    pipe, got = tmp_path / "pipe.csv", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_table(pipe, [{"a": np.arange(3)}])
    reader.join(20)
    assert got == ["a\n0\n1\n2\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe.csv"]


def test_what_a_killed_process_left_goes_and_what_a_living_one_writes_stays(tmp_path):
    script = "import os, sys, time\nfrom pathlib import Path\nfrom surefill.io.durable import replacing\n"
    script += "with replacing(Path('out.csv')) as partial:\n    partial.write_text('half')\n"
    script += "    print('written', flush=True)\n    time.sleep(60)\n"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stdout.readline() == "written\n"
    replace(tmp_path / "out.csv")
    assert len(names(tmp_path)) == 2
    process.kill()
    process.communicate()
    (tmp_path / ".out.csv.notes.part").write_text("somebody else's")
    replace(tmp_path / "out.csv")
    assert names(tmp_path) == [".out.csv.notes.part", "out.csv"]


def test_a_folder_that_was_lost_between_two_names_comes_back(tmp_path):
    (tmp_path / ".parts.0a1b2c3d.old").mkdir()
    (tmp_path / ".parts.0a1b2c3d.old" / "part-00000.parquet").write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing_folder(tmp_path / "parts"):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["parts"]
    assert (tmp_path / "parts" / "part-00000.parquet").read_text() == "old"


def test_names_as_long_as_a_system_takes(tmp_path):
    path = tmp_path / ("n" * 251 + ".csv")
    replace(path)
    assert names(tmp_path) == [path.name]


POINTS = ("fsync", "replace", "fchmod", "mkdir")
"""What replacing a file or folder asks of the system, each made to fail once in turn."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("way", [replacing, replacing_folder, adding_files])
def test_whatever_fails_leaves_the_old_and_nothing_else(tmp_path, monkeypatch, point, way):
    target, failed, system = tmp_path / "out", [], getattr(os, point)
    if way is replacing:
        target.write_text("old")
    else:
        target.mkdir()
        (target / "a").write_text("old")

    def fill(partial):
        (partial if way is replacing else partial / "a").write_text("new")

    def fails(turn):
        calls = iter(range(1000))

        def call(*given, **named):
            if next(calls) == turn:
                failed.append(turn)
                raise OSError(errno.ENOSPC, "No space left on device")
            return system(*given, **named)

        return call

    for turn in range(20):
        monkeypatch.setattr(os, point, fails(turn))
        before = len(failed)
        try:
            with way(target) as partial:
                fill(partial)
            error = None
        except InputError as caught:
            error = caught
        monkeypatch.setattr(os, point, system)
        content = (target if way is replacing else target / "a").read_text()
        assert names(tmp_path) == ["out"]
        if len(failed) == before:
            assert content == "new"
            break
        assert content in (("old",) if error and turn == 0 else ("old", "new"))
        assert error is None or "no space left" in str(error)
    else:
        raise AssertionError("it never ends")
    assert failed or (point, way) in {("fchmod", replacing_folder), ("mkdir", replacing)}

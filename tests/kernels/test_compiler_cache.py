"""Where compiled code is kept for who has no place of their own."""

import numba
import pytest

from surefill.kernels.compiler_cache import CompilerCache


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setitem(vars(numba.config), "CACHE_DIR", "")
    return tmp_path


def test_a_private_folder_is_made_once_and_told_once(temporary):
    first, second = CompilerCache(), CompilerCache()
    assert first.usable()
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert str(folder) in first.sentence
    assert str(folder) == numba.config.CACHE_DIR
    assert second.usable()
    assert second.sentence is None


def test_a_folder_that_others_may_write_to_is_not_trusted(temporary):
    CompilerCache().usable()
    (folder,) = temporary.iterdir()
    folder.chmod(0o777)
    cache = CompilerCache()
    assert not cache.usable()
    assert "not kept" in cache.sentence


def test_a_link_in_its_place_is_not_followed(temporary, tmp_path_factory):
    CompilerCache().usable()
    (folder,) = temporary.iterdir()
    folder.rmdir()
    folder.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    assert not CompilerCache().usable()

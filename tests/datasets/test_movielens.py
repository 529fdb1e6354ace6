import hashlib
import io
import urllib.error
import zipfile

import numpy as np
import pytest

from surefill.datasets import load_movielens, movielens
from surefill.errors import InputError

LINES = "".join(f"{user}\t{item}\t{1 + (user * item) % 5}\t88\n" for user in range(1, 6) for item in range(1, 9))


@pytest.fixture(autouse=True)
def _no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SUREFILL_DATA", raising=False)


def answer_with(monkeypatch, content, name="ml-100k"):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{name}/u.data", content)
    monkeypatch.setattr(movielens.urllib.request, "urlopen", lambda *_, **__: io.BytesIO(archive.getvalue()))


def test_found_in_the_folder_given_or_configured(tmp_path, monkeypatch):
    folder = tmp_path / "ml-100k"
    folder.mkdir()
    (folder / "u.data").write_text(LINES)
    for path in (tmp_path, folder, folder / "u.data"):
        assert load_movielens("ml-100k", path).shape == (5, 8)
    monkeypatch.setenv("SUREFILL_DATA", str(tmp_path))
    assert load_movielens().bounds == (1, 5)


def test_a_given_folder_without_the_data_is_not_replaced_by_a_download(tmp_path, monkeypatch):
    answer_with(monkeypatch, LINES)
    with pytest.raises(InputError, match=r"holds no ml-100k: expected u\.data"):
        load_movielens("ml-100k", tmp_path)


def test_download_is_checked_kept_and_used_again(monkeypatch, tmp_path):
    answer_with(monkeypatch, LINES)
    edition = movielens.Edition("u.data", hashlib.sha256(LINES.encode()).hexdigest())
    monkeypatch.setitem(movielens.EDITIONS, "ml-100k", edition)
    assert load_movielens().shape == (5, 8)
    monkeypatch.setattr(movielens.urllib.request, "urlopen", None)
    assert load_movielens().shape == (5, 8)


def test_a_wrong_checksum_keeps_nothing(monkeypatch, tmp_path):
    answer_with(monkeypatch, LINES)
    with pytest.raises(InputError, match="expected checksum; nothing was kept"):
        load_movielens()
    assert not list((tmp_path / "cache").rglob("u.data*"))


def test_no_network_is_one_sentence(monkeypatch):
    def refuse(*_, **__):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(movielens.urllib.request, "urlopen", refuse)
    with pytest.raises(InputError, match=r"could not be downloaded.*no route.*SUREFILL_DATA"):
        load_movielens()


def test_unknown_names_and_folds():
    with pytest.raises(InputError, match="'name' parameter"):
        load_movielens("ml-7")
    with pytest.raises(InputError, match="'fold' parameter"):
        load_movielens("ml-100k", fold=6)
    with pytest.raises(InputError, match="'fold' parameter"):
        load_movielens("ml-1m", fold=1)


def test_official_folds_and_the_papers_square(data_folder):
    base, test = load_movielens("ml-100k", data_folder, fold=1)
    assert (len(base), len(test)) == (80_000, 20_000)
    assert base.shape == test.shape == (943, 1682)
    for part, size in ((base, 5189), (test, 4492)):
        square = (part.row_labels[part.rows] <= 250) & (part.col_labels[part.cols] <= 250)
        assert square.sum() == size
    tests = [load_movielens("ml-100k", data_folder, fold=fold)[1] for fold in range(1, 6)]
    cells = np.concatenate([t.rows.astype(np.int64) * 1682 + t.cols for t in tests])
    assert len(np.unique(cells)) == 100_000

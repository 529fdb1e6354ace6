"""Headers of arrays are parsed one at a time: Python 3.11 counts the recursion of all threads together."""

import ast
import zipfile

import numpy as np
import pytest

import surefill as sf
from surefill.io.numpy_files import ONE_READER, read_member, read_npy


@pytest.fixture
def held(monkeypatch):
    """Whether the lock was held, for each header parsed."""
    found, parse = [], ast.literal_eval

    def looking(text):
        found.append(ONE_READER.locked())
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", looking)
    return found


def test_arrays_of_files_are_read_one_at_a_time(tmp_path, held):
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "b.npz", first=np.arange(2), second=np.ones(4))
    assert read_npy(tmp_path / "a.npy").tolist() == read_npy(tmp_path / "a.npy", mmap_mode="r").tolist() == [0, 1, 2]
    with np.load(tmp_path / "b.npz") as archive:
        assert read_member(archive, "second").tolist() == [1.0] * 4
    assert held == [True] * 3
    assert not ONE_READER.locked()


def test_models_are_read_one_at_a_time_and_a_damaged_one_leaves_the_next_its_turn(tmp_path, held):
    seen = sf.datasets.make_low_rank((30, 20), rank=1, n_draws=300, noise=0.1, random_state=0).observations
    sf.PartialCompleter(0.2, confidence="posterior", random_state=0).fit(seen).save(tmp_path / "model.surefill")
    sf.load(tmp_path / "model.surefill")
    assert held
    assert all(held)
    with zipfile.ZipFile(tmp_path / "damaged.surefill", "w") as archive:
        archive.writestr("header.npy", b"nothing")
    with pytest.raises(sf.InputError):
        sf.load(tmp_path / "damaged.surefill")
    assert not ONE_READER.locked()

"""Models and checkpoints that were damaged or made to harm: refused when loaded, before anything is indexed by them."""

from __future__ import annotations

import shutil
import tracemalloc
import zipfile

import numpy as np
import pytest

from surefill import InputError, PartialCompleter, StreamingCompleter, load
from surefill.datasets import make_low_rank

from .crafted import load_parts, save_parts

SEEN = make_low_rank((30, 20), rank=2, n_draws=400, noise=0.1, random_state=0).observations
STREAM = ("content", "dict", "stream", "dict")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "state"
    stream = StreamingCompleter(rank=3, adversary_rank=3)
    stream.learn_many(SEEN.rows, SEEN.cols, SEEN.values)
    stream.save(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    PartialCompleter(tolerance=0.2, confidence="posterior").fit(SEEN).save(path)
    return path


def at(tree, *way):
    for key in way:
        tree = tree[key]
    return tree


def far(array, value):
    other = array.astype(np.int64).copy()
    other.flat[0] = value
    return other


GAME, FILTER = ("game", "dict"), ("factors", "dict", "experts", "dict", "0", "dict")
ARRAYS = {
    "cells far outside the matrix": (*GAME, "reservoir", lambda a: far(a, 2**40)),
    "cells before the matrix": (*GAME, "reservoir", lambda a: far(a, -(2**40))),
    "fewer cells than were seen": (*GAME, "reservoir", lambda a: a[:5]),
    "snapshots of the future": (*GAME, "row_start", lambda a: far(a, 2**40)),
    "snapshots without end": (*GAME, "counters", lambda a: np.array([a[0], a[1], a[2], 2**50, a[4]])),
    "a clock before the rows": (*GAME, "counters", lambda a: np.array([a[0], 10**6, a[2], a[3], a[4]])),
    "no numbers in factors": (*GAME, "U", lambda a: np.full_like(a, np.nan)),
    "expert tables with fewer rows": (*FILTER, "X", lambda a: a[:3]),
    "experts that disagree": (*FILTER, "counters", lambda a: far(a, 7)),
    "a scale below zero": (*FILTER, "scalars", lambda a: np.where(np.arange(6) == 3, -1.0, a)),
    "complex factors": (*FILTER, "Y", lambda a: a.astype(complex)),
    "empty covariances": (*FILTER, "A", lambda a: a[:0]),
    "truth for counters": (*GAME, "counters", lambda a: a.astype(bool)),
    "text for counters": (*GAME, "counters", lambda a: a.astype(str)),
    "labels beyond their text": ("rows", "dict", "numbers", lambda a: a.astype(float)),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_a_checkpoint_with_crafted_arrays(checkpoint, tmp_path, case):
    *way, change = ARRAYS[case]
    arrays, tree = load_parts(checkpoint)
    key = at(tree, *STREAM, *way, "array")
    at(tree, *STREAM, *way[:-1])[way[-1]] = {"array": "mine"}
    save_parts(tmp_path / "bad", arrays | {"mine": change(arrays[key])}, tree)
    with pytest.raises(InputError, match="damaged"):
        StreamingCompleter.load(tmp_path / "bad")


@pytest.mark.parametrize("value", [10**9, -1, None, "many", 1.5, True, {"tuple": [3]}])
@pytest.mark.parametrize("name", ["rank", "adversary_rank", "random_state"])
def test_a_checkpoint_with_crafted_parameters(checkpoint, tmp_path, name, value):
    if (name, value) == ("random_state", 10**9):
        return
    arrays, tree = load_parts(checkpoint)
    at(tree, *STREAM, "parameters", "dict")[name] = value
    save_parts(tmp_path / "bad", arrays, tree)
    tracemalloc.start()
    with pytest.raises(InputError, match="damaged"):
        StreamingCompleter.load(tmp_path / "bad")
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


@pytest.mark.parametrize("what", ["packed", "repeated", "claimed", "doubled", "text"])
def test_archives_that_would_fill_the_memory(model, tmp_path, what):
    bomb = tmp_path / "bomb"
    arrays, tree = load_parts(model)
    if what == "packed":
        save_parts(bomb, arrays | {"zeros": np.zeros(15_000_000)}, tree, packed=True)
    elif what == "repeated":
        at(tree, "content", "dict")["asked"] = {"array": "one", "shape": [100_000, 100_000]}
        save_parts(bomb, arrays | {"one": np.ones(1)}, tree)
    elif what == "claimed":
        save_parts(bomb, arrays, tree)
        data = bomb.read_bytes()
        at_shape = data.index(b"'shape': (")
        bomb.write_bytes(data[:at_shape] + b"'shape': (9" + data[at_shape + 11 :])
    elif what == "doubled":
        shutil.copy(model, bomb)
        with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(bomb, "a") as file:
            file.writestr("surefill.json.npy", b"x")
    else:
        save_parts(bomb, arrays, tree | {"more": "x" * (17 << 20)})
    tracemalloc.start()
    with pytest.raises(InputError, match="damaged"):
        load(bomb)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_a_file_names_no_attributes_of_its_own(model, tmp_path):
    arrays, tree = load_parts(model)
    kind = at(tree, "content", "dict", "observations")
    kind["fields"]["row_index"] = "mine"
    save_parts(tmp_path / "model", arrays, tree)
    assert load(tmp_path / "model").observations_.row_index != "mine"


def test_a_file_that_may_not_be_read_says_so(tmp_path):
    with pytest.raises(InputError, match="is a directory"):
        load(tmp_path)
    with pytest.raises(InputError, match="file name too long"):
        load(tmp_path / ("x" * 300))

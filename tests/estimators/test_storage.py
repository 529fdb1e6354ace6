import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from surefill import InputError, Observations, PartialCompleter, load
from surefill.completion import BayesianFactorModel, FactorModel
from surefill.confidence import CoverageProgram
from surefill.datasets import make_low_rank
from surefill.io import archive


@pytest.fixture(scope="module")
def seen():
    sim = make_low_rank((20, 15), rank=1, n_draws=250, noise=0.1, random_state=0).observations
    labels = {"row_labels": [f"é{i}" for i in range(20)], "col_labels": np.arange(100, 115)}
    return Observations(sim.rows, sim.cols, sim.values, sim.shape, sim.bounds, counts=sim.counts, **labels)


@pytest.mark.parametrize(
    ("confidence", "completion"),
    [
        ("posterior", BayesianFactorModel(rank=1)),
        ("posterior", FactorModel(rank=1)),
        ("coverage", FactorModel(rank=1)),
        (CoverageProgram(gamma=0.3, rank=2, time_limit=1), FactorModel(rank=1)),
    ],
)
def test_a_loaded_model_answers_as_the_saved_one(seen, tmp_path, confidence, completion):
    completer = PartialCompleter(
        0.5, 0.1, confidence=confidence, completion=completion, random_state=3, progress=print
    ).fit(seen)
    completer.save(tmp_path / "model")
    again = load(tmp_path / "model")
    if not isinstance(confidence, CoverageProgram):  # stopped by its time limit on a busy machine, it supports little
        assert completer.result_.guarantee.promised
    cells = np.arange(300)
    for method in ("values_at", "confidence_at", "risk_at", "keeps"):
        expected = getattr(completer.result_, method)(cells // 15, cells % 15)
        np.testing.assert_array_equal(getattr(again.result_, method)(cells // 15, cells % 15), expected)
    for mine, theirs in zip(
        again.result_.interval_at(cells // 15, cells % 15, 0.9),
        completer.result_.interval_at(cells // 15, cells % 15, 0.9),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert again.predict(["é3"], ["107"])[0] == completer.result_.values_at([3], [7])[0]
    assert again.get_params() == completer.get_params() | {"progress": None}
    assert again.result_.selection == completer.result_.selection
    assert again.result_.guarantee == completer.result_.guarantee
    assert again.result_.certificate == completer.result_.certificate
    assert again.result_.timings == completer.result_.timings
    assert repr(again.observations_) == repr(completer.observations_)
    np.testing.assert_array_equal(again.transform(seen.dense()), completer.transform(seen.dense()))


@pytest.mark.parametrize("propensity", [None, np.full((20, 15), 0.5)])
def test_what_a_promise_is_aimed_at_survives(seen, tmp_path, propensity):
    completer = PartialCompleter(0.6, confidence="posterior", aim="unobserved", propensity=propensity).fit(seen)
    completer.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.result_.guarantee == completer.result_.guarantee
    low, high = again.result_.interval_at([0, 1], [2, 3], 0.9)
    np.testing.assert_array_equal([low, high], completer.result_.interval_at([0, 1], [2, 3], 0.9))
    own = PartialCompleter(
        0.6, confidence="posterior", aim="all", propensity=lambda rows, cols: np.full(len(rows), 0.5)
    )
    with pytest.raises(InputError, match="a function cannot be saved"):
        own.fit(seen).save(tmp_path / "own")


def test_column_names_survive(seen, tmp_path):
    X = pd.DataFrame(seen.dense(), columns=[f"c{j}" for j in range(15)])
    completer = PartialCompleter(confidence="posterior").fit(X)
    completer.save(tmp_path / "model")
    assert load(tmp_path / "model").get_feature_names_out().tolist() == list(X.columns)


def test_the_header_is_plain_json_even_where_nothing_is_kept(seen, tmp_path):
    PartialCompleter(1e-9, confidence="posterior").fit(seen).save(tmp_path / "model")

    def refuse(name):
        raise AssertionError(name)

    with np.load(tmp_path / "model") as file:
        json.loads(file[archive.HEADER].tobytes(), parse_constant=refuse)
    assert load(tmp_path / "model").result_.selection.threshold == -np.inf


def test_there_is_no_pickle_in_the_file(seen, tmp_path):
    PartialCompleter(confidence="posterior").fit(seen).save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        for name in archive.namelist():
            assert archive.read(name)[:6] == b"\x93NUMPY"
    with np.load(tmp_path / "model", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


@pytest.mark.parametrize(
    "damage", ["cut", "flip", "foreign", "empty", "text", "version", "kind", "field", "short", "nan", "parameter"]
)
def test_a_damaged_or_foreign_file_is_refused_with_a_sentence(seen, tmp_path, damage):
    path = tmp_path / "model"
    PartialCompleter(confidence="posterior").fit(seen).save(path)
    content = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays[archive.HEADER].tobytes())
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        middle = len(content) // 3
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
    elif damage == "foreign":
        with open(path, "wb") as file:
            np.savez(file, a=np.arange(3))
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("user,item,rating\n")
    else:
        if damage == "version":
            header["version"] = 99
        elif damage == "parameter":
            header["content"]["dict"]["parameters"]["dict"]["tolerance"] = "abc"
        elif damage in ("short", "nan"):
            fields = header["content"]["dict"]["result"]["fields"]["completion"]["fields"]
            key = fields["rows"]["fields"]["mean"]["array"]
            arrays[key] = arrays[key][:2] if damage == "short" else arrays[key] * np.nan
        elif damage == "kind":
            header["content"]["dict"]["result"]["kind"] = "os.system"
        else:
            del header["content"]["dict"]["result"]["fields"]["risk"]
        arrays[archive.HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with open(path, "wb") as file:
            np.savez(file, **arrays)
    with pytest.raises(InputError, match=r"model is not a surefill model|damaged|another version"):
        load(path)


def test_missing_and_unwritable_files(seen, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "nowhere")
    completer = PartialCompleter(confidence="posterior").fit(seen)
    with pytest.raises(InputError, match="does not exist"):
        completer.save(tmp_path / "no" / "folder")


def test_what_is_not_ours_cannot_be_saved_and_leaves_no_file(seen, tmp_path):
    class Mine:
        def fit(self, observations, progress=None):
            return FactorModel(rank=1).fit(observations, progress)

    completer = PartialCompleter(completion=Mine(), confidence="posterior").fit(seen)
    with pytest.raises(InputError, match="a Mine cannot be saved"):
        completer.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []

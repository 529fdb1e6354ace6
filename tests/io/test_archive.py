"""Archives: what is shared is written once and shared again, and what goes in comes out."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surefill import InputError, PartialCompleter, load
from surefill.data import Observations, UnitMap
from surefill.datasets import make_low_rank
from surefill.guarantee import Calibration
from surefill.io.archive import HEADER, _restored, _shortened, read_archive, write_archive


def round_trip(path, content):
    write_archive(path, "a test", 1, content)
    return read_archive(path, "a test", 1, lambda tree: tree)


def arrays_in(path):
    with zipfile.ZipFile(path) as file:
        return [name for name in file.namelist() if name != f"{HEADER}.npy"]


def all_arrays(value):
    """Every array that is reached from a value, once for each way to it."""
    if isinstance(value, np.ndarray):
        return [value]
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [array for part in parts for array in all_arrays(part)]


def calibration(*arrays):
    return Calibration(**dict(zip(("risk", "confidence", "loss", "largest_loss", "weight"), arrays, strict=True)))


def test_plain_values_come_back(tmp_path):
    content = {"none": None, "text": "é", "many": (1, 2.5, True, (np.inf, -np.inf)), "numpy": np.float64(2.0)}
    assert round_trip(tmp_path / "a", content) == content
    assert np.isnan(round_trip(tmp_path / "a", np.float64("nan")))


def test_one_object_is_one_object_again(tmp_path):
    unit = UnitMap(1.0, 5.0)
    first, (second, other) = round_trip(tmp_path / "a", (unit, (unit, UnitMap(1.0, 5.0))))
    assert first is second
    assert other == first
    assert other is not first


def test_an_array_reached_in_several_ways_is_written_once(tmp_path):
    numbers = np.arange(12.0)
    one, two = round_trip(tmp_path / "a", (calibration(*[numbers] * 5), {"again": numbers.view()}))
    assert len(arrays_in(tmp_path / "a")) == 1
    assert one.risk is one.loss is two["again"]
    np.testing.assert_array_equal(one.risk, numbers)


def test_parts_of_one_array_stay_apart(tmp_path):
    numbers = np.arange(12.0)
    parts = numbers[:6], numbers[6:], numbers[::2], numbers[:6].reshape(2, 3), numbers[:6].view(np.int64)
    again = round_trip(tmp_path / "a", parts)
    assert len(arrays_in(tmp_path / "a")) == len(parts)
    for mine, theirs in zip(again, parts, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@given(
    hnp.arrays(
        st.sampled_from([np.int8, np.int32, np.int64, np.uint64, np.float64, np.bool_]),
        hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3),
    )
)
def test_short_forms_lose_nothing(array):
    stored, how = _shortened(array)
    again = _restored(stored, how)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()
    assert again.shape == array.shape
    assert stored.nbytes <= array.nbytes


def test_repeated_numbers_and_small_integers_take_little_room(tmp_path):
    ones, small = np.ones((300, 200)), np.arange(200, dtype=np.int64)
    again = round_trip(tmp_path / "a", (ones, small, ones))
    assert (tmp_path / "a").stat().st_size < 2_500
    assert again[0] is again[2]
    np.testing.assert_array_equal(again[0], ones, strict=True)
    np.testing.assert_array_equal(again[1], small, strict=True)


def test_what_contains_itself_is_refused(tmp_path):
    knot: dict[str, object] = {"a": 1}
    knot["b"] = (knot,)
    with pytest.raises(InputError, match="a dict that contains itself cannot be saved"):
        write_archive(tmp_path / "a", "a test", 1, knot)
    assert list(tmp_path.iterdir()) == []


def test_only_registered_kinds_are_written(tmp_path):
    @dataclass
    class UnitMap:
        low: float

    with pytest.raises(InputError, match="a UnitMap cannot be saved"):
        write_archive(tmp_path / "a", "a test", 1, UnitMap(1.0))


def test_a_reference_to_nothing_is_damage(tmp_path, monkeypatch):
    unit = UnitMap(1.0, 5.0)
    monkeypatch.setattr("surefill.io.archive._Packer.pack", lambda self, value: {"same": 7})
    write_archive(tmp_path / "a", "a test", 1, unit)
    with pytest.raises(InputError, match="is a damaged a test"):
        read_archive(tmp_path / "a", "a test", 1, lambda tree: tree)


def test_a_fitted_model_is_written_without_repeats(tmp_path):
    seen = make_low_rank((30, 20), rank=1, n_draws=400, noise=0.1, random_state=0).observations
    completer = PartialCompleter(0.5, confidence="posterior").fit(seen)
    result = completer.result_
    assert result.confidence.completion is result.completion is result.risk.evidence.completion
    completer.save(tmp_path / "model")
    again = load(tmp_path / "model").result_
    assert again.confidence.completion is again.completion is again.risk.evidence.completion
    distinct = {id(array): array.nbytes for array in all_arrays((result, completer.observations_, completer.asked_))}
    assert len(arrays_in(tmp_path / "model")) == len(distinct)
    members_and_text = 300 * len(distinct) + 30_000  # each member of the zip file has headers of about 300 bytes
    assert (tmp_path / "model").stat().st_size <= sum(distinct.values()) + members_and_text


def test_observations_survive_with_labels_and_repeats(tmp_path):
    seen = Observations([0, 1, 0], [0, 1, 0], [1.0, 2.0, 3.0], row_labels=["b", "a"], names=("u", "v", "w"))
    again = round_trip(tmp_path / "a", seen)
    assert repr(again) == repr(seen)
    assert (again.names, again.row_labels.tolist()) == (seen.names, ["b", "a"])
    assert again.scatter.tolist() == seen.scatter.tolist()

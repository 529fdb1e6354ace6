import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefill import InputError
from surefill.datasets import make_blocks, make_low_rank
from surefill.io import archive
from surefill.stream.label_encoder import LabelEncoder
from surefill.stream.stream_metrics import N_BINS, StreamMetrics
from surefill.stream.streaming_completer import StreamingCompleter


def some_stream(n=600, noise=0.1, seed=0):
    """Labels as text for rows and whole numbers for columns, and values on 1 to 5."""
    sim = make_low_rank((25, 20), rank=2, n_draws=n, noise=noise, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(sim.observations))
    seen = sim.observations
    return np.array([f"p{i}" for i in seen.rows])[order], seen.cols[order] * 7 - 3, (3 + 2 * seen.values)[order]


def bits(tree):
    """A state with every array as its bytes, so that equality is to the bit."""
    if isinstance(tree, dict):
        return {name: bits(item) for name, item in tree.items()}
    return (tree.dtype.str, tree.shape, tree.tobytes()) if isinstance(tree, np.ndarray) else tree


@pytest.mark.parametrize("bounds", [(1, 5), None])
def test_batches_of_any_size_and_saving_in_between_give_the_same_bits(bounds, tmp_path):
    rows, cols, values = some_stream()
    whole, parts = StreamingCompleter(bounds=bounds), StreamingCompleter(bounds=bounds)
    expected = whole.learn_many(rows, cols, values)
    found = []
    cuts = [0, 1, 2, 3, 50, 51, 300, len(values)]
    for first, last in itertools.pairwise(cuts):
        found.append(parts.learn_many(rows[first:last], cols[first:last], values[first:last]))
        parts.save(tmp_path / "stream")
        parts = StreamingCompleter.load(tmp_path / "stream")
    assert np.array_equal(np.concatenate([part.predictions for part in found]), expected.predictions, equal_nan=True)
    assert np.array_equal(np.concatenate([part.confidences for part in found]), expected.confidences)
    assert bits(parts.state()) == bits(whole.state())


def test_one_by_one_is_the_same_and_ids_may_be_numpy_scalars():
    rows, cols, values = some_stream(40)
    whole, single = StreamingCompleter(bounds=(1, 5)), StreamingCompleter(bounds=(1, 5))
    whole.learn_many(rows, cols, values)
    for row, col, value in zip(rows, cols, values, strict=True):
        single.learn_one(row, col, value)
    assert bits(single.state()) == bits(whole.state())


def test_asking_changes_nothing_and_the_unseen_get_no_confidence_and_the_best_guess():
    rows, cols, values = some_stream()
    stream = StreamingCompleter()
    stream.learn_many(rows, cols, values)
    for _ in range(20):
        stream.learn_many(["kind", "kind"], [4, 11], [5.0, 5.0])
    before, shape = bits(stream.state()), stream.shape
    asked_rows, asked_cols = ["p1", "nobody", "p1", "nobody"], [4, 4, 10**9, 10**9]
    predicted, confidence = stream.predict(asked_rows, asked_cols), stream.confidence(asked_rows, asked_cols)
    assert confidence[0] > 0
    assert confidence[1:].tolist() == [0, 0, 0]
    assert np.isfinite(predicted).all()
    assert predicted[3] == pytest.approx(values.mean(), abs=0.5)
    assert stream.predict(["kind"], [10**9])[0] > predicted[3] + 0.3
    assert bits(stream.state()) == before
    assert stream.shape == shape
    assert "nobody" not in stream.row_labels


def test_rows_and_columns_grow_without_end():
    stream = StreamingCompleter(bounds=(0, 1))
    for k in range(100):
        stream.learn_one(f"row {k}", k * k, 0.5)
        assert stream.shape == (k + 1, k + 1)
    assert stream.row_labels[::50] == ["row 0", "row 50"]
    assert stream.col_labels[-1] == 99 * 99


def test_scores_are_made_before_learning():
    rows, cols, values = some_stream()
    stream, other = StreamingCompleter(bounds=(1, 5)), StreamingCompleter(bounds=(1, 5))
    stream.learn_many(rows[:300], cols[:300], values[:300])
    other.learn_many(rows[:300], cols[:300], values[:300])
    predicted, confidence = (
        stream.predict(rows[300:301], cols[300:301]),
        stream.confidence(rows[300:301], cols[300:301]),
    )
    scores = other.learn_many(rows[300:], cols[300:], values[300:])
    assert scores.predictions[0] == predicted[0]
    assert scores.confidences[0] == confidence[0]
    again = StreamingCompleter(bounds=(1, 5))
    shuffled = values.copy()
    shuffled[-1] = 1.0 if values[-1] > 3 else 5.0
    assert again.learn_many(rows, cols, shuffled).predictions[-1] == scores.predictions[-1]


def test_it_learns_what_there_is_to_learn():
    sim = make_low_rank((60, 50), rank=2, n_draws=6000, noise=0.05, random_state=1)
    seen = sim.observations
    stream = StreamingCompleter(bounds=(-1, 1), rank=4)
    stream.learn_many(seen.rows, seen.cols, seen.values)
    unseen = np.isnan(seen.dense())
    error = (stream.predict(*(index.astype(np.int64) for index in np.nonzero(unseen))) - sim.truth[unseen]) ** 2
    assert error.mean() < 0.15 * sim.truth.var()
    late = seen.values[len(seen) // 2 :].var()
    assert stream.metrics.rmse**2 < 0.6 * late


def test_confidence_marks_where_the_stream_can_be_completed():
    sim = make_blocks((20, 20), n_groups=2, n_draws=1600, random_state=0)
    seen = sim.observations
    stream = StreamingCompleter(bounds=(-1, 1), rank=2)
    stream.learn_many(seen.rows, seen.cols, seen.values)
    rows, cols = (index.ravel() for index in np.indices(seen.shape))
    confidence = stream.confidence(rows, cols).reshape(seen.shape)
    error = (stream.predict(rows, cols).reshape(seen.shape) - sim.truth) ** 2
    assert confidence[sim.support].min() > np.quantile(confidence[~sim.support], 0.9)
    assert error[confidence > 0.5].mean() < 0.3 * error[confidence < 0.2].mean()


def test_values_that_drift_are_followed():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 20, 8000), rng.integers(0, 20, 8000)
    values = np.where(np.arange(8000) < 4000, 1.0, -1.0) * (0.5 + 0.02 * rows)
    stream = StreamingCompleter(bounds=(-1, 1))
    scores = stream.learn_many(rows, cols, values)
    error = (scores.predictions - values) ** 2
    assert error[4000:4100].mean() > 0.3
    assert error[7000:].mean() < 0.01


class TestRange:
    def test_a_range_learnt_on_the_way_bounds_what_is_predicted(self):
        rows, cols, values = some_stream()
        stream = StreamingCompleter()
        scores = stream.learn_many(rows, cols, values)
        assert np.isnan(scores.predictions[0])
        assert stream.metrics.unscored == 1
        assert stream.metrics.count == len(values) - 1
        lowest, highest = np.minimum.accumulate(values)[:-1], np.maximum.accumulate(values)[:-1]
        assert (scores.predictions[1:] >= lowest).all()
        assert (scores.predictions[1:] <= highest).all()
        assert stream.range == (values.min(), values.max())

    def test_a_value_far_out_widens_the_range_and_moves_no_other_prediction(self):
        rows, cols, values = some_stream()
        stream = StreamingCompleter()
        stream.learn_many(rows, cols, values)
        before = stream.predict(rows, cols)
        stream.learn_one("new row", 10**6, 1000.0)
        assert stream.range[1] == 1000.0
        after = stream.predict(rows, cols)
        np.testing.assert_allclose(np.clip(after, values.min(), values.max()), before, atol=2e-3)

    @settings(max_examples=10, deadline=None)
    @given(st.sampled_from([2.0**-20, 0.5, 8.0, 2.0**30]))
    def test_units_do_not_matter(self, factor):
        rows, cols, values = some_stream(200)
        plain, scaled = StreamingCompleter(), StreamingCompleter()
        one, other = plain.learn_many(rows, cols, values), scaled.learn_many(rows, cols, values * factor)
        np.testing.assert_allclose(other.predictions / factor, one.predictions, rtol=1e-6)

    def test_equal_values_are_predicted(self):
        stream = StreamingCompleter()
        scores = stream.learn_many(["a", "b", "c"], ["x", "x", "y"], [2.0, 2.0, 2.0])
        assert scores.predictions[1:].tolist() == [2.0, 2.0]

    def test_a_value_outside_given_bounds_is_refused_and_nothing_learnt(self):
        stream = StreamingCompleter(bounds=(1, 5))
        stream.learn_one("a", "x", 3)
        before = bits(stream.state())
        refused = [
            (["b", "c"], ["x", "y"], [4, 6]),
            (["b", "c"], ["x", "y"], [4, np.nan]),
            ([1, 2], ["x", "y"], [4, 4]),
            (["b", "c"], [1, 2], [4, 4]),
        ]
        for rows, cols, values in refused:
            with pytest.raises(InputError):
                stream.learn_many(rows, cols, values)
            assert bits(stream.state()) == before


class TestMetrics:
    def test_they_are_what_the_scores_say(self):
        rows, cols, values = some_stream()
        stream = StreamingCompleter(bounds=(1, 5))
        scores = stream.learn_many(rows, cols, values)
        error = (scores.predictions - values) ** 2
        metrics = stream.metrics
        assert metrics.rmse == pytest.approx(np.sqrt(error.mean()))
        kept = scores.confidences >= 0.5
        assert metrics.kept(0.5) == pytest.approx((kept.mean(), np.sqrt(error[kept].mean())))
        low = (scores.confidences >= 0.1) & (scores.confidences < 0.3)
        assert metrics.rmse_between(0.1, 0.3) == pytest.approx(np.sqrt(error[low].mean()))
        bands = metrics.by_confidence()
        assert sum(band["count"] for band in bands) == len(values)
        first = bands[0]
        assert first["low"] == 0
        assert first["rmse"] == pytest.approx(np.sqrt(error[scores.confidences < 1 / N_BINS].mean()))

    def test_what_came_since(self):
        rows, cols, values = some_stream()
        stream = StreamingCompleter(bounds=(1, 5))
        stream.learn_many(rows[:200], cols[:200], values[:200])
        earlier = stream.metrics
        scores = stream.learn_many(rows[200:], cols[200:], values[200:])
        lately = stream.metrics.since(earlier)
        assert lately.count == len(values) - 200
        assert lately.rmse == pytest.approx(np.sqrt(np.mean((scores.predictions - values[200:]) ** 2)))
        assert earlier.count == 200

    def test_errors_are_added_to_the_bin_of_their_confidence(self):
        """Edges belong to the bin above, a confidence of 1 to the last, and NaN is counted apart."""
        predicted = np.array([1.0, np.nan, 3.0, 0.0, 5.0])
        confidence = np.array([0.0, 0.3, 0.04, 0.25, 1.0])
        metrics = StreamMetrics.empty().updated(np.array([2.0, 1.0, 1.0, 0.5, 2.0]), predicted, confidence)
        assert metrics.unscored == 1
        assert metrics.counts[[0, 5, 6, N_BINS - 1]].tolist() == [2, 1, 0, 1]
        assert metrics.squared_errors[[0, 5, 6, N_BINS - 1]].tolist() == [5.0, 0.25, 0.0, 9.0]
        assert metrics.count == 4

    def test_nothing_scored_has_no_error(self):
        assert np.isnan(StreamMetrics.empty().rmse)
        assert StreamMetrics.empty().by_confidence() == []


SIGNS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
"""What labels are made of: no half characters, and no zeros."""


class TestLabels:
    @given(st.lists(st.lists(st.text(SIGNS, max_size=3), min_size=1), max_size=6))
    def test_they_are_numbered_as_they_appear_and_come_back(self, batches):
        labels = LabelEncoder("row")
        codes = [code for batch in batches for code in labels.learn(np.array(batch, dtype=object)).tolist()]
        flat = [label for batch in batches for label in batch]
        assert [labels.labels[code] for code in codes] == flat
        assert labels.labels == list(dict.fromkeys(flat))
        again = LabelEncoder("row").restore(labels.state())
        assert again.labels == labels.labels
        assert len(again) == len(labels)

    def test_whole_numbers_of_any_size(self):
        labels = LabelEncoder("row")
        assert labels.learn(np.array([2**62, -5, 2**62], dtype=np.int64)).tolist() == [0, 1, 0]
        assert labels.learn(np.array([7, 9], dtype=np.uint8)).tolist() == [2, 3]
        assert labels.find([-5, 8]).tolist() == [1, -1]
        assert LabelEncoder("row").restore(labels.state()).labels == [2**62, -5, 7, 9]

    def test_kinds_do_not_mix(self):
        labels = LabelEncoder("column")
        labels.learn(["1"])
        with pytest.raises(InputError, match=r"column labels are text here; got 1\."):
            labels.find([1])
        with pytest.raises(InputError, match="all text or all whole numbers; got int, str"):
            labels.learn(np.array(["a", 1], dtype=object))
        with pytest.raises(InputError, match="text or whole numbers"):
            LabelEncoder("row").learn([1.5])


class TestFiles:
    def test_a_damaged_or_foreign_file_gets_one_sentence(self, tmp_path):
        path = tmp_path / "stream"
        with pytest.raises(InputError, match="does not exist"):
            StreamingCompleter.load(path)
        path.write_bytes(b"nonsense")
        with pytest.raises(InputError, match="is not a surefill stream, or it is damaged"):
            StreamingCompleter.load(path)
        stream = StreamingCompleter()
        stream.learn_one("a", "b", 1.0)
        stream.save(path)
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays[archive.HEADER].tobytes())
        header["content"]["dict"]["stream"]["dict"]["parameters"]["dict"]["rank"] = 3
        arrays[archive.HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with open(path, "wb") as file:
            np.savez(file, **arrays)
        with pytest.raises(InputError, match="is a damaged surefill stream"):
            StreamingCompleter.load(path)

    def test_a_note_is_kept(self, tmp_path):
        stream = StreamingCompleter()
        stream.save(tmp_path / "stream", {"place": (1, 2)})
        assert StreamingCompleter.load_with_note(tmp_path / "stream")[1] == {"place": (1, 2)}


def test_bad_parameters_get_one_sentence():
    with pytest.raises(InputError, match="'rank' parameter of StreamingCompleter"):
        StreamingCompleter(rank=0)
    with pytest.raises(InputError, match="low < high"):
        StreamingCompleter(bounds=(5, 1))
    with pytest.raises(InputError, match="one item per observation"):
        StreamingCompleter().learn_many(["a"], ["b", "c"], [1.0])
    with pytest.raises(InputError, match="one item per pair"):
        StreamingCompleter().predict(["a"], ["b", "c"])

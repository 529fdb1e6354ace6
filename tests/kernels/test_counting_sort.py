import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.kernels import counting_sort as kernels


def both(name):
    return pytest.mark.parametrize(name, [getattr(kernels, name), getattr(kernels, f"{name}_reference")])


keys = st.lists(st.integers(3, 9), min_size=1, max_size=30).map(lambda items: np.array(items, dtype=np.int32))


@both("count_keys")
@given(keys)
def test_keys_are_counted_and_it_is_told_whether_they_never_fall(count_keys, given_keys):
    starts = np.zeros(8, dtype=np.int64)
    rising = count_keys(given_keys, 3, starts)
    assert starts.tolist() == [0, *(int(np.count_nonzero(given_keys == key)) for key in range(3, 10))]
    assert rising == (sorted(given_keys.tolist()) == given_keys.tolist())


@both("place_keys")
@given(keys, st.booleans())
def test_entries_are_placed_in_the_order_of_their_keys_and_ties_as_they_come(place_keys, given_keys, backwards):
    entries = np.arange(len(given_keys), dtype=np.int32)[:: -1 if backwards else 1].copy()
    places = np.array([np.count_nonzero(given_keys < key) for key in range(3, 10)])
    order = np.empty(len(given_keys), dtype=np.int32)
    place_keys(given_keys, 3, places, entries if backwards else entries[:0], order)
    assert order.tolist() == sorted(entries.tolist(), key=lambda entry: given_keys[entry])
    assert places.tolist() == [np.count_nonzero(given_keys <= key) for key in range(3, 10)]


@both("place_values")
@given(keys)
def test_values_are_placed_in_the_order_of_their_keys_and_ties_as_they_come(place_values, given_keys):
    values = np.arange(len(given_keys), dtype=np.float32)
    places = np.array([np.count_nonzero(given_keys < key) for key in range(3, 10)])
    taken = np.empty(len(given_keys), dtype=np.float32)
    place_values(given_keys, 3, places, values, taken)
    assert taken.tolist() == sorted(values.tolist(), key=lambda value: given_keys[int(value)])
    assert places.tolist() == [np.count_nonzero(given_keys <= key) for key in range(3, 10)]


@both("gather")
def test_values_are_gathered(gather):
    taken = np.empty(3, dtype=np.float32)
    gather(np.array([5, 6, 7], dtype=np.float32), np.array([2, 0, 0], dtype=np.int32), taken)
    assert taken.tolist() == [7, 5, 5]


@both("is_sorted_within")
def test_only_falls_within_a_group_count(is_sorted_within):
    starts = np.array([0, 2, 4])
    assert is_sorted_within(starts, np.array([1, 5, 0, 3]))
    assert not is_sorted_within(starts, np.array([1, 5, 3, 3]))


@both("has_repeated_cells")
def test_the_same_index_twice_in_a_group_is_a_repeat_and_in_two_is_none(has_repeated_cells):
    starts = np.array([0, 2, 5])
    assert not has_repeated_cells(starts, np.array([1, 0, 1, 0, 2]), np.full(3, -1))
    assert has_repeated_cells(starts, np.array([1, 0, 1, 0, 1]), np.full(3, -1))


@both("find_in_groups")
@pytest.mark.parametrize("in_order", [True, False])
def test_entries_are_found_in_their_group_alone(find_in_groups, in_order):
    rng = np.random.default_rng(0)
    sorted_others = np.concatenate([np.sort(rng.choice(12, size, replace=False)) for size in (5, 0, 7)])
    order = np.empty(0, dtype=np.int32) if in_order else rng.permutation(12).astype(np.int32)
    others = sorted_others.copy()
    if not in_order:
        others[order] = sorted_others
    found, wanted = np.empty(36, dtype=np.int64), np.tile(np.arange(12), 3)
    first, last = np.repeat([0, 5, 5], 12), np.repeat([5, 5, 12], 12)
    find_in_groups(first, last, others, order, wanted, found)
    place = {entry: s for s, entry in enumerate(range(12) if in_order else order.tolist())}
    for t, entry in enumerate(found.tolist()):
        here = sorted_others[first[t] : last[t]]
        assert (entry >= 0) == (wanted[t] in here)
        assert entry < 0 or (others[entry] == wanted[t] and first[t] <= place[entry] < last[t])

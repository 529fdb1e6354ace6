import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.data import COMPACT_CELLS, Groups, Observations, UnitMap, split_entries, split_folds, split_rows
from surefill.data.groups import compact_positions
from surefill.data.repeats import others_by_line
from surefill.datasets import make_low_rank
from surefill.errors import InputError

draws = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.floats(-5, 5, allow_subnormal=False)), min_size=1, max_size=40
)


@given(draws)
def test_repeats_are_merged_into_counts_and_means(given_draws):
    rows, cols, values = map(np.array, zip(*given_draws, strict=True))
    seen = Observations(rows, cols, values)
    cells = {}
    for i, j, y in given_draws:
        cells.setdefault((i, j), []).append(y)
    assert list(zip(seen.rows.tolist(), seen.cols.tolist(), strict=True)) == list(cells)
    assert seen.counts.tolist() == [len(group) for group in cells.values()]
    np.testing.assert_allclose(seen.values, [np.mean(group) for group in cells.values()], atol=1e-12)
    assert seen.disagreements == sum(max(group) - min(group) > 1e-150 for group in cells.values())
    np.testing.assert_allclose(seen.scatter, [np.var(group) * len(group) for group in cells.values()], atol=1e-12)
    assert seen.n_draws == len(given_draws)
    assert seen.weights.sum() == pytest.approx(1)
    assert seen.values.min() >= seen.bounds[0]
    assert seen.values.max() <= seen.bounds[1]


@given(draws)
def test_squared_loss_of_merged_cells_is_that_of_the_draws(given_draws):
    rows, cols, values = map(np.array, zip(*given_draws, strict=True))
    seen = Observations(rows, cols, values, shape=(5, 4))
    rng = np.random.default_rng(0)
    for _ in range(2):
        M = rng.normal(size=(5, 4))
        by_draw = np.sum((M[rows, cols] - values) ** 2)
        by_cell = np.sum(seen.counts * seen.squared_errors(M[seen.rows, seen.cols]))
        assert by_cell == pytest.approx(by_draw, abs=1e-8)
    assert seen.variance == pytest.approx(np.var(values), abs=1e-10)


@given(draws)
def test_find_is_the_inverse_of_position(given_draws):
    rows, cols, values = map(np.array, zip(*given_draws, strict=True))
    seen = Observations(rows, cols, values, shape=(5, 4))
    np.testing.assert_array_equal(seen.find(seen.rows, seen.cols), np.arange(len(seen)))
    every = np.arange(20)
    found = seen.find(every // 4, every % 4)
    assert (found < 0).sum() == 20 - len(seen)


@given(draws)
def test_grouping_lists_each_rows_entries_in_order(given_draws):
    rows = np.array([i for i, _, _ in given_draws])
    groups = Groups.of(rows)
    assert groups.ids.tolist() == sorted(set(rows.tolist()))
    for g, row in enumerate(groups.ids):
        entries = groups.order[groups.starts[g] : groups.starts[g + 1]]
        assert entries.tolist() == np.flatnonzero(rows == row).tolist()
    located = groups.locate(np.arange(6))
    assert located.tolist() == [int(groups.locate(np.array([r]))[0]) for r in range(6)]
    assert [groups.ids[p] if p >= 0 else -1 for p in located] == [r if r in set(rows) else -1 for r in range(6)]


@given(st.lists(st.integers(2, 30), min_size=1, max_size=40))
def test_values_are_taken_group_by_group_with_and_without_an_order(indices):
    rows = np.array(indices, dtype=np.int32)
    values, expected = np.arange(len(rows)) + 0.5, np.argsort(rows, kind="stable") + 0.5
    groups = Groups.of(rows)
    np.testing.assert_array_equal(groups.take(values), expected)
    assert "order" not in vars(groups)  # it would take as much memory as the indices
    assert groups.order.dtype == np.int32
    np.testing.assert_array_equal(groups.take(values), expected)
    np.testing.assert_array_equal(values[groups.order], expected)


@given(draws)
def test_other_indices_are_sorted_by_line_then_by_themselves(given_draws):
    cells = sorted({(i, j) for i, j, _ in given_draws})
    rng = np.random.default_rng(len(cells))
    for order in (np.arange(len(cells)), np.lexsort(np.transpose(cells)), rng.permutation(len(cells))):
        lines, others = np.array(cells, dtype=np.int32)[order].T
        found = others_by_line(Groups.of(lines), lines, np.ascontiguousarray(others))
        assert found.tolist() == [j for _, j in cells]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1))
def test_unit_map_round_trip_and_scale(low, width, share):
    unit = UnitMap(low, low + width)
    np.testing.assert_allclose(unit.to_unit([low, low + width / 2, low + width]), [-1, 0, 1], atol=1e-6)
    value = low + share * width
    mapped = unit.to_unit(value)
    assert -1 - 1e-6 <= mapped <= 1 + 1e-6
    assert unit.from_unit(mapped) == pytest.approx(value, rel=1e-9, abs=1e-6)
    a, b = unit.from_unit([0.25, -0.5])
    assert unit.squared_error_to_unit((a - b) ** 2) == pytest.approx(0.75**2, rel=1e-6)
    assert unit.squared_error_from_unit(0.75**2) == pytest.approx((a - b) ** 2, rel=1e-6)


def test_counted_draws_weigh_in_the_mean():
    seen = Observations([0, 0], [0, 0], [1.0, 5.0], counts=[3, 1])
    assert (seen.values.tolist(), seen.counts.tolist()) == ([2.0], [4])
    again = Observations([0, 0], [0, 0], [2.0, 2.0], counts=[4, 4], scatter=[12.0, 12.0])
    assert again.scatter.tolist() == [24.0]


def test_order_of_entries_is_kept_when_nothing_repeats():
    seen = Observations([3, 0, 2], [1, 1, 0], [1.0, 2.0, 3.0])
    assert seen.rows.tolist() == [3, 0, 2]
    assert seen.values.tolist() == [1.0, 2.0, 3.0]


def test_a_stored_zero_is_an_observation():
    seen = Observations([0, 1], [0, 1], [0.0, 2.0])
    assert len(seen) == 2
    assert seen.dense()[0, 0] == 0
    assert np.isnan(seen.dense()[0, 1])


def test_a_billion_by_a_billion_costs_only_its_entries():
    seen = Observations([10**9 - 1, 3], [5, 10**9 - 1], [1.0, 2.0], shape=(10**9, 10**9))
    assert seen.rows.dtype == np.int32
    assert seen.find([3, 3], [10**9 - 1, 0]).tolist() == [1, -1]
    assert seen.by_row.ids.tolist() == [3, 10**9 - 1]
    longer = Observations([3 * 10**9], [0], [1.0])
    assert longer.rows.dtype == np.int64


def test_arrays_cannot_be_changed():
    seen = Observations([0, 1], [0, 1], [1.0, 2.0])
    for name in ("rows", "cols", "values", "counts"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(seen, name)[0] = 9
    with pytest.raises(AttributeError):
        seen.shape = (9, 9)


def test_the_callers_arrays_are_not_shared():
    values = np.array([1.0, 2.0])
    seen = Observations([0, 1], [0, 1], values)
    values[0] = 9
    assert seen.values[0] == 1.0


def test_select_keeps_matrix_labels_and_bounds():
    seen = Observations([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0], (4, 3), (0, 5), row_labels=list("abcd"))
    part = seen.select([False, True, True])
    assert part.shape == (4, 3)
    assert part.bounds == (0, 5)
    assert part.row_labels.tolist() == list("abcd")
    assert part.values.tolist() == [2.0, 3.0]


@given(draws, st.integers(0, 2**32 - 1), st.booleans())
def test_a_selected_part_is_what_the_checked_construction_gives(given_draws, seed, as_mask):
    rows, cols, values = map(np.array, zip(*given_draws, strict=True))
    names = [f"r{i}" for i in range(5)]
    seen = Observations(rows, cols, values, (5, 4), row_labels=names, names=("u", "v", "w"))
    rng = np.random.default_rng(seed)
    mask = rng.random(len(seen)) < 0.6
    mask[rng.integers(len(seen))] = True
    which = mask if as_mask else rng.permutation(np.flatnonzero(mask))
    part = seen.select(which)
    checked = Observations(
        seen.rows[which], seen.cols[which], seen.values[which], seen.shape, seen.bounds,
        counts=seen.counts[which], scatter=seen.scatter[which], row_labels=names, names=seen.names,
    )  # fmt: skip
    for name in ("rows", "cols", "values", "counts", "scatter"):
        np.testing.assert_array_equal(getattr(part, name), getattr(checked, name))
        assert getattr(part, name).dtype == getattr(checked, name).dtype
        assert not getattr(part, name).flags.writeable
    assert repr(part) == repr(checked)
    assert (part.names, part.row_labels.tolist()) == (checked.names, names)
    np.testing.assert_array_equal(part.by_row.order, checked.by_row.order)


def test_a_cell_named_twice_counts_twice_and_nothing_selected_is_refused():
    seen = Observations([0, 1], [0, 1], [1.0, 2.0], row_labels=["a", "b"])
    twice = seen.select([1, 1, 0])
    assert (twice.values.tolist(), twice.counts.tolist()) == ([2.0, 1.0], [2, 1])
    assert twice.row_labels is seen.row_labels
    with pytest.raises(InputError, match="there are no observations"):
        seen.select([False, False])


def test_selecting_and_splitting_check_and_merge_nothing_again(monkeypatch):
    cells = np.arange(30)
    seen = Observations(cells // 5, cells % 5, cells / 3, row_labels=list("abcdef"), col_labels=list("vwxyz"))

    def refuse(*_):
        raise AssertionError("checked again")

    checks = ("as_indices", "as_values", "as_counts", "as_scatter", "as_labels", "resolve_shape", "resolve_bounds")
    for name in (*checks, "merge_repeats"):
        monkeypatch.setattr(f"surefill.data.observations.{name}", refuse)
    parts = [seen.select(cells > 3), seen.select([4, 2]), *split_entries(seen), *split_rows(seen)]
    parts += [part for pair in split_folds(seen, 3) for part in pair]
    for part in parts:
        assert part.row_labels is seen.row_labels
        assert part.col_labels is seen.col_labels
        assert not {"by_row", "by_col", "_cells"} & vars(part).keys()


def test_labels_are_sorted_once_for_observations_and_all_their_parts(monkeypatch):
    seen = Observations([0, 1], [0, 1], [1.0, 2.0], row_labels=["b", "a"], col_labels=[20, 10])
    part = seen.select([0])
    argsort, sorted_labels = np.argsort, []

    def counting(array, *arguments, **options):
        sorted_labels.append(np.asarray(array).tolist())
        return argsort(array, *arguments, **options)

    monkeypatch.setattr(np, "argsort", counting)
    for each in (seen, part, part.select([0]), seen.select([True, True])):
        assert each.row_index(["a", "b"]).tolist() == each.col_index([10, 20]).tolist() == [1, 0]
    assert sorted_labels == [["b", "a"], [20, 10]]


def test_labels_are_looked_up():
    seen = Observations([0, 1], [0, 1], [1.0, 2.0], row_labels=["b", "a"], col_labels=[10, 20])
    assert seen.row_index(["a", "b"]).tolist() == [1, 0]
    assert seen.col_index([20]).tolist() == seen.col_index(["20"]).tolist() == [1]
    with pytest.raises(InputError, match="no column labelled 'x': columns are asked for by label here, such as 10"):
        seen.col_index(["x"])
    with pytest.raises(InputError, match="no row labelled 'z'"):
        seen.row_index(["z"])
    with pytest.raises(InputError, match="no row 'a': rows have no labels here and are counted from 0 to 1"):
        Observations([0, 1], [0, 1], [1.0, 2.0]).row_index(["a"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([], [], []), "there are no observations"),
        (([0], [0, 1], [1.0]), "one item per observation; got 1, 2 and 1"),
        (([0, -1], [0, 0], [1.0, 2.0]), "rows must be 0 or more, and below 2.63; item 1 is -1"),
        (([0.5], [0], [1.0]), "rows must be 0-based integer indices"),
        (([0], [["a"]], [1.0]), "cols must be one-dimensional"),
        (([0, 1], [0, 0], [1.0, np.nan]), "values must be finite; item 1 is nan"),
        (([0], [0], [np.inf]), "values must be finite; item 0 is inf"),
        (([0], [0], ["x"]), "values must be numbers"),
        (([0], [0], [1e200]), "values must be at most 1e.60 in size; item 0 is 1e.200"),
        ((np.array([2**63], np.uint64), [0], [1.0]), "below 2.63; item 0 is 9223372036854775808"),
        (([0], [0], [1.0], (3,)), "shape must be two whole numbers"),
        (([0], [0], [1.0], (2.5, 3)), "shape must be two whole numbers"),
        (([0], [0], [1.0], None, (1,)), "bounds must be two numbers"),
        (([5], [0], [1.0], (2, 2)), "rows must be below 2 to fit the shape; item 0 is 5"),
        (([0], [5], [1.0], (2, 2)), "cols must be below 2 to fit the shape; item 0 is 5"),
        (([0], [0], [1.0], (2**40, 2**40)), "too many to number"),
        (([0, 1], [0, 0], [1.0, 7.0], None, (1, 5)), r"within bounds \(1, 5\); item 1 is 7"),
        (([0, 1], [0, 0], [1.0, 7.0], None, (5, 1)), "low < high"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        Observations(*arguments)


def test_bad_labels_and_counts():
    with pytest.raises(InputError, match="row_labels must name all 2 rows; got 1"):
        Observations([0, 1], [0, 0], [1.0, 2.0], (2, 1), row_labels=["a"])
    with pytest.raises(InputError, match="col_labels must be distinct; 1 are repeated"):
        Observations([0], [1], [1.0], col_labels=["a", "a"])
    with pytest.raises(InputError, match="counts must hold one integer"):
        Observations([0], [1], [1.0], counts=[0])
    with pytest.raises(InputError, match="scatter must hold"):
        Observations([0], [1], [1.0], scatter=[-1.0])


def test_equal_values_leave_the_range_unknown_until_bounds_are_given():
    with pytest.raises(InputError, match=r"all 2 values to learn from equal 3.*give bounds"):
        _ = Observations([0, 1], [0, 1], [3.0, 3.0]).unit
    assert Observations([0, 1], [0, 1], [3.0, 3.0], bounds=(1, 5)).unit == UnitMap(1, 5)


def test_cells_of_whole_rows_are_found_as_one_by_one():
    seen = make_low_rank((12, 9), rank=1, n_draws=30, random_state=2).observations
    rows = np.array([11, 0, 5, 5])
    cols = np.arange(9)
    expected = seen.find(np.repeat(rows, 9), np.tile(cols, 4)).reshape(4, 9)
    np.testing.assert_array_equal(seen.find_in_rows(rows), expected)
    nothing = Observations([0], [1], [2.0], (3, 4)).find_in_rows(np.array([1, 2]))
    assert nothing.shape == (2, 4)
    assert (nothing == -1).all()


def test_many_cells_take_twelve_bytes_each_and_nothing_is_rounded():
    rng = np.random.default_rng(0)
    cells = rng.choice(1000 * 1000, COMPACT_CELLS, replace=False)
    stars = rng.integers(1, 11, COMPACT_CELLS) / 2
    seen = Observations(cells // 1000, cells % 1000, stars, (1000, 1000), (0.5, 5))
    arrays = seen.rows, seen.cols, seen.values, seen.counts, seen.scatter
    assert sum(array.itemsize * len(array) for array in arrays if array.strides != (0,)) == 12 * len(seen)
    np.testing.assert_array_equal(seen.values, stars)
    assert seen.variance == pytest.approx(np.var(stars), rel=1e-12)
    part = seen.select(cells % 2 == 0)
    assert part.counts.strides == part.scatter.strides == (0,)
    assert part.n_draws == len(part)
    fractions = Observations(cells // 1000, cells % 1000, stars / 3)
    np.testing.assert_array_equal(fractions.values, stars / 3)


def test_cells_that_come_row_by_row_need_no_order():
    seen = Observations([0, 0, 2, 2], [1, 3, 0, 2], [1.0, 2.0, 3.0, 4.0])
    assert seen.by_row.in_order
    assert seen.by_row.take(seen.values) is seen.values
    assert seen.by_row.order.tolist() == [0, 1, 2, 3]
    assert seen.by_col.take(seen.values).tolist() == [3.0, 1.0, 4.0, 2.0]
    assert seen.find([2, 0, 1], [2, 0, 1]).tolist() == [3, -1, -1]


def test_positions_are_the_indices_themselves_where_no_row_is_missing():
    indices = np.array([2, 0, 1], dtype=np.int32)
    assert compact_positions(np.arange(3), indices) is indices
    assert compact_positions(np.array([0, 2]), indices).tolist() == [1, 0, -1]


def test_repeats_far_apart_in_a_wide_matrix_are_merged_too():
    far = 2**31
    seen = Observations([5, far, 5], [far, 0, far], [1.0, 2.0, 3.0])
    assert (seen.values.tolist(), seen.counts.tolist()) == ([2.0, 2.0], [2, 1])
    assert seen.find([far, 5], [0, 0]).tolist() == [1, -1]

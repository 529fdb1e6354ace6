import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.data import Observations, split_entries, split_folds, split_rows
from surefill.errors import InputError


def grid(m=6, n=5):
    cells = np.arange(m * n)
    return Observations(cells // n, cells % n, cells.astype(float), counts=cells + 1)


def cells_of(observations):
    return set(zip(observations.rows.tolist(), observations.cols.tolist(), strict=True))


@given(st.floats(0.01, 0.99), st.integers(0, 5))
def test_random_entries_partition_the_cells(share, seed):
    train, held_out = split_entries(grid(), share, seed)
    assert cells_of(train) | cells_of(held_out) == cells_of(grid())
    assert not cells_of(train) & cells_of(held_out)
    assert len(held_out) == min(max(round(share * 30), 1), 29)
    assert train.n_draws + held_out.n_draws == grid().n_draws
    assert train.bounds == held_out.bounds == grid().bounds


def test_same_seed_same_split_other_seed_other_split():
    assert cells_of(split_entries(grid(), 0.3, 1)[1]) == cells_of(split_entries(grid(), 0.3, 1)[1])
    assert cells_of(split_entries(grid(), 0.3, 1)[1]) != cells_of(split_entries(grid(), 0.3, 2)[1])


def test_folds_are_disjoint_and_cover():
    for train, test in split_folds(grid(), 4, 0):
        assert cells_of(train) == cells_of(grid()) - cells_of(test)
    folds = [cells_of(test) for _, test in split_folds(grid(), 4, 0)]
    assert sum(map(len, folds)) == 30
    assert set().union(*folds) == cells_of(grid())
    assert {len(fold) for fold in folds} == {7, 8}


def test_rows_are_left_out_whole():
    train, held_out = split_rows(grid(), 0.34, 0)
    assert len(set(held_out.rows.tolist())) == 2
    assert not set(train.rows.tolist()) & set(held_out.rows.tolist())
    assert cells_of(train) | cells_of(held_out) == cells_of(grid())


def test_bad_shares_are_refused():
    for split in (split_entries, split_rows):
        with pytest.raises(InputError, match="'held_out' parameter"):
            split(grid(), 1.0)
    with pytest.raises(InputError, match="'n_folds' parameter"):
        list(split_folds(grid(), 1))
    one = Observations([0], [0], [1.0])
    with pytest.raises(InputError, match="at least 2 observed cells"):
        split_entries(one)
    with pytest.raises(InputError, match="at least 2 rows"):
        split_rows(one)

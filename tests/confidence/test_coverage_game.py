"""The coverage game: what it supports, what it does not, and at which rate it is wrong about that."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from surefill import Observations
from surefill.confidence import CoverageGame, alternating_play, coverage_game, null_support
from surefill.confidence.alternating_play import CAP
from surefill.confidence.coverage_game import FLOOR
from surefill.confidence.null_support import CLASSES, Floors, NullCells, class_edges, shown_in_null
from surefill.datasets import make_blocks


def observed(rows, cols, shape):
    return Observations(rows, cols, np.linspace(0, 1, len(rows)), shape)


def without_components(confidence):
    """The same with all of the table taken as tied together, so that the floor alone decides."""
    rows, cols = np.zeros_like(confidence.row_components), np.zeros_like(confidence.col_components)
    return replace(confidence, row_components=rows, col_components=cols)


def two_groups(shape, share, seed, leak=0.0):
    """Cells seen inside two groups and a few between them; which cells are inside."""
    rng = np.random.default_rng(seed)
    inside = np.equal.outer(rng.random(shape[0]) < 0.5, rng.random(shape[1]) < 0.5)
    seen = (rng.random(shape) < share) & (inside | (rng.random(shape) < leak))
    return observed(*np.nonzero(seen), shape), inside, seen


@pytest.mark.parametrize("leak", [0.0, 0.005])
@pytest.mark.parametrize("seed", range(3))
def test_hardly_any_cell_between_groups_passes_and_nearly_all_inside_do(seed, leak):
    table, inside, seen = two_groups((300, 240), 0.2, seed, leak)
    confidence, certificate = CoverageGame(random_state=seed).fit(table)
    assert certificate.floor == FLOOR
    C = without_components(confidence).dense()
    assert np.mean(C[~inside & ~seen] >= FLOOR) <= 0.03
    assert np.mean(C[inside & ~seen] >= FLOOR) >= 0.95


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_a_fresh_split_passes_at_most_the_stated_share(share):
    rng = np.random.default_rng(1)
    popularity = rng.pareto(2.0, 300) + 0.2
    seen = rng.random((400, 300)) < np.minimum(0.05 * popularity, 0.9)
    rows, cols = np.nonzero(seen)
    halves = rng.random(400) < 0.5, rng.random(300) < 0.5
    within = halves[0][rows] == halves[1][cols]
    confidence, _ = CoverageGame(share).fit(observed(rows[within], cols[within], seen.shape))
    C = without_components(confidence).dense()
    between = np.not_equal.outer(*halves)[np.ix_(confidence.row_ids, confidence.col_ids)]
    assert np.mean(C[np.ix_(confidence.row_ids, confidence.col_ids)][between] >= FLOOR) <= 1.5 * share


def test_confidence_between_components_is_exactly_zero():
    sim = make_blocks((40, 30), n_groups=3, rank=2, n_draws=4000, random_state=0)
    C = CoverageGame().fit(sim.observations)[0].dense()
    assert (C[~sim.support] == 0).all()
    assert np.mean(C[sim.support] >= FLOOR) > 0.9


def test_rows_and_columns_never_seen_have_confidence_zero():
    table, _, _ = two_groups((60, 50), 0.4, 0)
    larger = observed(table.rows, table.cols, (70, 55))
    C = CoverageGame().fit(larger)[0].dense()
    assert (C[60:] == 0).all()
    assert (C[:, 50:] == 0).all()


@pytest.mark.parametrize(
    ("rows", "cols", "shape"),
    [([0], [0], (1, 1)), ([0, 1], [0, 1], (2, 2)), ([0, 0, 0], [0, 1, 2], (1, 3)), (range(9), [0] * 9, (9, 5))],
)
def test_tables_too_small_to_tell_support_nothing_and_say_so(rows, cols, shape):
    table = Observations(list(rows), list(cols), np.arange(len(list(rows))) + 1.0, shape, bounds=(0, 20))
    confidence, certificate = CoverageGame().fit(table)
    unseen = np.ones(shape, dtype=bool)
    unseen[table.rows, table.cols] = False
    assert (confidence.dense()[unseen] < FLOOR).all()
    if not confidence.floors.table.any():
        assert "too small to tell" in certificate.sentence


def test_the_order_of_the_observations_makes_no_difference_and_the_seed_does():
    table, _, _ = two_groups((80, 60), 0.3, 2)
    order = np.random.default_rng(0).permutation(len(table))
    shuffled = observed(table.rows[order], table.cols[order], table.shape)
    before = CoverageGame().fit(table)[0].dense()
    np.testing.assert_array_equal(CoverageGame().fit(shuffled)[0].dense(), before)
    assert not np.array_equal(CoverageGame(random_state=1).fit(table)[0].dense(), before)


def test_the_number_of_cores_makes_no_difference(monkeypatch):
    table, _, _ = two_groups((400, 300), 0.1, 3)
    before = CoverageGame().fit(table)[0].dense()
    for n_cores in (1, 3):
        monkeypatch.setattr("surefill.parallel.n_cores", lambda n=n_cores: n)
        np.testing.assert_array_equal(CoverageGame().fit(table)[0].dense(), before)


def test_plays_one_after_the_other_on_some_lines_at_a_time_come_to_the_same(monkeypatch):
    table, _, _ = two_groups((400, 300), 0.5, 3)
    assert np.median(table.by_row.sizes) > CAP  # so that it matters which line of the table each is
    before = CoverageGame().fit(table)[0].dense()
    monkeypatch.setattr(coverage_game, "MANY_CELLS", 0)
    monkeypatch.setattr(alternating_play, "LINES_AT_ONCE", 7)
    monkeypatch.setattr(null_support, "PIECE", 100)
    np.testing.assert_array_equal(CoverageGame().fit(table)[0].dense(), before)


def test_a_game_holds_few_bytes_for_each_observation(monkeypatch):
    """At most a mask, the rows and columns of the null's half of the cells, and the rows again in the order of columns.

    That is 7 bytes, and 10 leave room for one mask more and what is computed piece by piece; lines take 5 MB at most.
    """
    monkeypatch.setattr(coverage_game, "MANY_CELLS", 0)
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((4000, 1500)) < 0.5)
    table = observed(rows, cols, (4000, 1500))
    CoverageGame().fit(observed(*np.nonzero(rng.random((60, 40)) < 0.5), (60, 40)))
    tracemalloc.start()
    CoverageGame().fit(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(table) + 5e6


def test_rows_folded_in_again_are_supported_alike():
    table, inside, seen = two_groups((300, 200), 0.2, 4)
    confidence, _ = CoverageGame().fit(table)
    again = table.select(table.rows < 40)
    folded = confidence.fold_in(observed(again.rows, again.cols, (40, 200)))
    agree = (folded.dense() >= FLOOR) == (confidence.dense()[:40] >= FLOOR)
    assert agree.mean() > 0.97
    assert (folded.dense()[~inside[:40] & ~seen[:40]] < FLOOR).mean() > 0.97
    assert folded.floors is confidence.new_row_floors  # new rows are held to what rows folded into a null reached


def test_the_order_of_a_new_rows_observations_makes_no_difference():
    table, _, _ = two_groups((80, 400), 0.6, 4)
    confidence, _ = CoverageGame().fit(table)
    new = table.select(table.rows == 0)
    assert len(new) > CAP  # so that a part of them is drawn
    order = np.random.default_rng(0).permutation(len(new))
    shuffled = observed(new.rows[order], new.cols[order], (1, 400))
    one = confidence.fold_in(observed(new.rows, new.cols, (1, 400)))
    np.testing.assert_array_equal(confidence.fold_in(shuffled).dense(), one.dense())


def test_small_tables_support_new_rows_too():
    table, _, _ = two_groups((24, 20), 0.9, 9)
    confidence, _ = CoverageGame().fit(table)
    again = table.select(table.rows < 6)
    folded = confidence.fold_in(observed(again.rows, again.cols, (6, 20))).dense()
    assert np.mean(folded[again.rows, again.cols] >= FLOOR) > 0.9


def test_a_new_row_seen_in_two_components_ties_them_for_itself():
    sim = make_blocks((40, 30), n_groups=2, rank=2, n_draws=3000, random_state=0)
    confidence, _ = CoverageGame().fit(sim.observations)
    n = sim.observations.shape[1]
    one = np.flatnonzero(sim.support[0])[:12]
    other = np.flatnonzero(~sim.support[0])[:12]
    both = np.concatenate([one, other])
    new = observed(np.repeat([0, 1], [12, 24]), np.concatenate([one, both]), (2, n))
    alone = confidence.fold_in(observed(np.zeros(12, int), one, (1, n))).dense()
    assert (alone[0, np.flatnonzero(~sim.support[0])] == 0).all()
    assert (confidence.fold_in(new).dense()[1] > 0).all()


def test_the_stated_share_sets_the_floor():
    table, _, _ = two_groups((200, 150), 0.2, 5)
    strict, loose = (CoverageGame(share).fit(table)[0].dense() for share in (0.01, 0.3))
    assert np.mean(strict >= FLOOR) < np.mean(loose >= FLOOR)


def test_the_rank_follows_the_observations_per_line():
    few, _, _ = two_groups((200, 150), 0.05, 6)
    many, _, _ = two_groups((200, 150), 0.9, 6)
    ranks = [CoverageGame().fit(table)[0].row_slots.shape[2] for table in (few, many)]
    assert ranks == [4, 8]
    assert CoverageGame(rank=3).fit(few)[0].row_slots.shape[2] == 3
    assert CoverageGame().chosen_for(many, None, 0.1, 0.1).rank == 8


def test_lines_that_were_all_seen_as_often_are_one_class():
    rows, cols = np.nonzero((np.add.outer(np.arange(24), np.arange(24)) % 3) > 0)  # every line 16 times
    confidence, _ = CoverageGame().fit(Observations(rows, cols, np.linspace(0, 1, len(rows)), (24, 24)))
    assert len(confidence.floors.row_edges) == 1
    assert np.isfinite(confidence.dense()).all()


def test_floors_are_lower_quantiles_of_their_class_or_of_all():
    rng = np.random.default_rng(7)
    size = 40_000
    row_class, col_class = rng.integers(CLASSES, size=size), np.zeros(size, int)
    null = NullCells(rng.random(size) + row_class, row_class, col_class)
    counts = np.arange(1, 101)
    floors = Floors.of(null, 0.02, counts, counts)
    for r in range(CLASSES):
        assert np.mean(null.average[row_class == r] < floors.table[r, 0]) <= 0.02
        assert floors.table[r, 0] == pytest.approx(r + 0.02, abs=0.005)
        assert floors.table[r, 1] == pytest.approx(np.quantile(null.average, 0.02), abs=0.005)
    assert floors.n_null == size


def test_classes_never_part_equal_counts():
    counts = np.repeat([1, 1, 2, 50], 25)
    edges = class_edges(counts)
    assert list(edges) == [1, 2, 50] or list(edges) == [1, 2]
    assert class_edges(np.zeros(5, int)).size == 0


def test_a_null_hides_what_crosses_but_for_single_strays():
    rng = np.random.default_rng(8)
    rows, cols = np.nonzero(rng.random((200, 160)) < 0.3)
    halves = rng.random(200) < 0.5, rng.random(160) < 0.5
    shown = shown_in_null(rows, cols, halves, rng)
    crosses = halves[0][rows] != halves[1][cols]
    assert shown[~crosses].all()
    strays = shown & crosses
    assert 0 < strays.sum() < 0.2 * (200 + 160)

import numpy as np
import pytest

from surefill import InputError, Observations, PartialCompleter
from surefill.datasets import make_low_rank
from surefill.estimators import iterate_table, long_table


@pytest.fixture(scope="module")
def completer():
    sim = make_low_rank((20, 15), rank=1, n_draws=250, noise=0.1, random_state=0).observations
    sim = sim.select(sim.rows != 19)
    seen = Observations(sim.rows, sim.cols, sim.values, (20, 15), row_labels=[f"r{i}" for i in range(20)])
    return PartialCompleter(tolerance=0.5, confidence="posterior").fit(seen)


def assert_same(found, expected):
    """Equal, numbers but for the single precision in which products of blocks are made."""
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


def gathered(completer, entries, **options):
    blocks = list(iterate_table(completer, entries, **options))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.mark.parametrize("block_cells", [1, 7, 1 << 18])
def test_blocks_of_any_size_make_one_table(completer, monkeypatch, block_cells):
    expected = gathered(completer, "all")
    monkeypatch.setattr(long_table, "BLOCK_CELLS", block_cells)
    for name, column in gathered(completer, "all").items():
        assert_same(column, expected[name])


def test_columns_say_what_the_completer_says(completer):
    whole = gathered(completer, "all")
    assert list(whole) == ["row", "column", "value", "confidence", "risk", "keep", "observed"]
    assert len(whole["row"]) == 300
    rows, cols = whole["row"], whole["column"]
    assert whole["row"][17] == "r1"
    assert_same(whole["confidence"], completer.predict_confidence(rows, cols))
    np.testing.assert_array_equal(whole["keep"], completer.keep(rows, cols))
    assert_same(whole["risk"], completer.predict_risk(rows, cols))
    seen = whole["observed"]
    assert seen.sum() == len(completer.observations_)
    assert_same(whole["value"][~seen], completer.predict(rows, cols)[~seen])
    dense = completer.observations_.dense()
    np.testing.assert_array_equal(
        whole["value"][seen], dense[completer.observations_.row_index(rows[seen]), cols[seen]]
    )


def test_which_entries(completer):
    whole, kept, missing = (gathered(completer, entries) for entries in ("all", "kept", "missing"))
    assert len(kept["row"]) == (whole["keep"] | whole["observed"]).sum() < 300
    assert (kept["keep"] | kept["observed"]).all()
    assert len(missing["row"]) == 300 - len(completer.observations_)
    with pytest.raises(InputError, match="'entries' parameter"):
        list(iterate_table(completer, "some"))


def test_some_rows_in_the_order_asked_for(completer):
    whole, some = gathered(completer, "all"), gathered(completer, "all", rows=["r7", "r2"])
    assert some["row"].tolist() == ["r7"] * 15 + ["r2"] * 15
    for place, row in enumerate((7, 2)):
        for name in ("value", "confidence", "risk", "keep", "observed"):
            assert_same(some[name][15 * place :][:15], whole[name][15 * row :][:15])
    with pytest.raises(InputError, match="no row labelled 'r20'"):
        list(iterate_table(completer, rows=["r20"]))


def test_intervals_beside_values_are_those_of_the_completer(completer):
    kept = gathered(completer, "kept", level=0.8)
    rows, cols = completer.observations_.row_index(kept["row"]), kept["column"]
    for found, expected in zip(
        (kept["low"], kept["high"]), completer.result_.interval_at(rows, cols, 0.8), strict=True
    ):
        assert_same(found, expected)
    with pytest.raises(InputError, match="'level' parameter"):
        list(iterate_table(completer, level=1.0))


def test_every_cell_is_asked_once(completer, monkeypatch):
    from surefill.estimators import PartialCompletion

    asked, answer_block = [], PartialCompletion.answer_block

    def count(result, rows, cols):
        asked.extend((row, col) for row in rows for col in cols)
        return answer_block(result, rows, cols)

    monkeypatch.setattr(PartialCompletion, "answer_block", count)
    monkeypatch.setattr(PartialCompletion, "answer", None)
    monkeypatch.setattr(long_table, "BLOCK_CELLS", 40)
    gathered(completer, "all", level=0.8)
    assert len(asked) == len(set(asked)) == 300

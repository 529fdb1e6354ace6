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


def gathered(completer, entries):
    blocks = list(iterate_table(completer, entries))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.mark.parametrize("block_cells", [1, 7, 1 << 18])
def test_blocks_of_any_size_make_one_table(completer, monkeypatch, block_cells):
    expected = gathered(completer, "all")
    monkeypatch.setattr(long_table, "BLOCK_CELLS", block_cells)
    for name, column in gathered(completer, "all").items():
        np.testing.assert_array_equal(column, expected[name])


def test_columns_say_what_the_completer_says(completer):
    whole = gathered(completer, "all")
    assert list(whole) == ["row", "column", "value", "confidence", "risk", "keep", "observed"]
    assert len(whole["row"]) == 300
    rows, cols = whole["row"], whole["column"]
    assert whole["row"][17] == "r1"
    np.testing.assert_array_equal(whole["confidence"], completer.predict_confidence(rows, cols))
    np.testing.assert_array_equal(whole["keep"], completer.keep(rows, cols))
    np.testing.assert_array_equal(whole["risk"], completer.predict_risk(rows, cols))
    seen = whole["observed"]
    assert seen.sum() == len(completer.observations_)
    np.testing.assert_array_equal(whole["value"][~seen], completer.predict(rows, cols)[~seen])
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

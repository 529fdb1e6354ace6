import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from surefill import InputError
from surefill.reproduction import error_by_decile


def test_without_ties_the_means_are_those_of_sorted_groups():
    rng = np.random.default_rng(0)
    C, loss = rng.uniform(size=103), rng.exponential(size=103)
    table = error_by_decile(C, loss)
    parts = np.array_split(np.argsort(C), 10)
    np.testing.assert_allclose(table.error, [loss[part].mean() for part in parts])
    np.testing.assert_allclose(table.confidence, [C[part].mean() for part in parts])
    np.testing.assert_allclose(table.standard_error, [loss[part].std() / np.sqrt(len(part)) for part in parts])
    assert table.spearman == pytest.approx(np.corrcoef(np.arange(10), rankdata(table.error))[0, 1])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=5, max_size=40), st.randoms())
def test_the_order_of_tied_entries_makes_no_difference(entries, random):
    shuffled = random.sample(entries, len(entries))
    one, other = (error_by_decile(*zip(*listed, strict=True), n_groups=5) for listed in (entries, shuffled))
    np.testing.assert_allclose(one.error, other.error)
    sizes = [len(part) for part in np.array_split(np.arange(len(entries)), 5)]
    assert np.dot(one.error, sizes) == pytest.approx(sum(loss for _, loss in entries))


def test_a_falling_error_has_correlation_minus_one_and_a_constant_one_none():
    C = np.linspace(0, 1, 50)
    assert error_by_decile(C, 1 - C).spearman == pytest.approx(-1)
    assert error_by_decile(C, np.ones(50)).spearman == 0


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="one length"):
        error_by_decile([0.1, 0.2], [1.0])
    with pytest.raises(InputError, match="'n_groups'"):
        error_by_decile([0.1, 0.2], [1.0, 2.0])

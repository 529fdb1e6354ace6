import numpy as np
import pytest

from surefill import InputError, PartialCompleter
from surefill.datasets import make_hidden_digits
from surefill.reproduction.figures import _digit_lines, draw_digits, first_of_each_digit


@pytest.fixture(scope="module")
def fitted():
    hidden = make_hidden_digits(150)
    return hidden, PartialCompleter(12.0, confidence="posterior", aim="observed").fit(hidden.observations).result_


def test_a_picture_is_drawn_whole_or_refused(fitted, tmp_path):
    draw_digits(*fitted, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.count("<image") == 4 * 10
    with pytest.raises(InputError, match="must end in one of"):
        draw_digits(*fitted, tmp_path / "a.xls")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_one_image_of_each_digit_halves_in_turn(fitted):
    chosen = first_of_each_digit(fitted[0])
    assert fitted[0].digits[chosen].tolist() == list(range(10))
    assert fitted[0].upper[chosen].tolist() == [True, False] * 5


def test_what_is_neither_seen_nor_kept_stays_blank(fitted):
    hidden, result = fitted
    truth, seen, completed, kept = (images for _, _, images in _digit_lines(*fitted))
    assert result.keeps_dense().any()
    np.testing.assert_array_equal(np.isnan(seen), ~hidden.seen)
    np.testing.assert_array_equal(np.isnan(kept), ~(hidden.seen | result.keeps_dense()))
    np.testing.assert_array_equal(completed[hidden.seen], truth[hidden.seen])
    note = _digit_lines(*fitted)[3][1]
    filled = result.keeps_dense() & ~hidden.seen
    assert f"error {np.mean((kept - truth)[filled] ** 2):.1f} " in note

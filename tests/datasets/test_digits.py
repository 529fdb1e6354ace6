import numpy as np
import pytest
from sklearn.datasets import load_digits

from surefill import InputError
from surefill.datasets import make_hidden_digits


def test_each_image_shows_one_half_with_holes_and_the_truth_is_scikit_learns():
    hidden = make_hidden_digits(300, share=0.6, random_state=1)
    seen, halves = hidden.seen, np.arange(64) < 32
    for upper, half in ((True, halves), (False, ~halves)):
        images = hidden.upper == upper
        assert images.sum() == 150
        assert not seen[np.ix_(images, ~half)].any()
        assert seen[np.ix_(images, half)].mean() == pytest.approx(0.6, abs=0.03)
        assert hidden.shown[np.ix_(images, half)].all()
    np.testing.assert_array_equal(hidden.observations.dense()[seen], hidden.truth[seen])
    known = {tuple(image): digit for image, digit in zip(*load_digits(return_X_y=True), strict=True)}
    assert [known[tuple(image)] for image in hidden.truth] == hidden.digits.tolist()


def test_the_seed_decides_and_the_ends_work():
    one, same, other = (make_hidden_digits(50, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.seen, same.seen)
    assert (one.seen != other.seen).any()
    assert make_hidden_digits(1797, share=1.0).seen.sum() == 1797 * 32


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"n_images": 1}, "n_images"), ({"n_images": 1798}, "n_images"), ({"n_images": 9.5}, "n_images"),
     ({"share": 0}, "share"), ({"share": 1.1}, "share"), ({"share": "a"}, "share")],
)  # fmt: skip
def test_bad_parameters(parameters, name):
    with pytest.raises(InputError, match=f"The '{name}' parameter of make_hidden_digits"):
        make_hidden_digits(**parameters)

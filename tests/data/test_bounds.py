import numpy as np
import pytest

from surefill.data import BoundsSource, Observations
from surefill.errors import InputError


def observed(values, **options):
    cells = np.arange(len(values))
    return Observations(cells // 10, cells % 10, np.asarray(values, dtype=np.float64), **options)


STARS = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 10)
UNBOUNDED_COUNTS = np.repeat([0.0, 1.0, 2.0, 3.0, 9.0], [30, 20, 10, 5, 2])


@pytest.mark.parametrize(
    ("values", "source", "words"),
    [
        (STARS, BoundsSource.SCALE, "the scale 1 to 5 in steps of 1, taken as the range"),
        (STARS / 2, BoundsSource.SCALE, "the scale 0.5 to 2.5 in steps of 0.5, taken as the range"),
        (np.repeat([0.0, 1.0], 8), BoundsSource.SCALE, "the scale 0 to 1 in steps of 1, taken as the range"),
        (STARS / 4, BoundsSource.SEEN, "from 0.25 to 1.25 were seen; bounds were not given"),
        (STARS * 10, BoundsSource.SEEN, "from 10 to 50 were seen"),
        (UNBOUNDED_COUNTS, BoundsSource.SEEN, "from 0 to 9 were seen"),
        (np.r_[STARS, 5.001], BoundsSource.SEEN, "from 1 to 5.001 were seen"),
    ],
)
def test_a_scale_is_recognised_where_values_lie_on_it_and_pile_up_at_its_ends(values, source, words):
    seen = observed(values)
    assert seen.bounds == (values.min(), values.max())
    assert seen.bounds_from is source
    assert words in seen.about_bounds


def test_given_bounds_are_given_and_a_part_keeps_them():
    seen = observed(STARS, bounds=(0, 6))
    for part in (seen, seen.select(np.arange(20)), seen.select([0, 0, 1])):
        assert (part.bounds, part.bounds_from) == ((0, 6), BoundsSource.GIVEN)
    own = seen.select(np.arange(20)).with_bounds(None)
    assert (own.bounds, own.bounds_from) == ((1, 2), BoundsSource.SCALE)
    assert seen.bounds == (0, 6)


def test_differing_repeats_do_not_hide_a_scale():
    rows, cols = np.r_[np.arange(50), 0] // 10, np.r_[np.arange(50), 0] % 10
    seen = Observations(rows, cols, np.r_[STARS, 2.0])
    assert seen.values[0] == 1.5
    assert seen.bounds_from is seen.with_bounds(None).bounds_from is BoundsSource.SCALE
    assert "in steps of 1" in seen.about_bounds


def test_values_outside_bounds_given_later_are_refused():
    with pytest.raises(InputError, match=r"within bounds \(1, 4\); item 40 is 5"):
        observed(STARS).with_bounds((1, 4))
    differing = Observations([0, 0, 1], [0, 0, 1], [0.0, 8.0, 3.0])
    with pytest.raises(InputError, match=r"within bounds \(1, 5\); values from 0 to 8 were seen"):
        differing.with_bounds((1, 5))


class TestDominance:
    def seen(self, values, **options):
        return Observations(np.arange(len(values)), np.zeros(len(values), dtype=int), values, **options)

    @pytest.mark.parametrize("kind", ["normal", "exponential", "laplace"])
    def test_usual_values_do_not_dominate(self, kind):
        assert self.seen(getattr(np.random.default_rng(0), kind)(size=2000)).dominance is None
        assert self.seen(np.random.default_rng(0).integers(1, 6, 500).astype(float)).dominance is None
        assert self.seen(np.full(500, 2.0)).dominance is None
        drawn = [getattr(np.random.default_rng(seed), kind)(size=60) for seed in range(100)]
        assert all(self.seen(values).dominance is None for values in drawn)

    @pytest.mark.parametrize("scale", [1.0, 1e50, 1e-50])
    def test_three_of_a_million_do(self, scale):
        values = scale * np.r_[np.random.default_rng(0).normal(size=397), 1e6, 1e6, -1e6]
        found = self.seen(values).dominance
        assert (found.n_dominating, found.n_cells, abs(found.farthest)) == (2, 400, 1e6 * scale)
        assert found.usual < 2 * scale
        assert "A few values dominate: 2 of 400" in found.sentence
        assert self.seen(values[:397]).dominance is None
        assert self.seen(values, bounds=(values.min(), values.max())).dominance is None

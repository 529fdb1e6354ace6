import numpy as np
import pytest

from surefill.completion import FactorModel
from surefill.confidence import CoverageProgram
from surefill.confidence.coverage_program import choose_parameters
from surefill.data import UnitMap
from surefill.datasets import make_low_rank
from surefill.errors import InputError


class Matrix:
    """A completion that is a matrix."""

    def __init__(self, matrix):
        self.matrix, self.shape = matrix, matrix.shape

    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]


UNIT = UnitMap(-1.0, 1.0)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_rank_is_twice_that_of_an_even_completion(rank):
    rng = np.random.default_rng(rank)
    left, right = (np.linalg.qr(rng.normal(size=(80, rank)))[0] for _ in range(2))
    chosen = choose_parameters(Matrix(5 * left @ right.T), UNIT, tolerance=0.1, held_out_error=0.01)
    assert chosen.rank == 2 * rank


def test_norm_bounds_the_completion_and_is_at_least_one():
    small = choose_parameters(Matrix(np.full((5, 4), 0.2)), UNIT, tolerance=0.1, held_out_error=0.01)
    assert small.K == 1
    signs = np.where(np.random.default_rng(0).random((30, 30)) < 0.5, -1.0, 1.0)
    assert choose_parameters(Matrix(signs), UNIT, tolerance=0.1, held_out_error=0.01).K > 2


def test_gamma_and_beta_follow_tolerance_and_error():
    matrix = Matrix(np.eye(6))
    chosen = choose_parameters(matrix, UNIT, tolerance=0.16, held_out_error=0.02)
    assert (chosen.gamma, chosen.beta) == pytest.approx((0.2, 0.005))
    noisy = choose_parameters(matrix, UNIT, tolerance=0.16, held_out_error=0.9)
    assert noisy.beta == pytest.approx(0.02)
    exact = choose_parameters(matrix, UNIT, tolerance=0.16, held_out_error=1e-12)
    assert exact.beta == pytest.approx(0.005 * 0.04)
    assert choose_parameters(matrix, UNIT, tolerance=9.0, held_out_error=0.1).gamma < 1
    assert choose_parameters(matrix, UNIT, tolerance=9.0, held_out_error=9.0, gamma=0.3).beta == pytest.approx(0.045)


def test_the_program_keeps_what_was_given_and_chooses_the_rest():
    seen = make_low_rank((20, 15), rank=1, n_draws=250, random_state=0).observations
    completion = FactorModel(rank=1).fit(seen)
    chosen = CoverageProgram(K=1.5, rank="auto").chosen_for(seen, completion, 0.16, 0.02)
    assert (chosen.K, chosen.gamma, chosen.beta) == pytest.approx((1.5, 0.2, 0.005))
    assert chosen.rank >= 2
    given = CoverageProgram(K=1.0, gamma=0.3, beta=0.04, rank=3)
    assert given.chosen_for(seen, completion, 0.16, 0.02) == given
    with pytest.raises(InputError, match="needs gamma and rank"):
        CoverageProgram().fit(seen, completion)


def test_choices_are_in_the_papers_units():
    seen = make_low_rank((20, 15), rank=1, n_draws=250, random_state=0).observations
    stars = type(seen)(seen.rows, seen.cols, 3 + 2 * seen.values, seen.shape, (1, 5), counts=seen.counts)
    one = CoverageProgram().chosen_for(seen, FactorModel(rank=1).fit(seen), 0.16, 0.02)
    other = CoverageProgram().chosen_for(stars, FactorModel(rank=1).fit(stars), 4 * 0.16, 4 * 0.02)
    assert (one.gamma, one.beta) == pytest.approx((other.gamma, other.beta))
    assert pytest.approx(other.K, rel=1e-6) == one.K

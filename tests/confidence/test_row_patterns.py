import numpy as np
import pytest

from surefill.confidence import CoverageProgram
from surefill.confidence.row_patterns import FactoredPatterns
from surefill.data import Observations
from surefill.datasets import make_blocks
from surefill.errors import InputError


@pytest.fixture(scope="module")
def solved():
    sim = make_blocks((80, 15), n_draws=2000, random_state=0)
    program = CoverageProgram(K=1.0, gamma=0.3, rank=2, time_limit=5)
    return sim, *program.fit(sim.observations, None)


def test_a_large_answer_stays_in_factors_and_says_how_it_stands(solved):
    sim, confidence, certificate = solved
    assert isinstance(confidence, FactoredPatterns)
    assert certificate.standing == "searched"
    assert "rank 2" in certificate.sentence
    C = confidence.dense()
    np.testing.assert_allclose(confidence.at([1, 2], [3, 4]), C[[1, 2], [3, 4]], atol=1e-5)
    np.testing.assert_allclose(confidence.block([1, 9], [3]), C[[1, 9]][:, [3]], atol=1e-5)
    assert confidence.coverage == pytest.approx(C.sum(), rel=1e-5)
    assert C[sim.support].mean() > C[~sim.support].mean() + 0.5


def test_rows_seen_alike_share_and_others_are_not_trusted(solved):
    sim, confidence, _ = solved
    seen = sim.observations
    np.testing.assert_allclose(confidence.fold_in(seen).dense()[7], confidence.dense()[7], atol=1e-5)
    entries = seen.rows == 7
    moved = Observations(
        np.where(seen.rows[entries] == 7, 1, 0), seen.cols[entries], seen.values[entries], (3, 30),
        counts=seen.counts[entries],
    )  # fmt: skip
    nothing, alike, nothing_too = confidence.fold_in(moved).dense()
    np.testing.assert_allclose(alike, confidence.dense()[7], atol=1e-5)
    assert not nothing.any()
    assert not nothing_too.any()
    oftener = Observations(moved.rows, moved.cols, moved.values, (3, 30), counts=moved.counts + 1)
    assert confidence.fold_in(oftener).coverage == 0
    with pytest.raises(InputError, match="must have 30 columns; got 2"):
        confidence.fold_in(Observations([0], [1], [1.0]))

import matplotlib as mpl
import numpy as np
import pytest

from surefill import Observations, PartialCompleter, solve_coverage
from surefill.confidence import CoverageProgram
from surefill.datasets import make_blocks, make_low_rank
from surefill.errors import MissingPackageError
from surefill.metrics import calibration_by_decile
from surefill.plots import View, block_order, plot_matrix, plot_risk_coverage, some_indices

mpl.use("Agg")
import matplotlib.pyplot as plt

METHODS = ("plot_risk_coverage", "plot_calibration", "plot_confidence", "plot_kept")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result():
    """Rows are noisier the further down, so that a part of them is kept."""
    seen = make_low_rank((120, 60), rank=2, n_draws=9000, noise=0.1, random_state=0).observations
    noise = np.linspace(0, 0.8, 120)[seen.rows] * np.random.default_rng(0).normal(size=len(seen))
    noisy = Observations(seen.rows, seen.cols, np.clip(seen.values + noise, -1, 1), seen.shape, (-1.0, 1.0))
    return PartialCompleter(tolerance=0.1, confidence="posterior").fit(noisy).result_


@pytest.mark.parametrize("method", METHODS)
def test_every_plot_draws_where_it_is_told_or_anew_and_returns_the_axes(result, method):
    _, ax = plt.subplots()
    assert getattr(result, method)(ax) is ax
    assert ax.has_data()
    anew = getattr(result, method)()
    assert anew is not ax
    anew.figure.canvas.draw()


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_matplotlib_is_said_with_how_to_get_it(result, method, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install matplotlib"):
        getattr(result, method)()


def test_the_chosen_point_lies_on_the_curve_below_the_tolerance(result):
    lines = result.plot_risk_coverage().get_lines()
    curve, tolerance, (share, error) = lines[0], lines[-2], np.ravel(lines[-1].get_data())
    assert 0.1 < share < 1
    at = np.argmin(np.abs(curve.get_xdata() - share))
    assert curve.get_xdata()[at] == pytest.approx(share, abs=1e-12)
    assert curve.get_ydata()[at] == pytest.approx(error, rel=1e-12)
    assert error < tolerance.get_ydata()[0] == 0.1


def test_what_is_never_kept_is_dotted_up_to_the_mean_of_all():
    loss, risk, weight = np.array([[0.0, 2.0, 1.0, 5.0], [0.1, 0.2, 0.05, 0.3], [1.0, 1.0, 2.0, 1.0]])
    solid, dotted = plot_risk_coverage(loss, risk, weight, [True, True, False, False], 0.5, None).get_lines()[:2]
    np.testing.assert_allclose(solid.get_xydata(), [[0.2, 0.0], [0.4, 1.0]])
    np.testing.assert_allclose(dotted.get_xydata(), [[0.4, 1.0], [0.8, 1.0], [1.0, 9 / 5]])
    assert dotted.get_linestyle() == ":"
    assert "never kept" in dotted.get_label()


def test_an_empty_set_has_no_point(result):
    legend = result.at_tolerance(1e-9).plot_risk_coverage().get_legend()
    said = [text.get_text() for text in legend.get_texts()]
    assert "nothing is kept" in said
    assert not any(text.startswith("kept:") for text in said)


def test_calibration_shows_the_tenths(result):
    seen = result.calibration
    table = calibration_by_decile(seen.loss, seen.risk)
    points = result.plot_calibration().containers[0].lines[0]
    np.testing.assert_allclose(points.get_xdata(), table.predicted)
    np.testing.assert_allclose(points.get_ydata(), table.seen)


def test_kept_is_drawn_where_it_is_kept_and_grey_elsewhere(result):
    drawn = np.ma.filled(result.plot_kept(order=False).images[0].get_array(), np.nan)
    np.testing.assert_array_equal(np.isfinite(drawn), result.keeps_dense())
    assert 0 < np.isfinite(drawn).mean() < 1


def shuffled_blocks(n_blocks, inside, between, rng):
    rows, cols = (rng.permutation(np.arange(size) % n_blocks) for size in (45, 30))
    same = rows[:, None] == cols
    return np.where(same, inside, between) * rng.uniform(0.8, 1, same.shape), rows, cols


@pytest.mark.parametrize("n_blocks", [2, 3, 5])
@pytest.mark.parametrize(("inside", "between"), [(1.0, 0.0), (0.9, 0.15)])
def test_shuffled_blocks_come_out_as_blocks(n_blocks, inside, between):
    matrix, rows, cols = shuffled_blocks(n_blocks, inside, between, np.random.default_rng(n_blocks))
    by_row, by_col = block_order(matrix)
    assert sorted(by_row) == list(range(45))
    assert sorted(by_col) == list(range(30))
    runs = [1 + np.count_nonzero(np.diff(groups)) for groups in (rows[by_row], cols[by_col])]
    assert runs == [n_blocks, n_blocks]
    sequences = [list(dict.fromkeys(groups.tolist())) for groups in (rows[by_row], cols[by_col])]
    assert sequences[0] == sequences[1]


def test_without_blocks_the_most_trusted_come_first():
    rng = np.random.default_rng(0)
    matrix = np.outer(rng.uniform(0.1, 1, 40), rng.uniform(0.1, 1, 30))
    rows, cols = block_order(matrix)
    ordered = matrix[np.ix_(rows, cols)]
    assert (np.diff(ordered, axis=0) <= 0).all()
    assert (np.diff(ordered, axis=1) <= 0).all()


@pytest.mark.parametrize("matrix", [np.zeros((4, 3)), np.ones((1, 5)), np.eye(20), np.ones((5, 1))])
def test_matrices_without_an_order_are_no_trouble(matrix):
    rows, cols = block_order(matrix)
    assert sorted(rows) == list(range(len(matrix)))
    assert sorted(cols) == list(range(matrix.shape[1]))


def test_the_coverage_program_plots_its_blocks():
    sim = make_blocks((6, 6), n_draws=200, random_state=0)
    ax = solve_coverage(sim.observations, K=1, gamma=0.3).plot()
    drawn = np.asarray(ax.images[0].get_array())
    assert drawn[:6, :6].mean() > 3 * drawn[:6, 6:].mean()
    assert drawn[6:, 6:].mean() > 3 * drawn[6:, :6].mean()
    result = PartialCompleter(1.0, confidence=CoverageProgram(K=1.0, gamma=0.3)).fit(sim.observations).result_
    assert result.plot_confidence(order=False).images[0].get_array().tolist() == result.confidence.dense().tolist()


class Huge:
    """A billion rows and columns, known by formula; anything m x n would not fit."""

    shape = (10**9, 10**9)

    def block(self, rows, cols):
        return np.exp(np.add.outer(np.asarray(rows), np.asarray(cols)) / 10**9 - 2)


def test_a_view_of_a_huge_matrix_is_small():
    view = View.of(Huge(), order=False)
    assert view.confidence.shape == (600, 600)
    assert (np.diff(view.rows) > 0).all()
    ax = plot_matrix(view.confidence, view.shape, "confidence", (0.0, 1.0))
    assert ax.get_xlabel() == "600 of 1,000,000,000 columns, drawn at random"
    ordered = View.of(Huge())
    assert sorted(ordered.rows) == list(view.rows)
    np.testing.assert_array_equal(ordered.confidence, Huge().block(ordered.rows, ordered.cols))


@pytest.mark.parametrize("size", [600, 601, 700, 10**12])
def test_some_indices_are_distinct_rising_and_as_many_as_asked(size):
    drawn = some_indices(size, 600)
    assert len(drawn) == 600
    assert (np.diff(drawn) > 0).all()
    assert 0 <= drawn[0] <= drawn[-1] < size

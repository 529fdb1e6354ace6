"""The estimator: what it keeps and says, its parameters, and scikit-learn's contract."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from surefill import Observations, PartialCompleter
from surefill.completion import FactorModel
from surefill.confidence import CoverageProgram
from surefill.datasets import load_movielens, make_blocks, make_low_rank
from surefill.errors import InputError
from surefill.estimators import iterate_table
from surefill.estimators.algorithms import choose_completion, choose_confidence
from surefill.guarantee import CalibrationSplit, rounding_threshold
from surefill.loop import Status
from surefill.registry import COMPLETIONS
from surefill.risk import RiskModel


@parametrize_with_checks([PartialCompleter()])
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def test_blocks_are_kept_and_what_lies_between_is_not(blocks):
    sim, completer = blocks
    confidence = completer.result_.confidence.dense()
    kept = completer.result_.keeps_dense()
    unseen = np.isnan(sim.observations.dense())
    assert kept.sum() <= confidence.sum()
    assert completer.result_.selection.floor >= rounding_threshold(completer.result_.confidence)
    assert kept[sim.support].mean() > 0.6
    assert kept[sim.support & unseen].mean() > 0.3
    assert kept[~sim.support].mean() < 0.02
    error = (completer.result_.completion.dense() - sim.truth) ** 2
    assert error[kept].mean() < 0.02 < error[~kept].mean()


def test_result_says_what_is_known_and_what_is_not(blocks):
    result = blocks[1].result_
    assert result.certificate.standing == "certified"
    assert result.certificate.coverage <= result.certificate.upper_bound
    assert result.guarantee.promised
    filled = result.keeps_dense() & np.isnan(blocks[0].observations.dense())
    assert (
        f"With probability at least 0.95 over which cells were observed and held out, the mean squared error over the "
        f"{filled.sum()} filled cells (those kept that were not observed, each counted once) is at most 0.5."
    ) in result.guarantee.sentence
    assert "if cells are observed independently of one another" in result.guarantee.holds_over
    assert "nor about rows that were not there when fitting" in result.guarantee.not_promised
    assert set(result.timings) == {"choice", "trial fit", "fit", "risk", "promise"}
    with pytest.raises(AttributeError):
        result.selection = None


def test_every_method_speaks_of_the_same_entries(fitted, sim):
    rows, cols = [0, 5, 59], [1, 49, 2]
    value, confidence = fitted.predict(rows, cols), fitted.predict_confidence(rows, cols)
    predicted_range = fitted.result_.predicted_range
    np.testing.assert_allclose(value, np.clip(fitted.result_.completion.dense()[rows, cols], *predicted_range))
    assert ((confidence >= 0) & (confidence <= 1)).all()
    risk, selection = fitted.predict_risk(rows, cols), fitted.result_.selection
    np.testing.assert_array_equal(fitted.result_.risk.at(rows, cols), risk)
    kept = (confidence >= selection.floor - 1e-5) & (risk <= selection.threshold * (1 + 1e-9))
    np.testing.assert_array_equal(fitted.keep(rows, cols), kept)


def test_what_is_not_kept_has_a_reason_and_what_is_has_none(fitted):
    rows, cols = np.indices(fitted.observations_.shape).reshape(2, -1)
    np.testing.assert_array_equal(fitted.result_.reasons(rows, cols) == "", fitted.result_.keeps(rows, cols))


def test_kept_entries_meet_the_tolerance_on_the_truth_with_its_noise(fitted, sim):
    kept = fitted.result_.keeps_dense()
    error = (fitted.result_.completion.dense() - sim.truth) ** 2
    assert kept.mean() > 0.5
    assert error[kept].mean() + 0.2**2 / 3 < 0.08


def test_a_smaller_tolerance_keeps_no_more(sim):
    shares = [
        PartialCompleter(tolerance=tolerance, confidence="posterior").fit(sim.observations).result_.kept_share()
        for tolerance in (1e-6, 0.04, 0.08, 1.0)
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] > 0.5


def test_nothing_is_refitted_after_the_promise(fitted, sim):
    """Values, risks and confidences are those of the training cells alone: other calibration values change none."""
    seen = sim.observations
    held_out = CalibrationSplit.of(seen, "unobserved", None, 0).calibration
    values = seen.values.copy()
    values[seen.find(held_out.rows, held_out.cols)] *= -1
    other = Observations(
        seen.rows, seen.cols, values, seen.shape, seen.bounds, counts=seen.counts, scatter=seen.scatter
    )
    changed = PartialCompleter(tolerance=0.08, confidence="posterior").fit(other)
    rows, cols = np.indices(seen.shape).reshape(2, -1)
    for method in ("predict", "predict_confidence", "predict_risk"):
        np.testing.assert_array_equal(getattr(changed, method)(rows, cols), getattr(fitted, method)(rows, cols))
    assert fitted.result_.guarantee.promised
    assert not changed.result_.guarantee.promised
    assert changed.result_.selection.floor == fitted.result_.selection.floor


def test_nothing_promised_says_why_and_what_would_help(sim):
    result = PartialCompleter(tolerance=0.015, confidence="posterior").fit(sim.observations).result_
    assert not result.guarantee.promised
    assert result.kept_share() == 0
    assert "Nothing is promised, for nothing is kept." in result.guarantee.sentence
    assert "could be promised with what is there" in result.guarantee.sentence


def test_intervals_hold_new_values_and_stay_within_the_bounds(sim):
    rng = np.random.default_rng(1)
    drawn = sim.truth + rng.uniform(-0.2, 0.2, sim.truth.shape)
    once = rng.random(drawn.shape) < 0.55  # cells seen repeatedly would count by the mean of their draws
    fitted = PartialCompleter(tolerance=0.08, confidence="posterior").fit(
        Observations(*np.nonzero(once), drawn[once], drawn.shape, (-1, 1))
    )
    (rows, cols), values = np.nonzero(~once), drawn[~once]
    widths = []
    for level in (0.5, 0.9, 0.99):
        low, high = fitted.predict_interval(rows, cols, level)
        assert ((low >= -1) & (high <= 1) & (low <= high)).all()
        assert np.mean((low <= values) & (values <= high)) == pytest.approx(level, abs=0.06)
        widths.append((high - low).mean())
    assert widths == sorted(widths)
    everything = fitted.predict_interval([0], [0], 0.9999999)
    assert (everything[0][0], everything[1][0]) == (-1, 1)
    with pytest.raises(InputError, match="'level' parameter"):
        fitted.predict_interval([0], [0], 1.0)


def test_the_promise_can_be_aimed_at_entries_that_were_not_observed(sim):
    seen = sim.observations
    even = PartialCompleter(0.08, confidence="posterior", aim="unobserved", propensity=np.full(seen.shape, 0.5)).fit(
        seen
    )
    plain = PartialCompleter(0.08, confidence="posterior").fit(seen)
    assert (
        "about filled cells (those kept that were not observed, each counted once)" in even.result_.guarantee.holds_over
    )
    assert "as given" in even.result_.guarantee.holds_over
    rows, cols = np.indices(seen.shape).reshape(2, -1)
    assert even.keep(rows, cols).mean() > 0.8 * plain.keep(rows, cols).mean() > 0
    for aim in ("all", "unobserved"):
        estimated = PartialCompleter(0.2, confidence="posterior", aim=aim).fit(seen)
        assert "by which cells are weighted, are modelled" in estimated.result_.guarantee.holds_over
    with pytest.raises(InputError, match="'aim' parameter"):
        PartialCompleter(aim="some").fit(seen)
    with pytest.raises(InputError, match="add aim='unobserved' or 'all'"):
        PartialCompleter(aim="observed", propensity=np.ones(seen.shape)).fit(seen)
    with pytest.raises(InputError, match="'propensity' parameter"):
        PartialCompleter(aim="all", propensity=np.ones((2, 2))).fit(seen)


def test_risk_by_confidence_alone_or_by_an_own_algorithm(sim):
    by_confidence = PartialCompleter(0.08, confidence="posterior", risk="confidence").fit(sim.observations)
    rows, cols = np.indices(sim.observations.shape).reshape(2, -1)
    order = np.argsort(by_confidence.predict_confidence(rows, cols))
    assert (np.diff(by_confidence.predict_risk(rows, cols)[order]) <= 1e-12).all()
    assert by_confidence.transform(sim.observations.dense()).shape == (60, 50)
    PartialCompleter(0.08, confidence="posterior", risk=RiskModel()).fit(sim.observations)
    with pytest.raises(InputError, match="'risk' parameter"):
        PartialCompleter(risk="none").fit(sim.observations)


def test_same_seed_same_result_and_asking_changes_nothing(sim):
    one, same = (PartialCompleter(confidence="posterior").fit(sim.observations) for _ in range(2))
    X = sim.observations.dense()
    before = one.predict([3], [4])
    one.transform(X), one.keep([0], [0]), one.predict_risk([0], [0])
    np.testing.assert_array_equal(one.predict([3], [4]), before)
    np.testing.assert_array_equal(one.transform(X), same.transform(X))


def test_default_tolerance_is_half_the_variance(sim):
    completer = PartialCompleter(confidence="posterior").fit(sim.observations)
    train = CalibrationSplit.of(sim.observations, "unobserved", None, 0).train
    assert completer.result_.selection.tolerance == pytest.approx(train.variance / 2)
    constant = Observations([0, 0, 1, 1], [0, 1, 0, 1], [3.0] * 4, bounds=(1, 5))
    with pytest.raises(InputError, match="all values to learn from equal 3, so a tolerance must be given"):
        PartialCompleter().fit(constant)


def test_noise_within_cells_counts_as_error():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(20, size=(2, 8000))
    flips = Observations(rows, cols, rng.choice([1.0, 5.0], 8000))
    completer = PartialCompleter(tolerance=3.0, confidence="posterior").fit(flips)
    assert not completer.keep(rows, cols).any()
    assert completer.predict_risk([3], [4])[0] == pytest.approx(4, rel=0.1)


def test_a_billion_by_a_billion_is_no_trouble():
    rng = np.random.default_rng(0)
    i, j = (rng.choice(rng.integers(10**9, size=40), 600) for _ in range(2))
    seen = Observations(i, j, rng.normal(size=600), shape=(10**9, 10**9))
    with pytest.raises(InputError, match=r"2,000,000,000. Leave out those without observations, .* aim='observed'"):
        PartialCompleter(tolerance=5.0).fit(seen)
    completer = PartialCompleter(tolerance=5.0, aim="observed").fit(seen)
    assert completer.predict(seen.rows, seen.cols).shape == seen.values.shape
    with pytest.raises(InputError, match="too long to list"):
        next(iterate_table(completer))


def test_own_completion_algorithm_and_clone(sim):
    completer = clone(PartialCompleter(completion=FactorModel(rank=2, penalty=0.1), confidence="posterior"))
    completion = completer.fit(sim.observations).result_.completion
    assert (completion.rank, completion.penalty) == (2, 0.1)
    assert completion.status in set(Status)


def test_auto_takes_the_program_where_it_reaches_and_the_game_beyond():
    small = make_low_rank((12, 10), rank=1, n_draws=80, random_state=3).observations
    taken = PartialCompleter().fit(small).result_.certificate
    assert taken.standing == "certified"
    assert [tried.name for tried in taken.tried] == ["the coverage program", "the coverage game"]
    assert "proves more" in taken.sentence
    large = make_low_rank((160, 10), rank=1, n_draws=900, random_state=0).observations
    assert PartialCompleter().fit(large).result_.certificate.standing == "tested"
    asked = PartialCompleter(confidence=CoverageProgram(gamma=0.3, rank=2, time_limit=2)).fit(large)
    assert asked.result_.certificate.standing == "searched"


def test_auto_takes_the_game_where_the_program_supports_less_and_says_so():
    thin = make_low_rank((60, 40), rank=2, n_draws=800, noise=0.3, random_state=1).observations
    program = PartialCompleter(tolerance=0.2, confidence="coverage").fit(thin).result_
    assert program.certificate.standing == "certified"
    assert program.selection.empty
    game = PartialCompleter(tolerance=0.2).fit(thin).result_
    assert game.certificate.standing == "tested"
    assert game.certificate.tried[0].supported < game.certificate.tried[1].supported
    assert game.certificate.sentence.startswith("The coverage game was chosen: the coverage program, which proves more")
    assert game.guarantee.promised


def test_another_tolerance_needs_no_other_fit(sim):
    first = PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations).result_
    fitted_anew = PartialCompleter(tolerance=0.08, confidence="posterior").fit(sim.observations).result_
    other = first.at_tolerance(0.08)
    assert other.selection == fitted_anew.selection
    assert other.completion is first.completion
    assert first.at_tolerance(1e-9).selection.empty
    assert "picked because" in other.guarantee.sentence
    assert other.plan.tolerance == 0.08
    with pytest.raises(InputError, match="tolerance"):
        first.at_tolerance(0)


def test_progress_is_reported(sim):
    seen = []
    PartialCompleter(confidence="posterior", progress=seen.append).fit(sim.observations)
    assert {step.task for step in seen} == {"fitting factors", "learning the risk"}
    program = CoverageProgram(gamma=0.3, rank=2, time_limit=1)
    PartialCompleter(confidence=program, progress=seen.append).fit(sim.observations)
    assert any("coverage" in step.task for step in seen)


def test_the_seed_reaches_the_coverage_program():
    assert choose_confidence("coverage", (10, 10), 7) == (CoverageProgram(random_state=7),)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"tolerance": 0},
            "The 'tolerance' parameter of PartialCompleter must be a number above 0 and at most 1e.120, or None. Got 0",
        ),
        ({"tolerance": -1.0}, "'tolerance' parameter"),
        ({"tolerance": "a"}, "'tolerance' parameter"),
        ({"delta": 0.0}, "'delta' parameter of PartialCompleter must be a number above 0 and below 1"),
        ({"delta": 1.0}, "'delta' parameter"),
        ({"random_state": -1}, "'random_state' parameter"),
        ({"random_state": True}, "'random_state' parameter"),
        ({"completion": "als"}, "'completion' parameter"),
        ({"confidence": "high"}, "'confidence' parameter"),
        ({"confidence": CoverageProgram}, "'confidence' parameter"),
    ],
)
def test_bad_parameters(sim, parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        PartialCompleter(**parameters).fit(sim.observations)


@pytest.mark.parametrize(
    ("observations", "sentence"),
    [
        (Observations([0, 0, 0, 0], [0, 1, 2, 3], [1.0, 2.0, 3.0, 4.0]), "the matrix has 1 row: completing needs"),
        (Observations([0, 1, 2, 3], [0, 0, 0, 0], [1.0, 2.0, 3.0, 4.0]), "the matrix has 1 column: completing needs"),
        (Observations([0, 1], [0, 1], [1.0, 2.0]), "2 observed cells are too few"),
        (Observations([0, 0, 1, 1], [0, 1, 0, 1], [3.0] * 4), "all 4 values to learn from equal 3"),
    ],
)
def test_too_little_to_learn_from(observations, sentence):
    with pytest.raises(InputError, match=sentence):
        PartialCompleter().fit(observations)


@pytest.mark.parametrize(("confidence", "first_tenth"), [("posterior", 0.75), ("game", 0.9)])
def test_error_falls_with_confidence_on_movielens(data_folder, confidence, first_tenth):
    base, test = load_movielens("ml-100k", data_folder, fold=1)
    completer = PartialCompleter(tolerance=0.8, confidence=confidence).fit(base)
    answer = completer.result_.answer(test.rows, test.cols)
    error = (answer.value - test.values) ** 2
    by_confidence = error[np.argsort(-answer.confidence)]
    tenths = [part.mean() for part in np.array_split(by_confidence, 10)]
    assert tenths[0] < first_tenth * np.mean(error)
    assert tenths[-1] > 1.2 * np.mean(error)
    kept = answer.keep
    assert error[kept].mean() < 0.85 < error[~kept].mean()


@pytest.mark.parametrize("name", COMPLETIONS)
def test_every_completion_can_be_had_by_name_with_the_seed(name):
    algorithm = choose_completion(name, 7)
    assert algorithm.random_state == 7
    assert type(algorithm).__name__ == COMPLETIONS[name].cls


def test_an_unknown_completion_is_refused_with_the_names_that_would_do():
    with pytest.raises(
        InputError, match="'soft-impute', 'trace-norm', 'max-norm', 'iterative-svd', or an object with a fit method"
    ):
        choose_completion("magic", 0)


def test_results_print_in_one_line(sim):
    asked = PartialCompleter(tolerance=0.2, confidence="posterior").fit(sim.observations).result_
    assert asked.certificate.sentence.startswith("A heuristic")
    assert repr(asked).startswith("PartialCompletion(60 x 50, ")
    assert len(repr(asked)) < 150


@pytest.mark.parametrize("seed", [1, 3])
def test_nothing_is_kept_between_groups_that_were_never_seen_together(seed):
    rng = np.random.default_rng(seed)
    truth = np.clip(3 + rng.normal(size=(160, 2)) @ rng.normal(size=(2, 60)) / np.sqrt(2), 1, 5)
    together = np.add.outer(np.arange(160), np.arange(60)) % 2 == 0
    i, j = np.divmod(rng.permutation(np.flatnonzero(together))[:3000], 60)
    values = np.clip(np.round(truth[i, j] + 0.3 * rng.normal(size=3000)), 1, 5)
    result = PartialCompleter(0.5).fit(Observations(i, j, values, (160, 60), (1, 5))).result_
    kept = result.keeps_dense()
    assert result.certificate.name == "the coverage game"
    assert kept[together].mean() > 0.9
    assert not kept[~together].any()


def test_the_program_s_floor_moves_with_its_confidences():
    """Here they are 0.997 in the trial fit and 0.994 in the next; the floor of the first would leave out everything."""
    sim = make_blocks((40, 40), n_draws=4800, rank=2, noise=0.1, random_state=0)
    result = PartialCompleter(0.25).fit(sim.observations).result_
    kept = result.keeps_dense()
    assert kept[sim.support].mean() > 0.9
    assert not kept[~sim.support].any()

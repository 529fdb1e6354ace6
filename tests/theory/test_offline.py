"""The efficient algorithm end to end: its parameters, its units, its promise where it applies, and when it does not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import surefill as sf
from surefill.completion import MaxNormCompletion, TraceNormCompletion
from surefill.completion.max_norm.max_norm_completion import MaxNormFit
from surefill.errors import InputError
from surefill.spaces.certificates import bound_max_norm
from surefill.theory import Condition, TheoremGuarantee, efficient_parameters, inefficient_parameters, required_draws
from surefill.theory.conditions import (
    _class_condition,
    _rank_condition,
    _trace_class_condition,
    guarantee_efficient,
)


@dataclass(frozen=True, eq=False)
class Given:
    """A completion known in advance; both the algorithm and its result."""

    matrix: np.ndarray

    @property
    def shape(self):
        return self.matrix.shape

    def fit(self, observations, progress=None):
        return self

    def at(self, rows, cols):
        return self.matrix[np.asarray(rows), np.asarray(cols)]

    def block(self, rows, cols):
        return self.matrix[np.ix_(rows, cols)]

    def dense(self):
        return self.matrix

    def fold_in(self, observations):
        raise NotImplementedError


@pytest.fixture(scope="module")
def small():
    return sf.datasets.make_blocks((5, 5), n_draws=150, random_state=0)


@pytest.fixture(scope="module")
def found(small):
    return sf.complete_partially(small.observations, eps=1.0, completion=Given(small.truth))


def verdicts(guarantee):
    return {condition.name: condition.verdict for condition in guarantee.conditions}


def test_runs_the_program_with_the_theorems_parameters(small, found):
    expected = efficient_parameters(1.0, 1.0)
    assert found.parameters == expected
    assert (found.coverage.gamma, found.coverage.beta) == (expected.gamma, expected.beta)
    alone = sf.solve_coverage(small.observations, 1.0, gamma=expected.gamma, beta=expected.beta)
    np.testing.assert_allclose(found.confidence.dense(), alone.confidence.dense(), atol=1e-9)
    np.testing.assert_array_equal(found.completion.dense(), small.truth)
    assert (found.eps, found.delta) == (1.0, 0.05)


def test_eps_is_in_the_datas_own_squared_units(small, found):
    """Stars from 1 to 5 are twice [-1, 1] plus 3, so the same problem has four times the squared error."""
    seen = small.observations
    stars = sf.Observations(seen.rows, seen.cols, 2 * seen.values + 3, seen.shape, (1, 5), counts=seen.counts)
    same = sf.complete_partially(stars, eps=4.0, completion=Given(2 * small.truth + 3))
    assert same.parameters == found.parameters
    assert same.theory == found.theory
    np.testing.assert_allclose(same.confidence.dense(), found.confidence.dense(), atol=1e-9)
    assert "is at most 4 against the expected values" in same.guarantee.promise
    assert verdicts(same.guarantee) == verdicts(found.guarantee)
    accuracy = next(c.sentence for c in same.guarantee.conditions if c.name == "accuracy")
    assert f"is at most {4 * found.parameters.completion_accuracy:.3g}," in accuracy


def test_too_few_draws_void_the_guarantee_and_it_is_said(small, found):
    assert found.theory.n_draws == small.observations.n_draws == 150
    assert not found.theory.enough
    assert not found.guarantee.applies
    sentence = found.guarantee.sentence
    assert sentence.startswith("Theorem 11 of the paper: with probability 0.95 over the draws")
    assert "Not known to hold: the completion by Given leaves the theorem" in sentence
    assert "; with its constant, which the paper does not state, taken as 1" in sentence
    assert "times too few, so its guarantee is not known to hold" in sentence
    assert "Assumed: the draws are independent" in sentence
    assert "Checked: the completion is within the bounds and has max-norm at most 1; no adversary" in sentence
    assert repr(found).endswith("guarantee not known to hold)")


@pytest.mark.parametrize("seed", range(3))
def test_the_promise_holds_where_the_theorem_applies(seed):
    """M-hat is right wherever one looks and negated everywhere else: rank 1, in the class, undetectable.

    Its mean squared error over the whole matrix is above eps; weighted by C it must not be.
    """
    eps, delta = 0.5, 0.05
    sim = sf.datasets.make_blocks((3, 3), n_draws=1_700_000, noise=0.05, random_state=seed)
    completion = Given(np.where(sim.support, sim.truth, -sim.truth))
    found = sf.complete_partially(sim.observations, eps=eps, delta=delta, completion=completion)
    assert found.theory.enough
    assert verdicts(found.guarantee) == {
        "draws": "unknown",
        "truth": "unknown",
        "accuracy": "unknown",
        "full completion": "not known to hold",
        "sample size": "unknown",
        "class": "holds",
        "feasibility": "holds",
    }
    C, error = found.confidence.dense(), (completion.matrix - sim.truth) ** 2
    assert error.mean() > eps
    assert np.sum(C * error) / C.sum() <= eps
    assert C.sum() >= (1 - found.coverage.gap) * sim.support.sum()
    assert found.coverage.gap <= 0.01


def test_default_completion_and_rounding_go_together():
    sim = sf.datasets.make_blocks((5, 5), n_draws=300, noise=0.1, random_state=1)
    found = sf.complete_partially(sim.observations, eps=1.5, K=1.2)
    assert isinstance(found.completion, MaxNormFit)
    assert found.completion.K == 1.2
    assert verdicts(found.guarantee)["full completion"] == "holds"
    assert verdicts(found.guarantee)["class"] == "holds"
    kept = sf.round_confidence(found.confidence, 0)
    assert abs(kept.sum() - found.confidence.coverage) < 1
    assert kept[sim.support].mean() > kept[~sim.support].mean()


def test_whether_the_completion_is_in_the_class():
    H = np.array([[1.0, 1.0], [1.0, -1.0]])
    assert _class_condition(H, 1.5).verdict == "holds"
    assert _class_condition(H, 1.3).verdict == "fails"
    assert "at least 1.414, above K = 1.3" in _class_condition(H, 1.3).sentence
    assert _class_condition(2 * H, 9.0).verdict == "fails"
    assert "factor of 2" in _class_condition(2 * H, 9.0).sentence
    assert _class_condition(None, 1.0).verdict == "unknown"
    signs = np.sign(np.random.default_rng(0).normal(size=(40, 30)))
    between = _class_condition(signs, 4.9)
    assert between.verdict == "unknown"
    assert "between" in between.sentence


def test_cheap_bounds_enclose_the_max_norm_and_the_program_decides_between():
    M = np.sign(np.random.default_rng(1).normal(size=(6, 5)))
    low, high = bound_max_norm(M)
    exact = sf.max_norm(M)
    assert low <= exact.upper
    assert exact.lower <= high
    for K, verdict in [((exact.value + high) / 2, "holds"), ((low + exact.value) / 2, "fails")]:
        assert low < K < high
        assert _class_condition(M, K).verdict == verdict


def test_whether_a_rank_limit_leaves_room_for_the_truth():
    M = np.ones((3, 4)) / 2
    assert _rank_condition(M, 1).verdict == "fails"
    assert "leaves none of 1" in _rank_condition(M, 1).sentence
    assert _rank_condition(M, 3) == Condition(
        "rank", "unknown", "the expected values, on the [-1, 1] scale, have rank at most 2"
    )
    assert _rank_condition(None, 3).verdict == "unknown"


def test_a_searched_confidence_is_not_called_certified(small, found):
    searched = replace(found.coverage, standing="searched", gap=0.25)
    guarantee = guarantee_efficient(
        small.observations,
        Given(None),
        found.completion,
        searched,
        found.parameters,
        found.theory,
        eps=1.0,
        delta=0.05,
        rank=2,
    )
    assert verdicts(guarantee)["feasibility"] == "unknown"
    assert verdicts(guarantee)["rank"] == "unknown"
    assert "covers at least 0.75 / (the largest probability" in guarantee.promise


def test_large_completions_are_not_looked_at_whole(small, found):
    large = sf.Observations([0], [0], [0.0], (200, 3), (-1, 1))
    guarantee = guarantee_efficient(
        large, Given(None), Given(None), found.coverage, found.parameters, found.theory, eps=1.0, delta=0.05, rank=2
    )
    assert verdicts(guarantee)["class"] == verdicts(guarantee)["rank"] == "unknown"


@pytest.mark.parametrize(
    ("norm", "algorithm", "verdict"),
    [
        ({"K": 1.0}, MaxNormCompletion(K=1.0, tol=0.1), "holds"),
        ({"K": 1.0}, MaxNormCompletion(K=2.0), "not known to hold"),
        ({"K": 1.0}, MaxNormCompletion(K=1.0, rank=2), "not known to hold"),
        ({"K": 1.0}, TraceNormCompletion(tau=1.0), "not known to hold"),
        ({"tau": 4.0}, TraceNormCompletion(tau=4.0), "holds"),
        ({"tau": 4.0}, None, "holds"),
    ],
)
def test_whether_the_completion_is_the_one_that_the_theorem_names(norm, algorithm, verdict):
    sim = sf.datasets.make_blocks((3, 3), n_draws=60, random_state=0)
    found = sf.complete_partially(sim.observations, eps=1.0, program="quadratic", completion=algorithm, gap=0.9, **norm)
    assert verdicts(found.guarantee)["full completion"] == verdict


def test_with_the_named_completion_and_enough_draws_the_guarantee_is_conditional():
    """Nothing fails and nothing is short; the constant is still said not to be known."""
    sim = sf.datasets.make_blocks((3, 3), n_draws=12_000, noise=0.05, random_state=0)
    found = sf.complete_partially(sim.observations, eps=0.5, K=1.0, program="quadratic", gap=0.5)
    assert found.guarantee.applies
    assert "(not stated, so not known to hold)" in found.guarantee.sentence
    assert repr(found).endswith("guarantee conditional)")


def test_a_guarantee_with_nothing_to_say_says_only_its_promise():
    assert TheoremGuarantee("All is well.", ()).sentence == "All is well."


def test_errors_are_sentences(small):
    obs = small.observations
    for options, sentence in [
        (
            {"program": "cubic"},
            r"The 'program' parameter of complete_partially must be 'linear' or 'quadratic'\. Got 'cubic' instead\.",
        ),
        ({"eps": 0.0}, "The 'eps' parameter of complete_partially"),
        ({"delta": 1.0}, "The 'delta' parameter of complete_partially"),
        ({"K": -1.0}, "The 'K' parameter of complete_partially"),
        ({"constant": 0.0}, "The 'constant' parameter"),
        ({"completion": "auto"}, "The 'completion' parameter of complete_partially must be None or an object"),
        ({"completion": sf.completion.FactorModel}, "The 'completion' parameter"),
        ({"method": "guess"}, "The 'method' parameter"),
        ({"gap": 0.0}, "The 'gap' parameter"),
    ]:
        with pytest.raises(InputError, match=sentence):
            sf.complete_partially(obs, **({"eps": 1.0, "completion": Given(small.truth)} | options))
    with pytest.raises(InputError, match="give bounds="):
        sf.complete_partially(sf.Observations([0], [0], [1.0]), eps=1.0)


@pytest.mark.parametrize("norm", [{"K": 1.0}, {"tau": 6.0}], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_the_inefficient_algorithms_promise_holds_where_its_theorem_applies(norm, seed):
    """As above for Theorem 10, which thousands of draws are enough for: M-hat is negated where nobody looks."""
    eps, delta = 0.5, 0.05
    sim = sf.datasets.make_blocks((3, 3), n_draws=12_000, noise=0.05, random_state=seed)
    completion = Given(np.where(sim.support, sim.truth, -sim.truth))
    found = sf.complete_partially(
        sim.observations, eps=eps, delta=delta, completion=completion, program="quadratic", gap=0.5, **norm
    )
    assert found.parameters == inefficient_parameters(eps)
    assert (found.coverage.gamma, found.coverage.beta) == (eps / 4, eps / 8)
    required = required_draws("quadratic", eps, delta, (6, 6), **norm)
    assert (found.theory.required, found.theory.enough) == (required, True)
    assert not found.guarantee.applies
    assert "leaves the theorem" in found.guarantee.sentence
    assert found.guarantee.sentence.startswith("Theorem 10 of the paper")
    assert verdicts(found.guarantee)["class"] == verdicts(found.guarantee)["feasibility"] == "holds"
    C, error = found.confidence.dense(), (completion.matrix - sim.truth) ** 2
    assert error.mean() > eps / 2
    assert np.sum(C * error) / C.sum() <= eps
    assert C.sum() >= sim.support.sum() > (1 - found.coverage.gap) * sim.support.sum()


def test_the_quadratic_program_is_in_the_datas_units_too():
    sim = sf.datasets.make_blocks((2, 2), n_draws=40, random_state=0)
    seen = sim.observations
    stars = sf.Observations(seen.rows, seen.cols, 2 * seen.values + 3, seen.shape, (1, 5), counts=seen.counts)
    same = sf.complete_partially(stars, eps=4.0, completion=Given(2 * sim.truth + 3), program="quadratic", gap=0.9)
    assert same.parameters == inefficient_parameters(1.0)
    assert "is at most 4 against the expected values" in same.guarantee.promise


def test_whether_the_completion_is_in_the_trace_norm_class():
    H = np.array([[1.0, 1.0], [1.0, -1.0]])
    assert _trace_class_condition(H, 2.9).verdict == "holds"
    assert "trace norm is 2.828, above tau = 2.5" in _trace_class_condition(H, 2.5).sentence
    assert _trace_class_condition(2 * H, 9.0).verdict == "fails"
    assert _trace_class_condition(None, 1.0).verdict == "unknown"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tau": 3.0}, "'tau' parameter .* left out with the linear program"),
        ({"program": "quadratic", "rank": 2}, "'rank' parameter .* left out with the quadratic program"),
        ({"program": "quadratic", "tau": -1.0}, "'tau' parameter .* positive"),
    ],
)
def test_parameters_of_the_other_program_are_refused(small, given, words):
    with pytest.raises(InputError, match=words):
        sf.complete_partially(small.observations, eps=1.0, completion=Given(small.truth), **given)

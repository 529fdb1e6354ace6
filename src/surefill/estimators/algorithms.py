"""The algorithms that a user named or gave, checked."""

from __future__ import annotations

from surefill.cluster import BlockedFactorModel, choose_backend
from surefill.completion import BayesianFactorModel, CompletionAlgorithm
from surefill.confidence import ConfidenceAlgorithm
from surefill.errors import InputError, invalid_parameter
from surefill.registry import AUTO, COMPLETIONS, CONFIDENCES
from surefill.risk import RiskAlgorithm, RiskModel
from surefill.risk.cross_fitting import MANY_CELLS
from surefill.spaces.conic_model import SIZE_LIMIT


def choose_completion(given: object, random_state: int) -> CompletionAlgorithm:
    """The completion algorithm that the user named or gave."""
    if isinstance(given, str) and given in COMPLETIONS:
        named: CompletionAlgorithm = COMPLETIONS[given].make(random_state=random_state)
        return named
    if isinstance(given, CompletionAlgorithm) and not isinstance(given, type):
        return given
    raise _not_an_algorithm("completion", list(COMPLETIONS), "SoftImpute()", given)


def on_backend(algorithm: CompletionAlgorithm, backend: object) -> CompletionAlgorithm:
    """The algorithm, fitted on row blocks of ``backend`` if there is one and the table is large."""
    place = choose_backend(backend)
    if place is None:
        return algorithm
    if not isinstance(algorithm, BayesianFactorModel):
        raise InputError("a cluster fits the Bayesian factor model alone: leave completion at 'auto', or the backend.")
    return BlockedFactorModel(algorithm, place, fewest_cells=MANY_CELLS)


def choose_confidence(given: object, shape: tuple[int, int], random_state: int) -> tuple[ConfidenceAlgorithm, ...]:
    """The confidence algorithms to try, in this order, for what the user named or gave.

    "auto" is the paper's game, and before it the paper's coverage program where the matrix is small and the program,
    which proves more, supports as much.
    """
    if isinstance(given, str) and given == AUTO:
        names = ("coverage", "game") if max(shape) <= SIZE_LIMIT else ("game",)
        return tuple(CONFIDENCES[name].make(random_state=random_state) for name in names)
    if isinstance(given, str) and given in CONFIDENCES:
        return (CONFIDENCES[given].make(random_state=random_state),)
    if isinstance(given, ConfidenceAlgorithm) and not isinstance(given, type):
        return (given,)
    raise _not_an_algorithm("confidence", [AUTO, *CONFIDENCES], "CoverageProgram(gamma=0.2)", given)


def choose_risk(given: object) -> RiskAlgorithm | None:
    """The risk algorithm that the user named or gave; None for the curve over confidence alone."""
    if isinstance(given, str) and given in (AUTO, "confidence"):
        return RiskModel() if given == AUTO else None
    if isinstance(given, RiskAlgorithm) and not isinstance(given, type):
        return given
    raise _not_an_algorithm("risk", [AUTO, "confidence"], "RiskModel()", given)


def _not_an_algorithm(parameter: str, names: list[str], example: str, given: object) -> InputError:
    valid = f"one of {', '.join(map(repr, names))}, or an object with a fit method such as {example}"
    return invalid_parameter("PartialCompleter", parameter, valid, given)

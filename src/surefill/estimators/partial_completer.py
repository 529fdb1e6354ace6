"""PartialCompleter: fit on what was seen, predict what can be trusted, abstain on the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from surefill.cluster import choose_backend
from surefill.completion import BayesianFactorCompletion
from surefill.data import Entries, Observations
from surefill.data.containers import from_matrix, sound_matrix
from surefill.data.frames import axis_labels, library_of
from surefill.data.labels import as_text
from surefill.data.long_as_wide import refuse_long
from surefill.errors import InputError, invalid_parameter, is_number
from surefill.estimators.algorithms import choose_completion, choose_confidence, choose_risk, on_backend
from surefill.estimators.atomic import atomic
from surefill.estimators.fitting import Fitting
from surefill.estimators.matrix_api import complete_rows, fill
from surefill.estimators.observing_methods import ObservingMethods
from surefill.estimators.result import PartialCompletion
from surefill.estimators.scorers import ErrorScorer, held_out_entries
from surefill.estimators.seeds import check_random_state, choose_seed
from surefill.estimators.table_methods import TableMethods
from surefill.estimators.wide_frame import compare_columns, complete_frame
from surefill.guarantee.propensity import AIMS, Aim
from surefill.inputs import check_tolerance
from surefill.losses import choose_loss
from surefill.parallel import check_n_jobs, using_jobs
from surefill.waiting import Watcher, check_progress, part, watching

FEWEST_CELLS = 4
"""One cell to calibrate on, and three to learn from: a row, a column and what they share."""


class PartialCompleter(ObservingMethods, TableMethods, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill the part of a matrix that can be trusted at a tolerance, and leave the rest empty.

    max |kept|  subject to  mean squared error over kept <= tolerance,

    Definition 1 of the paper, with the tolerance in the data's own squared units, or with another ``loss`` in its
    units. A completion algorithm predicts every entry, a confidence algorithm says how well the observations support
    it, and a risk algorithm how wrong it is likely to be. Entries of too little confidence, and cells that are observed
    too rarely, are left out. Of the others those of least risk are kept, as many as the calibration cells, which
    nothing is fitted on, allow to guarantee: with probability at least 1 - delta over which cells were observed and
    held out, the mean squared error over the filled cells (kept and not observed, each counted once) is at most the
    tolerance. This assumes that cells are observed independently of one another, with probabilities that are modelled
    or given; ``result_.guarantee`` states how far values may influence these.

    Parameters
    ----------
    tolerance : largest mean squared error, or mean of the ``loss``, on the kept entries; when None half the variance of
        the training values, for another loss half the mean of it when one constant is predicted everywhere.
    delta : probability with which a promise about the kept set may fail; in (0, 1).
    completion : "auto" (a :class:`BayesianFactorModel` of a rank chosen on held-out cells), "factor-model",
        "soft-impute", "trace-norm", "max-norm", "iterative-svd", or any completion algorithm:
        ``SoftImpute(penalty=10)``, ``ExternalCompletion(mine)``.
    confidence : "game" (the paper's game at any size, its false support tested), "coverage" (the paper's MP 2, proved;
        minutes where the matrix is large), "posterior" (a heuristic), "auto" (the game; up to 150 rows and columns
        the second, where it supports as much), or any confidence algorithm, such as ``CoverageProgram(rank="auto")``.
    risk : "auto" (a :class:`RiskModel`), "confidence" (how error fell with confidence on cells left out), or any risk
        algorithm.
    loss : "squared", "absolute", or a loss such as ``Misclassification(0.5)`` or "beyond:0.5", the share of errors
        beyond a distance (:mod:`surefill.losses`); risks are then expected absolute errors, or chances.
    aim : cells that the promise is about: "unobserved" (the filled ones, kept and not observed, each counted once),
        "all" (kept cells that were not trained on, each counted once), or "observed" (kept cells drawn like the
        observed ones, which says nothing of those that are filled). The first two weigh calibration cells by one over
        their chance of being held out.
    propensity : the chance that a cell is observed: an m x n array, a function of rows and columns, or None for a model
        of rows, columns and, where held-out locations show it, factors; not with ``aim="observed"``.
    sensitivity : G >= 1. The promise is to hold even if values raise or lower a cell's odds of being observed by a
        factor of up to G; less is kept. With 1 the factor that it survives is reported all the same, as
        ``result_.guarantee.sensitivity``.
    bounds : (low, high), the range values may take, in place of the observations' own; a value outside is refused.
        Where None and the observations have none, the range is taken from the values: where they lie on a scale such
        as 1 to 5 it is taken as known, elsewhere errors larger than the training cells allow are clipped in the
        promise, which says so.
    random_state : seed of everything random; the same seed gives the same result. None takes a fresh one, a numpy
        generator gives its next; the one used is ``random_state_``.
    backend : where factors are fitted: None for this process, "ray" for row blocks on a Ray cluster of this machine, or
        a :class:`surefill.cluster.RayBackend`, of more than two million cells; fewer are fitted here. The result is the
        same to 1e-6. All else, the table included, stays in this process.
    n_jobs : cores to fit on: None or -1 for all, 1 for one, as scikit-learn counts them. Results do not depend on it.
    progress : True for a bar over the whole fit with what is left of it, in a terminal or notebook; or a function that
        is called after each step of the iterative parts, see :class:`surefill.loop.Progress`.

    Attributes
    ----------
    result_ : :class:`PartialCompletion`, frozen: completion, confidence, risk, selection, certificate, guarantee,
        timings and more.
    observations_ : what it was fitted on, and what was observed since.
    asked_ : which of these were added by ``observe``.
    random_state_ : the seed that was used; given as ``random_state`` it repeats the fit.

    Examples
    --------
    >>> from surefill.datasets import make_low_rank
    >>> sim = make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
    >>> completer = PartialCompleter(tolerance=0.1, confidence="posterior").fit(sim.observations)
    >>> completer.predict([0, 1], [3, 4]).shape
    (2,)
    >>> completer.result_.guarantee.promised
    True
    >>> low, high = completer.predict_interval([0, 1], [3, 4], level=0.9)
    """

    result_: PartialCompletion
    observations_: Observations
    asked_: NDArray[np.bool_]
    random_state_: int

    def __init__(
        self,
        tolerance: float | None = None,
        delta: float = 0.05,
        completion: Any = "auto",
        confidence: Any = "auto",
        risk: Any = "auto",
        loss: Any = "squared",
        aim: Aim = "unobserved",
        propensity: Any = None,
        sensitivity: float = 1.0,
        bounds: tuple[float, float] | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        progress: Watcher = None,
        n_jobs: int | None = None,
        backend: Any = None,
    ) -> None:
        self.tolerance = tolerance
        self.delta = delta
        self.completion = completion
        self.confidence = confidence
        self.risk = risk
        self.loss = loss
        self.aim = aim
        self.propensity = propensity
        self.sensitivity = sensitivity
        self.bounds = bounds
        self.random_state = random_state
        self.progress = progress
        self.n_jobs = n_jobs
        self.backend = backend

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on :class:`Observations`, a wide table or an array with NaN holes, or a sparse matrix of what was seen.

        The index and the column names of a pandas table, and the column names of a polars table, become labels, by
        which its rows and columns are asked for. A long table goes in as ``Observations.from_table(table)``.
        ``y`` plays no part. If it fails or is interrupted, the completer is as it was before.
        """
        self._validate()
        if isinstance(X, Entries):
            X = X.observations
        if isinstance(X, Observations):
            observations = X if self.bounds is None else X.with_bounds(self.bounds)
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            refuse_long(X)
            labels = axis_labels(X)
            observations = from_matrix(self._validate_matrix(X, reset=True), self.bounds, labels=labels)
        _require_something_to_learn_from(observations)
        asked = np.zeros(len(observations), dtype=bool)
        self.random_state_ = choose_seed("PartialCompleter", self.random_state)
        self.result_ = self._fit(observations, asked)
        self.observations_, self.asked_ = observations, asked
        self._library = library_of(X)
        self._axes = (X.index, X.columns) if self._library == "pandas" else None
        return self

    def _fit(
        self, observations: Observations, asked: NDArray[np.bool_], shape: tuple[int, int] | None = None
    ) -> PartialCompletion:
        fitting = Fitting(
            completion=on_backend(choose_completion(self.completion, self.random_state_), self.backend),
            confidences=choose_confidence(self.confidence, observations.shape, self.random_state_),
            risk=choose_risk(self.risk),
            loss=choose_loss(self.loss),
            tolerance=None if self.tolerance is None else float(self.tolerance),
            delta=float(self.delta),
            propensity=self.propensity,
            sensitivity=float(self.sensitivity),
            aim=self.aim,
            random_state=self.random_state_,
            progress=None,
        )
        with using_jobs(self.n_jobs), watching(self.progress) as progress, part(progress, "fitting"):
            return replace(fitting, progress=progress).run(observations, asked, shape)

    def _validate(self) -> None:
        check_tolerance("PartialCompleter", self.tolerance)
        if not (is_number(self.delta) and 0 < self.delta < 1):
            raise invalid_parameter("PartialCompleter", "delta", "a number above 0 and below 1", self.delta)
        choose_loss(self.loss)
        if self.aim not in AIMS:
            raise invalid_parameter("PartialCompleter", "aim", "'observed', 'unobserved' or 'all'", self.aim)
        if not (is_number(self.sensitivity) and 1 <= self.sensitivity < np.inf):
            raise invalid_parameter("PartialCompleter", "sensitivity", "a number of at least 1", self.sensitivity)
        if self.aim == "observed" and self.sensitivity != 1:
            raise InputError(
                "a sensitivity is about cells that were not seen: it needs aim='unobserved' or 'all', not 'observed'."
            )
        if self.bounds is not None and not _are_bounds(self.bounds):
            raise invalid_parameter("PartialCompleter", "bounds", "two numbers, low < high, or None", self.bounds)
        check_random_state("PartialCompleter", self.random_state)
        check_n_jobs("PartialCompleter", self.n_jobs)
        choose_backend(self.backend)
        check_progress("PartialCompleter", self.progress)

    def _validate_matrix(self, X: Any, *, reset: bool) -> Any:
        if not reset and not hasattr(self, "feature_names_in_"):
            X = compare_columns(X, self.observations_)
        return validate_data(
            self,
            sound_matrix(X),
            reset=reset,
            accept_sparse=("csr", "csc", "coo"),
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
            ensure_min_features=2 if reset else 1,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def predict(self, rows: Any, cols: ArrayLike | None = None, times: ArrayLike | None = None) -> NDArray[Any]:
        """Values in the data's units at the entries (rows[t], cols[t]), trusted or not.

        Where observations had times, ``times`` may say when each entry is to be predicted, in the same numbers; without
        them an entry has the value of no date in particular, which confidence, risk and promise are about.

        Where ``observations_`` has row labels, rows are asked for by label here and in all methods below, be they
        integers or text, and given back by label; where it has none, by 0-based position. The same goes for columns.
        ``result_`` always takes positions, and ``observations_.row_index`` finds them.

        ``predict(X)``, with a matrix as the only argument, gives the model's value of every entry of the rows of a
        dense X, folded in as by ``transform``; with :class:`Observations` or their ``entries``, that of each of their
        cells, at its time where they have times.

        >>> seen = Observations([0, 0, 1, 1], [0, 1, 0, 1], [1, 4, 2, 5], row_labels=[196, 22], bounds=(1, 5))
        >>> completer = PartialCompleter(confidence="posterior").fit(seen)
        >>> completer.predict([22], [0]) == completer.result_.values_at([1], [0])
        array([ True])
        """
        result = self._fitted()
        if isinstance(rows, Observations | Entries):
            held_out, i, j = held_out_entries(self, rows)
            return result.values_at(i, j, held_out.times)
        if cols is None:
            return complete_rows(self._validate_matrix(rows, reset=False), result, self.observations_)
        return result.values_at(*self._cells(rows, cols), self._checked_times(times))

    def predict_confidence(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Confidences in [0, 1]: how well the observations support each entry."""
        return self._fitted().confidence_at(*self._cells(rows, cols))

    def predict_risk(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Expected losses against a new observation: squared errors in squared units, unless ``loss`` says other."""
        return self._fitted().risk_at(*self._cells(rows, cols))

    def keep(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Whether each entry is in the kept set."""
        return self._fitted().keeps(*self._cells(rows, cols))

    def predict_interval(
        self, rows: ArrayLike, cols: ArrayLike, level: float = 0.9
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends of intervals, each to hold a new observation of its entry with probability ``level``.

        The probability is over the calibration cells and an entry drawn like them (or as ``aim`` says): an average
        over entries, not a statement about each. See :class:`surefill.guarantee.ConformalScores`.
        """
        if not (is_number(level) and 0 < level < 1):
            raise invalid_parameter("predict_interval", "level", "a number above 0 and below 1", level)
        return self._fitted().interval_at(*self._cells(rows, cols), level)

    def score(self, X: Any, y: Any = None) -> float:
        """-mean of the loss over entries that were held out: the higher the better, 0 at best.

        X are :class:`Observations`, their ``entries``, or a matrix of the fitted shape with NaN where nothing was held
        out; every entry counts, trusted or not. ``y`` plays no part, X has the values. For the share of entries that
        is kept see :func:`surefill.estimators.make_kept_share_scorer`.

        Examples
        --------
        >>> import surefill as sf
        >>> seen = sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations
        >>> train, held_out = sf.data.split_entries(seen)
        >>> -0.02 < sf.PartialCompleter(confidence="posterior").fit(train).score(held_out) < 0
        True
        """
        return ErrorScorer(choose_loss(self.loss))(self, X)

    def transform(self, X: Any) -> NDArray[Any] | sparse.sparray | sparse.spmatrix:
        """Rows with holes in, kept entries filled, the others left NaN (not stored, where X is sparse).

        A row that was there when fitting, with the same entries, is filled as ``predict`` and ``keep`` say. Any other
        is completed from its own entries and what was learnt of the columns; the promise does not extend to it. Seen
        entries stay as they are.
        """
        result = self._fitted()
        return fill(self._validate_matrix(X, reset=False), result, self.observations_)

    def complete_frame(self) -> Any:
        """The fitted table with its index and column names: kept holes filled, refused ones NaN.

        A polars table where ``fit`` was given one, else pandas where it is installed. For what is too large to hold see
        :func:`surefill.estimators.iterate_table`.

        Examples
        --------
        >>> import pandas as pd
        >>> from surefill.datasets import make_low_rank
        >>> sim = make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0)
        >>> wide = pd.DataFrame(sim.observations.dense()).add_prefix("film ").rename("user {}".format)
        >>> completed = PartialCompleter(tolerance=0.1, confidence="posterior").fit(wide).complete_frame()
        >>> completed.index.equals(wide.index), completed.columns.equals(wide.columns)
        (True, True)
        >>> bool(completed.isna().sum().sum() < wide.isna().sum().sum())
        True
        """
        check_is_fitted(self)
        return complete_frame(self)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` gives: those of the table that was fitted, as text."""
        check_is_fitted(self)
        labels = self.observations_.col_labels
        if input_features is None and labels is not None:
            return as_text(labels).astype(object)
        names: NDArray[Any] = super().get_feature_names_out(input_features)
        return names

    def save(self, path: str | Path) -> None:
        """Write the fitted model to ``path``: arrays and JSON, no pickle."""
        from surefill.estimators.storage import save

        save(self, path)

    def _observed(self) -> Observations:
        check_is_fitted(self)
        return self.observations_

    def _fitted(self) -> PartialCompletion:
        check_is_fitted(self)
        return self.result_

    def _checked_times(self, times: ArrayLike | None) -> NDArray[np.float64] | None:
        """Times to predict at; InputError where the model was fitted without times."""
        if times is None:
            return None
        if self.observations_.times is None:
            raise InputError(
                "this model knows no times, and cannot predict at given ones: fit on observations that all have one "
                "(time='column', --time on the command line); cells added after a fit have none."
            )
        if not isinstance(self.result_.completion, BayesianFactorCompletion):
            kind = type(self.result_.completion).__name__
            raise InputError(f"a {kind} does not use times; values at given ones need completion='auto'.")
        return np.asarray(times, dtype=np.float64)

    def _cells(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        observations = self._observed()
        i, j = observations.row_index(rows), observations.col_index(cols)
        if i.shape != j.shape:
            raise InputError(f"rows and cols must be of one length, a pair per entry; got {len(i)} and {len(j)}.")
        return i, j


def _are_bounds(given: Any) -> bool:
    """Whether ``given`` is two finite numbers, the first below the second."""
    two = isinstance(given, tuple | list | np.ndarray) and len(given) == 2 and all(map(is_number, given))
    return two and bool(-np.inf < given[0] < given[1] < np.inf)


def _require_something_to_learn_from(observations: Observations) -> None:
    m, n = observations.shape
    for size, name in ((m, "row"), (n, "column")):
        if size < 2:
            raise InputError(
                f"the matrix has 1 {name}: completing needs at least 2 rows and 2 columns, to learn one from another."
            )
    if len(observations) < FEWEST_CELLS:
        raise InputError(
            f"{len(observations)} observed cells are too few to learn from; at least {FEWEST_CELLS} are needed."
        )
    observations.unit  # noqa: B018  (raises the sentence about values that are all equal)

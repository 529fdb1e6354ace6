"""Other ways to say which predictions to trust: each gives a number per test entry, lower for more trusted."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from surefill.completion import FactorModel
from surefill.confidence import PosteriorVariance
from surefill.data import Observations, split_entries
from surefill.kernels.least_squares import quadratic_forms

SMURFF = """
import sys
import numpy as np
import scipy.sparse as sparse
import smurff
with np.load(sys.argv[1]) as data:
    i, j, y, shape = data["rows"], data["cols"], data["values"], tuple(data["shape"])
    test_i, test_j = data["test_rows"], data["test_cols"]
spread = y.std()
seen = sparse.csr_matrix(((y - y.mean()) / spread, (i, j)), shape=shape)
asked = sparse.csr_matrix((np.ones(len(test_i)), (test_i, test_j)), shape=shape)
session = smurff.TrainSession(
    priors=["normal", "normal"], num_latent=20, burnin=100, nsamples=200, num_threads=1, seed=1, verbose=0
)
session.setTrain(seen, smurff.AdaptiveNoise(1.0, 50.0))
session.setTest(asked)
session.init()
while session.step():
    pass
found = {p.coords: (p.pred_avg, p.var) for p in session.getTestPredictions()}
mean, total = np.array([found[cell] for cell in zip(test_i.tolist(), test_j.tolist())]).T
np.savez(sys.argv[2], predicted=mean * spread + y.mean(), variance=total / 199)
"""


def count_risks(base, test):
    """Few draws in the row or the column."""
    of_row = np.bincount(base.rows, minlength=base.shape[0])[test.rows]
    of_col = np.bincount(base.cols, minlength=base.shape[1])[test.cols]
    return {"counts, the lesser": -np.minimum(of_row, of_col), "counts, product": -1.0 * of_row * of_col}


def als_risks(base, test):
    """The posterior of alternating least squares: the share of the prior's variance left, and the variance left."""
    completion = FactorModel(rank=20).fit(base)
    confidence, _ = PosteriorVariance(n_restarts=0).fit(base, completion)
    i, j = completion.locate(test.rows, test.cols)
    of_row = quadratic_forms(completion.col_features, confidence.row_inverses, j, i)
    of_col = quadratic_forms(completion.row_features, confidence.col_inverses, i, j)
    return {"ALS posterior, share": -confidence.at(test.rows, test.cols), "ALS posterior, variance": of_row + of_col}


def ensemble_risk(base, test, members=20):
    """The variance of factor models with different starts, each on as many draws as there are, with repeats."""
    penalty, rng, predicted = FactorModel(rank=20).fit(base).penalty, np.random.default_rng(0), []
    for seed in range(members):
        times = np.bincount(rng.integers(0, len(base), len(base)), minlength=len(base))
        t = np.flatnonzero(times)
        drawn = Observations(base.rows[t], base.cols[t], base.values[t], base.shape, base.bounds, counts=times[t])
        predicted.append(FactorModel(rank=20, penalty=penalty, random_state=seed).fit(drawn).at(test.rows, test.cols))
    return np.var(predicted, axis=0)


def conformal_risks(base, test, algorithm, completion):
    """Widths of locally weighted split conformal intervals, q s(x): s is a regression of absolute residuals.

    s is learnt on a fifth of the cells, predicted from the others, and asked with what all cells say. The quantile
    q is the same for all entries, so that it does not change their order.
    """
    train, held_out = split_entries(base, 0.2, 0)
    fitted = algorithm.fit(train)
    residuals = np.abs(held_out.values - fitted.at(held_out.rows, held_out.cols))
    learnt_at, asked_at = _plain_features(train, held_out, fitted), _plain_features(base, test, completion)
    boosted = HistGradientBoostingRegressor(max_leaf_nodes=8, min_samples_leaf=50, random_state=0)
    models = {"conformal width, linear": LinearRegression(), "conformal width, trees": boosted}
    return {name: model.fit(learnt_at, residuals).predict(asked_at) for name, model in models.items()}


def _plain_features(seen, cells, completion):
    """The prediction, and counts and means of the row and the column."""
    columns = [completion.at(cells.rows, cells.cols)]
    for index, size, where in ((seen.rows, seen.shape[0], cells.rows), (seen.cols, seen.shape[1], cells.cols)):
        counts, mean = np.bincount(index, minlength=size), seen.values.mean()
        means = (np.bincount(index, seen.values, size) + mean) / (counts + 1)
        columns += [np.log1p(counts)[where], means[where]]
    return np.column_stack(columns)


def smurff_risk(python, base, test):
    """(predictions, posterior variance) of SMURFF's Gibbs sampler; None without its environment."""
    if not python:
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "given.npz", Path(folder) / "answer.npz"
        cells = {"rows": base.rows, "cols": base.cols, "values": base.values, "shape": base.shape}
        np.savez(given, **cells, test_rows=test.rows, test_cols=test.cols)
        command = [Path(python).absolute(), "-c", SMURFF, given, answer]
        subprocess.run(command, capture_output=True, check=True, cwd=folder)
        with np.load(answer) as found:
            return np.clip(found["predicted"], *base.bounds), found["variance"]

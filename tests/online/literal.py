"""A_M of the paper to the letter, as an oracle for tests: X of size 2p, p = 2 (m + n), L_t by its definition.

One limit is not the paper's: X_aa <= K / 2 in place of K (docs/mathematics.md, "Where this differs").

The projection onto K_X is solved with one multiplier for every constraint, by Newton's method with an explicit Hessian
on those that bind. Nothing here knows about blocks or symmetries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Constraints:
    """tr(E_c X) <= b_c: trace, diagonal, and both signs of every entry of P - N; E_c as (rows, cols, coefficients)."""

    p: int
    diagonal: float
    trace: float
    constraint_matrices: list = field(init=False)
    limits: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        p, size = self.p, 2 * self.p
        everything = np.arange(size)
        self.constraint_matrices = [(everything, everything, np.ones(size))]
        limits = [self.trace]
        for i in range(size):
            self.constraint_matrices.append((np.array([i]), np.array([i]), np.ones(1)))
            limits.append(self.diagonal)
        for i in range(p):
            for j in range(i, p):
                for sign in (1.0, -1.0):
                    rows, cols = np.array([i, j, p + i, p + j]), np.array([j, i, p + j, p + i])
                    self.constraint_matrices.append((rows, cols, sign * np.array([0.5, 0.5, -0.5, -0.5])))
                    limits.append(1.0)
        self.limits = np.array(limits)

    def values(self, X: np.ndarray) -> np.ndarray:
        p = self.p
        upper = np.triu_indices(p)
        difference = (X[:p, :p] - X[p:, p:])[upper]
        both = np.stack([difference, -difference], axis=1).ravel()
        return np.concatenate([[np.trace(X)], np.diag(X), both])

    def combine(self, y: np.ndarray) -> np.ndarray:
        total = np.zeros((2 * self.p, 2 * self.p))
        for c in np.flatnonzero(y):
            rows, cols, coefficients = self.constraint_matrices[c]
            np.add.at(total, (rows, cols), y[c] * coefficients)
        return total


def exponential(H: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(H)
    values = np.minimum(values, 500.0)  # a trial step far too long; its exponential is huge all the same
    return (vectors * np.exp(values)) @ vectors.T, values, vectors


def project_literally(
    log_Y: np.ndarray, constraints: Constraints, tolerance: float = 1e-11
) -> tuple[np.ndarray, np.ndarray]:
    """argmin of Delta(X, Y) over the constraints: its logarithm and itself."""
    y = np.zeros(len(constraints.limits))

    def evaluate(y):
        log_X = log_Y - constraints.combine(y)
        X, values, vectors = exponential(log_X)
        return np.trace(X) + constraints.limits @ y, log_X, X, values, vectors

    phi, log_X, X, values, vectors = evaluate(y)
    for _ in range(200):
        over = constraints.values(X) - constraints.limits
        free = np.flatnonzero((y > 0) | (over > 0))
        if np.abs(over[free]).max(initial=0.0) <= tolerance:
            return log_X, X
        gaps = values[:, None] - values
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = (np.exp(values)[:, None] - np.exp(values)) / gaps
        F = np.where(np.abs(gaps) > 1e-9, ratios, np.exp((values[:, None] + values) / 2))
        rotated = []
        for c in free:
            rows, cols, coefficients = constraints.constraint_matrices[c]
            rotated.append(np.einsum("a,ax,ay->xy", coefficients, vectors[rows], vectors[cols]))
        basis = np.stack(rotated).reshape(len(free), -1)
        hessian = (basis * F.ravel()) @ basis.T
        step = np.linalg.lstsq(hessian, over[free], rcond=1e-14)[0]
        for halvings in range(60):
            trial = y.copy()
            trial[free] = np.maximum(0.0, y[free] + 0.5**halvings * step)
            found = evaluate(trial)
            if found[0] <= phi - 1e-4 * over @ (trial - y) + 1e-13 * abs(phi):
                break
        y, (phi, log_X, X, values, vectors) = trial, found
    raise AssertionError(f"the oracle did not converge: {np.abs(over[free]).max()}")


class LiteralMatrixPlayer:
    """X_t of the paper's Algorithm A_M."""

    def __init__(self, shape: tuple[int, int], K: float, theta: float) -> None:
        self.shape, self.K, self.theta = shape, K, theta
        m, n = shape
        self.p = 2 * (m + n)
        self.X = K / 2 * np.eye(2 * self.p)
        self.log_X = np.log(K / 2) * np.eye(2 * self.p)
        self.constraints = Constraints(self.p, K / 2, 2 * K * (m + n))

    def decision(self) -> tuple[np.ndarray, np.ndarray]:
        m, n = self.shape
        p = self.p
        difference = self.X[:p, :p] - self.X[p:, p:]
        return difference[:m, 2 * m : 2 * m + n], difference[m : 2 * m, 2 * m + n :]

    def descent_matrix(self, C: np.ndarray, cell: tuple[int, int], value: float) -> np.ndarray:
        """L_t = L_t^G + L_t^F, index by index as in the paper's definition (0-based)."""
        m, n = self.shape
        p = self.p
        (i, j), (first, second) = cell, self.decision()
        L = np.zeros((2 * p, 2 * p))
        L[0:m, 2 * m : 2 * m + n] = C
        L[p + m : p + 2 * m, p + 2 * m + n : 2 * p] = C
        L[m : 2 * m, 2 * m + n : p] = -C
        L[p : p + m, p + 2 * m : p + 2 * m + n] = -C
        L[i, 2 * m + j] += -2 * self.theta * (first[i, j] - value)
        L[m + i, 2 * m + n + j] += -2 * self.theta * (second[i, j] - value)
        L[p + i, p + 2 * m + j] += 2 * self.theta * (first[i, j] - value)
        L[p + m + i, p + 2 * m + n + j] += 2 * self.theta * (second[i, j] - value)
        return L + L.T

    def update(self, C: np.ndarray, cell: tuple[int, int], value: float, eta: float) -> None:
        L = self.descent_matrix(C, cell, value)
        self.log_X, self.X = project_literally(self.log_X + eta * L, self.constraints)

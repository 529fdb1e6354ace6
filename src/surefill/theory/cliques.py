"""Why MP 1 is hard: its separation problem over PSD matrices decides whether a graph has a clique (NP-complete)."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefill.errors import InputError, MissingPackageError, invalid_parameter

MAX_VERTICES = 20
"""Vertices up to which all subsets of a size can be looked at; their number doubles with every vertex."""

ROUND_OFF = 1e-9
"""How far over a limit an entry of X may be and still count as within it."""

PSD_ROUND_OFF = 1e-6
"""The same for the smallest eigenvalue, which solvers leave less exact."""


@dataclass(frozen=True, eq=False)
class CliqueAnswer:
    """An optimum of the program of a :class:`CliqueInstance` at trace k.

    Attributes
    ----------
    k : the trace.
    value : sum_ij C_ij X_ij^2.
    matrix : X = v v' with v the 0/1 vector of ``vertices``.
    vertices : k vertices with the most edges among them.
    is_clique : whether the value is k^2, and so the vertices are a clique.

    Examples
    --------
    >>> import networkx as nx
    >>> from surefill.theory import clique_instance
    >>> clique_instance(nx.cycle_graph(5)).solve(3).is_clique
    False
    """

    k: int
    value: float
    matrix: NDArray[np.float64]
    vertices: tuple[Hashable, ...]
    is_clique: bool


@dataclass(frozen=True, eq=False)
class CliqueInstance:
    """max sum_ij C_ij X_ij^2  over  0 <= X_ij <= 1, X PSD, trace(X) <= k,  with C = I + the adjacency of a graph.

    Its value is k^2 if the graph has a clique of k vertices, and smaller if not. For p = diag(X), X_ij^2 <= p_i p_j,
    so the value is at most that of p' C p over 0 <= p <= 1, sum(p) <= k, which X = sqrt(p) sqrt(p)' reaches. Raising p
    until sum(p) = k loses nothing, since C >= 0, and then fractional entries come at least in pairs. Along e_i - e_j
    the form p' C p has curvature C_ii + C_jj - 2 C_ij >= 0, so weight can be moved between two of them without loss
    until p is 0 or 1. With T the k vertices where it is 1, the value is k + 2 (edges within T):
    the densest subgraph of k vertices, and k^2 exactly if T is a clique.

    ``confidence`` is C and ``vertices`` names its rows.

    Examples
    --------
    >>> import networkx as nx
    >>> from surefill.theory import clique_instance
    >>> clique_instance(nx.path_graph(3)).confidence.tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """

    confidence: NDArray[np.float64]
    vertices: tuple[Hashable, ...]

    def value(self, X: ArrayLike) -> float:
        """sum_ij C_ij X_ij^2 of an ``X`` that satisfies the program but for its trace."""
        matrix = np.asarray(X, dtype=np.float64)
        if matrix.shape != self.confidence.shape or not np.allclose(matrix, matrix.T, atol=ROUND_OFF):
            raise InputError(f"X must be a symmetric matrix with {len(self.vertices)} rows, one for each vertex.")
        if matrix.min() < -ROUND_OFF or matrix.max() > 1 + ROUND_OFF or np.linalg.eigvalsh(matrix)[0] < -PSD_ROUND_OFF:
            raise InputError("X must be positive semidefinite with entries in [0, 1].")
        return float(np.sum(self.confidence * matrix**2))

    def solve(self, k: int) -> CliqueAnswer:
        """The program's optimum at trace ``k``, by looking at all sets of k vertices: exact, and exponential."""
        size = len(self.vertices)
        if k != int(k) or not 1 <= k <= size:
            raise invalid_parameter("solve", "k", f"a whole number from 1 to {size}", k)
        if size > MAX_VERTICES:
            raise InputError(f"all sets of vertices are looked at, which is for at most {MAX_VERTICES}; got {size}.")
        best = max(itertools.combinations(range(size), int(k)), key=self._weight)
        v = np.zeros(size)
        v[list(best)] = 1.0
        value = self._weight(best)
        return CliqueAnswer(int(k), value, np.outer(v, v), tuple(self.vertices[i] for i in best), value == k**2)

    def largest_clique(self) -> tuple[Hashable, ...]:
        """The vertices of a largest clique: those of the largest k whose program has the value k^2."""
        found: tuple[Hashable, ...] = ()
        for k in range(1, len(self.vertices) + 1):
            answer = self.solve(k)
            if not answer.is_clique:
                break
            found = answer.vertices
        return found

    def _weight(self, chosen: tuple[int, ...]) -> float:
        """k + 2 (edges among the chosen vertices)."""
        return float(self.confidence[np.ix_(chosen, chosen)].sum())


def clique_instance(graph: Any) -> CliqueInstance:
    """The paper's reduction from k-clique (its appendix on hardness): C_ij = 1 if i = j or (i, j) is an edge, else 0.

    ``graph`` is an undirected networkx graph (extra ``graphs``); loops and weights play no part.

    >>> import networkx as nx
    >>> instance = clique_instance(nx.complete_graph(3))
    >>> answer = instance.solve(3)
    >>> answer.value, answer.is_clique
    (9.0, True)
    >>> clique_instance(nx.path_graph(3)).solve(3).value
    7.0
    """
    try:
        import networkx as nx
    except ImportError:
        raise MissingPackageError("the clique reduction", "networkx") from None
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.number_of_nodes() == 0:
        raise invalid_parameter("clique_instance", "graph", "an undirected networkx graph with a vertex", graph)
    C = (nx.to_numpy_array(graph, weight=None) > 0).astype(np.float64)
    np.fill_diagonal(C, 1.0)
    return CliqueInstance(C, tuple(graph.nodes))

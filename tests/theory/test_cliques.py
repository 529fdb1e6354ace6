"""The clique reduction: the program's value tells whether a clique exists, and only with the PSD constraint."""

import builtins

import networkx as nx
import numpy as np
import pytest

import surefill as sf
from surefill.errors import InputError, MissingPackageError


@pytest.mark.parametrize("seed", range(50))
def test_value_is_k_squared_exactly_where_a_clique_exists(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(rng.integers(3, 13)), float(rng.uniform(0.2, 0.9)), seed=seed)
    instance, largest = sf.theory.clique_instance(graph), max(map(len, nx.find_cliques(graph)))
    for k in range(1, len(graph) + 1):
        answer = instance.solve(k)
        assert (answer.value == k**2) == (k <= largest) == answer.is_clique
        assert instance.value(answer.matrix) == answer.value
        assert np.trace(answer.matrix) == k
    clique = instance.largest_clique()
    assert len(clique) == largest
    assert all(graph.has_edge(a, b) for a in clique for b in clique if a < b)


@pytest.mark.parametrize("seed", range(6))
def test_no_positive_semidefinite_matrix_has_a_larger_value(seed):
    """Random feasible matrices of every rank, and projected ascent on the diagonal, stay below; some come near."""
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(8, 0.5, seed=seed)
    instance, best = sf.theory.clique_instance(graph), 0.0
    for k in (2, 3, 5):
        answer = instance.solve(k)
        for _ in range(40):
            X = feasible(rng, 8, k)
            assert instance.value(X) <= answer.value + 1e-9
        values = [instance.value(np.sqrt(np.outer(p, p))) for p in (ascend(instance, k, rng) for _ in range(6))]
        assert max(values) <= answer.value + 1e-6
        best = max(best, max(values) / answer.value)
    assert best > 0.99


def feasible(rng, size, k):
    """A random PSD matrix with entries in [0, 1] and trace at most k."""
    L = rng.uniform(size=(size, int(rng.integers(1, size + 1)))) ** rng.uniform(0.5, 6)
    X = L @ L.T
    return X / max(X.max(), np.trace(X) / k)


def ascend(instance, k, rng):
    """p' C p raised by projected gradients on {0 <= p <= 1, sum(p) = k}."""
    p = project(rng.uniform(size=len(instance.vertices)) * 2, k)
    for _ in range(40):
        p = project(p + 0.1 * instance.confidence @ p, k)
    return p


def project(p, k):
    low, high = p.min() - 1.0, p.max()
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(p - middle, 0, 1).sum() > k else (low, middle)
    return np.clip(p - high, 0, 1)


def test_without_the_psd_constraint_the_value_counts_bicliques():
    """A star of 8 leaves has no triangle, and 1_A 1_B' with A its centre reaches 3^2 at trace norm 3."""
    star = nx.star_graph(8)
    instance = sf.theory.clique_instance(star)
    X = np.zeros((9, 9))
    X[0] = 1.0
    assert np.linalg.norm(X, "nuc") == pytest.approx(3)
    assert np.sum(instance.confidence * X**2) == 9
    assert len(instance.largest_clique()) == 2
    assert instance.solve(3).value == 7


def test_what_cannot_be_used_is_said():
    instance = sf.theory.clique_instance(nx.path_graph(3))
    with pytest.raises(InputError, match="'k'"):
        instance.solve(4)
    with pytest.raises(InputError, match="symmetric"):
        instance.value(np.ones((2, 2)))
    with pytest.raises(InputError, match="semidefinite"):
        instance.value(1 - np.eye(3))
    with pytest.raises(InputError, match="at most 20"):
        sf.theory.clique_instance(nx.path_graph(21)).solve(2)
    for graph in (nx.DiGraph([(0, 1)]), nx.Graph(), "path"):
        with pytest.raises(InputError, match="'graph'"):
            sf.theory.clique_instance(graph)


def test_networkx_is_named_where_it_is_missing(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "networkx":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackageError, match=r"pip install networkx"):
        sf.theory.clique_instance(None)

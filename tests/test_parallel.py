import os
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from surefill import PartialCompleter, parallel
from surefill.datasets import make_low_rank
from surefill.errors import InputError
from surefill.loop import Status, run
from surefill.parallel import SerialMap, ThreadMap, n_workers, one_blas_thread, over_ranges, using_jobs

both = pytest.mark.parametrize("pieces", [SerialMap(), ThreadMap()], ids=["serial", "threads"])


@pytest.fixture(params=[1, 2, 5])
def cores(request, monkeypatch):
    """A machine with this many cores, whatever the real one has."""
    parallel._pool.cache_clear()
    monkeypatch.setattr(parallel, "n_cores", lambda: request.param)
    yield request.param
    if parallel._pool.cache_info().currsize:
        parallel._pool().shutdown()
    parallel._pool.cache_clear()


@both
def test_results_come_in_the_order_of_the_items(pieces, cores):
    def late_if_early(i):
        time.sleep(0.002 * (i < 3))
        return i * i

    assert pieces.map(late_if_early, iter(range(20))) == [i * i for i in range(20)]
    assert pieces.map(late_if_early, []) == []


@both
def test_the_first_error_in_the_order_of_the_items_is_raised(pieces, cores):
    begun = []

    def fail_late(i):
        begun.append(i)
        time.sleep(0.01 * (i == 2))
        if i >= 2:
            raise ValueError(f"piece {i}")

    with pytest.raises(ValueError, match="piece 2"):
        pieces.map(fail_late, range(1000))
    assert len(begun) < 1000


@both
def test_no_piece_is_at_work_after_an_error(pieces, cores):
    at_work = []

    def work(i):
        if i == 0:
            raise KeyboardInterrupt
        at_work.append(i)
        time.sleep(0.02)
        at_work.remove(i)

    with pytest.raises(KeyboardInterrupt):
        pieces.map(work, range(50))
    assert not at_work


def test_pieces_may_be_cut_into_pieces(cores):
    pieces = ThreadMap()

    def table(i):
        return pieces.map(lambda j: sum(pieces.map(lambda k: i * j * k, range(4))), range(5))

    assert pieces.map(table, range(6)) == [[6 * i * j for j in range(5)] for i in range(6)]


def test_pieces_may_spread_ranges_of_groups_over_cores(cores):
    starts = np.arange(0, 200_001, 1000)

    def visits(_):
        visited = np.zeros(200, dtype=int)
        over_ranges(lambda first, last: mark(visited, first, last), starts)
        return visited.tolist()

    def mark(visited, first, last):
        visited[first:last] += 1

    assert ThreadMap().map(visits, range(8)) == [[1] * 200] * 8


def test_several_threads_may_map_at_once(cores):
    results = {}

    def caller(i):
        results[i] = ThreadMap().map(lambda j: (i, j), range(30))

    threads = [threading.Thread(target=caller, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert results == {i: [(i, j) for j in range(30)] for i in range(6)}


def test_all_cores_are_used(monkeypatch):
    parallel._pool.cache_clear()
    monkeypatch.setattr(parallel, "n_cores", lambda: 3)
    together = threading.Barrier(3, timeout=30)
    ThreadMap().map(lambda _: together.wait(), range(3))
    parallel._pool().shutdown()
    parallel._pool.cache_clear()


@both
def test_the_state_of_the_caller_s_floating_point_errors_holds_in_every_piece(pieces, cores):
    with np.errstate(divide="ignore"):
        assert pieces.map(lambda i: float(np.log(np.float64(i))), [0, 0, 0, 0]) == [-np.inf] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_starts_threads_of_its_own(cores):
    ThreadMap().map(abs, range(100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads alive is what this test is about
        child = os.fork()
    if child == 0:
        together = threading.Barrier(cores, timeout=10)
        try:
            ThreadMap().map(lambda _: together.wait(), range(cores))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=30))
def test_ranges_cover_every_group_once(sizes):
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    visited = np.zeros(len(sizes), dtype=int)

    def visit(first, last):
        visited[first:last] += 1

    over_ranges(visit, starts)
    assert (visited == 1).all()


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_linear_algebra_runs_on_one_core_inside_and_as_before_outside():
    before = blas_threads()
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_holds_the_lock_does_not_wait_for_it():
    setting = parallel._BLAS_LIMIT
    with setting._lock:
        child = os.fork()
        if child == 0:
            free = setting._lock.acquire(timeout=5)
            os._exit(0 if free else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_pieces_do_not_spread_their_linear_algebra_over_cores_again(monkeypatch):
    monkeypatch.setattr("surefill.parallel.n_cores", lambda: 2)
    assert ThreadMap().map(lambda _: set(blas_threads()), range(4)) == [{1}] * 4


def test_another_map_can_be_put_in_place_and_reaches_the_fits():
    class Counting(SerialMap):
        pieces = 0

        def map(self, function, items):
            items = list(items)
            self.pieces += len(items)
            return super().map(function, items)

    counting = Counting()
    seen = make_low_rank((40, 30), rank=1, n_draws=500, random_state=0).observations
    before = PartialCompleter(0.1, confidence="game").fit(seen).predict([0, 1], [2, 3])
    with parallel.using_map(counting):
        inside = PartialCompleter(0.1, confidence="game").fit(seen).predict([0, 1], [2, 3])
    np.testing.assert_array_equal(inside, before)
    assert counting.pieces >= 5  # folds, and the plays of the game
    assert isinstance(parallel.current_map(), ThreadMap)


def most_at_work(pieces):
    """How many of nested pieces are at work at the same time, at most."""
    at_work, most, lock = 0, 0, threading.Lock()

    def work(_):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.003)
        with lock:
            at_work -= 1

    pieces.map(lambda _: pieces.map(work, range(4)), range(6))
    return most


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_no_more_cores_than_asked_for_even_where_pieces_are_cut_into_pieces(jobs, monkeypatch):
    monkeypatch.setattr(parallel, "n_cores", lambda: 8)
    with using_jobs(jobs):
        assert most_at_work(ThreadMap()) == jobs
        assert all(threads <= jobs for threads in blas_threads())


def test_jobs_are_counted_as_scikit_learn_does_and_end_with_the_block(monkeypatch):
    monkeypatch.setattr(parallel, "n_cores", lambda: 4)
    before = blas_threads()
    for jobs, n in ((None, 4), (-1, 4), (-2, 3), (-9, 1), (6, 6)):
        with using_jobs(jobs):
            assert n_workers() == n
    assert n_workers() == 4
    assert blas_threads() == before
    for wrong in (0, 1.5, "all"):
        with pytest.raises(InputError, match="'n_jobs' parameter"), using_jobs(wrong):
            pass


def test_the_least_limit_on_linear_algebra_holds_whichever_ends_first(monkeypatch):
    before = blas_threads()
    two, one = using_jobs(2), one_blas_thread()
    two.__enter__()
    one.__enter__()
    two.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    one.__exit__(None, None, None)
    assert blas_threads() == before


class Endless:
    task, steps = "never ending", 0
    init, measure = int, float

    def step(self, state):
        self.steps += 1
        time.sleep(0.001)
        return state + 1

    def terminate(self, state):
        return None


def test_an_interruption_ends_the_solvers_of_other_threads_after_their_step(monkeypatch):
    monkeypatch.setattr(parallel, "n_cores", lambda: 3)
    solver = Endless()

    def piece(i):
        if i < 2 and threading.current_thread() is not threading.main_thread():
            return run(solver, max_steps=10**9).status
        while solver.steps < 5:
            time.sleep(0.001)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ThreadMap().map(piece, range(3))
    steps = solver.steps
    time.sleep(0.01)
    assert solver.steps == steps
    assert run(Endless(), max_steps=2).status is Status.STEP_LIMIT


def test_results_come_in_order_and_few_are_computed_ahead(cores):
    begun, taken = [], 0

    def work(i):
        begun.append(i)
        return i * i

    for i, result in enumerate(parallel.ahead(work, range(40))):
        assert result == i * i
        taken += 1
        assert len(begun) <= taken + cores + 1
    assert taken == 40


def test_who_waits_for_the_first_result_works_at_those_to_come():
    threads = set()
    with parallel.using_jobs(2):  # one thread beside the calling one
        together = threading.Barrier(2, timeout=30)
        list(parallel.ahead(lambda i: threads.add(threading.get_ident()) or together.wait(), range(2)))
    assert len(threads) == 2


def test_an_error_ahead_is_raised_in_its_turn_and_nothing_is_left_at_work(cores):
    at_work, taken = [], []

    def work(i):
        if i == 3:
            raise ValueError("the fourth")
        at_work.append(i)
        time.sleep(0.01)
        at_work.remove(i)
        return i

    results = parallel.ahead(work, range(50))
    taken.extend(next(results) for _ in range(3))
    with pytest.raises(ValueError, match="the fourth"):
        next(results)
    assert taken == [0, 1, 2]
    assert not at_work

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefill.kernels import factored_descent, kalman_filter
from surefill.kernels.counter_random import random_below, random_bits, random_bits_reference, random_uniform, stream_key
from surefill.kernels.kalman_filter import mix_experts, mix_experts_reference
from surefill.online.factored_game import FactoredGame
from surefill.stream.kalman_factors import KalmanFactors

WORD = st.integers(0, 2**64 - 1)


@given(WORD, st.integers(0, 2**63 - 1))
def test_random_bits_are_the_hash_that_its_twin_spells_out(key, k):
    assert int(random_bits(np.uint64(key), k)) == random_bits_reference(key, k)


def test_random_bits_are_splitmix64():
    """The first numbers of the published generator started at 1234567."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [int(random_bits(np.uint64(1234567), k)) for k in range(3)] == expected


def test_random_numbers_are_uniform_and_streams_differ():
    key = stream_key(0, 1)
    drawn = np.bincount([random_below(key, k, 7) for k in range(14_000)], minlength=7)
    assert len(drawn) == 7
    assert abs(drawn - 2000).max() < 5 * np.sqrt(2000)
    signs = np.array([random_uniform(key, k) for k in range(4000)])
    assert signs.min() >= -1
    assert signs.max() < 1
    assert abs(signs.mean()) < 5 / np.sqrt(3 * 4000)
    assert len({int(stream_key(seed, stream)) for seed in range(20) for stream in range(5)}) == 100


@pytest.mark.parametrize("play", [factored_descent.play, factored_descent.play_reference])
@pytest.mark.parametrize("player", ["entropy", "cube"])
def test_the_game_plays_as_its_twin_reads(play, player):
    """Rows and columns that appear on the way, a sample that overflows, and more snapshots than slots."""
    rng = np.random.default_rng(1)
    rows = np.minimum(rng.integers(0, 9, 60), np.arange(60) // 3)
    cols = np.minimum(rng.integers(0, 7, 60), np.arange(60) // 2)
    game = FactoredGame(rank=3, batch_size=4, n_snapshots=3, reservoir_size=25, confidence_player=player)
    expected = game.learn(rows, cols)
    other = FactoredGame(rank=3, batch_size=4, n_snapshots=3, reservoir_size=25, confidence_player=player)
    other._allocate(9, 7, 60)
    found = np.empty(60)
    play(rows, cols, other._state, other._parameters, found)
    assert game._state.counters[factored_descent.N_SNAPSHOTS] > 3
    np.testing.assert_allclose(found, expected, atol=1e-4)
    for name, array in other.state().items():
        np.testing.assert_allclose(array, game.state()[name], atol=1e-4, err_msg=name)


@pytest.mark.parametrize("learn", [kalman_filter.filter_values, kalman_filter.filter_values_reference])
@pytest.mark.parametrize("bounds", [(-2.0, 9.0), None])
def test_the_filter_learns_as_its_twin_reads(learn, bounds):
    rng = np.random.default_rng(2)
    rows, cols = rng.integers(0, 6, 80), rng.integers(0, 5, 80)
    values = np.clip(rng.normal(3, 2, 80) * np.linspace(0.2, 1, 80), -2, 9)
    model, other = KalmanFactors(bounds, 3), KalmanFactors(bounds, 3)
    expected = model.learn(rows, cols, values)
    other._experts[1] = other._experts[1]._replace(
        X=np.zeros((6, 4), np.float32),
        Y=np.zeros((5, 4), np.float32),
        A=np.zeros((6, 4, 4), np.float32),
        B=np.zeros((5, 4, 4), np.float32),
    )
    found = np.empty(80)
    learn(rows, cols, values, other._experts[1], other.parameters(1), found)
    assert len(expected) == 80
    for name, array in other._experts[1]._asdict().items():
        kept = array[: len(model.state()["experts"]["1"][name])]
        np.testing.assert_allclose(kept, model.state()["experts"]["1"][name], rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("mix", [mix_experts, mix_experts_reference])
def test_experts_are_weighed_by_the_errors_they_made(mix):
    rng = np.random.default_rng(0)
    values = rng.normal(size=300)
    good, bad = values + 0.3 * rng.normal(size=300), values + rng.normal(size=300)
    predicted, losses, mixed = np.array([bad, good]), np.zeros(3), np.empty(300)
    predicted[:, 0] = np.nan
    mix(predicted, values, 0.01, losses, mixed)
    assert np.isnan(mixed[0])
    assert mixed[1] == pytest.approx((good[1] + bad[1]) / 2)
    assert np.abs(mixed - good)[100:].max() < 1e-3
    weights = 0.99 ** np.arange(298, -1, -1)
    assert losses[1:] == pytest.approx([weights @ (good - values)[1:] ** 2, weights.sum()])
    assert losses[0] < 0.9 * (weights @ (bad - values)[1:] ** 2)

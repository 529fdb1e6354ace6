"""Numbers of cells: the compiled kernel and its readable twin, and that they look uniform and independent."""

import numpy as np

from surefill.kernels.counter_random import cell_uniforms, cell_uniforms_reference, stream_key


def test_the_kernel_and_its_twin_agree_and_know_the_place_of_a_block():
    rows, cols = np.divmod(np.arange(300), 20)
    key = stream_key(4, 2)
    found = cell_uniforms(key, 5, 20, rows, cols)
    np.testing.assert_array_equal(found, cell_uniforms_reference(key, 5, 20, rows, cols))
    np.testing.assert_array_equal(found, cell_uniforms(key, 0, 20, rows + 5, cols))


def test_they_are_uniform_and_differ_between_streams():
    rows, cols = np.divmod(np.arange(100_000), 500)
    first, second = (cell_uniforms(stream_key(0, stream), 0, 500, rows, cols) for stream in (1, 2))
    counts = np.histogram(first, 20, (0, 1))[0]
    assert ((counts - 5000) ** 2 / 5000).sum() < 60  # 19 degrees of freedom: beyond with probability 4e-6
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(100_000)

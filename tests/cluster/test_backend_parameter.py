"""``backend`` of the completer and of the command: the same result, and sentences where it does not go."""

import numpy as np
import pytest
from click.testing import CliRunner

import surefill as sf
from surefill.cli.main import commands
from surefill.cluster import LocalBackend
from surefill.estimators import algorithms


@pytest.fixture
def seen():
    return sf.datasets.make_low_rank((60, 50), rank=2, n_draws=2000, noise=0.1, random_state=0).observations


def test_a_completer_on_blocks_keeps_and_promises_the_same(seen, monkeypatch):
    monkeypatch.setattr(algorithms, "MANY_CELLS", 0)  # small tables are fitted here otherwise
    options = {"tolerance": 0.1, "confidence": "posterior"}
    here = sf.PartialCompleter(**options).fit(seen)
    there = sf.PartialCompleter(**options, backend=LocalBackend(block_cells=300)).fit(seen)
    rows, cols = np.divmod(np.arange(60 * 50), 50)
    np.testing.assert_allclose(there.predict(rows, cols), here.predict(rows, cols), atol=1e-6)
    np.testing.assert_array_equal(there.keep(rows, cols), here.keep(rows, cols))
    assert there.result_.guarantee.promised == here.result_.guarantee.promised


def test_what_a_cluster_does_not_fit_is_refused(seen):
    with pytest.raises(sf.InputError, match="fits the Bayesian factor model alone"):
        sf.PartialCompleter(completion="soft-impute", backend="ray").fit(seen)
    with pytest.raises(sf.InputError, match="'backend' parameter of PartialCompleter must be"):
        sf.PartialCompleter(backend="spark").fit(seen)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--address", "10.0.0.1:6379"], "--address is about a cluster"),
        (["--backend", "ray", "--resume"], "needs a folder that all of them see"),
    ],
)
def test_options_of_a_cluster_that_do_not_go_together_are_refused(tmp_path, options, sentence):
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n" + "\n".join(f"{i},{j},{i * j % 5}" for i in range(6) for j in range(6)))
    done = CliRunner().invoke(commands, ["complete", str(file), "-o", str(tmp_path / "out.csv"), *options])
    assert done.exit_code == 2 or isinstance(done.exception, sf.InputError)
    assert sentence in (done.output + str(done.exception))

"""Dates from files and tables through fit, predict, evaluate, save and the command line."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import surefill as sf
from surefill.cli.main import commands
from surefill.errors import InputError

START = 1_700_000_000


@pytest.fixture(scope="module")
def lines():
    """People who answer in four sittings, and are in another mood in each."""
    rng = np.random.default_rng(0)
    sim = sf.datasets.make_low_rank((60, 40), rank=1, n_draws=1400, noise=0.1, random_state=0)
    seen, sitting = sim.observations, rng.integers(0, 4, len(sim.observations))
    mood = rng.normal(0, 0.5, (60, 4))
    value = seen.values + mood[seen.rows, sitting]
    when = START + 86_400 * sitting + rng.integers(0, 60, len(seen))
    return pd.DataFrame({"user": seen.rows, "item": seen.cols, "rating": value.round(3), "when": when})


@pytest.fixture(scope="module")
def fitted(lines):
    seen = sf.Observations.from_table(lines[:-100], time="when", bounds=(-4, 4))
    return sf.PartialCompleter(tolerance=0.3, confidence="posterior").fit(seen)


def squared_error(lines, predicted):
    return float(np.mean((lines["rating"] - predicted) ** 2))


def test_known_dates_lower_the_error_and_leave_the_rest_alone(lines, fitted, tmp_path):
    last = lines[-100:]
    cells = last["user"], last["item"]
    dated, undated = (squared_error(last, fitted.predict(*cells, times)) for times in (last["when"], None))
    assert dated < 0.5 * undated
    plain = sf.PartialCompleter(tolerance=0.3, confidence="posterior").fit(fitted.observations_.with_times(None))
    for method in ("predict", "predict_risk", "predict_confidence"):
        np.testing.assert_array_equal(getattr(plain, method)(*cells), getattr(fitted, method)(*cells))
    held_out = sf.Observations.from_table(last, time="when", bounds=(-4, 4))
    assert -fitted.score(held_out) == pytest.approx(dated, rel=0.1)
    fitted.save(tmp_path / "model.surefill")
    again = sf.load(tmp_path / "model.surefill")
    np.testing.assert_array_equal(again.predict(*cells, last["when"]), fitted.predict(*cells, last["when"]))


def test_without_dates_a_time_is_refused(fitted):
    seen = fitted.observations_.with_times(None)
    plain = sf.PartialCompleter(tolerance=0.3, confidence="posterior").fit(seen)
    with pytest.raises(InputError, match="knows no times"):
        plain.predict([0], [0], [START])
    other = sf.PartialCompleter(tolerance=0.3, confidence="posterior", completion="factor-model")
    with pytest.raises(InputError, match="does not use times"):
        other.fit(fitted.observations_).predict([0], [0], [START])


@pytest.mark.parametrize("kind", ["numbers", "dates", "text in csv", "polars", "parquet"])
def test_times_are_read_from_every_kind_of_table(lines, kind, tmp_path):
    dates = pd.to_datetime(lines["when"], unit="s")
    if kind == "numbers":
        seen = sf.Observations.from_table(lines, time="when")
    elif kind == "dates":
        seen = sf.Observations.from_table(lines.assign(when=dates), time="when")
    elif kind == "polars":
        seen = sf.Observations.from_table(pl.DataFrame({**lines.to_dict("list"), "when": dates.to_list()}), time="when")
    elif kind == "parquet":
        lines.assign(when=dates).to_parquet(tmp_path / "a.parquet")
        seen = sf.read_observations(tmp_path / "a.parquet", time="when")
    else:
        lines.assign(when=dates.dt.strftime("%Y-%m-%dT%H:%M:%S")).to_csv(tmp_path / "a.csv", index=False)
        seen = sf.read_observations(tmp_path / "a.csv", time="when")
    first = seen.find([seen.row_index([lines["user"][0]])[0]], [seen.col_index([lines["item"][0]])[0]])
    assert seen.times[first] == pytest.approx(lines["when"][0])
    assert seen.times.min() >= START


def test_text_is_no_time_in_a_table_and_a_wide_file_has_none(lines, tmp_path):
    with pytest.raises(InputError, match="numbers or dates in column 'when'"):
        sf.Observations.from_table(lines.assign(when="monday"), time="when")
    with pytest.raises(InputError, match="no column 'day' for time"):
        sf.Observations.from_table(lines, time="day")
    lines.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match="no column for time"):
        sf.read_observations(tmp_path / "a.csv", wide=True, time="when")


def test_the_command_line_takes_times(lines, tmp_path):
    file, model = tmp_path / "ratings.csv", tmp_path / "model.surefill"
    lines[:-100].to_csv(file, index=False)
    lines[-100:].to_csv(tmp_path / "pairs.csv", index=False)

    def run(*words):
        done = CliRunner().invoke(commands, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.stdout

    posterior = "--confidence", "posterior"
    run("complete", file, "-o", tmp_path / "filled.csv", "--time", "when", "--save", model, *posterior)
    errors = [
        json.loads(run("predict", model, tmp_path / "pairs.csv", "--json", *times))["error"]
        for times in ((), ("--time", "when"))
    ]
    assert errors[1] < 0.5 * errors[0]
    said = json.loads(run("evaluate", file, "--by", "3", "--fold", "0", "--time", "when", "--json", *posterior))
    assert said["dated_error"] < 0.7 * said["error"]
    refused = CliRunner().invoke(commands, ["predict", str(model), str(file), "--time", "when", "--level", "0.9"])
    assert "not both" in str(refused.exception)


def test_the_command_line_takes_side_tables(lines, tmp_path):
    file, films = tmp_path / "ratings.csv", tmp_path / "films.csv"
    lines.drop(columns="when").to_csv(file, index=False)
    kind = ["a", "b", ""] * 13 + ["a", "b"]
    kinds = pd.DataFrame({"item": [*range(40), 77], "year": range(1960, 2001), "kind": kind})
    kinds.to_csv(films, index=False)
    seen = sf.read_observations(file, col_features=films)
    assert seen.col_labels[-1] == 77
    assert seen.col_features.names == ("year", "kind=", "kind=a", "kind=b")
    kinds.to_parquet(tmp_path / "films.parquet")
    again = sf.read_observations(file, col_features=tmp_path / "films.parquet")
    np.testing.assert_array_equal(again.col_features.table, seen.col_features.table)
    words = ["complete", file, "-o", tmp_path / "filled.csv", "--col-features", films, "--confidence", "posterior"]
    done = CliRunner().invoke(commands, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    with pytest.raises(InputError, match="does not exist"):
        sf.read_observations(file, row_features=tmp_path / "no.csv")

"""The client and the command against a service in a process of its own, and the how-to as it is written."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import surefill as sf
from surefill.cli.main import commands
from surefill.client import Client, ServiceError

_spec = importlib.util.spec_from_file_location("processes", Path(__file__).with_name("processes.py"))
processes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(processes)

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "serve.md"
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """A service on a folder where the front page's ratings and model lie."""
    folder = tmp_path_factory.mktemp("page")
    seen = sf.datasets.make_low_rank((40, 30), rank=2, n_draws=800, noise=0.2, random_state=0).observations
    people, films = ["ann", *(f"person {i}" for i in range(1, 40))], ["Alien", *(f"film {j}" for j in range(1, 30))]
    cells = zip(seen.rows.tolist(), seen.cols.tolist(), seen.values.tolist(), strict=True)
    lines = [f"{people[i]},{films[j]},{3 + 2 * value:.2f}" for i, j, value in cells]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    ratings = sf.read_observations(folder / "ratings.csv")
    sf.PartialCompleter(tolerance=0.5, confidence="posterior").fit(ratings).save(folder / "model.surefill")
    service = processes.Process(folder / "surefill-data", "--model", folder / "model.surefill")
    service.start()
    yield service, folder
    assert service.end() == 0


def test_the_how_to_works_as_it_is_written(process):
    service, folder = process
    (folder / "bin").mkdir()
    command = folder / "bin" / "surefill"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m surefill "$@"\n')
    command.chmod(0o755)
    (folder / "bin" / "python").symlink_to(sys.executable)
    path = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(processes.SOURCE)}
    for block in BLOCK.findall(PAGE.read_text()):
        code = block.replace("localhost:8080", f"localhost:{service.port}").replace(
            "curl ", "curl -sS --fail-with-body "
        )
        code = re.sub(r"^(pip install|surefill serve --model) .*$", "", code, flags=re.MULTILINE)
        done = subprocess.run(
            ["sh", "-euc", code], cwd=folder, env=os.environ | path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, (code, done.stdout, done.stderr)
    assert done.stdout.startswith('{"items":[{')


def test_the_client_sends_asks_and_tells_what_is_wrong(process):
    client = Client(process[0].address)
    books = client.create("books", bounds=(0, 10), tolerance=1.0)
    assert books.observe((f"r{k % 50}", k // 50, k % 11) for k in range(6_000)) == 6_000
    assert books.status()["observations"] == 6_000
    assert books.predict("r1", 3)["source"] == "observed"
    assert len(books.predict_many([("r1", 300), ("r2", 300)])) == 2
    assert books.promise()["promised"] is False
    assert len(books.recommend("r1", n=3, trusted=False)) in (0, 3)
    assert {each["name"] for each in client.data_sets()} >= {"books", "model"}
    with pytest.raises(ServiceError, match="outside the bounds") as refused:
        books.observe([("a", "b", 11)])
    assert refused.value.status == 422
    with pytest.raises(ServiceError, match="there is no data set 'none'"):
        client.data_set("none").status()
    assert client.data_set("model").suggest(3, strategy="variance")


def test_a_client_says_who_does_not_answer(monkeypatch):
    monkeypatch.setattr("surefill.client.PAUSE", 0.001)
    with pytest.raises(ServiceError, match="does not answer"):
        Client("http://127.0.0.1:9").data_sets()


def test_a_service_for_others_needs_a_token_first(tmp_path):
    done = CliRunner().invoke(commands, ["serve", "--data", str(tmp_path / "d"), "--host", "0.0.0.0"])
    assert "make one with 'surefill serve token" in str(done.exception)
    made = CliRunner().invoke(commands, ["serve", "token", "--data", str(tmp_path / "d"), "--scope", "admin"])
    assert re.fullmatch(r"sf_[\w-]{43}\n", made.stdout)
    again = CliRunner().invoke(commands, ["serve", "--data", str(tmp_path / "d"), "token", "--scope", "read"])
    assert re.fullmatch(r"sf_[\w-]{43}\n", again.stdout)
    assert json.dumps(made.stdout.strip()) not in (tmp_path / "d" / "surefill.sqlite").read_bytes().decode("latin-1")


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--database", "mysql://x"], "starts with postgresql://"), (["--model", "none.surefill"], "does not exist")],
)
def test_what_the_command_cannot_use_is_said(tmp_path, options, words):
    done = CliRunner().invoke(commands, ["serve", "--data", str(tmp_path / "d"), *options])
    assert words in str(done.exception)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("port", "cannot be listened on"),
        ("folder", "another service uses the folder"),
        ("model", "is not a surefill model"),
    ],
)
def test_a_service_that_cannot_start_ends_with_one_sentence(process, tmp_path, case, words, many):
    if case != "port" and not many:
        pytest.skip("make test-serve does this")
    service, folder = process
    (tmp_path / "bad.surefill").write_text("no model")
    options = {
        "port": ["--data", tmp_path / "d", "--port", service.port],
        "folder": ["--data", folder / "surefill-data", "--port", 0],
        "model": ["--data", tmp_path / "d", "--model", tmp_path / "bad.surefill", "--port", 0],
    }
    command = [sys.executable, "-m", "surefill", "serve", *map(str, options[case])]
    environment = os.environ | {"PYTHONPATH": str(processes.SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr.splitlines()[-1]

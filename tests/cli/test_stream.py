import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from surefill.datasets import make_low_rank
from surefill.stream.streaming_completer import StreamingCompleter

N_LINES = 600


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    seen = make_low_rank((30, 25), rank=2, n_draws=3 * N_LINES, noise=0.1, random_state=0).observations
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    lines = [f'"u, {i}",{j},{3 + 2 * v:.3f}' for i, j, v in zip(seen.rows, seen.cols, seen.values, strict=True)]
    path.write_text("\n".join(["user,item,rating", *lines[:N_LINES]]) + "\n")
    return path


def same_file(one, other):
    """Whether two checkpoints hold the same arrays and the same text, save for the names of their outputs."""
    with np.load(one) as a, np.load(other) as b:
        assert a.files == b.files
        arrays = all(a[name].tobytes() == b[name].tobytes() for name in a.files if name.startswith("array"))
        header, other_header = (json.loads(file["surefill.json"].tobytes()) for file in (a, b))
    for content in (header, other_header):
        content["content"]["dict"]["note"]["dict"]["chosen"]["dict"].pop("output")
    return arrays and header == other_header


def feed(monkeypatch, content):
    """Let standard input hold ``content``, readable once and in small parts, as a pipe is."""

    class Pipe(io.RawIOBase):
        def __init__(self):
            self.parts = [content[k : k + 700] for k in range(0, len(content), 700)]

        def readable(self):
            return True

        def read1(self, _=-1):
            return self.parts.pop(0) if self.parts else b""

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Pipe()))


def test_every_line_is_scored_before_it_is_learnt(run, ratings, tmp_path, capsys):
    out = tmp_path / "scored.csv"
    assert run("stream", ratings, "-o", out, "--bounds", 1, 5) == 0
    said = capsys.readouterr().out
    assert f"Learnt {N_LINES} observations" in said
    assert "Rows are user, columns item, values rating." in said
    header, *lines = out.read_text().splitlines()
    assert header == "user,item,rating,prediction,confidence"
    assert len(lines) == N_LINES
    given = [line.rsplit(",", 2) for line in ratings.read_text().splitlines()[1:]]
    stream = StreamingCompleter(bounds=(1, 5))
    scores = stream.learn_many(
        [row.strip('"') for row, *_ in given], [c for _, c, _ in given], [float(v) for *_, v in given]
    )
    written = np.array([line.rsplit(",", 4)[1:] for line in lines], dtype=float)
    np.testing.assert_allclose(written[:, 2], scores.predictions, rtol=1e-5)
    np.testing.assert_allclose(written[:, 3], scores.confidences, rtol=1e-5)
    assert f"{stream.metrics.rmse:.4f}" in said


def test_killed_at_any_point_it_goes_on_to_the_same_state_and_output(run, ratings, tmp_path):
    """SIGKILL after the first, third and fifth checkpoint, with output beyond the checkpoint left behind."""
    whole, wanted = tmp_path / "whole", tmp_path / "wanted.csv"
    assert run("stream", ratings, "-o", wanted, "--checkpoint", whole, "--every", 100) == 0
    state, out = tmp_path / "state", tmp_path / "out.csv"
    script = (
        "import os, signal, sys\n"
        "from surefill.cli import main, stream\n"
        "save, saved = stream.StreamRun.save, []\n"
        "def save_and_die(self, out):\n"
        "    save(self, out)\n"
        "    saved.append(1)\n"
        "    if len(saved) == 2:\n"
        "        out._file.write(b'half a li')\n"
        "        out._file.flush()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "stream.StreamRun.save = save_and_die\n"
        "main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", script, "stream", ratings, "-o", out, "--checkpoint", state, "--every", "100"]
    for kills in range(1, 4):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert StreamingCompleter.load(state).n_observed == 200 * kills
        assert out.read_bytes().endswith(b"half a li")
    assert run("stream", ratings, "-o", out, "--checkpoint", state, "--every", 100) == 0
    assert out.read_bytes() == wanted.read_bytes()
    assert same_file(state, whole)


def test_a_signal_saves_what_was_learnt_and_standard_input_is_skipped(run, ratings, tmp_path, monkeypatch, capsys):
    whole, wanted, state, out = (tmp_path / name for name in ("whole", "wanted.csv", "state", "out.csv"))
    content = ratings.read_bytes()
    feed(monkeypatch, content)
    assert run("stream", "-", "-o", wanted, "--checkpoint", whole) == 0
    options = ["stream", "-", "-o", out, "--checkpoint", state]
    command = [sys.executable, "-m", "surefill", *map(str, options)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write(content[: len(content) // 2].decode())
    process.stdin.flush()
    waited = time.monotonic() + 60
    while not out.exists() and time.monotonic() < waited and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert "interrupted; everything up to observation" in said
    assert 0 < StreamingCompleter.load(state).n_observed < N_LINES
    feed(monkeypatch, content)
    capsys.readouterr()
    assert run(*options, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["observations"] == N_LINES
    assert 0 < summary["learnt_in_this_run"] < N_LINES
    assert out.read_bytes() == wanted.read_bytes()


def test_a_finished_run_goes_on_where_the_file_has_grown(run, ratings, tmp_path):
    lines = ratings.read_text().splitlines(keepends=True)
    part, state, out = tmp_path / "part.csv", tmp_path / "state", tmp_path / "out.jsonl"
    for end in (1 + 250, 1 + 250, len(lines)):
        part.write_text("".join(lines[:end]))
        assert run("stream", part, "-o", out, "--checkpoint", state) == 0
    whole, wanted = tmp_path / "whole", tmp_path / "wanted.jsonl"
    assert run("stream", part, "-o", wanted, "--checkpoint", whole) == 0
    assert out.read_bytes() == wanted.read_bytes()
    assert same_file(state, whole)
    assert json.loads(wanted.read_text().splitlines()[0])["prediction"] is None


def test_json_lines_gzip_and_tsv_say_the_same(run, ratings, tmp_path):
    rows = [line.rsplit(",", 2) for line in ratings.read_text().splitlines()[1:]]
    objects = [{"stars": float(v), "who": r.strip('"'), "what": int(c), "when": 0} for r, c, v in rows]
    source = tmp_path / "events.jsonl"
    source.write_text("\n".join(map(json.dumps, objects)))
    packed = tmp_path / "ratings.csv.gz"
    packed.write_bytes(gzip.compress(ratings.read_bytes()))
    outputs = [tmp_path / name for name in ("a.tsv", "b.tsv", "c.tsv")]
    assert run("stream", source, "-o", outputs[0], "--row", "who", "--col", "what", "--value", "stars") == 0
    assert run("stream", packed, "-o", outputs[1]) == 0
    assert run("stream", ratings, "-o", outputs[2]) == 0
    first, second, third = (output.read_text().partition("\n")[2] for output in outputs)
    assert first == second == third
    assert outputs[0].read_text().startswith("who\twhat\tstars\tprediction\tconfidence\n")


def test_a_pipe_in_and_a_pipe_out(run, ratings, monkeypatch, capfdbinary):
    feed(monkeypatch, ratings.read_bytes())
    assert run("stream", "-", "-o", "-", "--every", 200, "--rolling") == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"user,item,rating,prediction,confidence\n")
    assert out.count(b"\n") == N_LINES + 1
    assert err.count(b"lately") == 3
    assert b"Learnt 600 observations" in err


def test_rolling_lines_for_machines_hold_what_came_since_the_last(run, ratings, tmp_path, capsys):
    assert run("stream", ratings, "-o", tmp_path / "out.csv", "--every", 250, "--rolling", "--json") == 0
    first, second, *summary = capsys.readouterr().out.splitlines()
    written = np.genfromtxt(tmp_path / "out.csv", delimiter=",", skip_header=1, usecols=(-3, -2, -1))
    error = (written[250:500, 1] - written[250:500, 0]) ** 2
    assert json.loads(first)["observations"] == 250
    assert json.loads(second)["rmse"] == pytest.approx(np.sqrt(error.mean()), rel=1e-4)
    assert json.loads("".join(summary))["observations"] == N_LINES


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("a,b,3\n", ""),
        ("user,item,rating\na,b,3\na,c,x\n", "line 3: the value 'x' is not a number"),
        ("user,item,rating\na,b,3\na,c\n", "line 3: 3 fields are expected"),
        ("user,item,rating\na,b,3\na,c,9\n", "line 3: the value 9 is outside the bounds (1, 5)"),
        ("user,item,rating\na,b,3\n,c,4\n", "line 3: an id is empty"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1, "item": 2}\n', "line 2: there is no 'rating'"),
        ('{"user": 1, "item": 2, "rating": 3}\n[1]\n', "line 2: a JSON object is expected"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1.5, "item": 2, "rating": 3}', "'user' must be text"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1, "item": 2, "rating": "3"}', "must be a finite number"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1, "item": 2, "rating": 7}', "outside the bounds"),
    ],
)
def test_bad_input_gets_one_sentence_and_leaves_nothing(run, content, sentence, tmp_path, capsys):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(content)
    code = run("stream", source, "-o", out, "--bounds", 1, 5)
    said = capsys.readouterr().err
    if not sentence:
        assert code == 0
        return
    assert code == 2
    assert sentence in said
    assert said.count("\n") == 1
    assert os.listdir(tmp_path) == ["in.csv"]


def test_a_bad_line_leaves_the_last_checkpoint_good(run, ratings, tmp_path, capsys):
    lines = ratings.read_text().splitlines(keepends=True)
    source, state, out = tmp_path / "in.csv", tmp_path / "state", tmp_path / "out.csv"
    source.write_text("".join([*lines[:350], "oops\n", *lines[350:]]))
    assert run("stream", source, "-o", out, "--checkpoint", state, "--every", 100) == 2
    assert "line 351: 3 fields are expected" in capsys.readouterr().err
    assert StreamingCompleter.load(state).n_observed == 300
    source.write_text("".join(lines))
    assert run("stream", source, "-o", out, "--checkpoint", state, "--every", 100) == 0
    assert run("stream", ratings, "-o", tmp_path / "wanted.csv") == 0
    assert out.read_bytes() == (tmp_path / "wanted.csv").read_bytes()


def test_what_cannot_be_is_refused_before_any_work(run, ratings, tmp_path, capsys):
    state, out = tmp_path / "state", tmp_path / "out.csv"
    assert run("stream", ratings, "--checkpoint", state, "-o", out) == 0
    other = tmp_path / "other.csv"
    other.write_text("person,item,rating\na,b,3\n")
    short = tmp_path / "short.csv"
    short.write_text("\n".join(ratings.read_text().splitlines()[:9]) + "\n")
    cases = [
        ((ratings, "--checkpoint", state, "-o", out, "--seed", 1), "was made with another seed"),
        ((other, "--checkpoint", state, "-o", out), "was made with another input"),
        ((short, "--checkpoint", state, "-o", out), "is shorter than, or differs from"),
        ((ratings, "--checkpoint", state), "was made with another output"),
        ((ratings, "-o", "-", "--checkpoint", state), "needs an output that can be cut back"),
        ((ratings, "-o", tmp_path / "out.xls"), "must end in .csv"),
        ((ratings, "-o", ratings), "must be different files"),
        ((tmp_path / "nowhere.csv",), "cannot be read: no such file"),
        ((ratings, "--checkpoint", ratings), "must be different files"),
        ((other, "--row", "user"), "has no column 'user'"),
    ]
    capsys.readouterr()
    for arguments, sentence in cases:
        assert run("stream", *arguments) == 2, arguments
        assert sentence in capsys.readouterr().err
    out.write_bytes(out.read_bytes()[:50])
    assert run("stream", ratings, "--checkpoint", state, "-o", out) == 2
    assert "is shorter than the checkpoint says" in capsys.readouterr().err

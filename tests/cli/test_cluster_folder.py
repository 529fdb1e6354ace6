"""Folders on a cluster from the command line: what is refused, and in which words."""

import pytest


@pytest.fixture
def folder_of_ratings(tmp_path):
    folder = tmp_path / "ratings"
    folder.mkdir()
    lines = [f"{i},{j},{i * j % 5}" for i in range(30) for j in range(20)]
    (folder / "a.csv").write_text("user,item,rating\n" + "\n".join(lines))
    return folder


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--save", "model.surefill"], "need the whole table on one machine"),
        (["--report", "report.html"], "need the whole table on one machine"),
        (["--completion", "soft-impute"], "the Bayesian factor model"),
        (["--confidence", "posterior"], "confidences from the game"),
        (["--write", "wide"], "long tables of all its rows"),
        (["--wide"], "a line for each observation"),
        (["--address", "127.0.0.1:1"], "needs a folder that all of them see"),
    ],
)
def test_what_a_folder_on_a_cluster_cannot_do_is_said(
    run, folder_of_ratings, tmp_path, options, said, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run("complete", folder_of_ratings, "-o", "out/", "--backend", "ray", *options) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()

import json

import numpy as np
import pytest

from surefill import PartialCompleter
from surefill.datasets import make_hidden_digits
from surefill.reproduction.demo_questions import DARKEST, MODEL, PAIRS, STRANGER, describe_questions
from surefill.reproduction.demo_story import describe_blocks, describe_digits, measure_digits

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def told(run, tmp_path_factory):
    """What the demo says on small data, as JSON, and the folder it drew into."""
    folder = tmp_path_factory.mktemp("demo") / "pictures"
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("click.echo", lambda text, **_: printed.append(text))
        assert run("demo", "--size", 14, "--tolerance", 0.6, "--images", 240, "--json", "-o", folder) == 0
    return json.loads("".join(printed)), folder


def test_the_first_chapter_keeps_the_groups_and_nothing_between_them(told):
    blocks = told[0]["figure1"]
    assert blocks["kept_inside"] > 0.7
    assert blocks["kept_outside"] < 0.05
    assert blocks["error_kept"] < 0.5 * blocks["error_not_kept"]


def test_the_second_chapter_fills_holes_and_leaves_hidden_halves_blank(told):
    digits = told[0]["digits"]
    assert digits["kept_holes"] > 0.3
    assert digits["kept_hidden"] == 0
    assert digits["error_holes_kept"] < digits["tolerance"] < digits["error_holes_not_kept"] < digits["error_hidden"]
    assert digits["error_not_easy"] < digits["error_not_easy_by_mean"]
    assert digits["holes"] + digits["hidden"] + digits["pixels_seen"] == 240 * 64


def test_the_third_chapter_asks_the_model(told):
    asked, kept = told[0]["questions"], told[0]["digits"]["kept_holes"]
    assert kept > 0
    assert len(asked["darkest"]) == DARKEST
    ink = [line["ink"] for line in asked["darkest"]]
    assert ink == sorted(ink, reverse=True)
    assert np.mean([(line["ink"] - line["truth"]) ** 2 for line in asked["darkest"]]) < 50  # of ink up to 16
    *known, stranger = asked["pairs"]
    assert {line["image"] for line in known} == {asked["image"]}
    assert [line["keep"] for line in known] == [line["reason"] == "" for line in known]
    assert {"", "too little support"} <= {line["reason"] for line in known}
    assert (stranger["image"], stranger["confidence"], stranger["keep"]) == (STRANGER, 0, False)
    assert stranger["reason"] == "row never seen"


def test_the_questions_can_be_asked_again_by_hand(told, run, capsys):
    asked, folder = told[0]["questions"], told[1]
    assert run("recommend", folder / MODEL, "--row", asked["image"], "-n", DARKEST) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    for line, best in zip(lines, asked["darkest"], strict=True):
        assert best["pixel"] in line.split(",")
    assert run("predict", folder / MODEL, folder / PAIRS) == 0
    assert "row never seen" in capsys.readouterr().out


def test_pictures_model_and_pairs_are_there_and_nothing_else(told):
    folder = told[1]
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(["digits.png", "figure1.png", MODEL, PAIRS])
    assert told[0]["files"] == [str(folder / name) for name in names]
    for name in ("digits.png", "figure1.png"):
        assert (folder / name).read_bytes()[:8] == PNG
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_person_is_told_numbers_and_promise(told):
    blocks, digits = told[0]["figure1"], told[0]["digits"]
    first, second = describe_blocks(blocks), describe_digits(digits)
    assert "within groups" in first
    assert f"{digits['kept_holes']:.0%}" in second
    for text, chapter in ((first, blocks), (second, digits)):
        for what in ("selection", "certificate", "guarantee"):
            assert chapter[what] in text
    third = describe_questions(told[0]["questions"], told[1])
    assert f"surefill recommend {told[1] / MODEL} --row {told[0]['questions']['image']} -n {DARKEST}" in third
    assert f"surefill predict {told[1] / MODEL} {told[1] / PAIRS}" in third
    assert "row never seen" in third


@pytest.mark.parametrize("there", [False, True])
def test_a_fault_leaves_no_file_and_keeps_those_that_were_there(run, tmp_path, monkeypatch, there):
    folder = tmp_path / "demo"
    if there:
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")

    def draw_then_stop(*given):
        given[-1].write_bytes(PNG)
        raise KeyboardInterrupt

    monkeypatch.setattr("surefill.reproduction.demo_story.demonstrate_blocks", draw_then_stop)
    assert run("demo", "-o", folder) == 130
    assert sorted(path.name for path in tmp_path.rglob("*")) == (["demo", "mine.txt"] if there else [])


def test_where_nothing_is_kept_nothing_is_made_up():
    hidden = make_hidden_digits(100)
    fitted = PartialCompleter(8.0, confidence="posterior").fit(hidden.observations).result_
    measured = measure_digits(hidden, fitted.at_tolerance(1e-9))
    assert measured["kept_holes"] == measured["kept_hidden"] == 0
    assert measured["error_holes_kept"] is measured["error_not_easy"] is measured["easy_share"] is None
    assert "Nothing is promised" in describe_digits(measured)


def test_errors_are_against_the_truth():
    hidden = make_hidden_digits(160)
    fitted = PartialCompleter(10.0, confidence="posterior", aim="observed").fit(hidden.observations).result_
    where = np.nonzero(~hidden.shown)
    error, kept = (fitted.values_at(*where) - hidden.truth[where]) ** 2, fitted.keeps(*where)
    measured = measure_digits(hidden, fitted)
    assert 0 < kept.mean() < 1
    assert measured["error_hidden"] == pytest.approx(error.mean())
    assert measured["error_hidden_kept"] == pytest.approx(error[kept].mean())
    assert measured["error_hidden_not_kept"] == pytest.approx(error[~kept].mean())


def test_a_folder_that_cannot_be_is_refused_before_the_work(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("surefill.reproduction.demo_story.demonstrate_blocks", None)
    (tmp_path / "file").write_text("")
    for folder, why in ((tmp_path / "no" / "pictures", "does not exist"), (tmp_path / "file", "is a file")):
        assert run("demo", "-o", folder) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"surefill: {folder}")
        assert why in said
        assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]

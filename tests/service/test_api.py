"""What the API says, asked over HTTP without a network."""

from __future__ import annotations

import json

import numpy as np
import pytest

import surefill as sf

FILMS = "/v1/data-sets/films"


def observe(client, triples, name="films", key=None, **query):
    listed = [{"row": str(row), "col": str(col), "value": value} for row, col, value in triples]
    headers = {} if key is None else {"Idempotency-Key": key}
    path = f"/v1/data-sets/{name}/observations"
    return client.post(path, json={"observations": listed}, headers=headers, params=query)


def test_a_prediction_is_that_of_the_model_and_says_so(served, model_file):
    model = sf.load(model_file)
    unseen = np.argwhere(model.observations_.find(*np.indices((60, 50)).reshape(2, -1)).reshape(60, 50) < 0)[:40]
    asked = {"cells": [{"row": str(i), "col": str(j)} for i, j in unseen.tolist()], "level": 0.8}
    answer = served.post(f"{FILMS}/predictions", json=asked).json()
    expected, ends = model.result_.answer(*unseen.T), model.predict_interval(*unseen.T, level=0.8)
    for name in ("value", "confidence", "risk", "keep"):
        np.testing.assert_allclose([each[name] for each in answer["predictions"]], getattr(expected, name), rtol=1e-12)
    np.testing.assert_allclose([each["low"] for each in answer["predictions"]], ends[0], rtol=1e-12)
    assert {each["source"] for each in answer["predictions"]} == {"model"}
    assert all(bool(each["reason"]) != each["keep"] for each in answer["predictions"])
    assert answer["model"]["number"] == 1
    assert answer["model"]["promised"]


def test_one_cell_gets_the_same_answer_as_among_many(served):
    one = served.get(f"{FILMS}/predictions", params={"row": "3", "col": "4"}).json()["prediction"]
    many = served.post(f"{FILMS}/predictions", json={"cells": [{"row": "3", "col": "4"}] * 2}).json()["predictions"]
    assert [one, one] == many


def test_what_came_after_the_model_is_answered_by_the_stream_and_never_kept(serve, served):
    before = served.get(f"{FILMS}/predictions", params={"row": "new row", "col": "4"}).json()["prediction"]
    assert (before["source"], before["reason"]) == ("model", "row never seen")
    assert observe(served, [("new row", "5", 0.5), ("new row", "6", 0.25)]).status_code == 201
    after = served.get(f"{FILMS}/predictions", params={"row": "new row", "col": "4"}).json()
    assert after["prediction"]["source"] == "stream"
    assert after["prediction"]["reason"] == "row came after the model was fitted"
    assert not after["prediction"]["keep"]
    assert after["prediction"]["risk"] is None
    assert after["model"]["observations_behind"] >= 2
    seen = served.get(f"{FILMS}/predictions", params={"row": "new row", "col": "6"}).json()["prediction"]
    assert (seen["source"], seen["value"], seen["keep"]) == ("observed", 0.25, False)


def test_recommendations_are_those_of_the_model_without_what_was_observed_since(serve, served, model_file):
    expected = [str(label) for label in sf.load(model_file).recommend(7, n=3).labels]
    found = served.get(f"{FILMS}/recommendations", params={"row": "7", "n": 3}).json()
    assert [each["col"] for each in found["recommendations"]] == expected
    assert all(each["keep"] for each in found["recommendations"])
    observe(served, [(7, expected[0], 0.1)])
    later = served.get(f"{FILMS}/recommendations", params={"row": "7", "n": 2}).json()["recommendations"]
    assert [each["col"] for each in later] == expected[1:]


def test_a_row_that_is_not_known_gets_a_sentence_and_one_that_came_later_the_stream(serve, served):
    nobody = served.get(f"{FILMS}/recommendations", params={"row": "nobody"}).json()
    assert nobody["recommendations"] == []
    assert nobody["reason"] == "there is no row 'nobody'."
    observe(served, [("late", "1", 0.3)])
    trusted = served.get(f"{FILMS}/recommendations", params={"row": "late"}).json()
    assert trusted["recommendations"] == []
    assert "after the model was fitted" in trusted["reason"]
    every = served.get(f"{FILMS}/recommendations", params={"row": "late", "trusted": False, "n": 5}).json()
    values = [each["value"] for each in every["recommendations"]]
    assert values == sorted(values, reverse=True)
    assert not any(each["keep"] for each in every["recommendations"])


def test_suggestions_are_those_of_the_model(served, model_file):
    rows, cols = sf.load(model_file).suggest(4, strategy="variance")
    found = served.get(f"{FILMS}/suggestions", params={"n": 4, "strategy": "variance"}).json()["suggestions"]
    assert [(each["row"], each["col"]) for each in found] == list(zip(map(str, rows), map(str, cols), strict=True))


def test_the_promise_is_told_in_its_own_words(served, model_file):
    guarantee = sf.load(model_file).result_.guarantee
    told = served.get(f"{FILMS}/promise").json()
    assert told["sentence"] == guarantee.sentence
    assert told["holds_over"] == guarantee.holds_over
    assert told["not_promised"] == guarantee.not_promised


def test_a_batch_is_stored_once_under_its_key(serve, settings, triples):
    with serve(settings) as client:
        assert client.post("/v1/data-sets", json={"name": "films", "tolerance": 0.1}).status_code == 201
        first = observe(client, triples[:5], key="batch-1")
        again = observe(client, triples[:5], key="batch-1")
        assert first.json() == again.json() == {"key": "batch-1", "stored": 5, "first": 1, "last": 5}
        assert again.headers["idempotent-replayed"] == "true"
        other = observe(client, triples[:6], key="batch-1")
        assert other.status_code == 409
        assert client.get(f"{FILMS}/status").json()["observations"] == 5
        assert observe(client, triples[5:7]).json()["first"] == 6


def test_a_service_goes_on_where_it_ended_to_the_bit(serve, settings, triples):
    cells = {"cells": [{"row": str(i), "col": str(j)} for i in range(20) for j in range(20)]}
    with serve(settings) as client:
        client.post("/v1/data-sets", json={"name": "films"})
        client.post("/v1/data-sets", json={"name": "whole"})
        observe(client, triples[:300])
        observe(client, triples[:600], "whole")
        expected = client.post("/v1/data-sets/whole/predictions", json=cells).json()
    with serve(settings) as client:
        observe(client, triples[300:600])
        assert client.post(f"{FILMS}/predictions", json=cells).json() == expected
        assert client.get(f"{FILMS}/status").json()["observations"] == 600


def test_without_a_model_nothing_is_promised_or_kept(serve, on_sqlite, triples):
    with serve(on_sqlite) as client:
        client.post("/v1/data-sets", json={"name": "films"})
        nothing = client.get(f"{FILMS}/predictions", params={"row": "1", "col": "1"}).json()["prediction"]
        assert (nothing["value"], nothing["keep"]) == (None, False)
        observe(client, triples[:50])
        told = client.get(f"{FILMS}/promise").json()
        assert not told["promised"]
        assert told["sentence"] == "Nothing is promised: no model is fitted yet."
        assert client.get(f"{FILMS}/suggestions").status_code == 409
        assert client.get(f"{FILMS}/report").status_code == 409


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/json", b'{"observations": [{"row": "ann", "col": 7, "value": 5}]}'),
        ("application/x-ndjson", b'{"row": "ann", "col": 7, "value": 5}\n'),
        ("text/csv", b"user,film,stars\nann,7,5\n"),
        ("text/csv; charset=utf-8", b"ann,7,5\n"),
    ],
)
def test_observations_come_in_three_forms(serve, on_sqlite, media_type, body):
    with serve(on_sqlite) as client:
        client.post("/v1/data-sets", json={"name": "films"})
        sent = client.post(f"{FILMS}/observations", content=body, headers={"Content-Type": media_type})
        assert sent.status_code == 201, sent.text
        found = client.get(f"{FILMS}/predictions", params={"row": "ann", "col": "7"}).json()["prediction"]
        assert (found["source"], found["value"]) == ("observed", 5.0)


REFUSED = [
    ("text/csv", b"", "the body is empty"),
    ("text/csv", b"user,film,stars\n", "no observation"),
    ("text/csv", b"user,film,stars\nann,Alien,\n", "line 2: the value is empty"),
    ("text/csv", b"user,film,stars\nann,Alien,five\n", "line 2"),
    ("text/csv", b"user,film,stars\nann,Alien,9\n", "outside the bounds (1, 5)"),
    ("text/csv", b"user,film,stars\nann,Al\x01ien,4\n", "control characters"),
    ("text/csv", b"\xff\xfe\x00", ""),
    ("text/csv", b"user,film,stars\n" + b"x" * 300 + b",Alien,4\n", "1 to 200 letters"),
    ("application/json", b"{", "the body"),
    ("application/json", b"[]", "the body should be"),
    ("application/json", b'{"observations": []}', "at least 1 item"),
    ("application/json", b'{"observations": [{"row": "a", "col": "b"}]}', "'value' is missing"),
    ("application/json", b'{"observations": [{"row": "a", "col": "b", "value": 9}]}', "outside the bounds (1, 5)"),
    ("application/json", b'{"observations": [{"row": "a", "col": "b", "value": NaN}]}', "the body"),
    ("application/json", b'{"observations": [{"row": "\\u0000", "col": "b", "value": 4}]}', "the body"),
    ("application/json", b'{"observations": [{"row": true, "col": "b", "value": 4}]}', "the body"),
    ("application/x-ndjson", b'{"row": "a"\n', "line 1"),
    ("application/x-ndjson", b'{"row": "a", "col": "b", "value": 4}\n{"row": "a"}\n', "line 2: there is no 'col'"),
]


def test_bad_observations_get_one_sentence_and_change_nothing(serve, on_sqlite):
    with serve(on_sqlite) as client:
        client.post("/v1/data-sets", json={"name": "films", "bounds": {"low": 1, "high": 5}})
        for media_type, body, words in REFUSED:
            sent = client.post(f"{FILMS}/observations", content=body, headers={"Content-Type": media_type})
            problem = sent.json()
            assert sent.status_code == 422, (body, problem)
            assert words in problem["detail"], problem
            assert problem["detail"].endswith("."), problem
            assert "--" not in problem["detail"]
            assert sent.headers["content-type"] == "application/problem+json"
        assert client.get(f"{FILMS}/status").json()["observations"] == 0


def test_other_forms_and_encodings_are_refused(served):
    plain = served.post(f"{FILMS}/observations", content=b"a,b,1", headers={"Content-Type": "text/plain"})
    assert plain.status_code == 415
    packed = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}
    assert served.post(f"{FILMS}/observations", content=b"", headers=packed).status_code == 415


@pytest.mark.parametrize("name", ["..", "../films", "films/..", "Films", "a" * 65, "-films", "films%2F..", "fi lms"])
def test_a_name_cannot_lead_out_of_its_folder(served, name, tmp_path):
    assert served.post("/v1/data-sets", json={"name": name}).status_code == 422
    assert served.get(f"/v1/data-sets/{name}/status").status_code in (404, 422)


def test_data_sets_are_made_listed_by_pages_and_deleted(serve, settings):
    with serve(settings) as client:
        for name in ("films", "books", "songs"):
            assert client.post("/v1/data-sets", json={"name": name}).status_code == 201
        assert client.post("/v1/data-sets", json={"name": "films"}).status_code == 409
        page = client.get("/v1/data-sets", params={"limit": 2}).json()
        assert [each["name"] for each in page["items"]] == ["books", "films"]
        rest = client.get("/v1/data-sets", params={"limit": 2, "after": page["next"]}).json()
        assert ([each["name"] for each in rest["items"]], rest["next"]) == (["songs"], None)
        observe(client, [("a", "b", 1.0)])
        assert client.delete(FILMS).status_code == 204
        assert client.get(f"{FILMS}/status").status_code == 404
        assert client.post("/v1/data-sets", json={"name": "films"}).status_code == 201
        assert client.get(f"{FILMS}/status").json()["observations"] == 0


def test_bounds_and_loss_are_checked(served):
    bad = served.post("/v1/data-sets", json={"name": "x", "bounds": {"low": 5, "high": 1}}).json()
    assert bad["detail"] == (
        "the body, 'bounds': bounds must be two finite numbers, low < high, of at most 1e+60 in size; got (5, 1)."
    )
    assert served.post("/v1/data-sets", json={"name": "x", "loss": "odd"}).status_code == 422
    assert served.post("/v1/data-sets", json={"name": "x", "tolerance": 0}).status_code == 422


def test_problems_carry_the_id_of_the_request(served):
    told = served.get("/v1/data-sets/none/status", headers={"X-Request-Id": "mine-1"})
    assert told.status_code == 404
    assert told.json()["request_id"] == told.headers["x-request-id"] == "mine-1"
    odd = served.get("/health/live", headers={"X-Request-Id": "x" * 100})
    assert odd.headers["x-request-id"] != "x" * 100


def test_health_and_metrics(served):
    assert served.get("/health/live").json() == {"status": "ok"}
    assert served.get("/health/ready").json() == {"status": "ok"}
    assert served.get("/v1/data-sets/films/predictions", params={"row": "u1", "col": "i1"}).status_code == 200
    text = served.get("/metrics").text
    assert 'surefill_model{data_set="films"} 1.0' in text
    assert 'route="/v1/data-sets/{name}/predictions"' in text


def test_the_description_names_every_problem(served):
    description = served.get("/openapi.json").json()
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            bad = [status for status in told["responses"] if status.startswith(("4", "5"))]
            assert "400" in bad, (path, method)
            for status in bad:
                assert list(told["responses"][status]["content"]) == ["application/problem+json"], (path, status)
    assert "HTTPValidationError" not in json.dumps(description)

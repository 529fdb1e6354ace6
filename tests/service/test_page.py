"""The page as a browser gets it: the API's answers, nothing inline, everything escaped, nobody else's requests."""

from __future__ import annotations

import html
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from surefill.service import Settings
from surefill.service.page.activity import Activity
from surefill.service.page.rendering import STATIC
from surefill.service.page.sessions import COOKIE, MOST_SESSIONS, Sessions
from surefill.service.page.words import bars
from surefill.service.refit import report_name
from surefill.service.store import open_engine, writing
from surefill.service.store.tokens import create_token, delete_token
from surefill.stream import StreamMetrics

SCRIPT, IMAGE = "<script>alert(1)</script>", "\"'><img src=x onerror=alert(2)>"
FILMS = "/page/data-sets/films"


def origin(client):
    return {"Origin": str(client.base_url).rstrip("/")}


def post(client, address, **more):
    headers = origin(client) | more.pop("headers", {})
    return client.post(address, headers=headers, **more)


def upload(client, name, body, kind="text/csv", **query):
    address = f"/page/data-sets/{name}/upload"
    return post(client, address, content=body, headers={"Content-Type": kind}, params=query)


def words(answer):
    """The text of an answer without its markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def served(serve, mixed_file, folder):
    """A client of a service with a data set whose model keeps a part."""
    with serve(Settings(folder, poll_seconds=0.2), mixed_file) as client:
        yield client


@pytest.fixture(scope="module")
def hostile(served):
    """A data set whose labels are markup."""
    post(served, "/page/data-sets", data={"name": "hostile"})
    body = (
        json.dumps({"row": SCRIPT, "col": IMAGE, "value": 1}) + "\n" + json.dumps({"row": "b", "col": "c", "value": 2})
    )
    assert upload(served, "hostile", body, "application/x-ndjson").json()["stored"] == 2
    return served


@pytest.mark.parametrize("address", ["/", FILMS, "/page/sign-in", "/page/data-sets/none", f"{FILMS}?row=3"])
def test_pages_hold_nothing_inline_and_load_from_here_alone(served, address):
    answer = served.get(address)
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert {policy[kind] for kind in ("script-src", "style-src", "connect-src", "frame-src")} == {"'self'"}
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|javascript:|<script(?![^>]*\ssrc=)", answer.text)
    loaded = re.findall(r'(?:src|href)="([^"#]+)', answer.text)
    assert loaded
    assert all(found.startswith("/") and not found.startswith("//") for found in loaded)
    for found in loaded:
        if "static" in found:
            assert served.get(found).status_code == 200


def test_files_are_those_that_were_packed(served):
    assert {"htmx.min.js", "htmx.LICENSE", "uPlot.iife.min.js", "uPlot.LICENSE", "report.css"} <= STATIC.keys()
    assert served.get("/page/static/htmx.min.js").headers["content-type"].startswith("text/javascript")
    for name in ("none.js", "..%2frouter.py", "%2e%2e/templates/base.html", "/etc/passwd"):
        assert served.get(f"/page/static/{name}").status_code == 404


def test_the_list_says_what_the_api_says(served):
    text, status = words(served.get("/page/list")), served.get("/v1/data-sets/films/status").json()
    assert text.startswith("✓ Ready. Everything sent is stored.")
    assert f"films {status['observations']:,}" in text
    assert "✓ promised" in text


def test_the_promise_is_told_in_its_own_words(served):
    text, promise = words(served.get(f"{FILMS}/promise")), served.get("/v1/data-sets/films/promise").json()
    for part in ("sentence", "holds_over", "not_promised"):
        assert " ".join(promise[part].split()) in text


def test_a_row_has_the_recommendations_of_the_api_and_what_it_refuses_with_reasons(served):
    def ranked(row, **more):
        asked = {"row": row, "trusted": False, "n": 1000} | more
        return served.get("/v1/data-sets/films/recommendations", params=asked).json()["recommendations"]

    mixed = (row for row in map(str, range(60)) if len({cell["keep"] for cell in ranked(row)}) == 2)
    row = next(mixed)
    kept = ranked(row, trusted=True, n=10)
    refused = [cell for cell in ranked(row) if not cell["keep"]]
    answer = served.get(f"{FILMS}/row", params={"row": row})
    tables = [
        [html.unescape(label) for label in re.findall(r'<th scope="row">([^<]*)</th>', table)]
        for table in answer.text.split("<table")[1:]
    ]
    assert tables == [[cell["col"] for cell in kept], [cell["col"] for cell in refused[:10]]]
    assert re.findall(r'data-label="Why not">([^<]*)<', answer.text) == [cell["reason"] for cell in refused[:10]]
    counts = re.findall(r"not observed, (\d+) (?:is|are) kept and (\d+) (?:is|are) refused", words(answer))
    assert counts == [(str(len(ranked(row)) - len(refused)), str(len(refused)))]


@pytest.mark.parametrize("col", ["film 3", "film 59", "never seen"])
def test_one_column_of_a_row_can_be_asked_for(served, col):
    said = words(served.get(f"{FILMS}/row", params={"row": "140", "col": col}))
    cell = served.get("/v1/data-sets/films/predictions", params={"row": "140", "col": col}).json()["prediction"]
    seen = cell["source"] == "observed"
    assert f"{col}:" in said
    assert ("Kept." if cell["keep"] else "Observed." if seen else f"Refused: {cell['reason']}.") in said


def test_rows_are_found_by_part_of_their_label(served):
    found = re.findall(r'data-row="([^"]*)"', served.get(f"{FILMS}/rows", params={"row": "5"}).text)
    assert found[:2] == ["5", "50"]
    assert all("5" in label for label in found)
    assert "No row contains “absent”." in words(served.get(f"{FILMS}/rows", params={"row": "absent"}))
    assert "There is no row 'absent'." in words(served.get(f"{FILMS}/row", params={"row": "absent"}))
    assert served.get(f"{FILMS}/row", params={"row": ""}).status_code == 422


def test_labels_that_are_markup_are_text(hostile):
    for address in ("rows", "row", ""):
        answer = hostile.get(f"/page/data-sets/hostile/{address}".rstrip("/"), params={"row": SCRIPT})
        assert answer.status_code == 200
        assert SCRIPT in words(answer).replace("< ", "<") or html.escape(SCRIPT) in answer.text
        assert "<script>" not in answer.text
        assert "<img src=x" not in answer.text
    other = hostile.get("/page/data-sets/hostile/row", params={"row": "b"})
    assert html.escape(IMAGE) in other.text.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    assert "<b>" not in hostile.get("/page/data-sets/%3Cb%3Ex").text


def test_what_to_ask_can_be_answered_there(served):
    shown = served.get(f"{FILMS}/suggestions").text
    asked = served.get("/v1/data-sets/films/suggestions").json()["suggestions"]
    cells = re.findall(r'name="row" value="([^"]*)"><input type="hidden" name="col" value="([^"]*)"', shown)
    cells = [(row, html.unescape(col)) for row, col in cells]
    assert cells == [(cell["row"], cell["col"]) for cell in asked]
    (row, col), before = cells[0], served.get("/v1/data-sets/films/status").json()["observations"]
    answer = post(served, f"{FILMS}/answers", data={"row": row, "col": col, "value": "0.5"})
    assert words(answer) == "✓ stored 0.5"
    assert served.get("/v1/data-sets/films/status").json()["observations"] == before + 1
    cell = served.get("/v1/data-sets/films/predictions", params={"row": row, "col": col}).json()["prediction"]
    assert (cell["source"], cell["value"]) == ("observed", 0.5)
    refused = post(served, f"{FILMS}/answers", data={"row": row, "col": col, "value": "many"})
    assert refused.json()["detail"] == "The answer must be a number; got 'many'."


def test_a_data_set_is_made_from_a_form(served):
    form = {"name": "made", "low": "1", "high": "5", "tolerance": "0.8"}
    assert post(served, "/page/data-sets", data=form).headers["hx-redirect"] == "/page/data-sets/made#add"
    made = served.get("/v1/data-sets/made").json()
    assert (made["bounds"], made["tolerance"]) == ({"low": 1, "high": 5}, 0.8)
    assert post(served, "/page/data-sets", data=form).status_code == 409


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"name": "../x"}, "A name has 1 to 64"),
        ({}, "A name has 1 to 64"),
        ({"name": "x", "low": "1"}, "Give both bounds, or neither."),
        ({"name": "x", "low": "5", "high": "1"}, "low < high"),
        ({"name": "x", "low": "a", "high": "1"}, "The lower bound must be a number; got 'a'."),
        ({"name": "x", "low": "nan", "high": "1"}, "finite"),
        ({"name": "x", "tolerance": "0"}, "greater than 0"),
    ],
)
def test_a_form_that_makes_no_sense_gets_a_sentence(served, form, sentence):
    answer = post(served, "/page/data-sets", data=form)
    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]
    assert "x" not in [each["name"] for each in served.get("/v1/data-sets").json()["items"]]


def test_parts_of_a_file_are_stored_once_and_say_whether_they_have_a_header(served):
    post(served, "/page/data-sets", data={"name": "parts", "low": "1", "high": "5"})
    header, first, second = b"user,film,stars\n", b"ann,Alien,5\nbob,Alien,4\n", b"ann,Brazil,2\n"
    assert upload(served, "parts", header + first).json() == {"stored": 2, "repeated": False, "header": True}
    assert upload(served, "parts", header + second, before=2).json()["stored"] == 1
    assert upload(served, "parts", header + second, before=2).json()["repeated"]
    assert not upload(served, "parts", b"ann,Cube,3\n").json()["header"]
    assert served.get("/v1/data-sets/parts/status").json()["observations"] == 4


@pytest.mark.parametrize(
    ("body", "kind", "query", "sentence"),
    [
        (b"user,film,stars\nann,Alien,9\n", "text/csv", {"before": 1999}, "The file, line 2,001"),
        (b"user,film,stars\nann,Alien,good\n", "text/csv", {}, "The file, line 2"),
        (b"", "text/csv", {}, "The file is empty"),
        (b'{"row": 1, "col": 2}\n', "application/x-ndjson", {}, "The file has 2 columns"),
        (b"\x00\x01PK\x03\x04", "text/csv", {}, "The file"),
        (b"1,2,3\n", "application/zip", {}, "a part of a file is sent as"),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_sentence_with_its_line(served, body, kind, query, sentence):
    post(served, "/page/data-sets", data={"name": "bad", "low": "1", "high": "5"})
    answer = upload(served, "bad", body, kind, **query)
    assert answer.status_code in (415, 422)
    assert sentence in answer.json()["detail"]
    assert served.get("/v1/data-sets/bad").json()["observations"] == 0


def test_jobs_are_shown_and_asked_for(served):
    post(served, "/page/data-sets", data={"name": "empty"})
    assert "No job yet." in words(served.get("/page/data-sets/empty/jobs"))
    assert "asked for" in words(post(served, "/page/data-sets/empty/fit"))


def test_the_report_can_be_framed_here_and_reaches_nothing(served, folder):
    assert served.get(f"{FILMS}/report").status_code == 404
    assert 'class="with-report" hidden' in served.get(FILMS).text
    (model,) = folder.glob("data-sets/films-*/model-*.surefill")
    (model.parent / report_name(model.name)).write_text("<p>told</p>")
    answer = served.get(f"{FILMS}/report")
    assert answer.text == "<p>told</p>"
    assert answer.headers["content-security-policy"] == "sandbox allow-scripts; frame-ancestors 'self'"
    assert 'class="with-report" hidden' not in served.get(FILMS).text


def test_the_page_is_no_part_of_the_api(served):
    assert not [
        path for path in served.get("/openapi.json").json()["paths"] if not path.startswith(("/v1", "/h", "/m"))
    ]


@pytest.mark.parametrize("sender", [None, "null", "http://evil.example", "http://localhost:1"])
def test_what_another_site_sends_is_refused(served, sender):
    headers = {} if sender is None else {"Origin": sender}
    for address in ("/page/data-sets", f"{FILMS}/upload", f"{FILMS}/answers", f"{FILMS}/fit"):
        assert served.post(address, data={"name": "forged"}, headers=headers).status_code == 403


@pytest.fixture(scope="module")
def closed(serve, mixed_file, tmp_path_factory):
    """A client of a service that asks for tokens, with a token of each scope and a way to revoke one."""
    settings = Settings(tmp_path_factory.mktemp("closed"), require_token=True)
    engine = open_engine(settings.address)
    with writing(engine) as connection:
        made = {scope: create_token(connection, scope) for scope in ("read", "write", "admin")}

    def revoke(number):
        with writing(engine) as connection:
            delete_token(connection, number)

    with serve(settings, mixed_file) as client:
        yield SimpleNamespace(client=client, tokens=made, revoke=revoke)
    engine.dispose()


def signed_in(closed, scope):
    closed.client.cookies.clear()
    answer = post(closed.client, "/page/sign-in", data={"token": closed.tokens[scope][0]})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return answer


def test_whoever_has_no_session_is_asked_for_a_token(closed):
    closed.client.cookies.clear()
    answer = closed.client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/page/sign-in")
    for address in ("list", "data-sets/films/live", "data-sets/films/row?row=3", "data-sets/films/report"):
        assert closed.client.get(f"/page/{address}").status_code == 401
    wrong = post(closed.client, "/page/sign-in", data={"token": "sf_wrong"})
    assert wrong.status_code == 401
    assert "This token is not known, or was revoked." in words(wrong)


def test_a_session_is_a_cookie_that_holds_no_token_and_that_the_api_does_not_take(closed):
    cookie = signed_in(closed, "admin").headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert closed.tokens["admin"][0] not in cookie
    assert closed.client.get("/").status_code == 200
    assert closed.client.get("/v1/data-sets").status_code == 401
    post(closed.client, "/page/sign-out")
    assert closed.client.get("/page/list").status_code == 401


def test_a_session_may_do_what_its_token_may(closed):
    signed_in(closed, "read")
    assert "Adding observations needs a token that may write" in words(closed.client.get(FILMS))
    refused = upload(closed.client, "films", b"1,2,3\n")
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "your token may read; this needs one that may write.",
    )
    signed_in(closed, "write")
    assert upload(closed.client, "films", b"1,2,0.5\n").status_code == 200
    assert post(closed.client, "/page/data-sets", data={"name": "x"}).status_code == 403


def test_a_session_ends_with_its_token(closed, monkeypatch):
    signed_in(closed, "write")
    monkeypatch.setattr("surefill.service.service.TOKENS_SECONDS", -1.0)
    closed.revoke(closed.tokens["write"][1].id)
    assert closed.client.get("/page/list").status_code == 401


def test_the_oldest_session_makes_room():
    sessions = Sessions()
    keys = [sessions.open(token, 0.0) for token in range(MOST_SESSIONS + 1)]
    assert sessions.token(keys[0], 1.0) is None
    assert [sessions.token(key, 1.0) for key in keys[1:]] == list(range(1, MOST_SESSIONS + 1))


def test_activity_is_what_happened_between_samples():
    metrics = StreamMetrics.empty()
    sample = SimpleNamespace(record=SimpleNamespace(id=1), progress=None)
    activity = Activity()
    for now, (sequence, error) in enumerate([(0, 0.0), (10, 3.0), (10, 0.0), (30, 4.0)]):
        if error:
            metrics = metrics.updated(np.full(2, error), np.zeros(2), np.full(2, 0.5))
        sample.progress = SimpleNamespace(sequence=sequence, metrics=metrics)
        activity.look([sample], 2.0 * now)
    series = activity.series(1)
    assert series.rates == [5.0, 0.0, 10.0]
    assert series.errors == [3.0, None, 4.0]
    assert series.rate == 5.0
    activity.look([], 8.0)
    assert activity.series(1).times == []


def test_what_came_before_the_first_sample_of_a_new_data_set_counts():
    progress = SimpleNamespace(sequence=12, metrics=StreamMetrics.empty())
    old, new = (SimpleNamespace(record=SimpleNamespace(id=number), progress=progress) for number in (1, 2))
    activity = Activity()
    activity.look([old], 0.0)
    activity.look([old, new], 2.0)
    assert (activity.series(1).rates, activity.series(2).rates) == ([0.0], [6.0])


def test_bars_of_equal_values_have_a_place():
    assert [bar for bar in bars([(2.0, 2.0, 2.0)]) if bar] == [(0.0, 0.0, 0.0)]

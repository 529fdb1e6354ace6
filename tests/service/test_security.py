"""Who may ask for what."""

from __future__ import annotations

import dataclasses
import json
import logging

import pytest

from surefill.service import ServiceLimits
from surefill.service.api.logs import JsonLines
from surefill.service.store import open_engine, writing
from surefill.service.store.tokens import all_tokens, create_token


@pytest.fixture
def guarded(serve, settings):
    """A service that asks for tokens, and one token of each scope."""
    settings = dataclasses.replace(settings, require_token=True)
    settings.folder.mkdir()
    engine = open_engine(settings.address)
    with writing(engine) as connection:
        tokens = {scope: create_token(connection, scope)[0] for scope in ("read", "write", "admin")}
    engine.dispose()
    with serve(settings) as client:
        yield client, {scope: {"Authorization": f"Bearer {token}"} for scope, token in tokens.items()}


def test_each_scope_may_do_its_own_and_what_those_below_may(guarded):
    client, headers = guarded
    assert client.get("/v1/data-sets").status_code == 401
    assert client.get("/v1/data-sets").headers["www-authenticate"] == "Bearer"
    assert client.get("/v1/data-sets", headers={"Authorization": "Bearer sf_wrong"}).status_code == 401
    asked = {
        ("GET", "/v1/data-sets", None): "read",
        ("POST", "/v1/data-sets", '{"name": "films"}'): "admin",
        ("POST", "/v1/data-sets/films/jobs", None): "write",
        ("GET", "/v1/tokens", None): "admin",
        ("GET", "/metrics", None): "read",
    }
    order = ["read", "write", "admin"]
    for (method, path, body), needed in asked.items():
        for scope in order:
            status = client.request(
                method, path, content=body, headers=headers[scope] | {"Content-Type": "application/json"}
            ).status_code
            assert (status != 403) == (order.index(scope) >= order.index(needed)), (path, scope, status)
    assert client.get("/health/ready").status_code == 200


def test_tokens_are_made_shown_once_and_revoked(guarded):
    client, headers = guarded
    made = client.post("/v1/tokens", json={"scope": "read", "note": "page"}, headers=headers["admin"]).json()
    assert made["token"].startswith("sf_")
    listed = client.get("/v1/tokens", headers=headers["admin"]).text
    assert made["token"] not in listed
    assert client.delete(f"/v1/tokens/{made['id']}", headers=headers["admin"]).status_code == 204
    assert client.delete(f"/v1/tokens/{made['id']}", headers=headers["admin"]).status_code == 404


def test_only_hashes_are_stored(settings):
    settings.folder.mkdir()
    engine = open_engine(settings.address)
    with writing(engine) as connection:
        token, _ = create_token(connection, "read")
        assert token not in repr(all_tokens(connection))
    engine.dispose()


def test_other_names_and_other_sites_are_refused(served):
    assert served.get("/v1/data-sets", headers={"Host": "evil.example"}).status_code == 400
    assert served.post("/v1/data-sets/films/jobs", headers={"Origin": "http://evil.example"}).status_code == 403
    for host in ("localhost:9999", "127.0.0.1", "[::1]:80"):
        assert served.get("/health/live", headers={"Host": host}).status_code == 200


def test_browsers_are_kept_in(served):
    headers = served.get("/v1/data-sets").headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_logs_are_json_without_secrets_or_what_was_asked(guarded, caplog):
    client, headers = guarded
    with caplog.at_level(logging.INFO, logger="surefill.access"):
        client.get("/v1/data-sets", params={"after": "secretname"}, headers=headers["read"])
        client.get("/health/live")  # by when the first is told, for one thread answers both
    lines = [JsonLines().format(record) for record in caplog.records if record.name == "surefill.access"]
    assert json.loads(lines[0])["route"] == "/v1/data-sets"
    text = "\n".join(lines)
    assert headers["read"]["Authorization"].split()[1] not in text
    assert "secretname" not in text


def test_what_is_too_large_or_too_many_is_refused(serve, on_sqlite):
    limits = ServiceLimits(body_bytes=1000, batch=3, cells=2)
    with serve(dataclasses.replace(on_sqlite, limits=limits)) as client:
        client.post("/v1/data-sets", json={"name": "films"})
        path, csv = "/v1/data-sets/films/observations", {"Content-Type": "text/csv"}
        assert client.post(path, content=b"x" * 1001, headers=csv).status_code == 413
        chunks = (b"x" * 100 for _ in range(20))
        assert client.post(path, content=chunks, headers=csv).status_code == 413
        four = client.post(path, content=b"a,b,1\n" * 4, headers=csv).json()
        assert four["detail"] == "a batch holds at most 3 observations; send these in several."
        cells = {"cells": [{"row": "a", "col": "b"}] * 3}
        assert client.post("/v1/data-sets/films/predictions", json=cells).status_code == 413

"""What is too much, too many or too slow is refused, and whoever waits is told when to come again."""

from __future__ import annotations

import dataclasses
import socket
import time

import pytest

from surefill.service import ServiceLimits, connections

PATH = "/v1/data-sets/films/observations"


@pytest.fixture
def limited(serve, on_sqlite):
    """Starts a service with limits and one data set."""
    started = []

    def start(**limits):
        serving = serve(dataclasses.replace(on_sqlite, limits=ServiceLimits(**limits)))
        started.append(serving)
        client = serving.__enter__()
        assert client.post("/v1/data-sets", json={"name": "films"}).status_code == 201
        return client

    yield start
    for serving in started:
        serving.__exit__(None, None, None)


def connected(client):
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)


def begun(client, said=100, size=1_000):
    """A connection over which a part of a batch was sent, once the service awaited it, and the rest is awaited."""
    connection = connected(client)
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: {size}\r\n"
    connection.sendall(head.encode() + b"Connection: close\r\nExpect: 100-continue\r\n\r\n")
    assert connection.recv(1 << 10).startswith(b"HTTP/1.1 100 ")
    connection.sendall(b"x" * said)
    return connection


def until_closed(connection):
    """All that the service says until it closes the connection."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def until(condition):
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        if condition():
            return True
        time.sleep(0.02)
    return False


def send(client, lines=1):
    return client.post(PATH, content=b"a,b,1\n" * lines, headers={"Content-Type": "text/csv"})


def test_too_many_requests_at_a_time_are_told_when_to_come_again_and_health_is_still_answered(limited):
    client = limited(requests=1)
    with begun(client):
        refused = send(client)
        assert refused.status_code == 429
        assert (refused.headers["retry-after"], refused.headers["content-type"]) == ("1", "application/problem+json")
        assert refused.json()["detail"] == "1 requests are being answered; try again in a moment."
        assert client.get("/health/ready").status_code == 200
    assert until(lambda: send(client).status_code == 201), "there is room again when the other has gone"


def test_more_bytes_at_a_time_than_may_be_held_are_told_when_to_come_again(limited):
    client = limited(bodies_bytes=1_200)

    def both():
        with begun(client, said=900):  # or this one is refused, if its bytes arrive last
            refused, small = send(client, 100), send(client, 1)
        assert small.status_code == 201, "what is small still fits"
        return (refused.status_code, refused.headers.get("retry-after")) == (429, "1")

    assert until(both)
    assert until(lambda: send(client, 100).status_code == 201)


def test_a_body_that_takes_too_long_is_refused(limited):
    client = limited(body_seconds=0.3)
    with begun(client) as connection:
        answer = until_closed(connection).decode()
    assert answer.startswith("HTTP/1.1 408 ")
    assert "the body took more than 0.3 seconds." in answer


def test_questions_have_a_smaller_limit_than_observations(limited):
    client = limited(question_bytes=500, body_bytes=5_000)
    asked = client.post("/v1/data-sets/films/predictions", content=b"x" * 501)
    assert (asked.status_code, "at most 500 bytes" in asked.text) == (413, True)
    assert send(client, 200).status_code == 201


def test_a_connection_that_does_not_say_what_it_wants_is_closed(limited, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    client = limited()
    for said in (b"", b"GET /health/live HTTP/1.1\r\nHost: loc"):
        with connected(client) as connection:
            connection.sendall(said)
            assert until_closed(connection) == b""
    with connected(client) as connection:  # a second request over the same connection that stops half-way
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health")
        assert until_closed(connection).startswith(b"HTTP/1.1 200 ")
    with begun(client) as connection:  # headers that are there wait for their body
        time.sleep(0.6)
        connection.sendall(b"x" * 900)
        assert until_closed(connection).startswith(b"HTTP/1.1 422 ")


def test_headers_without_end_are_cut_off(limited):
    client = limited()
    endless = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 100_000_000
    with connected(client) as connection, pytest.raises(ConnectionError):
        connection.sendall(endless)
    assert client.get("/health/live", headers={"X-Long": "x" * 30_000}).status_code == 200


def test_whoever_hangs_up_while_sending_is_no_mistake_of_the_service(limited, caplog):
    client = limited()
    begun(client).close()
    route = 'route="/v1/data-sets/{name}/observations",status="400"} 1.0'
    assert until(lambda: route in client.get("/metrics").text)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]

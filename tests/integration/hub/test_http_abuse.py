"""Requests that are none, or ask for what is not theirs: none is a defect, none disturbs the next."""

import json
import socket

import pytest
from tests.integration.hub.rig import Rig

from gpuwaste.advice.predict.prediction_service import Predictions

CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
POST = b"POST /v1/hours HTTP/1.1\r\nHost: h\r\n"


@pytest.fixture(scope="module")
def hub(shared_hub: Rig) -> Rig:
    """Return the one hub that gets all of these requests, so that each is the next one of another."""
    return shared_hub


def exchange(hub: Rig, *parts: bytes, most: int = 64) -> bytes:
    """Send parts, the last one again and again up to `most` times or until the hub hangs up; return what it said."""
    said = b""
    with socket.create_connection(("127.0.0.1", hub.port), 30) as sock:
        try:
            for part in (*parts[:-1], *[parts[-1]] * (most if len(parts) > 1 else 1)):
                sock.sendall(part)
            sock.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            while part := sock.recv(65536):
                said += part
        except ConnectionResetError:
            pass
    return said


@pytest.mark.parametrize(
    "parts",
    [
        (POST + b"Transfer-Encoding: chunked\r\n\r\n", CHUNK),
        (POST + b"Content-Length: 99999999999\r\n\r\n", b"x" * 65536),
        (b"GET /v1/health HTTP/1.1\r\n", b"X: " + b"y" * 60_000 + b"\r\n"),
        (b"GET /v1/health HTTP/1.1\r\nHost: h\r\nX: ", b"y" * 65536),
        (b"GET /" + b"a" * 20_000, b"a" * 65536),
        (POST + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", CHUNK),
    ],
    ids=["endless chunks", "a body of 100 GB", "endless headers", "an endless header", "an endless path", "gzip"],
)
def test_what_does_not_end_is_ended(hub: Rig, parts: tuple[bytes, ...]) -> None:
    """After a megabyte, or as soon as it is known, the answer is a refusal and the connection's end."""
    said = exchange(hub, *parts, most=400)
    assert not said or said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413", b"HTTP/1.1 415"))
    assert hub.send("GET", "/v1/health").status == 200
    assert hub.hours() == []


@pytest.mark.parametrize(
    "head",
    [
        POST
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/top HTTP/1.1\r\nHost: h\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: +5\r\n\r\nhello",
        POST + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        POST + b"X : y\r\n\r\n",
        POST + b"X: a\x00b\r\n\r\n",
        b"GET http://elsewhere/v1/health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n",
        b"GET /v1/health HTTP/2.0\r\nHost: h\r\n\r\n",
    ],
)
def test_odd_heads_are_answered_once_or_refused(hub: Rig, head: bytes) -> None:
    """Two lengths, two encodings, other hosts, other protocols: one answer at most but for health, never a defect."""
    said = exchange(hub, head)
    assert b"HTTP/1.1 5" not in said
    assert said.count(b"HTTP/1.1 ") <= 1
    assert hub.send("GET", "/v1/health").status == 200


@pytest.mark.parametrize(
    "target",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/jobs/..%2f..%2fetc%2fpasswd",
        "/v1/jobs/%00",
        "/v1/jobs/7%0d%0aX: y",
        "/v1/jobs/" + "9" * 5000,
        "/v1/jobs/7'%20OR%20'1'='1",
        "/v1/report?user=alice'--",
        "/v1/report?user=%ED%A0%80",
        "/v1/report?start=" + "9" * 400,
        "/v1/report?account=" + "a" * 300,
        "/v1/map?node=-h&job=1",
        "/v1/map?node=..%2F..",
        "/v1/verdicts?policy=%00&limit=0",
        "/v1/history/snapshot/..",
        "/v1/predict?job=$(id)",
        "/v1/notices?user=%0A",
        "//v1//health",
        "/docs",
        "/static/../../etc/passwd",
    ],
)
@pytest.mark.parametrize("uid", [1002, 1004], ids=["a user", "an operator"])
def test_no_path_or_parameter_leads_anywhere(hub: Rig, target: str, uid: int) -> None:
    """Neither out of the API, nor into SQL, a shell or a header: words in JSON, and no defect."""
    answer = hub.get(uid, target.replace(" ", "%20"))
    assert answer.status in {200, 400, 403, 404, 422, 501, 503}, answer.body
    assert "x" not in answer.headers
    assert b"root:" not in answer.body
    assert isinstance(answer.json, dict)


def test_hostile_words_of_a_question_are_no_defect(hub: Rig) -> None:
    """A lone surrogate, NUL, a number beyond every float, in each member of a question: 200 or words."""
    hub.hub.get(Predictions).step()
    values: tuple[object, ...] = ("\ud800", "\x00", "a" * 5000, 10**400, -1, float("nan"), [[]], {"a": 1}, True, None)
    for value in values:
        for member in ("user", "name", "account", "partition", "time_limit_s", "gpus", "mem_b", "script", "submit"):
            body = json.dumps({"requests": [{member: value}]}).encode()
            for uid in (1001, 1004):
                answer = hub.post(body, uid, target="/v1/predict")
                assert answer.status in {200, 400, 404}, (member, value, answer.body)
        for target in ("/v1/notices/wish", "/v1/notices/run"):
            assert hub.post(json.dumps({"mail": value, "dry_run": value}).encode(), 1001, target=target).status < 500

"""One GET to slurmrestd, over real sockets: what is asked again, and each failure in one line."""

import json
import logging
import socket
import threading
from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.slurm.clients.rest_http import LateError, RestError, RestServer, TokenError, TooLargeError
from gpuwaste.testing.fake_slurmrestd import UNKNOWN_URL, FakeAnswer, FakeRequest, FakeSlurmrestd

pytestmark = pytest.mark.sockets

TOKEN = "eyJhIjoxfQ.eyJzdW4iOiJhIn0.c2ln"  # noqa: S105 no secret: the claims {"a":1} and {"sun":"a"}
OVER = "eyJhIjoxfQ.eyJzdW4iOiJhIiwiZXhwIjoxfQ.c2ln"


def errors(number: int, text: str) -> bytes:
    return json.dumps({"jobs": [], "errors": [{"error_number": number, "error": text}]}).encode()


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(TOKEN)
    return str(path)


def ask(told: FakeAnswer, token_file: str = "", **options: float) -> bytes:
    with FakeSlurmrestd(lambda _: told) as fake:
        return RestServer(fake.url, token_file, **options).get_jobs("/x")[0]  # type: ignore[arg-type]


def test_the_token_goes_into_headers_and_nowhere_else(token_file: str, caplog: pytest.LogCaptureFixture) -> None:
    """Both headers are sent, the query is encoded, and no log line holds the token."""
    caplog.set_level(logging.DEBUG)
    with FakeSlurmrestd(lambda _: FakeAnswer(body=b'{"jobs": [1]}')) as fake:
        assert RestServer(fake.url, token_file).get_jobs("/x", {"cluster": "a&b"})[1] == [1]
    (asked,) = fake.asked
    assert (asked.path, asked.query) == ("/x", {"cluster": "a&b"})
    assert asked.headers["X-SLURM-USER-TOKEN"] == TOKEN
    assert asked.headers["X-SLURM-USER-NAME"] == "a"
    assert TOKEN not in caplog.text


def test_a_unix_socket_serves_as_well(tmp_path: Path) -> None:
    """unix:/PATH, without a token."""
    with FakeSlurmrestd(lambda _: FakeAnswer(), str(tmp_path / "s")) as fake:
        assert RestServer(fake.url).get_jobs("/x")[0] == b'{"jobs": []}'
    assert "X-SLURM-USER-TOKEN" not in fake.asked[0].headers


@pytest.mark.parametrize(
    ("told", "kind", "text"),
    [
        (FakeAnswer(401, b"Authentication failure"), TokenError, "401: the token is rejected: .*scontrol token"),
        (FakeAnswer(511, errors(1007, "Protocol authentication error")), TokenError, "the token is rejected"),
        (FakeAnswer(502, errors(7000, "Unable to connect, authentication error")), TokenError, "the token is rejected"),
        (FakeAnswer(502, errors(7000, "Unable to connect to database")), RestError, "is down, or rejects the token"),
        (FakeAnswer(200, errors(1007, "Protocol authentication error")), TokenError, "the token is rejected"),
        (
            FakeAnswer(500, errors(-1, "Unspecified error")),
            RestError,
            "500: Unspecified error .possibly a token that slurmctld",
        ),
        (FakeAnswer(500, errors(9000, "Query empty")), RestError, "500: Query empty$"),
        (FakeAnswer(500, b"<html>oops"), RestError, "500: no reason given$"),
        (FakeAnswer(500, b"\xff\xfe bad"), RestError, r"500: \\xff\\xfe bad$"),
        (UNKNOWN_URL, RestError, "404: slurmrestd has no /x$"),
        (FakeAnswer(302, b""), RestError, "302: no reason given$"),
        (FakeAnswer(200, b"<html>a proxy's page"), ParseError, "/x: expected JSON, found HTML"),
        (FakeAnswer(200, b""), ParseError, "/x: expected JSON with jobs, found nothing"),
        (FakeAnswer(200, b'{"jobs": [', length=100), RestError, "is slurmrestd running"),
    ],
)
def test_each_refusal_is_one_line(told: FakeAnswer, kind: type[Exception], text: str, token_file: str) -> None:
    """It names the address, says what came and what to do; the token is not in it."""
    with pytest.raises(kind, match=text) as caught:
        ask(told, token_file)
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_missing_and_an_old_token_are_told_apart(tmp_path: Path) -> None:
    """Without a token slurmrestd asks for one; an old one is not even sent, its errors would speak of the database."""
    with pytest.raises(TokenError, match="401: slurmrestd requires a token"):
        ask(FakeAnswer(401, b"Authentication failure"))
    path = tmp_path / "old"
    path.touch(0o600)
    path.write_text(OVER)
    with FakeSlurmrestd(lambda _: FakeAnswer()) as fake, pytest.raises(TokenError, match="the token has expired"):
        RestServer(fake.url, str(path)).get_jobs("/x")[0]
    assert not fake.asked


def test_a_503_is_asked_again_and_nothing_else_is() -> None:
    """An overloaded server is asked three times at most; a 500 once, since its question was worked on."""
    answers = [FakeAnswer(503, b""), FakeAnswer(503, b""), FakeAnswer()]
    with FakeSlurmrestd(lambda _: answers.pop(0)) as fake:
        assert RestServer(fake.url).get_jobs("/x")[0]
        assert len(fake.asked) == 3
    with FakeSlurmrestd(lambda _: FakeAnswer(500, b"")) as fake:
        with pytest.raises(RestError):
            RestServer(fake.url).get_jobs("/x")[0]
        assert len(fake.asked) == 1


def test_a_late_answer_is_not_asked_again() -> None:
    """The database may still be at work on it."""
    gate = threading.Event()

    def wait(_: FakeRequest) -> FakeAnswer:
        gate.wait(10)
        return FakeAnswer()

    with FakeSlurmrestd(wait) as fake:
        with pytest.raises(LateError, match=r"no complete answer within 0.2 s: see slurm_timeout_s"):
            RestServer(fake.url, timeout_s=0.2).get_jobs("/x")[0]
        gate.set()
        assert len(fake.asked) == 1


def test_an_answer_that_is_too_large_is_given_up() -> None:
    """Before it is in memory."""
    with pytest.raises(TooLargeError, match="more than 1000 bytes"):
        ask(FakeAnswer(body=b" " * 100_000), max_bytes=1000)


def test_nobody_there_is_said(tmp_path: Path) -> None:
    """A closed port and a missing socket: the system's words, and where to look."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            RestError, match=rf"^{url}: .*Connection refused: is slurmrestd running\? see slurmrestd_url$"
        ):
            RestServer(url).get_jobs("/x")[0]
    with pytest.raises(RestError, match="No such file or directory: is slurmrestd running"):
        RestServer(f"unix:{tmp_path}/none").get_jobs("/x")[0]


@pytest.mark.parametrize(
    "url", ["", "ftp://a", "http://", "http://a:b", "http://a/b", "unix:relative", "http://u@a", "a:1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """At once, naming the key."""
    with pytest.raises(ConfigError, match="slurmrestd_url"):
        RestServer(url)


def test_a_token_in_the_clear_is_warned_of(token_file: str, caplog: pytest.LogCaptureFixture) -> None:
    """Only where others could read it: not on loopback, not at a Unix socket, not with TLS."""
    for url in ("http://127.0.0.1:1", "http://localhost:1", "unix:/x", "https://far:1"):
        RestServer(url, token_file)
    assert not caplog.records
    RestServer("http://far:1", token_file)
    assert "the token is sent unencrypted" in caplog.text

"""What strangers get and cause: no redirect, the headers of every answer, few lines of the log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.hub.rig import Answer, Rig, running_hub

from gpuwaste.core.errors import SlurmError
from gpuwaste.core.hub_config import WebConfig
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.middleware import HEADERS
from gpuwaste.hub.sign_in.visitors import Visitors

EVIL = {"Host": "evil.example"}
REJECTED = "page-rejected"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running_hub(tmp_path, web=WebConfig()) as found:
        yield found


def missing(answer: Answer) -> set[str]:
    """Return the names of the headers that an answer lacks."""
    return {name for name in HEADERS if name.lower() not in answer.headers}


@pytest.mark.parametrize("path", ["/me/?x=1", "/users/alice/?days=7", "/v1/health/", "//evil.example/", "/jobs/7/"])
def test_a_slash_at_the_end_leads_nowhere(rig: Rig, path: str) -> None:
    """Whatever the Host header names, no answer redirects to it: such a path is not found."""
    answer = rig.send("GET", path, headers=EVIL)
    assert (answer.status, "location" in answer.headers) == (404, False)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/no-such-page", 404),
        ("POST", "/me", 405),
        ("BREW", "/me", 501),
        ("GET", "/v1/report?start=x", 422),
        ("GET", "/v1/report", 401),
        ("GET", "/v1/health", 200),
        ("GET", "/me", 401),
        ("GET", "/", 303),
        ("GET", "/enter.js", 200),
        ("GET", "/now/changes", 401),
        ("GET", "/openapi.json", 200),
    ],
)
def test_each_answer_has_the_headers(rig: Rig, method: str, path: str, status: int) -> None:
    """Those of the framework too: nothing is kept, framed or guessed at."""
    answer = rig.send(method, path)
    assert answer.status in {status, 400} if status == 422 else answer.status == status
    assert missing(answer) == set()
    assert answer.headers["cache-control"] == "no-store"
    assert ("allow" in answer.headers) == (status == 405)


def test_a_defect_s_answer_has_them(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 500 is made outside of every middleware."""
    monkeypatch.setattr(rig.metrics, "text", lambda: 1 / 0)
    answer = rig.send("GET", "/metrics")
    assert (answer.status, missing(answer)) == (500, set())


def test_strangers_cause_a_line_for_each_reason(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Of 300 requests that are rejected for four reasons, in turn and in other words, there are four lines."""
    sent: list[tuple[str, str, dict[str, str]]] = [
        ("GET", "/me", EVIL),
        ("POST", "/enter", {"Sec-Fetch-Site": "cross-site"}),
        ("POST", "/enter", {"Sec-Fetch-Site": "same-origin"}),
        ("GET", "/me", {"X-Remote-User": "root"}),
    ]
    for number in range(300):
        method, path, headers = sent[number % 4]
        body = f"link=x{number}".encode() if method == "POST" else b""
        assert rig.send(method, path, body, headers).status in {401, 403}
    lines = [one for one in caplog.records if getattr(one, "event", "") == REJECTED]
    assert len(lines) == 4
    assert 'gpuwaste_hub_page_rejections_total{reason="host"} 75.0' in rig.send("GET", "/metrics").body.decode()


def test_a_hub_without_munge_logs_one_line_for_many_requests(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asks while Slurm or munge does not answer gets 503, and the log a line a minute."""

    def fails(*_: object) -> None:
        raise SlurmError("sacctmgr does not answer")

    monkeypatch.setattr(type(rig.hub.get(Identity)), "reader", fails)
    monkeypatch.setattr(type(rig.hub.get(Visitors)), "scope", fails)
    for _ in range(20):
        assert rig.send("GET", "/v1/report").status == rig.send("GET", "/me").status == 503
    lines = [str(getattr(one, "event", "")) for one in caplog.records]
    assert sorted(line for line in lines if line.endswith("-failed")) == ["page-failed", "request-failed"]

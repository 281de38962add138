"""`gpuwaste web` and Open OnDemand's app against a real hub, over real munge and over the Unix socket."""

import importlib.util
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode, urlsplit
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest
from tests.integration.cli.hub_double import running_hub

from gpuwaste.cli.main import main
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged
from gpuwaste.testing.patience import patient

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "gpuwaste.cli", "web"]


@pytest.fixture(scope="module")
def hub() -> Iterator[LoneHub]:
    with private_munged() as munge, TemporaryDirectory(prefix="gwt", dir="/tmp") as folder:
        directory = Path(folder)
        lone = LoneHub(directory, munge, hub={"socket": str(directory / "hub.sock")})
        lone.start()
        yield lone
        lone.stop()


def configured(hub: LoneHub, directory: Path, url: str) -> Path:
    """Write a user's configuration."""
    path = directory / "user.toml"
    path.write_text(to_toml({"common": {"hub_url": url, "munge_socket": hub.munge_socket}}), encoding="utf-8")
    return path


def redeem(link: str) -> tuple[int, str]:
    """Do what a browser does with the link; return the answer's status and its cookie."""
    parts = urlsplit(link)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=patient(20))
    try:
        body = urlencode({"link": parts.fragment})
        connection.request("POST", parts.path, body, {"Sec-Fetch-Site": "same-origin"})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Set-Cookie", "")
    finally:
        connection.close()


@pytest.mark.long
def test_the_link_signs_in_over_munge_and_over_the_socket(hub: LoneHub, tmp_path: Path) -> None:
    """The command prints a link and nothing else on stdout; it is good once, and the log has its user but no token."""
    for url in (hub.url, f"unix:{hub.directory / 'hub.sock'}"):
        done = subprocess.run(
            [*COMMAND, "--config", str(configured(hub, tmp_path, url))], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        (link,) = done.stdout.splitlines()
        assert link.startswith(f"{hub.url}/enter#")
        assert "works once" in done.stderr
        status, cookie = redeem(link)
        assert (status, cookie.startswith("gpuwaste=")) == (303, True)
        assert redeem(link)[0] == 403
        log = hub.log.read_text(encoding="utf-8")
        assert "page-sign-in: " in log
        assert urlsplit(link).fragment not in log


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "https://h/enter", "https://h/enter#\x1b[2J" + "a" * 40, "http://h/x/enter#" + "a" * 43],
)
def test_a_lying_hub_s_link_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    """What is no link of this form is one line of error, not something to open."""
    with running_hub(tmp_path) as double:
        double.answers["/v1/web/link"] = {"url": url, "expires_s": 60}
        assert main(["web", "--config", str(tmp_path / "gpuwaste.toml")]) == 1
    out, error = capsys.readouterr()
    assert (out, error) == ("", "gpuwaste: the hub's answer has no link: does it run another version?\n")


def application() -> Callable[..., Any]:
    """Return Open OnDemand's app, under a checker of WSGI's rules."""
    spec = importlib.util.spec_from_file_location("app", ROOT / "etc/ondemand/passenger_wsgi.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return validator(module.application)


def ask(method: str = "GET") -> tuple[str, dict[str, str], bytes]:
    """Ask the app as Passenger does."""
    environ: dict[str, Any] = {"QUERY_STRING": ""}
    setup_testing_defaults(environ)
    environ["REQUEST_METHOD"] = method
    found: list[Any] = []
    parts = application()(environ, lambda status, headers, _=None: found.append((status, dict(headers))))
    body = b"".join(parts)
    parts.close()
    return (*found[0], body)


def gpuwaste_in(directory: Path, script: str) -> str:
    """Put a command `gpuwaste` into a directory; return a PATH that begins with it."""
    command = directory / "gpuwaste"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return f"{directory}:{os.environ['PATH']}"


def test_the_portal_s_app_redirects_to_a_link(hub: LoneHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app's answer is a redirect to a link that signs in once; no body has the link."""
    config = configured(hub, tmp_path, hub.url)
    monkeypatch.setenv("PATH", gpuwaste_in(tmp_path, f'exec {sys.executable} -m gpuwaste.cli "$@" --config {config}'))
    status, headers, body = ask()
    assert (status, body, headers["Cache-Control"]) == ("303 See Other", b"", "no-store")
    assert redeem(headers["Location"])[0] == 303
    assert redeem(headers["Location"])[0] == 403
    assert ask("POST")[0].startswith("405")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'gpuwaste: hub is down' >&2; exit 1", b"hub is down"),
        ("echo https://evil.example/enter", b"printed no link"),
        ("printf 'https://h/enter#%043d\\r\\nX: y' 0", b"printed no link"),
        ("exit 0", b"printed no link"),
    ],
)
def test_the_portal_s_app_says_why_there_is_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: bytes
) -> None:
    """Where the command fails, or prints something else, the app answers 503 with the reason and no redirect."""
    monkeypatch.setenv("PATH", gpuwaste_in(tmp_path, script))
    status, headers, body = ask()
    assert status.startswith("503")
    assert "Location" not in headers
    assert words in body

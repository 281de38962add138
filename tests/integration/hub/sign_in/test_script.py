"""The script of /enter in a real browser: Debian's Chromium opens a link and is signed in."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import Response
from tests.integration.hub.rig import Rig
from tests.integration.hub.sign_in.browser import link_of, pages

from gpuwaste.core.config import WebConfig

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: chromium)"),
]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    with pages(tmp_path, WebConfig()) as rig:
        yield rig


def opened(rig: Rig, target: str) -> tuple[str, str]:
    """Open a path of the hub; return the page that the browser ends on, and what its console says."""
    assert CHROMIUM is not None
    options = ["--headless", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    options += ["--no-sandbox"] if os.geteuid() == 0 else []
    url = f"http://127.0.0.1:{rig.port}{target}"
    profile = f"--user-data-dir={rig.directory / 'profile'}"
    env = os.environ | {"TMPDIR": str(rig.directory)}  # it has a socket there
    argv = [CHROMIUM, *options, profile, "--dump-dom", url]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def test_a_link_that_is_opened_signs_in(hub: Rig) -> None:
    """The script posts the token by itself: a session is there, the link is used up, the policy refused nothing."""
    link = link_of(hub)
    page, console = opened(hub, f"/enter#{link.partition('#')[2]}")
    assert hub.services.visitors._sessions.count() == 1
    assert hub.services.visitors._links.take(link.partition("#")[2]) is None
    assert link.partition("#")[2] not in page
    assert "Content Security Policy" not in console


def test_a_link_that_was_used_says_so_and_none_leaves_the_form(hub: Rig) -> None:
    """A used token leads to the page that says what to do; without one the form waits for a paste."""
    assert "was used already" in opened(hub, "/enter#" + "a" * 43)[0]
    assert 'action="/enter"' in opened(hub, "/enter")[0]
    assert hub.services.visitors._sessions.count() == 0


def test_a_link_that_somebody_sent_changes_no_session_by_itself(hub: Rig) -> None:
    """Whoever is signed in and is led to another user's link gets the form: they press its button, or not."""
    theirs, mine = link_of(hub, 1002).partition("#")[2], hub.cookie(1001)

    @hub.hub.app.get("/led-astray")
    async def led_astray() -> Response:
        headers = {"Set-Cookie": f"{mine}; Path=/", "Location": f"/enter#{theirs}"}
        return Response(status_code=303, headers=headers)

    page, _ = opened(hub, "/led-astray")
    assert "A session is open in this browser" in page
    assert hub.services.visitors._links.take(theirs) == "bob"
    assert hub.services.visitors._sessions.count() == 1

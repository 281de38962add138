"""The demo's screenshots where something is missing: one line says what, and the demo goes on."""

from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

import pytest

from gpuwaste.testing import chromium
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.demo.pages import page_album

NOWHERE: Final = f"http://127.0.0.1:{free_port()}"


class ClosedSite:
    """A site whose links lead to a port where nobody listens."""

    def gpuwaste(self, *arguments: str, user: str, check: bool = True) -> CompletedProcess[str]:
        """Print a link."""
        return CompletedProcess(list(arguments), 0, f"{NOWHERE}/enter#{user}-{check}\n", "")

    def command_line(self, *arguments: str, user: str) -> list[str]:
        """Return nothing that can be run."""
        return [user, *arguments]


def test_without_a_browser_the_demo_says_so_once(tmp_path: Path) -> None:
    """The reason is one line, and no file is written."""
    said: list[str] = []
    with page_album(ClosedSite(), tmp_path / "demo", said.append, lambda: "no Chromium") as album:
        album.take("me", "alice", "/me")
        album.take("now", "root", "/now")
    assert said == ["no screenshots: no Chromium"]
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_does_not_load_is_said(tmp_path: Path) -> None:
    """A hub that does not answer costs one line for each page; nothing is raised."""
    if reason := chromium.missing():
        pytest.skip(reason)
    said: list[str] = []
    with page_album(ClosedSite(), tmp_path / "demo", said.append) as album:
        album.take("me", "alice", "/me")
        album.take("job", "alice", "/jobs/1")
    assert len(said) == 2
    assert all("ERR_CONNECTION_REFUSED" in line and "\n" not in line for line in said), said
    assert list((tmp_path / "demo").iterdir()) == []

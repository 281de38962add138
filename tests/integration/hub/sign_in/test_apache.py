"""Apache in front of the hub's Unix socket, configured as docs/how-to/web.md says: whom it names, and who cannot."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig
from tests.integration.hub.sign_in.apache import APACHE, WORKER, Apache, missing, write_files
from tests.integration.hub.sign_in.browser import PAGE, PUBLIC, SAME, link_of, pages
from tests.passable import let_others_through

from gpuwaste.core.hub_config import WebConfig
from gpuwaste.testing.cluster_process import tail
from gpuwaste.testing.daemon_config import free_port

pytestmark = [pytest.mark.sockets, pytest.mark.skipif(missing() is not None, reason=str(missing()))]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return Apache's own files."""
    return write_files(tmp_path)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub that believes Apache."""
    with pages(tmp_path, WebConfig(url=PUBLIC, proxy_users=(WORKER,))) as rig:
        let_others_through(rig.socket.parent)
        yield rig


@pytest.fixture
def apache(rig: Rig, files: Path) -> Iterator[Apache]:
    """Run Apache in front of it."""
    apache = Apache(rig.socket, files)
    apache.start()
    try:
        yield apache
    finally:
        apache.stop()


def test_apache_names_the_user_and_a_browser_cannot(apache: Apache) -> None:
    """Whom Apache has signed in sees their page; the same header of the browser's, in any form, changes nothing."""
    assert apache.send("GET", PAGE)[0] == 401
    status, body = apache.send("GET", PAGE, user="alice")
    assert (status, b'"user": "alice"' in body) == (200, True), (body, tail(apache.log))
    for forged in (
        [("X-Remote-User", "oper")],
        [("x-remote-user", "oper"), ("X-REMOTE-USER", "oper")],
        [("X-Remote-User", "oper, alice"), ("X_Remote_User", "oper")],
        [("X-Remote-User", "oper"), ("Connection", "X-Remote-User")],
        [("Connection", "close, X-Remote-User")],
    ):
        status, body = apache.send("GET", PAGE, *forged, user="alice")
        assert b'"user": "alice"' in body or status in {400, 401}, (forged, status, body)
        assert apache.send("GET", PAGE, *forged)[0] == 401
    assert b'"everything": true' in apache.send("GET", PAGE, user="oper")[1]
    assert apache.send("GET", PAGE, user="bob@EXAMPLE.ORG")[0] == 403


def test_forms_and_the_api_through_apache(rig: Rig, apache: Apache) -> None:
    """A page's own form passes, another site's does not; /v1 takes Apache's uid for nobody's."""
    assert apache.send("POST", PAGE, *SAME.items(), user="alice")[0] == 200
    assert apache.send("POST", PAGE, ("Origin", PUBLIC), user="alice")[0] == 200
    assert apache.send("POST", PAGE, ("Origin", "https://evil.example"), user="alice")[0] == 403
    assert apache.send("POST", PAGE, user="alice")[0] == 403
    assert apache.send("GET", "/v1/top", user="oper")[0] == 401
    assert apache.send("POST", "/v1/web/link", *SAME.items(), user="oper")[0] == 401
    assert link_of(rig).startswith(f"{PUBLIC}/enter#")


def test_the_page_s_own_block_is_sound(files: Path, tmp_path: Path) -> None:
    """`apache2 -t` with mod_auth_openidc takes the block of the page unchanged but for paths and port."""
    with pages(tmp_path) as rig:
        apache = Apache(rig.socket, files, oidc=True, port=free_port())
        assert APACHE is not None
        done = subprocess.run(
            [APACHE, "-t", "-f", str(apache.configure())], capture_output=True, text=True, check=False
        )
    assert (done.returncode, "Syntax OK" in done.stderr) == (0, True), done.stderr

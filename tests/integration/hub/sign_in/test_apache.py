"""Apache in front of the hub's Unix socket, configured as docs/how-to/web.md says, with a password file for OIDC."""

import base64
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig
from tests.integration.hub.sign_in.browser import PAGE, PUBLIC, SAME, link_of, pages
from tests.passable import let_others_through

from gpuwaste.core.config import WebConfig
from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.own_port import start_on_port

MODULES = Path("/usr/lib/apache2/modules")
APACHE = shutil.which("apache2", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(
    APACHE is None or not (MODULES / "mod_auth_openidc.so").exists(),
    reason="Apache is not installed (Debian: apache2-bin libapache2-mod-auth-openidc)",
)
HOW_TO = Path(__file__).parents[4] / "docs/how-to/web.md"
WORKER = "www-data" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
HOST = PUBLIC.partition("://")[2]
LOADED = (
    "mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "auth_openidc", "headers",
    "proxy", "proxy_http", "socache_shmcb", "ssl",
)  # fmt: skip
BASIC_AUTH = 'AuthType Basic\n        AuthName "a test"\n        AuthUserFile {directory}/passwords'


@dataclass
class Apache:
    """One Apache on a free port, with the page's virtual host; `files` belong to it alone."""

    rig: Rig
    files: Path
    oidc: bool = False
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def log(self) -> Path:
        """What it says."""
        return self.files / "error.log"

    def configure(self) -> Path:
        """Write its configuration: the block of the page, with paths and port of the test."""
        (block,) = re.findall(r"^```apache\n(.*?)^```$", HOW_TO.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        block = block.replace("*:443", f"127.0.0.1:{self.port}").replace("/run/gpuwaste/hub.sock", str(self.rig.socket))
        block = block.replace("/etc/ssl/certs/gpuwaste.pem", f"{self.files}/cert.pem")
        block = block.replace("/etc/ssl/private/gpuwaste.key", f"{self.files}/key.pem")
        if not self.oidc:
            block = re.sub(r"^ *OIDC.*\n", "", block, flags=re.MULTILINE)
            block = block.replace("AuthType openid-connect", BASIC_AUTH.format(directory=self.files))
        lines = [
            f"ServerRoot {self.files}", f"DefaultRuntimeDir {self.files}", f"PidFile {self.files}/pid",
            f"ErrorLog {self.log}", f"Listen 127.0.0.1:{self.port}", "ServerName localhost", "StartServers 1",
            *(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in LOADED),
            *([f"User {WORKER}", f"Group {WORKER}"] if os.getuid() == 0 else []), block,
        ]  # fmt: skip
        path = self.files / "apache.conf"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    def start(self) -> None:
        """Start it and wait until it answers."""
        start_on_port(self, self._start)
        assert self.process is not None
        assert self.process.poll() is None, tail(self.log)

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)

    def send(self, method: str, path: str, *headers: tuple[str, str], user: str = "") -> tuple[int, bytes]:
        """Send a request as a browser of this user; headers may come more than once."""
        context = ssl.create_default_context(cafile=str(self.files / "cert.pem"))
        context.check_hostname = False
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)
        try:
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", HOST)
            connection.putheader("Content-Length", "0")
            if user:
                connection.putheader("Authorization", f"Basic {base64.b64encode(f'{user}:pw'.encode()).decode()}")
            for name, value in headers:
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _start(self) -> None:
        self.port = self.port or free_port()
        assert APACHE is not None
        self.process = subprocess.Popen([APACHE, "-DFOREGROUND", "-f", str(self.configure())])
        wait_until(self._answers_or_ended, 30, "Apache", lambda: tail(self.log))

    def _answers_or_ended(self) -> bool:
        assert self.process is not None
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return self.process.poll() is not None
        return True


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a directory with a certificate and passwords, which Apache's workers can read."""
    found = tmp_path / "apache"
    found.mkdir(0o755)
    let_others_through(found)
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-days", "2", "-keyout", str(found / "key.pem"), "-out", str(found / "cert.pem"), "-subj", f"/CN={HOST}"]
    subprocess.run([*command, *names], check=True, capture_output=True)
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "pw"], check=True, capture_output=True, text=True).stdout
    passwords = found / "passwords"
    passwords.write_text("".join(f"{user}:{hashed}" for user in ("alice", "oper", "bob@EXAMPLE.ORG")))
    passwords.chmod(0o644)
    return found


@pytest.fixture
def apache(files: Path, tmp_path: Path) -> Iterator[Apache]:
    with pages(tmp_path, WebConfig(url=PUBLIC, proxy_users=(WORKER,))) as rig:
        let_others_through(rig.socket.parent)
        apache = Apache(rig, files)
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


def test_forms_and_the_api_through_apache(apache: Apache) -> None:
    """A page's own form passes, another site's does not; /v1 takes Apache's uid for nobody's."""
    assert apache.send("POST", PAGE, *SAME.items(), user="alice")[0] == 200
    assert apache.send("POST", PAGE, ("Origin", PUBLIC), user="alice")[0] == 200
    assert apache.send("POST", PAGE, ("Origin", "https://evil.example"), user="alice")[0] == 403
    assert apache.send("POST", PAGE, user="alice")[0] == 403
    assert apache.send("GET", "/v1/top", user="oper")[0] == 401
    assert apache.send("POST", "/v1/web/link", *SAME.items(), user="oper")[0] == 401
    assert link_of(apache.rig).startswith(f"{PUBLIC}/enter#")


def test_the_page_s_own_block_is_sound(files: Path, tmp_path: Path) -> None:
    """`apache2 -t` with mod_auth_openidc takes the block of the page unchanged but for paths and port."""
    with pages(tmp_path) as rig:
        apache = Apache(rig, files, oidc=True, port=free_port())
        assert APACHE is not None
        done = subprocess.run(
            [APACHE, "-t", "-f", str(apache.configure())], capture_output=True, text=True, check=False
        )
    assert (done.returncode, "Syntax OK" in done.stderr) == (0, True), done.stderr

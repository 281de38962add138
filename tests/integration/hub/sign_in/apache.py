"""Apache in front of a hub's Unix socket, configured as docs/how-to/web.md says, with a password file for OIDC."""

import base64
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from pathlib import Path

from tests.integration.hub.sign_in.browser import PUBLIC
from tests.passable import let_others_through
from tests.self_signed import self_signed

from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.own_port import start_on_port
from gpuwaste.testing.patience import patient

MODULES = Path("/usr/lib/apache2/modules")
APACHE = shutil.which("apache2", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
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

    socket: Path
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
        block = block.replace("*:443", f"127.0.0.1:{self.port}").replace("/run/gpuwaste/hub.sock", str(self.socket))
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
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=patient(30), context=context)
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


def missing() -> str | None:
    """Return why it cannot be started here, None where it can."""
    found = APACHE is not None and (MODULES / "mod_auth_openidc.so").exists()
    return None if found else "Apache is not installed (Debian: apache2-bin libapache2-mod-auth-openidc)"


def write_files(parent: Path) -> Path:
    """Return a directory with a certificate and passwords, which Apache's workers can read."""
    found = parent / "apache"
    found.mkdir(0o755)
    let_others_through(found)
    self_signed(found / "cert.pem", found / "key.pem", "", HOST)
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "pw"], check=True, capture_output=True, text=True).stdout
    passwords = found / "passwords"
    passwords.write_text("".join(f"{user}:{hashed}" for user in ("alice", "oper", "bob@EXAMPLE.ORG")))
    passwords.chmod(0o644)
    return found

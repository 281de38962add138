"""A real PostgreSQL of its own: on a Unix socket in a directory of its own, never as root, gone with the test."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from gpuwaste.testing.cluster_process import ClusterError, as_user, tail, wait_until

_START_S: Final = 60.0
_USER: Final = "postgres"  # of Debian's package: PostgreSQL refuses to run as root
_NOT_GONE: Final = "pre-existing shared memory block"
_BINARIES: Final = "/usr/lib/postgresql"


def missing() -> str:
    """Return why no server can be started here, empty where one can."""
    return "" if _newest() else "PostgreSQL is not installed (make packages)"


@dataclass
class PostgresServer:
    """One server; `log` has its words."""

    directory: Path
    process: subprocess.Popen[bytes] | None = None
    _made: int = field(default=0)

    @property
    def log(self) -> Path:
        """Its log."""
        return self.directory / "log"

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.directory / ".s.PGSQL.5432"

    def start(self) -> None:
        """Start it, with what it held before, and wait until it answers."""
        data = self.directory / "data"
        if not data.exists():
            self._do("initdb", "-D", str(data), "--auth", "trust", "--no-sync", "--username", "gpuwaste")
        self._launch()
        wait_until(self._answers, _START_S, "PostgreSQL", lambda: tail(self.log))

    def _launch(self) -> None:
        data = self.directory / "data"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    *self._as(),
                    self._program("postgres"),
                    "-D",
                    str(data),
                    "-k",
                    str(self.directory),
                    "-c",
                    "listen_addresses=",
                ],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )

    def kill(self) -> None:
        """End it as a crash does: what was committed is there at the next start."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def new_database(self) -> str:
        """Make an empty database; returns the libpq keywords that name it."""
        self._made += 1
        name = f"lake{self._made}"
        self._do("createdb", "-h", str(self.directory), "-U", "gpuwaste", name)
        return f"host={self.directory} user=gpuwaste dbname={name}"

    def save(self, database: str, dump: Path) -> None:
        """Write a database, as `new_database` named it, with pg_dump."""
        with dump.open("wb") as output:
            self._do("pg_dump", "--format", "custom", "--dbname", database, output=output)

    def restore(self, database: str, dump: Path) -> None:
        """Replace a database with what `save` wrote, with dropdb, createdb and pg_restore."""
        name = database.rpartition("=")[2]
        for program in ("dropdb", "createdb"):
            self._do(program, "-h", str(self.directory), "-U", "gpuwaste", name)
        with dump.open("rb") as source:
            self._do("pg_restore", "--dbname", database, source=source)

    def _answers(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            if _NOT_GONE in tail(self.log):  # processes of a server that was killed: each ends when it sees that
                self._launch()
                return False
            raise ClusterError(f"PostgreSQL ended\n{tail(self.log)}")
        asked = [self._program("pg_isready"), "-q", "-h", str(self.directory)]
        return subprocess.run(asked, check=False).returncode == 0

    def _do(
        self, program: str, *arguments: str, source: BinaryIO | None = None, output: BinaryIO | None = None
    ) -> None:
        done = subprocess.run(
            [*self._as(), self._program(program), *arguments],
            check=False, stdin=source, stdout=output or subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/",
        )  # fmt: skip
        if done.returncode:
            raise ClusterError(f"{program}: {done.stderr.decode(errors='replace').strip()}")

    def _as(self) -> list[str]:
        return as_user(_USER) if os.geteuid() == 0 else []

    @staticmethod
    def _program(name: str) -> str:
        newest = _newest()
        if newest is None:
            raise ClusterError(missing())
        return str(newest / name)


def _newest() -> Path | None:
    found = [path for path in Path(_BINARIES).glob("*/bin") if (path / "initdb").exists()]
    return max(found, key=lambda path: float(path.parent.name), default=None)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Lend a server; its directory has a short path, as sockets need. Whoever finds its socket may ask it anything."""
    directory = Path(tempfile.mkdtemp(prefix="gwpg", dir="/tmp"))
    directory.chmod(0o711)  # a hub runs as another user
    if os.geteuid() == 0:
        user = pwd.getpwnam(_USER)
        os.chown(directory, user.pw_uid, user.pw_gid)
    server = PostgresServer(directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)

"""Bare Debian roots under build/ with Slurm and Python, and rpm in them: where the packages are installed for real."""

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.rpm.scratch import layered
from tools.rpm.wheels import ROOT

CACHE: Final = ROOT / "build" / "debian-root"
SITE_CACHE: Final = ROOT / "build" / "debian-site"
DATABASE: Final = "/var/lib/rpm"
_SUITE: Final = "bookworm"
_PACKAGES: Final = (
    "libstdc++6", "munge", "python3.11", "slurm-client", "slurmctld", "slurmd", "systemd-standalone-sysusers",
    "systemd-standalone-tmpfiles",
)  # fmt: skip
_SITE_PACKAGES: Final = (
    "createrepo-c", "curl", "dnf", "mariadb-client-core", "mariadb-server-core", "rpm", "slurm-wlm-basic-plugins",
    "slurm-wlm-mysql-plugin", "slurmdbd",
)  # fmt: skip
"""What a host has besides that is a whole Slurm site by itself, and what installs packages there."""
_NO_DAEMONS: Final = "#!/bin/sh\nexit 101\n"


@dataclass(frozen=True)
class Root:
    """A root of its own, made from the cached one; everything below `path` belongs to it."""

    path: Path

    @classmethod
    def copy(cls, path: Path) -> "Root":
        """Return a root like the cached one, which is made first where it is missing (half a minute).

        In a folder of tools.rpm.scratch it is a layer over the cached one where the kernel can do that, else a copy.
        Raises GpuwasteError.
        """
        _lend(CACHE, path, _bootstrap)
        return cls(path)

    @classmethod
    def copy_site(cls, path: Path) -> "Root":
        """Return a root that is a whole Slurm site, with dnf, in the same way. Raises GpuwasteError."""
        _lend(SITE_CACHE, path, _bootstrap_site)
        return cls(path)

    def file(self, name: str | Path) -> Path:
        """Return where an absolute path of the root lies on this host."""
        return self.path / str(name).lstrip("/")

    def write(self, name: str, text: str) -> None:
        """Write a file of the root."""
        self.file(name).parent.mkdir(parents=True, exist_ok=True)
        self.file(name).write_text(text, encoding="utf-8")

    def rpm(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run rpm on the root, with scriptlets; what Debian brought is no RPM, so dependencies are not asked for."""
        argv = ["rpm", f"--root={self.path}", f"--dbpath={DATABASE}", *map(str, words)]
        return _run(self._with_proc(argv), check=check)

    def install(
        self, *packages: Path, check: bool = True, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Install or upgrade packages in one transaction, as `dnf install FILES` does."""
        return self.rpm("-U", "--nodeps", "--nosignature", *options, *packages, check=check)

    def run(
        self, *argv: str, check: bool = True, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the root as its root user."""
        whole = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})}
        return _run(self._with_proc(["chroot", str(self.path), *argv]), check=check, env=whole)

    def _with_proc(self, argv: Sequence[str]) -> list[str]:
        """Return a command that sees /proc in the root, in a mount namespace that ends with it."""
        shell = 'mount -t proc proc "$1/proc"; shift; exec "$@"'
        return ["unshare", "--mount", "--", "sh", "-ec", shell, "with-proc", str(self.path), *argv]

    def tree(self) -> set[str]:
        """Return every path of the root but those of rpm's database, of logs and of what is mounted."""
        left = ("/var/lib/rpm", "/proc", "/run/lock", "/tmp", "/var/log")  # noqa: S108 the root's own /tmp
        found = {f"/{path.relative_to(self.path)}" for path in self.path.rglob("*")}
        return {name for name in found if not name.startswith(left)}


def make_caches() -> None:
    """Make the cached roots that are missing (network). Raises GpuwasteError."""
    _make(CACHE, _bootstrap)
    _make(SITE_CACHE, _bootstrap_site)


def _lend(cache: Path, path: Path, make: Callable[[Path], None]) -> None:
    _make(cache, make)
    if not layered(cache / "root", path):
        _copy(cache, path)


def _copy(cache: Path, path: Path) -> None:
    _run(["cp", "-a", "--reflink=auto", str(cache / "root"), str(path)])


def _make(cache: Path, make: Callable[[Path], None]) -> None:
    """Make a cached root where it is missing; it appears whole, by rename."""
    if not (cache / "complete").exists():
        new = cache.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(cache, ignore_errors=True)
        new.mkdir(parents=True)
        make(new / "root")
        shutil.rmtree(new / "root" / "var" / "cache" / "apt", ignore_errors=True)
        (new / "complete").touch()
        new.rename(cache)


def _bootstrap(path: Path) -> None:
    _run(["debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, str(path)])


def _bootstrap_site(path: Path) -> None:
    _make(CACHE, _bootstrap)
    _copy(CACHE, path)
    root = Root(path)
    root.write("/usr/sbin/policy-rc.d", _NO_DAEMONS)
    root.file("/usr/sbin/policy-rc.d").chmod(0o755)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    root.run("apt-get", "update", "-qq", env=quiet)
    root.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *_SITE_PACKAGES, env=quiet)


def _run(
    argv: Sequence[str], *, check: bool = True, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env=dict(env) if env else None, timeout=900
    )
    if check and done.returncode:
        raise GpuwasteError(f"{' '.join(argv)}: {(done.stdout + done.stderr).strip()[-3000:]}")
    return done

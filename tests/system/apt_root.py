"""apt on a bare Debian root: a repository of our packages, and what systemctl is called with where no systemd runs."""

import re
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.rpm.root import Root

REPOSITORY: Final = "/srv/gpuwaste"
CALLS: Final = "/srv/systemctl.log"
_QUIET: Final = {"DEBIAN_FRONTEND": "noninteractive"}
_SYSTEMCTL: Final = f'#!/bin/sh\necho "$*" >>{CALLS}\n'


@dataclass(frozen=True)
class AptRoot:
    """A root whose only repository is ours."""

    root: Root

    @classmethod
    def make(cls, path: Path, packages: Collection[Path]) -> "AptRoot":
        """Copy the cached root, and give it the packages as a repository."""
        made = cls(Root.copy(path))
        made.root.write("/etc/apt/sources.list", f"deb [trusted=yes] file:{REPOSITORY} ./\n")
        made.root.write("/etc/dpkg/dpkg.cfg.d/unsafe-io", "force-unsafe-io\n")  # a power failure ends the test, too
        made.root.file("/var/cache/apt/archives/partial").mkdir(parents=True, exist_ok=True)
        made.root.file(REPOSITORY).mkdir(parents=True)
        made.offer(packages)
        return made

    def offer(self, packages: Collection[Path]) -> None:
        """Put packages into the repository and read it."""
        folder = self.root.file(REPOSITORY)
        for package in packages:
            shutil.copy(package, folder)
        with (folder / "Packages").open("wb") as index:
            argv = ["dpkg-scanpackages", "--multiversion", "."]
            subprocess.run(argv, cwd=folder, stdout=index, stderr=subprocess.PIPE, check=True)
        self.apt("update")

    def apt(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run apt-get; a question about a changed configuration file is answered with the site's own."""
        options = ["-y", "-q", "-o", "Dpkg::Options::=--force-confold", "-o", "APT::Sandbox::User=root"]
        return self.root.run("apt-get", *options, *words, check=check, env=_QUIET)

    def would_install(self, *names: str) -> set[str]:
        """Return what apt would install for these packages."""
        said = self.apt("install", "--simulate", "--no-install-recommends", *names).stdout
        return set(re.findall(r"^Inst (\S+)", said, re.MULTILINE))

    def installed(self) -> dict[str, str]:
        """Return our packages with dpkg's words on each, such as `ii`."""
        said = self.root.run(
            "dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\\n", "gpuwaste*", check=False
        ).stdout
        lines = [line.split() for line in said.splitlines()]
        return {name: state for state, name in lines if state != "un"}

    def pretend_systemd(self) -> None:
        """Note what systemctl is called with, as on a host that systemd runs."""
        self.root.file("/run/systemd/system").mkdir(parents=True, exist_ok=True)
        self.root.write("/usr/bin/systemctl", _SYSTEMCTL)
        self.root.file("/usr/bin/systemctl").chmod(0o755)

    def systemctl_calls(self) -> list[str]:
        """Return the calls since the last time."""
        log = self.root.file(CALLS)
        found = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return found

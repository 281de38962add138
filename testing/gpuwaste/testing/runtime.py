"""A Python with gpuwaste that every user of the host can run.

A checkout or an interpreter under /root cannot be entered by the users of a loopback cluster. So gpuwaste and what it
needs at run time are placed in the cluster's directory; the interpreter is this one where everybody can run it, else
the system's of the same version.
"""

import os
import re
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from gpuwaste.testing.cluster_process import ClusterError

# another test may compile at the moment: Python writes NAME.pyc.NUMBER first, numba NAME.nbi.tmp.NUMBER
_HALF_WRITTEN: Final = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")
EXTRAS: Final = frozenset({"hub", "predict", "sim"})


@dataclass(frozen=True, slots=True)
class Runtime:
    """How to run Python as any user: the interpreter and the environment that it needs."""

    python: Path
    env: dict[str, str]

    def module(self, name: str, *arguments: str) -> list[str]:
        """Return the command line of a module of ours."""
        return [str(self.python), "-m", name, *arguments]

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of `gpuwaste ...`."""
        return self.module("gpuwaste.cli", *arguments)


def shared_runtime(directory: Path, extras: frozenset[str] = EXTRAS) -> Runtime:
    """Return a copy made in `directory`, with some extras; this interpreter where this user is not root."""
    if os.geteuid() != 0:
        return Runtime(Path(sys.executable), {})
    site = directory / "site"
    if not site.exists():
        _copy_packages(site, extras)
    return Runtime(_system_python(), {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"})


def _reachable(path: Path) -> bool:
    """Whether any user may enter all directories above `path`."""
    return all(parent.stat().st_mode & 1 for parent in path.resolve().parents)


def _system_python() -> Path:
    """Return an interpreter of this version that everybody can run: compiled packages fit any build of it."""
    own = Path(os.path.realpath(sys.executable))
    if _reachable(own):
        return own
    system = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    if not system.exists():
        raise ClusterError(f"{own} cannot be run by other users and there is no {system}: install Debian's python3")
    return system


def _copy_packages(site: Path, extras: frozenset[str]) -> None:
    """Place our roots and the installed files of every run-time dependency there, with what is compiled of them.

    Compiled files name the time of their source, which is the same there: without them each command takes seconds.
    """
    site.mkdir(parents=True)
    for root in _our_roots():
        shutil.copytree(root, site / "gpuwaste", dirs_exist_ok=True, ignore=_HALF_WRITTEN, copy_function=_place)
    for kept in {file.parent for file in (site / "gpuwaste").rglob("*.nbi")}:
        kept.chmod(0o1777)  # numba reads what is compiled only where its user may keep more
    for name in sorted({"gpuwaste"} | _requirements("gpuwaste", extras)):
        for file in metadata.distribution(name).files or ():
            source = Path(str(file.locate()))
            if ".." not in file.parts and source.is_file():
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                _place(source, site / file)


def _place(source: str | Path, target: str | Path) -> None:
    """Give a file a second name, which needs no room; copy it where that cannot be."""
    try:
        os.link(source, target)
    except FileExistsError:
        return  # a distribution's list may name a file twice
    except OSError:
        shutil.copy2(source, target)


def _our_roots() -> list[Path]:
    import gpuwaste  # noqa: PLC0415 a namespace package: its path is a list that imports grow

    return [Path(path) for path in gpuwaste.__path__]


def _requirements(name: str, extras: frozenset[str]) -> set[str]:
    """Return the distributions that `name` with `extras` needs, all the way down."""
    found: set[str] = set()
    for line in metadata.requires(name) or ():
        needed, _, marker = line.partition(";")
        if "extra" in marker and not any(f"'{e}'" in marker or f'"{e}"' in marker for e in extras):
            continue
        match = re.match(r"[A-Za-z0-9._-]+", needed)
        if match and match[0] not in found and _installed(match[0]):
            found |= {match[0]} | _requirements(match[0], frozenset())
    return found


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True

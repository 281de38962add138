"""Brings a machine from nothing to a stage: started, with Slurm, with our packages as the install page says."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.testing.sim_build import build_native
from tools.deb import in_tree
from tools.field import install, site
from tools.field.base import AnyMachine
from tools.field.lab import Lab
from tools.matrix.table import say
from tools.trees import store

TREE: Final = "24.11.field"
FOLDER: Final = store.REPOSITORY / "build" / "field"
STAGES: Final = ("bare", "slurm", "installed")


def refuse() -> str:
    """Return why this host can have no machine, "" where it can."""
    if os.geteuid() != 0:
        return "needs root: mounts, namespaces, device nodes"
    for command in ("unshare", "nsenter", "ip", "setpriv", "debootstrap"):
        if shutil.which(command, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            return f"no {command} on this host"
    return ""


def brought_up(machine: AnyMachine, lowers: Sequence[Path], packages: Path | None, stage: str = "installed") -> Lab:
    """Start a machine and bring it to a stage; say how long each part took. Raises GpuwasteError."""
    if packages is None and stage == "installed":
        built: list[Path] = []
        _timed("packages", lambda: built.append(in_tree.packages(store.folder())))
        packages = built[0]
    lab = Lab(machine, lowers, packages or Path())
    _timed("systemd", lambda: machine.boot(lowers))
    if stage != "bare":
        _timed("Slurm", lambda: _slurm(machine))
    if stage == "installed":
        _timed("install page", lambda: install.install(lab))
    return lab


def _slurm(machine: AnyMachine) -> None:
    site.furnish(machine, build_native())
    site.start(machine)


def _timed(what: str, part: Callable[[], None]) -> None:
    began = time.monotonic()
    part()
    say(f"{time.monotonic() - began:6.1f} s  {what}")

"""Builds the submit plugins for a release, in its tree, with its compiler and its headers."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.submit_plugins import build_plugins, slurm_number
from tools.matrix.node import HERE, inside

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_INCLUDE: Final = Path("/usr/include")
_BUILD_S: Final = 120.0
_STEP_ID: Final = 0x1A0500
"""The release from which the plugin's source finds a modified job's number elsewhere."""


def build(tree: Path | None, out: Path) -> None:
    """Build the C plugin and the Lua shim into `out`. Raises GpuwasteError with the compiler's last lines."""
    _make(tree, out)


def build_foreign(tree: Path | None, out: Path) -> None:
    """Build the C plugin for another release: for the host's where it is another one, else for another one's number.

    The plugin's source goes by the number too: headers before 26.05 get an earlier one, later headers a later one.
    """
    include = _INCLUDE
    if tree is None or slurm_number(tree / "usr" / "include") == slurm_number(_INCLUDE):
        include = out / "include"
        shutil.copytree(_INCLUDE / "slurm", include / "slurm")
        version = include / "slurm" / "slurm_version.h"
        number = "0x170000" if int(slurm_number(_INCLUDE), 16) < _STEP_ID else "0x7f0000"
        text = version.read_text(encoding="utf-8")
        version.write_text(re.sub(r"(SLURM_VERSION_NUMBER\s+)0x(\w+)", rf"\g<1>{number}", text), encoding="utf-8")
    build_plugins("c", out=out, slurm_include=include)


def _make(tree: Path | None, out: Path) -> None:
    source = HERE / "source"
    shutil.copytree(_REPOSITORY / "plugins" / "job_submit", source, dirs_exist_ok=True)
    out.mkdir(exist_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    for target in ("c", "lua"):
        argv = inside(tree, ["make", "-s", "-C", str(source), target, f"OUT={out}"])
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_BUILD_S, check=False, env=env)
        if done.returncode:
            last = " | ".join((done.stderr or done.stdout).strip().splitlines()[-6:])
            raise GpuwasteError(
                f"matrix: make {target} of plugins/job_submit {f'in {tree}' if tree else 'on this host'}: {last}"
            )

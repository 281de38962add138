"""Unpacks Slurm's own plugin for NVML, without installing it: python -m tools.slurm_gpu prints its folder.

Debian has it in the component contrib, one for each exact release of Slurm (slurm-wlm-nvml-plugin). Tests load it with
the simulated NVML, to read the list that AutoDetect=nvml makes. apt reads the lists of contrib into a folder of its
own, so that the host's sources stay as they are.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.formats.list_conf import release_of
from tools.matrix.releases import RELEASES
from tools.trees.debian import mirror

_ROOT: Final = Path(__file__).resolve().parents[1]
_PACKAGE: Final = "slurm-wlm-nvml-plugin"
_PLUGIN: Final = "gpu_nvml.so"
_BELOW: Final = "usr/lib/x86_64-linux-gnu/slurm-wlm"
_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_STEP_S: Final = 300.0
_VERSION: Final = re.compile(r"\d{2}\.\d{2}\.\d{1,3}")


def slurm_version() -> str:
    """Return the version of this host's slurmd, such as 24.11.5. Raises GpuwasteError."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            ["slurmd", "-V"], capture_output=True, text=True, check=True, env={"PATH": path}, timeout=30
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise GpuwasteError(f"slurm_gpu: slurmd -V: {error}") from error
    found = _VERSION.search(done.stdout)
    if found is None:
        raise GpuwasteError(f"slurm_gpu: slurmd -V: no version in {done.stdout[:60]!r}")
    return found[0]


def folder_of(version: str) -> Path:
    """Return where the plugin for a version is unpacked, whether it is there or not."""
    return _ROOT / "build" / "slurm-gpu" / version


def is_there(folder: Path) -> bool:
    """Tell whether a folder has the plugin."""
    return (folder / _PLUGIN).is_file()


def provide(version: str) -> Path:
    """Unpack the plugin for a version where it is missing; return its folder. Raises GpuwasteError."""
    folder = folder_of(version)
    if not is_there(folder):
        unpack(version, folder)
    return folder


def unpack(version: str, folder: Path) -> None:
    """Fetch the plugin for exactly this version of Slurm and put it there. Raises GpuwasteError."""
    with tempfile.TemporaryDirectory(prefix="gpuwaste-slurm-gpu-") as place:
        work = Path(place)
        package = _fetched(work, _suite(version))
        if (has := _VERSION.search(package.name)) is None or has[0] != version:
            raise GpuwasteError(
                f"slurm_gpu: the mirror has {package.name}, slurmd here is {version}: update one of them"
            )
        _step(["dpkg-deb", "-x", str(package), str(work / "root")], work)
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f"{_PLUGIN}.{os.getpid()}"
        shutil.copy(work / "root" / _BELOW / _PLUGIN, new)
        new.rename(folder / _PLUGIN)


def _suite(version: str) -> str:
    """Return the Debian suite with a version: the matrix's, or this host's own."""
    for release in RELEASES:
        if release.suite and release_of(f"{release.name}.") == release_of(version):
            return release.suite
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=(\w+)$", text, re.MULTILINE)
    if found is None or not re.search(r"^ID=debian$", text, re.MULTILINE):
        raise GpuwasteError("slurm_gpu: this host is no Debian: the plugin for NVML is taken from Debian's contrib")
    return found[1]


def _fetched(work: Path, suite: str) -> Path:
    sources = work / "contrib.list"
    uri = os.environ.get("MATRIX_MIRROR") or mirror()
    sources.write_text(f"deb [signed-by={_KEYS}] {uri} {suite} contrib\n", encoding="utf-8")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (work / name).mkdir(parents=True)
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State": work / "state",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    _step([*apt, "update"], work)
    _step([*apt, "download", _PACKAGE], work)
    return next(work.glob("*.deb"))


def _step(argv: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=_STEP_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GpuwasteError(f"slurm_gpu: {argv[0]}: {error}") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise GpuwasteError(f"slurm_gpu: {argv[0]} {argv[-1]} exited {done.returncode}: {said}")


def main() -> int:
    """Unpack the plugin where it is missing, and print its folder."""
    try:
        folder = provide(slurm_version())
    except GpuwasteError as error:
        print(error, file=sys.stderr)  # noqa: T201 a command's own output
        return 1
    print(folder)  # noqa: T201 a command's own output
    return 0


if __name__ == "__main__":
    sys.exit(main())

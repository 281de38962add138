"""Makes a release's Slurm look like the host's own for one command and all that it starts.

    python -m tools.matrix.view RELEASE TREES COMMAND...

The tree's Slurm, its C library and the libraries that both need are laid over the host's in a mount namespace of the
command's own: newer libraries run older programs, so Python, MariaDB, jobs and tests remain the host's, under their own
names, for every user. Nothing is written into the tree, and no mount outlives the command's last process.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.matrix import trees
from tools.matrix.node import inside, mount, own_mounts
from tools.matrix.releases import Release, release

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_BUILD: Final = _REPOSITORY / "build" / "matrix"
_FORMAT: Final = "1"
"""Changed with what a layer holds: another one is made anew."""
_FOLDERS: Final = ("bin", "sbin", "lib64", "lib/x86_64-linux-gnu", "include")
"""Folders below /usr over which the release's are laid."""
_REPLACED: Final = ("lib/x86_64-linux-gnu/slurm-wlm", "include/slurm")
"""Folders below /usr of which nothing of the host's may remain: Slurm loads whatever plugin it finds there."""
_OURS: Final = re.compile(r"slurm|libslurm|libc6(:\w+)?\Z")
"""Names of the packages whose files are taken; of all others, just the libraries that these need."""
_LIBRARY: Final = re.compile(r"(?:=> )?(/\S+) \(0x")
_LDD_S: Final = 120.0


def enter(chosen: Release, trees_folder: Path) -> None:
    """Lay a release over the host in this process's mount namespace. Raises GpuwasteError; nothing for the host's."""
    if lacks := trees.ready(chosen, trees_folder):
        raise GpuwasteError(f"matrix: {lacks}: python -m tools.matrix --release {chosen.name} makes it")
    tree = trees.tree_of(chosen, trees_folder)
    if tree is None:
        return
    own_mounts()
    layer = layer_of(chosen, tree, _BUILD)
    for name in _FOLDERS:
        if (layer / name).is_dir():
            host = Path("/usr") / name
            mount("-t", "overlay", "gpuwaste-matrix", "-o", f"ro,lowerdir={layer / name}:{host}", str(host))
    for name in _REPLACED:
        mount("--bind", str(layer / name), f"/usr/{name}")
    if (there := trees.version_of(None)) != (wanted := trees.version_of(tree)):
        raise GpuwasteError(f"matrix: slurmctld -V says {there} where {tree} has {wanted}: remove {layer}")


def layer_of(chosen: Release, tree: Path, build: Path) -> Path:
    """Return the folder with what a release lays over /usr, made where there is none of this tree's."""
    build.mkdir(parents=True, exist_ok=True)
    layer, stamp = build / f"{chosen.name}.layer", build / f"{chosen.name}.layer.stamp"
    made_of = f"{_FORMAT} {tree} {trees.recipe(chosen).strip()} {trees.version_of(tree)}\n"
    with (build / ".layer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if layer.is_dir() and stamp.is_file() and stamp.read_text(encoding="utf-8") == made_of:
            return layer
        stamp.unlink(missing_ok=True)
        shutil.rmtree(layer, ignore_errors=True)
        _copy(tree, files_of(tree), layer)
        stamp.write_text(made_of, encoding="utf-8")
    return layer


def files_of(tree: Path) -> set[str]:
    """Return what a layer takes from a tree, names below /usr: Slurm's packages and the libraries that they need."""
    ours = {name for name in map(below_usr, _packaged(tree)) if name and name.startswith(tuple(_FOLDERS))}
    return ours | {name for name in map(below_usr, _needed(tree, sorted(ours))) if name}


def below_usr(path: str) -> str:
    """Return the name below /usr of a file, also of one that its package calls by the old name /lib; "" for others."""
    found = re.fullmatch(r"/(?:usr/)?((?:bin|sbin|lib|lib64|include)/.+)", path)
    return found[1] if found else path.removeprefix("/usr/") if path.startswith("/usr/") else ""


def _packaged(tree: Path) -> Iterable[str]:
    for listed in sorted((tree / "var/lib/dpkg/info").glob("*.list")):
        if _OURS.match(listed.stem):
            yield from listed.read_text(encoding="utf-8").splitlines()


def _needed(tree: Path, names: list[str]) -> set[str]:
    """Return the libraries that the loader of the tree finds for these programs and plugins."""
    programs = [f"/usr/{name}" for name in names if _is_elf(tree / "usr" / name)]
    done = subprocess.run(inside(tree, ["ldd", *programs]), capture_output=True, text=True, timeout=_LDD_S, check=False)
    if "not found" in done.stdout:
        lacks = sorted({line.split()[0] for line in done.stdout.splitlines() if "not found" in line})
        raise GpuwasteError(f"matrix: {tree} lacks libraries of its Slurm: {', '.join(lacks)}")
    return set(_LIBRARY.findall(done.stdout))


def _is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _copy(tree: Path, names: set[str], layer: Path) -> None:
    for name in sorted(names):
        source, target = tree / "usr" / name, layer / name
        if source.is_dir() and not source.is_symlink():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
        if source.is_symlink():
            _copy_target(source, target)


def _copy_target(source: Path, target: Path) -> None:
    """Copy what a library's short name points to: libjson-c.so.5 is a link to the file with the whole version."""
    text = str(source.readlink())
    if "/" in text:
        return
    pointed = source.parent / text
    if pointed.is_file():
        shutil.copy2(pointed, target.parent / text, follow_symlinks=False)


def main() -> None:
    """Enter the release and become the command."""
    name, folder, *command = sys.argv[1:]
    try:
        enter(release(name), Path(folder))
        os.execvp(command[0], command)  # noqa: S606
    except (GpuwasteError, OSError) as error:
        sys.exit(f"matrix: {command[0]}: {error.strerror}" if isinstance(error, OSError) else str(error))


if __name__ == "__main__":
    main()

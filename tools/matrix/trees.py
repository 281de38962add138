"""The trees: a Debian of another suite with its Slurm in a folder of its own, made where it is not there.

A tree that was made to its end has a stamp with the recipe that made it; anything else of that name is made anew.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.matrix.node import inside
from tools.matrix.releases import Release
from tools.matrix.table import say

_PACKAGES: Final = (
    "munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "slurmdbd", "slurmrestd",
    "slurm-wlm-mysql-plugin", "slurm-wlm-jwt-plugin", "libslurm-dev", "gcc", "libc6-dev", "make", "pkg-config",
    "liblua5.1-0-dev",
)  # fmt: skip
"""Slurm's daemons and commands, and what builds the plugins against its own headers."""
_STAMP: Final = "gpuwaste-matrix.recipe"
_NO_DAEMONS: Final = "#!/bin/sh\n# No package starts its daemons here.\nexit 101\n"
_MAKE_S: Final = 900.0
_SOURCES: Final = Path("/etc/apt")


def tree_of(release: Release, base: Path) -> Path | None:
    """Return where a release's tree is or will be; None for the host's own Slurm."""
    return base / release.name if release.suite else None


def ready(release: Release, base: Path) -> str:
    """Return "" where a release can be run at once, else what is missing."""
    tree = tree_of(release, base)
    if tree is None:
        return "" if shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") else "no slurmctld on this host"
    stamp = tree / _STAMP
    if not stamp.is_file():
        return f"no tree {tree}"
    return "" if stamp.read_text(encoding="utf-8") == recipe(release) else f"{tree} was made by another recipe"


def recipe(release: Release) -> str:
    """Return what names the way a tree is made: another one makes it anew."""
    text = "\n".join([release.suite, *_PACKAGES])
    return f"{release.suite} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n"


def make_tree(release: Release, base: Path) -> Path:
    """Make a release's tree where there is none to use, and return it. Runs in a mount namespace; needs root."""
    tree = tree_of(release, base)
    if tree is None:
        raise GpuwasteError(f"matrix: {release.name} is the host's own Slurm: it has no tree")
    if ready(release, base):
        log = base / f"{release.name}.make.log"
        say(f"{release.name}: makes {tree} (Debian {release.suite}, about a minute; log: {log})")
        remove_tree(tree)
        tree.mkdir(parents=True)
        with log.open("wb") as output:
            _debootstrap(release, tree, output.fileno())
            _install(tree, output.fileno())
    version = version_of(tree)
    if not version.startswith(f"{release.name}."):
        raise GpuwasteError(
            f"matrix: Debian {release.suite} in {tree} has Slurm {version}, not {release.name}: remove the tree to "
            "fetch what the suite has now, or change tools/matrix/releases.py"
        )
    (tree / _STAMP).write_text(recipe(release), encoding="utf-8")
    return tree


def remove_tree(tree: Path) -> None:
    """Remove a tree, unless something is mounted in it: what is mounted would be emptied too."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    below = [line.split()[4] for line in mounts if line.split()[4].startswith(f"{tree.resolve()}/")]
    if below:
        raise GpuwasteError(f"matrix: {below[0]} is mounted: umount it, then start again")
    if tree.exists():
        shutil.rmtree(tree)


def version_of(tree: Path | None) -> str:
    """Return the version of the Slurm in a tree, or on the host: "24.11.5"."""
    argv = inside(tree, ["slurmctld", "-V"])
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env)
    if done.returncode or not done.stdout.split():
        raise GpuwasteError(f"matrix: {' '.join(argv)}: {(done.stderr or done.stdout).strip() or 'said nothing'}")
    return done.stdout.split()[-1]


def mirror(folder: Path = _SOURCES) -> str:
    """Return the package mirror that the host's apt uses. Raises GpuwasteError where its lists name none."""
    lists = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    for path in lists:
        if path.is_file() and path.suffix in {".list", ".sources"}:
            text = path.read_text(encoding="utf-8", errors="replace")
            for uri in _uris(text.splitlines(), deb822=path.suffix == ".sources"):
                return uri
    raise GpuwasteError(f"matrix: {folder} names no Debian mirror: give one with MATRIX_MIRROR=URL")


def _uris(lines: Iterable[str], *, deb822: bool) -> list[str]:
    """Return the archives of packages in one list, those of security updates and of other vendors left out."""
    found = []
    for line in lines:
        words = line.split()
        if deb822:
            found += words[1:] if words[:1] == ["URIs:"] else []
        elif words[:1] == ["deb"]:
            found += [word for word in words[1:] if "://" in word or word.startswith("file:")][:1]
    return [uri for uri in found if uri.rstrip("/").endswith("/debian")]


def _debootstrap(release: Release, tree: Path, output: int) -> None:
    if shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        raise GpuwasteError("matrix: no debootstrap on this host: apt-get install debootstrap")
    uri = os.environ.get("MATRIX_MIRROR") or mirror()
    _step(["debootstrap", "--variant=minbase", release.suite, str(tree), uri], output, f"debootstrap {release.suite}")


def _install(tree: Path, output: int) -> None:
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text(_NO_DAEMONS, encoding="utf-8")
    policy.chmod(0o755)
    subprocess.run(["mount", "--rbind", "/proc", str(tree / "proc")], check=True, timeout=30)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *_PACKAGES]
    _step(inside(tree, ["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", *install]), output, "apt-get install")
    _step(inside(tree, ["apt-get", "clean"]), output, "apt-get clean")


def _step(argv: list[str], output: int, what: str) -> None:
    """Run one step of the making; its output goes to the log, whose last line is the reason of a failure."""
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=_MAKE_S, check=False, env=env
        )
    except subprocess.TimeoutExpired:
        raise GpuwasteError(f"matrix: {what} took more than {_MAKE_S:g} s; see the log") from None
    if done.returncode:
        raise GpuwasteError(f"matrix: {what} exited {done.returncode}: is the package mirror reachable? see the log")


def main() -> None:
    """Make one tree: python -m tools.matrix.trees RELEASE BASE, in a mount namespace of its own."""
    from tools.matrix.releases import release  # noqa: PLC0415 the name is a parameter above

    try:
        make_tree(release(sys.argv[1]), Path(sys.argv[2]))
    except GpuwasteError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

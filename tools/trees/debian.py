"""Makes base trees and layers with debootstrap and apt, in the mount namespace of the process that calls it.

A layer's packages come from where the host's apt has them: the tree has the host's resolver, and apt's lists anew.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.trees.recipes import Base, Layer

BASE_STAMP: Final = "gpuwaste-matrix.recipe"
"""In the root of a base tree."""
LAYER_STAMP: Final = "recipe"
"""Beside the upper directory of a layer."""
_NO_DAEMONS: Final = "#!/bin/sh\n# No package starts its daemons here.\nexit 101\n"
_MAKE_S: Final = 900.0
_SOURCES: Final = Path("/etc/apt")
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FILES_OF_NETWORK: Final = ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
"""What a command needs of a host to reach the servers that the host reaches; copied, never mounted."""


def base_recipe(base: Base) -> str:
    """Return what names the way a base tree is made: another one makes it anew."""
    text = "\n".join([base.suite, *base.packages])
    return f"{base.suite} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n"


def layer_recipe(layer: Layer, base: Path) -> str:
    """Return what names a layer: its packages, and the very packages of the base that it lies on."""
    status = base / "var/lib/dpkg/status"
    text = "\n".join(layer.packages).encode() + (status.read_bytes() if status.is_file() else b"")
    return f"{layer.name} {hashlib.sha256(text).hexdigest()[:16]}\n"


def make_base(base: Base, tree: Path, log: Path) -> None:
    """Make a base tree anew, without its stamp; needs root. Raises GpuwasteError."""
    remove_tree(tree)
    tree.mkdir(parents=True)
    with log.open("wb") as output:
        _debootstrap(base.suite, tree, output.fileno())
        policy = tree / "usr/sbin/policy-rc.d"
        policy.write_text(_NO_DAEMONS, encoding="utf-8")
        policy.chmod(0o755)
        _install(tree, base.packages, output.fileno())


def make_layer(layer: Layer, base: Path, folder: Path, log: Path) -> None:
    """Make a layer anew in `folder`/upper, without its stamp; needs root. Raises GpuwasteError."""
    remove_tree(folder)
    upper, work, root = (folder / name for name in ("upper", "work", "root"))
    for new in (upper, work, root):
        new.mkdir(parents=True)
    overlay([base], upper, work, root)
    copy_network(root)
    with log.open("wb") as output:
        _step(_apt(root, "update", "-qq"), output.fileno(), "apt-get update")
        _install(root, layer.packages, output.fileno())
    subprocess.run(["umount", "-R", str(root)], check=True, timeout=60)
    root.rmdir()
    shutil.rmtree(work)


def overlay(lowers: Sequence[Path], upper: Path, work: Path, root: Path, *, volatile: bool = False) -> None:
    """Mount directories over each other, the first one topmost and `upper` for what changes.

    What is written to a `volatile` one survives no crash of the host, and need not be waited for. Raises GpuwasteError.
    """
    options = f"lowerdir={':'.join(map(str, lowers))},upperdir={upper},workdir={work}{',volatile' * volatile}"
    argv = ["mount", "-t", "overlay", "-o", options, "overlay", str(root)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise GpuwasteError(f"trees: {' '.join(argv)}: {done.stderr.strip()}")


def copy_network(root: Path) -> None:
    """Give a tree the host's resolver and certificates, as files of its own."""
    for name in _FILES_OF_NETWORK:
        target = root / name.lstrip("/")
        if Path(name).is_file():
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, target)


def remove_tree(tree: Path) -> None:
    """Remove a tree, unless something is mounted in it: what is mounted would be emptied too."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    below = [line.split()[4] for line in mounts if line.split()[4].startswith(f"{tree.resolve()}/")]
    if below:
        raise GpuwasteError(f"trees: {below[0]} is mounted: umount it, then start again")
    if tree.exists():
        shutil.rmtree(tree)


def mirror(folder: Path = _SOURCES) -> str:
    """Return the package mirror that the host's apt uses. Raises GpuwasteError where its lists name none."""
    lists = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    for path in lists:
        if path.is_file() and path.suffix in {".list", ".sources"}:
            text = path.read_text(encoding="utf-8", errors="replace")
            for uri in _uris(text.splitlines(), deb822=path.suffix == ".sources"):
                return uri
    raise GpuwasteError(f"trees: {folder} names no Debian mirror: give one with MATRIX_MIRROR=URL")


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


def chrooted(tree: Path, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` as root in a tree."""
    return ["chroot", str(tree), "env", f"PATH={PATH}", *argv]


def _debootstrap(suite: str, tree: Path, output: int) -> None:
    if shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        raise GpuwasteError("trees: no debootstrap on this host: apt-get install debootstrap")
    uri = os.environ.get("MATRIX_MIRROR") or mirror()
    _step(["debootstrap", "--variant=minbase", suite, str(tree), uri], output, f"debootstrap {suite}")


def _install(root: Path, packages: Sequence[str], output: int) -> None:
    subprocess.run(["mount", "--rbind", "/proc", str(root / "proc")], check=True, timeout=30)
    _step(_apt(root, "install", "-y", "-qq", "--no-install-recommends", *packages), output, "apt-get install")
    _step(_apt(root, "clean"), output, "apt-get clean")


def _apt(root: Path, *words: str) -> list[str]:
    return chrooted(root, ["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "apt-get", *words])


def _step(argv: list[str], output: int, what: str) -> None:
    """Run one step of the making; its output goes to the log, whose last line is the reason of a failure."""
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=_MAKE_S, check=False, env=env
        )
    except subprocess.TimeoutExpired:
        raise GpuwasteError(f"trees: {what} took more than {_MAKE_S:g} s; see the log") from None
    if done.returncode:
        raise GpuwasteError(f"trees: {what} exited {done.returncode}: is the package mirror reachable? see the log")

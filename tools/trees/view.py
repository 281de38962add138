"""Runs a command as root in a tree, with mounts and processes of its own; what it changes goes with it.

Folders of ours can be lent to it, to read or to write, at the paths that they have here. It reaches the network as the
host does. Of the environment it has what pip and TLS read, and what the caller gives.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.trees import debian, store

_HANDED: Final = ("PIP_", "SSL_CERT_", "REQUESTS_CA_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_END_S: Final = 30.0


def run(
    name: str,
    argv: Sequence[str],
    *,
    timeout_s: float,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    cwd: Path = Path("/"),
    env: Mapping[str, str] | None = None,
    base: Path | None = None,
) -> str:
    """Run a command in a tree, which is made where it is not there; return what it wrote to both outputs.

    Trees lie in `base`, else in the folder that the environment gives.

    Raises GpuwasteError with its last words where it fails or takes longer.
    """
    with store.using(name, base or store.folder()) as lowers, tempfile.TemporaryDirectory(prefix="gwview") as place:
        inside = command(lowers, Path(place), argv, readable=readable, writable=writable, cwd=cwd, env=env)
        return _bounded(inside, timeout_s, f"{name}: {' '.join(argv)}")


def command(
    lowers: Sequence[Path],
    place: Path,
    argv: Sequence[str],
    *,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    cwd: Path = Path("/"),
    env: Mapping[str, str] | None = None,
) -> list[str]:
    """Return what run() starts, in the repository, for a caller that keeps the tree meanwhile; `place` is its own."""
    order = {
        "argv": list(argv), "readable": [str(path) for path in readable], "writable": [str(path) for path in writable],
        "cwd": str(cwd), "env": dict(env or {}), "lowers": [str(lower) for lower in lowers], "place": str(place),
    }  # fmt: skip
    unshare = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--"]
    return [*unshare, sys.executable, "-m", "tools.trees.view", json.dumps(order)]


def _bounded(inside: Sequence[str], timeout_s: float, what: str) -> str:
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *inside],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=store.REPOSITORY,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except BaseException as error:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=_END_S)
        if isinstance(error, subprocess.TimeoutExpired):
            raise GpuwasteError(f"trees: {what} took more than {timeout_s:g} s") from None
        raise
    if process.returncode:
        raise GpuwasteError(f"trees: {what} exited {process.returncode}: {output.strip()[-3000:]}")
    return str(output)


def main() -> None:
    """Become the command that run() was given: python -m tools.trees.view JSON, in namespaces of its own."""
    order = json.loads(sys.argv[1])
    place = Path(order["place"])
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(place))
    upper, work, root = (place / name for name in ("upper", "work", "root"))
    for new in (upper, work, root):
        new.mkdir()
    debian.overlay([Path(lower) for lower in order["lowers"]], upper, work, root)
    debian.copy_network(root)
    _mount("-t", "proc", "proc", str(root / "proc"))
    for name in ("dev/shm", "tmp"):
        (root / name).mkdir(exist_ok=True)
        _mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(root / name))
    for path in order["readable"]:
        _lend(Path(path), root)
        _mount("-o", "remount,bind,ro", str(root / path.lstrip("/")))
    for path in order["writable"]:
        _lend(Path(path), root)
    handed = [f"{key}={value}" for key, value in os.environ.items() if key.upper().startswith(_HANDED)]
    given = [f"{key}={value}" for key, value in order["env"].items()]
    own = [f"PATH={debian.PATH}", "HOME=/root", "LC_ALL=C.UTF-8"]
    argv = ["chroot", str(root), "env", "-i", "-C", order["cwd"], *own, *handed, *given, *order["argv"]]
    os.execvpe(argv[0], argv, {"PATH": f"{os.environ['PATH']}:/usr/sbin"})  # noqa: S606 becoming it is the point


def _lend(path: Path, root: Path) -> None:
    target = root / str(path).lstrip("/")
    target.mkdir(parents=True, exist_ok=True)
    _mount("--bind", str(path), str(target))


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        sys.exit(f"trees: mount {' '.join(words)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()

"""Makes a tree's Slurm look like the host's: the tree's mounts, and Slurm's commands as files on PATH that enter it.

Everything happens in the mount namespace of this process, so nothing is left mounted when its last process ends. The
column's own folder is mounted at /mnt here and in the tree: a file has one name inside and outside, and a short one.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError

HERE: Final = Path("/mnt")
"""The column's folder, within its mount namespace."""
_SHARED: Final = ("/etc/passwd", "/etc/group", "/etc/hosts")
"""Files of the host that the tree must agree with: users have the same numbers in both."""
_COMMANDS: Final = (
    "slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sacct", "sacctmgr", "salloc", "sbatch", "scancel", "scontrol",
    "sdiag", "sinfo", "squeue", "srun",
)  # fmt: skip
_OUTSIDE: Final = "GPUWASTE_MATRIX_OUTSIDE"
"""Environment variable with the mount namespace that a release's processes have left."""
_INSIDE_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SHIM: Final = """#!/bin/sh
# Runs {command} of the release in {tree}: root by chroot, anybody else through a user namespace of his own.
PATH={path}
export PATH
[ -d "{tree}$PWD" ] || cd /
[ "$(id -u)" = 0 ] && exec chroot {tree} env -C "$PWD" {command} "$@"
exec unshare --map-current-user --root={tree} --wd="$PWD" -- {command} "$@"
"""
_SETPRIV: Final = """#!/bin/sh
# Changes the user of a daemon of Slurm inside {tree}: in a user namespace slurmctld would see every peer as nobody.
before=$PATH
PATH={path}
next=
for word; do
  if [ "$next" ]; then
    case " {commands} " in
      *" $word "*) export PATH; exec chroot {tree} env -C "$PWD" setpriv "$@" ;;
    esac
    break
  fi
  [ "$word" = -- ] && next=yes
done
setpriv=$(command -v setpriv)
PATH=$before
exec "$setpriv" "$@"
"""


def namespace(argv: list[str]) -> list[str]:
    """Return the command line that runs `argv` in a mount namespace of its own and ends it with its parent."""
    return ["setpriv", "--pdeathsig", "TERM", "--", *own_namespace(argv)]


def own_namespace(argv: list[str]) -> list[str]:
    """Return the command line that runs `argv` in a mount namespace of its own, with or without a parent."""
    outside = ["env", f"{_OUTSIDE}={_mounts()}"]
    return [*outside, "unshare", "--mount", "--propagation", "private", "--", *argv]


def enter(folder: Path, tree: Path | None) -> None:
    """Mount `folder` at HERE, and in `tree` all that Slurm needs there; refuses to do so in the host's namespace."""
    own_mounts()
    mount("--bind", str(folder), str(HERE))
    if tree is None:
        return
    for name in ("proc", "sys", "dev"):
        mount("--rbind", f"/{name}", str(tree / name))
    for name in _SHARED:
        if not (target := Path(f"{tree}{name}")).exists():
            target.touch()
        mount("--bind", name, f"{tree}{name}")
    mount("--bind", str(HERE), f"{tree}{HERE}")


def write_shims(tree: Path, folder: Path) -> None:
    """Write one file per command of Slurm into `folder` and put it first on PATH."""
    folder.mkdir(exist_ok=True)
    texts = {command: _SHIM.format(command=command, tree=tree, path=_INSIDE_PATH) for command in _COMMANDS}
    texts["setpriv"] = _SETPRIV.format(commands=" ".join(_COMMANDS), tree=tree, path=_INSIDE_PATH)
    for command, text in texts.items():
        path = folder / command
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def inside(tree: Path | None, argv: list[str]) -> list[str]:
    """Return the command line that runs `argv` as root in the tree; the same where there is none."""
    return argv if tree is None else ["chroot", str(tree), "env", f"PATH={_INSIDE_PATH}", *argv]


def own_mounts() -> None:
    """Raise GpuwasteError outside of `own_namespace`: what is mounted there would stay."""
    if os.environ.get(_OUTSIDE) in {None, _mounts()}:
        raise GpuwasteError(
            "matrix: a release runs in a mount namespace of its own: start it with python -m tools.matrix"
        )


def _mounts() -> str:
    return str(Path("/proc/self/ns/mnt").readlink())


def mount(*arguments: str) -> None:
    """Run mount with these arguments. Raises GpuwasteError with what it says."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        raise GpuwasteError(f"matrix: mount {' '.join(arguments)}: {done.stderr.strip()}")

"""Where trees lie, whether they can be used, and their making: one process makes a tree, the others wait for it.

The folder is GPUWASTE_TREES, build/trees without it. Who uses a tree holds a shared lock of it, so that a checkout
with another recipe does not make it anew under a running system.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.trees import debian
from tools.trees.recipes import Base, Layer, named

REPOSITORY: Final = Path(__file__).resolve().parents[2]
_LOCK_S: Final = 1200.0
"""The longest wait for a tree that another process makes or uses."""


def folder() -> Path:
    """Return the folder of the trees."""
    return Path(os.environ.get("GPUWASTE_TREES") or REPOSITORY / "build" / "trees").resolve()


def lowers(name: str, base: Path) -> list[Path]:
    """Return the directories that make up a tree, the topmost first."""
    recipe = named(name)
    return [base / name] if isinstance(recipe, Base) else [base / name / "upper", *lowers(recipe.base, base)]


def lacks(name: str, base: Path) -> str:
    """Return "" where a tree can be used at once, else what is missing."""
    recipe = named(name)
    if isinstance(recipe, Layer) and (reason := lacks(recipe.base, base)):
        return reason
    stamp = _stamp(recipe, base)
    if not stamp.is_file():
        return f"no tree {base / name}"
    if stamp.read_text(encoding="utf-8") != _wanted(recipe, base):
        return f"{base / name} was made by another recipe"
    return ""


@contextmanager
def using(name: str, base: Path) -> Iterator[list[Path]]:
    """Yield the directories of a tree, made where it is not there, and keep it as it is meanwhile.

    Raises GpuwasteError.
    """
    make(name, base)
    recipe = named(name)
    names = [name] if isinstance(recipe, Base) else [recipe.base, name]
    with _locked(names[0], base, fcntl.LOCK_SH), _locked(names[-1], base, fcntl.LOCK_SH):
        if reason := lacks(name, base):
            raise GpuwasteError(f"trees: {reason}: another checkout made it meanwhile; start again")
        yield lowers(name, base)


def make(name: str, base: Path) -> None:
    """Make a tree and what it lies on, where they are not there, with mounts and processes of their own; needs root.

    Raises GpuwasteError.
    """
    if not lacks(name, base):
        return
    argv = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--propagation", "private"]
    argv += ["--pid", "--fork", "--kill-child", "--", sys.executable, "-m", "tools.trees", "--here", name]
    env = {**os.environ, "GPUWASTE_TREES": str(base)}
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY, env=env, check=False)
    if done.returncode:
        raise GpuwasteError(done.stderr.strip()[-2000:] or f"tools.trees {name} exited {done.returncode}")


def make_here(name: str, base: Path) -> None:
    """Make a tree in this mount namespace, its base first. Raises GpuwasteError."""
    recipe = named(name)
    if isinstance(recipe, Layer):
        make_here(recipe.base, base)
    base.mkdir(parents=True, exist_ok=True)
    if not lacks(name, base):
        return
    with _locked(name, base, fcntl.LOCK_EX):
        if not lacks(name, base):
            return
        log = base / f"{name}.make.log"
        _say(f"{name}: makes {base / name} (one to three minutes; log: {log})")
        if isinstance(recipe, Layer):
            with _locked(recipe.base, base, fcntl.LOCK_SH):
                debian.make_layer(recipe, base / recipe.base, base / name, log)
        else:
            debian.make_base(recipe, base / name, log)
        _stamp(recipe, base).write_text(_wanted(recipe, base), encoding="utf-8")


def _stamp(recipe: Base | Layer, base: Path) -> Path:
    return base / recipe.name / (debian.BASE_STAMP if isinstance(recipe, Base) else debian.LAYER_STAMP)


def _wanted(recipe: Base | Layer, base: Path) -> str:
    if isinstance(recipe, Base):
        return debian.base_recipe(recipe)
    return debian.layer_recipe(recipe, base / recipe.base)


@contextmanager
def _locked(name: str, base: Path, how: int) -> Iterator[None]:
    """Hold a tree's lock. Raises GpuwasteError where another process keeps it for too long."""
    deadline = time.monotonic() + _LOCK_S
    path = base / f"{name}.lock"
    with path.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, how | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise GpuwasteError(f"trees: {path} is held for more than {_LOCK_S:g} s: who uses it?") from None
                time.sleep(0.2)
        yield


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

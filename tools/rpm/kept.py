"""Packages that are kept under build/ and built again only where what they are made of has changed."""

import fcntl
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path


def kept(folder: Path, mark: str, make: Callable[[Path], Sequence[Path]]) -> list[Path]:
    """Return the packages in `folder` if they carry this mark, else those that `make(folder)` builds there now.

    Of several processes that ask at the same time one builds and the others wait.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    stamp = folder / "built"
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = stamp.read_text(encoding="utf-8").splitlines() if stamp.exists() else []
        if lines[:1] != [mark]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            lines = [mark, *(str(package.relative_to(folder)) for package in make(folder))]
            stamp.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [folder / line for line in lines[1:]]

"""Debian packages of this tree for another release, built in its tree: python -m tools.deb.in_tree RELEASE...

The release has its own rpm, compiler, Slurm headers and Python; what is laid before it comes from here: the source
archive, and the locked wheels for its Python. It downloads nothing.
"""

import hashlib
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.deb.build import convert
from tools.rpm.build import SPEC, Build, lay_sources, mark, rpmbuild
from tools.rpm.kept import kept
from tools.rpm.wheels import ROOT, Target
from tools.trees import recipes, store, view

PYTHONS: Final = {"24.11": "3.13"}
"""The Python of Debian's releases, by their Slurm's as tools/trees has them."""
_DEBS: Final = "deb"
_BUILD_S: Final = 900.0


def packages(base: Path, release: str = "24.11") -> Path:
    """Return the folder of a release's Debian packages, built now where they are of other files; needs root.

    `base` is the folder of the trees; the tree of the build is made in it where it is not there. Raises GpuwasteError.
    """
    if os.geteuid() != 0:
        raise GpuwasteError("packages of another release: needs root: mounts")
    if release not in PYTHONS:
        raise GpuwasteError(f"no packages for {release}; there are: {', '.join(PYTHONS)}")
    folder = ROOT / "build" / f"deb-{release}"
    kept(folder, _mark(release), lambda new: _made(new, base, release))
    return folder / _DEBS


def _mark(release: str) -> str:
    whole = hashlib.sha256(f"{mark()} {recipes.named(f'{release}.build')}".encode())
    for file in sorted([*Path(__file__).parent.glob("*.py"), *(ROOT / "packaging" / "deb").iterdir()]):
        whole.update(file.read_bytes())
    return whole.hexdigest()


def _made(folder: Path, base: Path, release: str) -> Sequence[Path]:
    order = Build(folder, quick=True)
    lay_sources(order, Target(PYTHONS[release], platform.machine()))
    argv = ["python3", "-B", "-m", "tools.deb.in_tree", "--inside", str(folder)]
    view.run(
        f"{release}.build", argv, timeout_s=_BUILD_S, readable=[ROOT], writable=[folder], cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}, base=base,
    )  # fmt: skip
    return sorted((folder / _DEBS).glob("*.deb"))


def _inside(folder: Path) -> None:
    """Build from the sources in a folder, with what this release has."""
    rpms = rpmbuild(Build(folder, quick=True), ["-bb", str(SPEC)])
    convert(rpms, folder / _DEBS, level=1)


def main(argv: Sequence[str]) -> int:
    """Build for each release that is named."""
    try:
        if argv[:1] == ["--inside"]:
            _inside(Path(argv[1]))
            return 0
        for release in argv:
            for package in sorted(packages(store.folder(), release).glob("*.deb")):
                sys.stdout.write(f"{package.stat().st_size / 1e6:8.1f} MB  {package}\n")
    except GpuwasteError as error:
        sys.stderr.write(f"tools.deb.in_tree: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

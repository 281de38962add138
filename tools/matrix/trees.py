"""The trees that the matrix runs in: base trees of tools.trees, one per release that is not the host's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError
from tools.matrix.node import inside
from tools.matrix.releases import Release
from tools.trees import store
from tools.trees.debian import base_recipe, mirror, remove_tree
from tools.trees.recipes import Base, named

__all__ = ["make_tree", "mirror", "ready", "recipe", "remove_tree", "tree_of", "version_of"]


def tree_of(release: Release, base: Path) -> Path | None:
    """Return where a release's tree is or will be; None for the host's own Slurm."""
    return base / release.name if release.suite else None


def ready(release: Release, base: Path) -> str:
    """Return "" where a release can be run at once, else what is missing."""
    if not release.suite:
        return "" if shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") else "no slurmctld on this host"
    return store.lacks(release.name, base)


def recipe(release: Release) -> str:
    """Return what names the way a tree is made: another one makes it anew."""
    base = named(release.name)
    if not isinstance(base, Base):
        raise GpuwasteError(f"matrix: {release.name} is no base tree")
    return base_recipe(base)


def make_tree(release: Release, base: Path) -> Path:
    """Make a release's tree where there is none to use, and return it. Runs in a mount namespace; needs root."""
    tree = tree_of(release, base)
    if tree is None:
        raise GpuwasteError(f"matrix: {release.name} is the host's own Slurm: it has no tree")
    store.make_here(release.name, base)
    version = version_of(tree)
    if not version.startswith(f"{release.name}."):
        raise GpuwasteError(
            f"matrix: Debian {release.suite} in {tree} has Slurm {version}, not {release.name}: remove the tree to "
            "fetch what the suite has now, or change tools/matrix/releases.py"
        )
    return tree


def version_of(tree: Path | None) -> str:
    """Return the version of the Slurm in a tree, or on the host: "24.11.5"."""
    argv = inside(tree, ["slurmctld", "-V"])
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env)
    if done.returncode or not done.stdout.split():
        raise GpuwasteError(f"matrix: {' '.join(argv)}: {(done.stderr or done.stdout).strip() or 'said nothing'}")
    return done.stdout.split()[-1]


def main() -> None:
    """Make one tree: python -m tools.matrix.trees RELEASE BASE, in a mount namespace of its own."""
    from tools.matrix.releases import release  # noqa: PLC0415 the name is a parameter above

    try:
        make_tree(release(sys.argv[1]), Path(sys.argv[2]))
    except GpuwasteError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

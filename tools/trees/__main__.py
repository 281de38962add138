"""Make trees: python -m tools.trees NAME..., into GPUWASTE_TREES or build/trees. Needs root and the package mirror."""

import argparse
import os
import sys
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError
from tools.trees import store
from tools.trees.recipes import RECIPES


def main() -> int:
    """Make the trees that are named, where they are not there."""
    parser = argparse.ArgumentParser(prog="python -m tools.trees", description=__doc__)
    parser.add_argument("name", nargs="+", choices=list(RECIPES))
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("trees: needs root: mounts, device nodes, files of several users")
    try:
        for name in options.name:
            if _mounts_of("self") == _mounts_of(os.getppid()):
                store.make(name, store.folder())
            else:
                store.make_here(name, store.folder())
    except GpuwasteError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _mounts_of(process: int | str) -> str:
    return str(Path(f"/proc/{process}/ns/mnt").readlink())


if __name__ == "__main__":
    sys.exit(main())

"""Make trees: python -m tools.trees NAME..., into GPUWASTE_TREES or build/trees. Needs root and the package mirror."""

import argparse
import os
import sys

from gpuwaste.core.errors import GpuwasteError
from tools.trees import store
from tools.trees.recipes import RECIPES


def main() -> int:
    """Make the trees that are named, where they are not there."""
    parser = argparse.ArgumentParser(prog="python -m tools.trees", description=__doc__)
    parser.add_argument("name", nargs="+", choices=list(RECIPES))
    parser.add_argument("--here", action="store_true", help="mounts are of this process alone already")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("trees: needs root: mounts, device nodes, files of several users")
    try:
        for name in options.name:
            make = store.make_here if options.here else store.make
            make(name, store.folder())
    except GpuwasteError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Stops a cluster when the process that started it has gone, however it went.

Reads standard input: a line means that the cluster was stopped or is to stay; the end of file without one means that
the owner died.
"""

import shutil
import sys
from pathlib import Path

from gpuwaste.testing.cluster import LoopbackCluster


def main() -> None:
    """Wait for the owner's word, or for its end."""
    directory, remove = Path(sys.argv[1]), sys.argv[2:] == ["--remove"]
    if not sys.stdin.readline():
        LoopbackCluster.attach(directory).stop()
        if remove:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()

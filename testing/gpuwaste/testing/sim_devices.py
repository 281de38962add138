"""Device files and mig-minors of a simulated node at their usual places, in a mount namespace of one command's own.

What finds GPUs by NVML alone, as Slurm's gpu/nvml does, then looks for /dev/nvidiaN and for
/proc/driver/nvidia-caps/mig-minors, and knows no other place for either.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.testing.cluster_host import search_path
from gpuwaste.testing.simnvml import SimNode

_ENTER: Final = """\
set -eu
node=$1 minors=$2 dev=$1/dev
shift 2
mkdir -p "$dev"
mount -t tmpfs -o mode=755 gpuwaste-dev "$dev"
mkdir "$dev/nvidia-caps" "$dev/shm"
mount --bind /dev/shm "$dev/shm"
for name in null zero full random urandom tty; do cp -a "/dev/$name" "$dev/$name"; done
for minor in $minors; do mknod -m 666 "$dev/nvidia$minor" c 195 "$minor"; done
for minor in $(sed 's/.* //' "$node/mig-minors"); do
  mknod -m 444 "$dev/nvidia-caps/nvidia-cap$minor" c 241 "$minor"
done
mount -t tmpfs gpuwaste-caps /proc/driver
mkdir /proc/driver/nvidia-caps
cp "$node/mig-minors" /proc/driver/nvidia-caps/
mount --move "$dev" /dev
exec "$@"
"""


def with_devices(node: SimNode, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` where the node's GPUs have their files; it needs root."""
    minors = " ".join(str(minor) for minor in sorted(node.uuids()))
    enter = ["sh", "-c", _ENTER, "sh", str(node.directory), minors]
    return ["unshare", "--mount", "--propagation", "private", *enter, *argv]


def own_slurmd(node: SimNode, folder: Path) -> Path:
    """Make a folder whose slurmd knows the node, and return it: our client passes no variable of the simulation on."""
    slurmd = folder / "slurmd"
    folder.mkdir()
    words = " ".join(f"{name}={value}" for name, value in node.env.items())
    slurmd.write_text(f'#!/bin/sh\nexec env {words} {shutil.which("slurmd", path=search_path())} "$@"\n')
    slurmd.chmod(0o755)
    return folder

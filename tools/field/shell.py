"""A lab for a person to work in: python -m tools.field.shell up NAME | run NAME COMMAND | down NAME.

`up` returns when the machine is ready and leaves it running; `run` without a command gives a shell in it.
"""

import argparse
import os
import sys
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError
from tools.field.machine import Machine
from tools.field.setup import FOLDER, STAGES, TREE, brought_up, refuse
from tools.trees import store


def main() -> int:
    """Do one of the three."""
    parser = argparse.ArgumentParser(prog="python -m tools.field.shell", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    up = actions.add_parser("up", help="start a machine, with Slurm and our packages")
    up.add_argument("name")
    up.add_argument("--packages", type=Path, help="a folder of Debian packages, else they are built")
    up.add_argument("--stage", choices=STAGES, default=STAGES[-1], help="how far to go")
    run = actions.add_parser("run", help="run a command in it, as root; without one a shell")
    run.add_argument("name")
    run.add_argument("command", nargs=argparse.REMAINDER)
    down = actions.add_parser("down", help="end it and remove its files")
    down.add_argument("name")
    options = parser.parse_args()
    if reason := refuse():
        sys.exit(f"field: {reason}")
    machine = Machine(FOLDER / options.name, kept=True)
    try:
        if options.action == "up":
            return _up(machine, options.packages, options.stage)
        if options.action == "run":
            return _run(machine, options.command)
        machine.remove()
    except GpuwasteError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _up(machine: Machine, packages: Path | None, stage: str) -> int:
    if machine.pid:
        raise GpuwasteError(f"field: {machine.folder.name} runs already: python -m tools.field.shell down it first")
    machine.remove()  # what a reboot of the host left
    try:
        with store.using(TREE, store.folder()) as lowers:
            brought_up(machine, lowers, packages, stage)
    except BaseException:
        machine.remove()
        raise
    sys.stdout.write(f"python -m tools.field.shell run {machine.folder.name}\n")
    return 0


def _run(machine: Machine, command: list[str]) -> int:
    words = " ".join(command) or "exec bash"
    own = ["env", "-C", "/root", "HOME=/root", "LC_ALL=C.UTF-8", "SYSTEMD_PAGER=cat"]
    argv = [*machine.enter(), *own, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "sh", "-c", words]
    os.execvp(argv[0], argv)  # noqa: S606 becoming it is the point


if __name__ == "__main__":
    sys.exit(main())

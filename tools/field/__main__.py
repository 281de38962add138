"""make field: our packages on Debian 13 under systemd with Slurm; a table of checks, exit status 1 on any failure.

python -m tools.field [--check NAME]... [--packages DIR] [--keep]
"""

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.field.checks import ORDER, Check, checks_named
from tools.field.lab import Lab
from tools.field.machine import Machine
from tools.field.setup import FOLDER, TREE, brought_up, refuse
from tools.matrix.table import Column, Result, good, render, say
from tools.trees import store

_START: Final = "starts, and is installed"


def main() -> int:
    """Bring one machine up, run the checks on it, print the table and end it."""
    options = _options()
    if reason := refuse():
        sys.exit(f"field: {reason}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = checks_named(options.check)
    machine = Machine(FOLDER / options.name)
    results: list[Result] = []
    try:
        _run(machine, options.packages, chosen, results)
    finally:
        machine.down()
        if not options.keep:
            machine.remove()
    column = Column("24.11", "Debian 13, Slurm 24.11", tuple(results), {})
    names = [_START, *(check.name for check in chosen)]
    say(f"\n{render([column], names)}")
    return 0 if good([column], names) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.field", description="Our packages in the field.")
    parser.add_argument("--check", action="append", default=[], choices=ORDER, help="this one alone (may be repeated)")
    parser.add_argument("--packages", type=Path, help="a folder of Debian packages, else they are built")
    parser.add_argument("--name", default="check", help="the machine's, for several at the same time")
    parser.add_argument("--keep", action="store_true", help="leave the machine's files where it ends")
    return parser.parse_args()


def _run(machine: Machine, packages: Path | None, chosen: tuple[Check, ...], results: list[Result]) -> None:
    machine.remove()
    began = time.monotonic()
    with store.using(TREE, store.folder()) as lowers:
        try:
            lab = brought_up(machine, lowers, packages)
        except GpuwasteError as error:
            results.append(Result(_START, time.monotonic() - began, str(error)))
            return
        results.append(Result(_START, time.monotonic() - began))
        results.extend(_checked(check, lab) for check in chosen)


def _checked(check: Check, lab: Lab) -> Result:
    began = time.monotonic()
    try:
        check.run(lab)
        reason = ""
    except GpuwasteError as error:
        reason = str(error)
    result = Result(check.name, time.monotonic() - began, reason)
    say(f"{result.seconds:6.1f} s  {check.file}: {reason or 'ok'}")
    return result


if __name__ == "__main__":
    sys.exit(main())

"""make field VM=1: our packages on a virtual machine with complete cgroups; a table, exit status 1 on any failure.

python -m tools.field.vm [--check NAME]... [--packages DIR] [--record FILE] [--keep]
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.deb import in_tree
from tools.field import site
from tools.field.checks import Check
from tools.field.lab import Lab
from tools.field.setup import FOLDER, brought_up
from tools.field.vm import image, record
from tools.field.vm.checks import ORDER, checks_named
from tools.field.vm.machine import VirtualMachine
from tools.matrix.table import Column, Result, good, render, say
from tools.trees import store

_START: Final = "starts, and is installed"
_NICE: Final = 5
_TAKEN: Final = ("", "-runtime", "-runtime-onnx", "-models", "-hub", "-agent", "-advisor", "-slurm-plugin")
"""Packages that the page installs: an index of all of them is minutes of hashing there."""


def main() -> int:
    """Bring one machine up, run the checks on it, print the table and end it."""
    options = _options()
    if reason := refuse():
        sys.exit(f"field: {reason}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.nice(_NICE)
    chosen = checks_named(options.check)
    results: list[Result] = []
    try:
        _run(FOLDER / options.name, options, chosen, results)
    except GpuwasteError as error:
        results.append(Result(_START, 0, str(error)))
    column = Column("24.11", "Debian 13, Slurm 24.11, qemu", tuple(results), {})
    names = [*([] if options.again else [_START]), *(check.name for check in chosen)]
    say(f"\n{render([column], names)}")
    if options.record:
        record.save(options.record, column)
    return 0 if good([column], names) else 1


def refuse() -> str:
    """Return why this host can have no virtual machine, "" where it can."""
    return "" if os.geteuid() == 0 else "needs root: mounts, files of several users"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.field.vm", description="Our packages in a virtual machine.")
    parser.add_argument("--check", action="append", default=[], choices=ORDER, help="this one alone (may be repeated)")
    parser.add_argument("--packages", type=Path, help="a folder of Debian packages, else they are built")
    parser.add_argument("--name", default="vm", help="the machine's, for several at the same time")
    parser.add_argument("--record", type=Path, help="write the results into this file, as JSON")
    parser.add_argument("--keep", action="store_true", help="leave the machine's disk where it ends")
    parser.add_argument("--again", action="store_true", help="use the disk that --keep left, with what is installed")
    return parser.parse_args()


def _run(folder: Path, options: argparse.Namespace, chosen: Sequence[Check], results: list[Result]) -> None:
    trees = store.folder()
    with store.using(image.TREE, trees) as tree, store.using(image.QEMU_TREE, trees) as lowers:
        machine = VirtualMachine(folder, _disk(folder, tree, again=options.again))
        if machine.pid:
            raise GpuwasteError(f"field: {folder} runs already")
        began = time.monotonic()
        try:
            if options.again:
                lab = _again(machine, lowers)
            else:
                machine.remove()
                packages = taken(options.packages or in_tree.packages(trees), folder / "packages")
                lab = brought_up(machine, lowers, packages)
                results.append(Result(_START, time.monotonic() - began))
            results.extend(_checked(check, lab) for check in chosen)
            if options.keep:
                machine.shut()
        except GpuwasteError as error:
            results.append(Result(_START, time.monotonic() - began, str(error)))
        finally:
            machine.down()
            if not options.keep:
                machine.remove()


def _disk(folder: Path, tree: Sequence[Path], *, again: bool) -> Path:
    """Return the disk that a machine begins with, or has begun with. Raises GpuwasteError."""
    used = folder / image.USED
    if not again:
        return image.made(tree, folder.parent)
    if not used.exists():
        raise GpuwasteError(f"field: {folder} has no disk: --keep leaves one")
    return Path(used.read_text(encoding="utf-8"))


def _again(machine: VirtualMachine, lowers: Sequence[Path]) -> Lab:
    """Start a machine that was kept, with all that is installed on it. Raises GpuwasteError."""
    lab = brought_up(machine, lowers, None, "bare")
    lab.active()
    site.idle(machine)
    return lab


def taken(packages: Path, folder: Path) -> Path:
    """Link the packages that the page installs into a folder and return it. Raises GpuwasteError."""
    for name in _TAKEN:
        found = sorted(packages.glob(f"gpuwaste{name}_*.deb"))
        if len(found) != 1:
            raise GpuwasteError(f"field: {packages} has {len(found)} packages gpuwaste{name}, not one")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / found[0].name).write_bytes(found[0].read_bytes())
    return folder


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

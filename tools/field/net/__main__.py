"""make field NET=1: three hosts of the field on a network that is cut, slow and parted, and clocks that differ.

python -m tools.field.net [--check NAME]... [--packages DIR] [--record FILE]
"""

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.deb import in_tree
from tools.field.net.bring import site
from tools.field.net.checks import ORDER, Check, checks_named
from tools.field.net.hosts import Hosts
from tools.field.setup import TREE, refuse
from tools.matrix.table import Column, Result, good, render, say
from tools.trees import store

_START: Final = "three hosts installed by role"
_TITLE: Final = "Debian 13, Slurm 24.11"


def main() -> int:
    """Bring the hosts up, run the checks on them, print the table, keep it where asked, and end the hosts."""
    options = _options()
    if reason := refuse():
        sys.exit(f"field: {reason}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = checks_named(options.check)
    results: list[Result] = []
    _run(options.name, options.packages, chosen, results)
    column = Column("24.11", _TITLE, tuple(results), {})
    names = [_START, *(check.name for check in chosen)]
    say(f"\n{render([column], names)}")
    if options.record:
        column.save(options.record)
    return 0 if good([column], names) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.field.net", description="Three hosts of the field.")
    parser.add_argument("--check", action="append", default=[], choices=ORDER, help="this one alone (may be repeated)")
    parser.add_argument("--packages", type=Path, help="a folder of Debian packages, else they are built")
    parser.add_argument("--name", default="net", help="the machines', for several runs at the same time")
    parser.add_argument("--record", type=Path, help="the file in which to keep the results")
    return parser.parse_args()


def _run(name: str, packages: Path | None, chosen: tuple[Check, ...], results: list[Result]) -> None:
    base = store.folder()
    began = time.monotonic()
    try:
        packages = packages or in_tree.packages(base)
        began = time.monotonic()
        with store.using(TREE, base) as lowers, site(name, lowers, packages.resolve()) as hosts:
            results.append(Result(_START, time.monotonic() - began))
            results.extend(_checked(check, hosts) for check in chosen)
    except GpuwasteError as error:
        results.append(Result(_START if not results else "ends", time.monotonic() - began, str(error)))
        say(f"field: {error}")


def _checked(check: Check, hosts: Hosts) -> Result:
    began = time.monotonic()
    try:
        check.run(hosts)
        reason = ""
    except GpuwasteError as error:
        reason = str(error)
    result = Result(check.name, time.monotonic() - began, reason)
    say(f"{result.seconds:6.1f} s  {check.file}: {reason or 'ok'}")
    return result


if __name__ == "__main__":
    sys.exit(main())

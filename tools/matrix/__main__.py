"""make matrix: every check on every release, one table; exit status 1 on any failure.

Trees are in MATRIX_DIR, build/matrix without it. A missing one is created.

    python -m tools.matrix --release 24.11 --run COMMAND...

runs any command where that release's Slurm is the host's (tools/matrix/view.py), and exits with its status.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.matrix import compare, trees
from tools.matrix.checks import ORDER, checks_named
from tools.matrix.column import START
from tools.matrix.node import namespace
from tools.matrix.releases import RELEASES, Release, release
from tools.matrix.table import Column, failed_column, good, render, say

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_COLUMN_S: Final = 900.0


def main() -> int:
    """Run the columns one after the other and print the table."""
    options = _options()
    base = options.dir.resolve()
    if os.geteuid() != 0:
        sys.exit("matrix: needs root: mounts, daemons of several users, device nodes")
    base.mkdir(parents=True, exist_ok=True)
    if options.run:
        return _become(options, base)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = [release(name) for name in options.release] or list(RELEASES)
    names = [START, *(check.name for check in checks_named(options.check))]
    columns = [_column(item, base, options.check) for item in chosen]
    unlike = compare.differences(columns)
    say(f"\n{render(columns, names)}")
    for line in compare.spellings(columns) if options.spellings else ():
        say(f"spelled otherwise: {line}")
    for line in unlike:
        say(f"another request: {line}")
    return 0 if good(columns, names) and not unlike else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description="The submit path on Slurm's releases.")
    default = Path(os.environ.get("MATRIX_DIR") or _REPOSITORY / "build" / "matrix")
    parser.add_argument("--dir", type=Path, default=default, help="where the trees are, and what a run writes")
    parser.add_argument("--release", action="append", default=[], help="this one alone (may be given more than once)")
    parser.add_argument("--check", action="append", default=[], choices=ORDER, help="this check alone")
    parser.add_argument("--run", nargs=argparse.REMAINDER, help="run this command on the one release given")
    parser.add_argument("--spellings", action="store_true", help="print what the releases call by other words")
    return parser.parse_args()


def _become(options: argparse.Namespace, base: Path) -> int:
    """Become the command of --run, in a mount namespace of its own that its last process ends."""
    if len(options.release) != 1:
        sys.exit("matrix: --run needs one --release, before it")
    chosen = release(options.release[0])
    try:
        _make_tree(chosen, base)
    except GpuwasteError as error:
        sys.exit(str(error))
    argv = [sys.executable, "-m", "tools.matrix.view", chosen.name, str(base), *options.run]
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "--", *argv])  # noqa: S606


def _make_tree(chosen: Release, base: Path) -> None:
    if chosen.suite and trees.ready(chosen, base):
        _run(["tools.matrix.trees", chosen.name, str(base)], None)


def _column(chosen: Release, base: Path, checks: Sequence[str]) -> Column:
    """Run one release in a process of its own; whatever keeps it from running is its column's failure."""
    began = time.monotonic()
    say(f"{chosen.name}:")
    try:
        _make_tree(chosen, base)
        results = base / f"{chosen.name}.json"
        results.unlink(missing_ok=True)
        _run(
            ["tools.matrix.column", chosen.name, str(base), str(base / f"{chosen.name}.run"), str(results), *checks],
            _COLUMN_S,
        )
        return Column.load(results)
    except GpuwasteError as error:
        return failed_column(chosen.name, str(error), time.monotonic() - began)


def _run(module: list[str], timeout_s: float | None) -> None:
    """Run a module of ours in a mount namespace of its own; end it, and wait for its end, whatever happens here."""
    process = subprocess.Popen(
        namespace([sys.executable, "-m", *module]), stderr=subprocess.PIPE, text=True, cwd=_REPOSITORY
    )
    try:
        _, errors = process.communicate(timeout=timeout_s)
    except BaseException as error:
        process.terminate()
        process.communicate(timeout=60)
        if isinstance(error, subprocess.TimeoutExpired):
            raise GpuwasteError(f"{module[0]} took more than {timeout_s:g} s") from None
        raise
    if process.returncode:
        raise GpuwasteError(errors.strip()[-2000:] or f"{module[0]} exited {process.returncode}")


if __name__ == "__main__":
    sys.exit(main())

"""make matrix: every check on every release, one table; exit status 1 on any failure.

Trees are in GPUWASTE_TREES, build/trees without it. A missing one is created.

    python -m tools.matrix --release 24.11 --run COMMAND...

runs any command where that release's Slurm is the host's (tools/matrix/view.py), and exits with its status.
"""

import argparse
import datetime as dt
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.sim_build import build_level_zero, build_native, build_rocm_smi
from tools import slurm_gpu
from tools.matrix import compare, trees
from tools.matrix.checks import ORDER, checks_named
from tools.matrix.column import START
from tools.matrix.node import namespace, own_namespace
from tools.matrix.parts import PARTS, part
from tools.matrix.parts_run import record, run_part, run_turn, turn_of
from tools.matrix.releases import RELEASES, Release, release
from tools.matrix.table import Column, failed_column, good, render, say
from tools.trees import store

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
    if options.turn:
        return _run_turn(options, base)
    if options.part:
        return _run_parts(options, base)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = [release(name) for name in options.release] or list(RELEASES)
    names = [START, *(check.name for check in checks_named(options.check))]
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    columns = [_column(item, base, out, options.check) for item in chosen]
    unlike = compare.differences(columns)
    say(f"\n{render(columns, names)}")
    for line in compare.spellings(columns) if options.spellings else ():
        say(f"spelled otherwise: {line}")
    for line in unlike:
        say(f"another request: {line}")
    return 0 if good(columns, names) and not unlike else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description="The submit path on Slurm's releases.")
    parser.add_argument("--dir", type=Path, default=store.folder(), help="where the trees are")
    out = _REPOSITORY / "build" / "matrix"
    parser.add_argument("--out", type=Path, default=out, help="where the submit path writes what it needs and finds")
    parser.add_argument("--release", action="append", default=[], help="this one alone (may be given more than once)")
    parser.add_argument("--check", action="append", default=[], choices=ORDER, help="this check alone")
    names = [item.name for item in PARTS]
    parser.add_argument("--part", action="append", default=[], choices=[*names, "all"], help="the tests of this part")
    parser.add_argument("--turn", action="store_true", help="ten minutes of all parts on the release of the day")
    parser.add_argument("--record", type=Path, help="the file in which to keep what came of each part")
    parser.add_argument("--run", nargs=argparse.REMAINDER, help="run this command on the one release given")
    parser.add_argument("--spellings", action="store_true", help="print what the releases call by other words")
    return parser.parse_args()


@contextmanager
def _output_as_errors() -> Iterator[None]:
    """Send what this process and its children print to stderr: the output of --run is that of its command alone."""
    output = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(output, 1)
        os.close(output)


def _become(options: argparse.Namespace, base: Path) -> int:
    """Become the command of --run, in a mount namespace of its own that its last process ends."""
    if len(options.release) != 1:
        sys.exit("matrix: --run needs one --release, before it")
    chosen = release(options.release[0])
    try:
        with _output_as_errors():
            _prepare(chosen, base)
    except GpuwasteError as error:
        sys.exit(str(error))
    argv = [sys.executable, "-m", "tools.matrix.view", chosen.name, str(base), *options.run]
    os.execvp("env", own_namespace(argv))  # noqa: S606


def _run_parts(options: argparse.Namespace, base: Path) -> int:
    """Run parts on releases, one after the other; exit status 1 where one failed or tested nothing."""
    chosen = [release(name) for name in options.release] or list(RELEASES)
    parts = list(PARTS) if "all" in options.part else [part(name) for name in options.part]
    bad = 0
    for item in chosen:
        try:
            _prepare(item, base)
            for one in parts:
                cell = run_part(one, item, base)
                bad += not cell.good
                if options.record:
                    record(options.record, item, one, cell)
        except GpuwasteError as error:
            say(f"{item.name}: {error}")
            bad += 1
    return 1 if bad else 0


def _run_turn(options: argparse.Namespace, base: Path) -> int:
    """Run the turn on the release of the day, or on those given; exit status 1 where one failed."""
    today = dt.datetime.now(dt.UTC).date()
    chosen = [release(name) for name in options.release] or [turn_of(today)]
    say(f"turn of {today:%A %d %B}: Slurm {', '.join(item.name for item in chosen)}")
    bad = 0
    for item in chosen:
        try:
            _prepare(item, base)
            bad += not run_turn(item, base).good
        except GpuwasteError as error:
            say(f"{item.name}: {error}")
            bad += 1
    return 1 if bad else 0


def _prepare(chosen: Release, base: Path) -> None:
    _make_tree(chosen, base)
    _build_for_host()
    try:
        slurm_gpu.provide(trees.version_of(trees.tree_of(chosen, base)))
    except GpuwasteError as error:  # of a newer point release than the tree's: tests that want it say so
        say(f"{chosen.name}: {error}")


def _build_for_host() -> None:
    """Build what tests run, before a release is there: what is linked with its newer C library would not run here."""
    for build in (build_native, build_rocm_smi, build_level_zero):
        build()


def _make_tree(chosen: Release, base: Path) -> None:
    if chosen.suite and trees.ready(chosen, base):
        _run(["tools.matrix.trees", chosen.name, str(base)], None)


def _column(chosen: Release, base: Path, out: Path, checks: Sequence[str]) -> Column:
    """Run one release in a process of its own; whatever keeps it from running is its column's failure."""
    began = time.monotonic()
    say(f"{chosen.name}:")
    try:
        _make_tree(chosen, base)
        results = out / f"{chosen.name}.json"
        results.unlink(missing_ok=True)
        _run(
            ["tools.matrix.column", chosen.name, str(base), str(out / f"{chosen.name}.run"), str(results), *checks],
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

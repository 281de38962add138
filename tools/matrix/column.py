"""One release's column: brings up its Slurm, runs the checks, writes the results.

    python -m tools.matrix.column RELEASE BASE FOLDER RESULTS [CHECK...]

in a mount namespace of its own (node.namespace): BASE holds the trees, FOLDER is the column's own. A signal ends it in
good order, and the cluster's reaper ends the daemons where this process is killed.
"""

import shutil
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native
from tools.matrix import node, trees
from tools.matrix.build import build
from tools.matrix.checks import Check, checks_named
from tools.matrix.releases import Release, release
from tools.matrix.rig import Rig
from tools.matrix.table import Column, Result, say

START: Final = "builds, starts"
_PLUGIN: Final = {"deadline_us": 1_000_000, "breaker_first_ms": 100, "breaker_max_ms": 500}
"""The effect of an answer is the subject here, not its time, and a check must not wait for the one before it."""
_REASON: Final = 2000
"""Longest reason of a failure, characters."""


def run_column(chosen: Release, base: Path, folder: Path, checks: Sequence[Check]) -> Column:
    """Run the checks on one release and return what came of each."""
    results: list[Result] = []
    requests: dict[str, object] = {}
    began = time.monotonic()
    tree = trees.tree_of(chosen, base)
    node.enter(folder, tree)
    version = trees.version_of(tree)
    try:
        if tree is not None:
            node.write_shims(tree, node.HERE / "bin")
        build(tree, node.HERE / "plugins")
        with LoopbackCluster(node.HERE / "c", Variant(prolog=(), epilog=()), remove=True) as cluster:
            site = Site(cluster, build_native(), SiteOptions(sacct_every_s=1.0, plugin=_PLUGIN))
            site.prepare()
            rig = Rig(chosen, version, tree, node.HERE, cluster, site)
            results.append(_said(Result(START, time.monotonic() - began)))
            results += [_said(run_check(check, rig)) for check in checks]
            requests = rig.requests
            site.stop()
    except (GpuwasteError, OSError) as error:
        results.append(_said(Result(START, time.monotonic() - began, str(error)[:_REASON])))
    return Column(chosen.name, version, tuple(results), requests)


def run_check(check: Check, rig: Rig) -> Result:
    """Run one check; whatever it raises is its failure and never the next one's."""
    began = time.monotonic()
    reason = ""
    mark = rig.log_size()
    try:
        if check.job_submit:
            rig.use(check.job_submit)
        check.run(rig)
    except Exception as error:  # noqa: BLE001 a check may fail in any way; the others must still run
        known = isinstance(error, GpuwasteError)
        text = str(error) if known else "".join(traceback.format_exception(error)).strip()
        (rig.folder / "failed.log").open("a", encoding="utf-8").write(f"== {check.name}\n{rig.log_after(mark)}\n")
        reason = f"{text}"[-_REASON:] or type(error).__name__
    try:
        rig.clean()
    except GpuwasteError as error:
        reason = reason or f"afterwards: {error}"[:_REASON]
    return Result(check.name, time.monotonic() - began, reason)


def _said(result: Result) -> Result:
    say(f"  {result.cell:>14} s  {result.check}")
    return result


def _end(number: int, _: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main() -> None:
    """Run one column; exit status 1 where it could not be run at all."""
    name, base, folder, results, *wanted = sys.argv[1:]
    signal.signal(signal.SIGTERM, _end)
    shutil.rmtree(folder, ignore_errors=True)
    Path(folder).mkdir(parents=True)
    checks = checks_named(wanted)
    try:
        run_column(release(name), Path(base), Path(folder), checks).save(Path(results))
    except (GpuwasteError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

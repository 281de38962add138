"""A workflow wrapped and not wrapped, submitted into a window of a log: section 3.5 of Marciani et al.

The window is played without the workflow first, for the usage that gives its user the requested fair share. A
task is submitted `notice_s` after the one that it needs has ended. One row for each way of wrapping, with what it gains
over single jobs as a share of the workflow's run time.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.sim.fair_share_queue import MARENOSTRUM
from gpuwaste.sim.trace import Ints, trace_of
from gpuwaste.sim.workflow_wrapping import SINGLE, WRAPPERS, BackgroundLoad, Workflow, time_to_solution, workflow_starts

TITLE: Final = "a workflow as single jobs and wrapped, in a window of a log"
PARAMETERS: Final[Mapping[str, Any]] = {
    "swf": None,
    "begin": 0,
    "end": 2**40,
    "processors": 0,
    "instant_h": None,
    "fair_share": None,
    "members": 1,
    "chunks": 7,
    "task_cpus": 96,
    "task_run_s": 1800,
    "jitter_s": 0,
    "notice_s": 1,
}
MEASURES: Final = ("time_to_solution_s", "queue_s", "gain", "first_wait_s")


def rows(values: Mapping[str, Any], seed: int, folder: Path) -> list[dict[str, Any]]:
    """Play the window once for each way of wrapping; see experiments. Raises UsageError, NoDataError."""
    if (
        min(values["members"], values["chunks"], values["task_cpus"], values["task_run_s"]) < 1
        or values["notice_s"] < 0
    ):
        raise UsageError("members, chunks, task_cpus and task_run_s have to be 1 or more, notice_s 0 or more")
    others, alone = window(folder / values["swf"], values["begin"], values["end"], values["processors"])
    instant = values["begin"] + round(values["instant_h"] * 3600)
    if values["jitter_s"]:
        instant += int(np.random.default_rng(seed).integers(0, values["jitter_s"]))
    first = int(others.submit[0])
    if not first <= instant <= int(others.submit[-1]):
        raise UsageError(f"instant_h={values['instant_h']}: is not within the window")
    wanted = others.usage_for(float(values["fair_share"]), others.usage_at(alone, instant))
    used = wanted / MARENOSTRUM.decays ** (instant - first)
    run_s = np.full((values["members"], values["chunks"]), values["task_run_s"], dtype=np.int64)
    workflow = Workflow(run_s, values["task_cpus"])
    found, single = [], 0
    for name, wrap in WRAPPERS.items():
        wrapped = wrap(workflow)
        start, priority = workflow_starts(others, wrapped, instant, used, values["notice_s"])
        took = time_to_solution(wrapped, start, instant)
        single = took if name == SINGLE else single
        found.append({
            "wrapper": name,
            "jobs": len(start),
            "time_to_solution_s": took,
            "queue_s": took - workflow.ideal_s,
            "gain": (single - took) / workflow.ideal_s,
            "first_wait_s": int(start.min()) - instant,
            "priority": float(priority[0]),
        })  # fmt: skip
    return found


@lru_cache(maxsize=4)
def window(path: Path, begin: int, end: int, processors: int) -> tuple[BackgroundLoad, Ints]:
    """Return the jobs that were submitted in a window, and when they start without a workflow.

    Raises UsageError, NoDataError.
    """
    log = swf_table(path)
    total = processors or log.facts.processors
    if not total:
        raise UsageError(f"{path}: the log does not have the machine's size: set processors")
    trace, _ = trace_of(log.table, total)
    rows_in = np.flatnonzero((trace.submit >= begin) & (trace.submit < end))
    if not len(rows_in):
        raise NoDataError(f"{path}: no job was submitted from {begin} to {end}")
    jobs = trace.take(rows_in)
    users, owner = np.unique(jobs.user, return_inverse=True)
    owners = tuple((f"a{user}", f"u{user}") for user in users.tolist())
    columns = (jobs.submit, jobs.run_s, jobs.limit_s, jobs.procs, owner.astype(np.int64))
    others = BackgroundLoad(*columns, owners, np.zeros(len(owners)), total)
    return others, others.starts()

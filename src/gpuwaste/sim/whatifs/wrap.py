"""Chains of one user's short jobs as one job each: a vertical wrapper, submitted once, that runs them one by one."""

from dataclasses import replace
from typing import Final

import numpy as np

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.units import DAY_S, MINUTE_S
from gpuwaste.sim.whatif import WhatIfCase, WhatIfChange
from gpuwaste.sim.workflow_wrapping import WRAPPERS, Workflow
from gpuwaste.slurm.site.cluster_model import ClusterModel

TITLE: Final = "chains of a user's short jobs as one job each"
VALUE: Final = "MINUTES"
_SHORT_MIN: Final = 60
_LONGEST_S: Final = DAY_S  # limit of a wrapper, where its partition sets no shorter one
_ALIKE: Final = ("account", "partition", "qos", "gpu_type")
_AMOUNTS: Final = ("nodes", "cpus", "mem_b", "gpus")
_NOTES: Final = (
    "A chain is jobs of one user with the same request, each submitted soon after the end of the one before.",
    "The history has no dependencies: some chains may be a coincidence.",
    "Waits compare the first job of each chain: the others are no longer submitted.",
    "The time of a chain is from its first submission to its last end, in the base with the pauses between its jobs.",
)


def change(case: WhatIfCase, value: str) -> WhatIfChange:
    """Return the jobs with each chain as one job, of the sum of its run times and of its limits.

    Jobs with a limit of at most so many minutes are short (default 60), and a job that is submitted within that time
    after the end of the one before continues its chain. Raises UsageError, NoDataError.
    """
    short_s = _minutes(value) * MINUTE_S
    trace, table = case.trace, case.table
    chains = _chains(case, short_s)
    if not chains:
        raise NoDataError(
            "what-if wrap: no user has a chain of short jobs, each submitted soon after the end of the one before"
        )
    wrapped = np.arange(len(table), dtype=np.int64)
    run, limit, gone = trace.run_s.copy(), trace.limit_s.copy(), np.zeros(len(trace), np.bool_)
    for chain in chains:
        first = chain[0]
        workflow = Workflow(trace.run_s[chain][None, :], int(trace.procs[first]))
        run[first] = WRAPPERS["vertical"](workflow).run_s[0]
        limit[first] = trace.limit_s[chain].sum()
        gone[chain[1:]] = True
        wrapped[trace.row[chain]] = trace.row[first]
    limits = table.limit_s.copy()
    limits[trace.row] = np.where(limit == trace.limit_s, limits[trace.row], limit)
    facts = {
        "jobs": len(trace),
        "chains": len(chains),
        "jobs in chains": sum(map(len, chains)),
        "jobs in the longest chain": max(map(len, chains)),
    }
    kept = replace(trace, run_s=run, limit_s=limit).take(np.flatnonzero(~gone))
    return WhatIfChange(kept, case.processors, facts, _NOTES, table=replace(table, limit_s=limits), wrapped=wrapped)


def _minutes(value: str) -> int:
    if value and not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= _LONGEST_S // MINUTE_S):
        raise UsageError(f"what-if wrap={value[:20]!r}: expected minutes from 1 to {_LONGEST_S // MINUTE_S}")
    return int(value) if value else _SHORT_MIN


def _chains(case: WhatIfCase, short_s: int) -> list[list[int]]:
    """Return the chains of two and more jobs by their places in the trace."""
    trace, rows = case.trace, case.trace.row
    alike, most = _alike(case), _longest(case, case.cluster)
    ends = np.where(case.table.end[rows] >= 0, case.table.end[rows], trace.submit + trace.run_s).tolist()
    submits, limits = trace.submit.tolist(), trace.limit_s.tolist()
    found: list[list[int]] = []
    latest: dict[int, tuple[list[int], int]] = {}  # by kind of job: the open chain and its limit
    for place in np.flatnonzero(trace.limit_s <= short_s).tolist():
        chain, limit = latest.get(alike[place], ([], 0))
        pause = submits[place] - ends[chain[-1]] if chain else -1
        if not 0 <= pause <= short_s or limit + limits[place] > most[place]:
            chain, limit = [], 0
            found.append(chain)
        chain.append(place)
        latest[alike[place]] = chain, limit + limits[place]
    return [chain for chain in found if len(chain) > 1]


def _alike(case: WhatIfCase) -> list[int]:
    """Return a number for each job [n] that is equal for jobs of one user that request the same."""
    table, trace = case.table, case.trace
    columns = [trace.user, trace.procs, *(getattr(table, name).codes[trace.row] for name in _ALIKE)]
    columns += [np.nan_to_num(getattr(table, name)[trace.row], nan=-1.0) for name in _AMOUNTS]
    numbers = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1]
    found: list[int] = numbers.reshape(-1).tolist()
    return found


def _longest(case: WhatIfCase, cluster: ClusterModel | None) -> list[int]:
    """Return the longest limit that a wrapper of each job [n] may have: MaxTime of its partition, a day at most."""
    partition = case.table.partition
    most = [_LONGEST_S] * len(partition.values)
    if cluster is not None:
        known = {part.name: part.max_time_s for part in cluster.partitions}
        other = cluster.default_partition().max_time_s
        most = [min(_LONGEST_S, known.get(name, other) or _LONGEST_S) for name in partition.values]
    found: list[int] = np.array(most, np.int64)[partition.codes[case.trace.row]].tolist()
    return found

"""Submissions of a history: what sbatch is given for each job, and when."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpuwaste.core.errors import NoDataError
from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.history.table import Categories, JobTable
from gpuwaste.sim.trace import Trace, trace_of
from gpuwaste.slurm.site.cluster_model import ClusterModel

_MIB: Final = 1 << 20
_BEYOND_S: Final = 3600  # what a job that hit its limit would have run on: slurmctld has to end it


@dataclass(frozen=True, slots=True)
class TraceSubmission:
    """One job of the trace: `submit` as in the trace (UTC seconds), `sleep_s` what it sleeps, `options` of sbatch."""

    job_id: int
    submit: int
    sleep_s: int
    limit_s: int
    options: tuple[str, ...]


def submissions(
    table: JobTable, model: ClusterModel, first: int | None = None
) -> tuple[Trace, list[TraceSubmission], dict[str, int]]:
    """Return the jobs that can be submitted, in order, and how many were left out by reason.

    What slurmctld refuses on this cluster is found when it is submitted. Raises NoDataError where no job is left.
    """
    trace, left_out = trace_of(table)
    if first is not None:
        trace = trace.first(first)
    names = {partition.name: partition.up for partition in model.partitions}
    types = {"", *(kind for node in model.nodes for kind in node.gpus)}
    kept, jobs, reasons = [], [], Counter(left_out)
    for index in range(len(trace)):
        row = int(trace.row[index])
        partition = _text(table.partition, row)
        if not names.get(partition, True):
            reasons["asks for a partition that is down"] += 1
            continue
        if table.gpus[row] >= 1 and _text(table.gpu_type, row) not in types:
            reasons["asks for a GPU type that the cluster does not have"] += 1
            continue
        kept.append(index)
        options = (*_options(table, row, int(trace.procs[index])), *(("-p", partition) if partition in names else ()))
        jobs.append(_submission(table, trace, index, options))
    if not jobs:
        raise NoDataError(f"no job of the trace can be submitted: {dict(reasons)}")
    return trace.take(np.array(kept, dtype=np.intp)), jobs, dict(reasons)


def _submission(table: JobTable, trace: Trace, index: int, options: tuple[str, ...]) -> TraceSubmission:
    row, run, limit = int(trace.row[index]), int(trace.run_s[index]), int(trace.limit_s[index])
    limited = not math.isnan(table.limit_s[row])
    beyond = _BEYOND_S if limited and run >= limit else 0
    minutes = ("-t", str(-(-limit // MINUTE_S))) if limited else ()
    return TraceSubmission(int(table.job_id[row]), int(trace.submit[index]), run + beyond, limit, (*minutes, *options))


def _options(table: JobTable, row: int, processors: int) -> tuple[str, ...]:
    nodes = None if math.isnan(table.nodes[row]) or table.nodes[row] < 1 else int(table.nodes[row])
    words = [f"--ntasks={max(processors, nodes or 1)}"]
    if nodes is not None:
        words.append(f"--nodes={nodes}")
    if table.mem_b[row] > 0:
        words.append(f"--mem={max(1, math.ceil(table.mem_b[row] / (nodes or 1) / _MIB))}M")
    if table.gpus[row] >= 1:
        words.append(_gpus(int(table.gpus[row]), nodes, _text(table.gpu_type, row)))
    return tuple(words)


def _gpus(count: int, nodes: int | None, kind: str) -> str:
    typed = f"{kind}:" if kind else ""
    if nodes is not None and count % nodes == 0:
        return f"--gres=gpu:{typed}{count // nodes}"
    return f"--gpus={typed}{count}"


def _text(column: Categories, row: int) -> str:
    return column.values[int(column.codes[row])]

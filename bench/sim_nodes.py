"""Clusters and traces for schedulers that place jobs on nodes: logs, and logs that are played twice in a row."""

from dataclasses import replace
from typing import Final

import numpy as np
from tools.data.places import find

from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.sim.trace import Trace, trace_of
from gpuwaste.slurm.site.cluster_model import Association, ClusterModel, LimitSet, Node, Partition, Qos

NODES: Final = {"lublin_256": (256, 1), "KTH-SP2": (100, 1), "CEA-Curie": (5040, 16)}
"""Nodes, and CPUs of each."""
TWICE: Final = " twice"
_MOST_JOBS: Final = 1000  # of a user at once
_FAIR_TREE: Final = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairshare": "10000",
    "PriorityWeightJobSize": "1000",
}


def cluster_named(name: str) -> ClusterModel:
    """Return the cluster of a log: equal nodes, jobs share them by CPU, priorities by age, size and Fair Tree.

    Every job is under limits of the partition's QOS and of the root association, which hold few of them.
    """
    count, cpus = NODES[name.removesuffix(TWICE)]
    nodes = tuple(Node(f"n{k}", cpus, 0) for k in range(count))
    batch = Partition("batch", tuple(node.name for node in nodes), default=True, qos="all")
    most = LimitSet(
        grp_tres={"cpu": count * cpus}, max_tres_per_user={"cpu": count * cpus}, max_jobs_per_user=_MOST_JOBS
    )
    root = Association("root", parent="", limits=LimitSet(grp_jobs=count * cpus))
    return ClusterModel(
        name, nodes, (batch,), qos=(Qos("all", limits=most),), associations=(root,), settings=_FAIR_TREE
    )


def trace_named(name: str, file: str) -> tuple[JobTable, Trace] | None:
    """Return the jobs of a log, once more after its last end with TWICE; None where the log is not here."""
    path = find(file)
    if path is None:
        return None
    count, cpus = NODES[name.removesuffix(TWICE)]
    table = swf_table(path).table
    trace, _ = trace_of(table, count * cpus)
    if not name.endswith(TWICE):
        return table, trace
    both = trace.take(np.concatenate([np.arange(len(trace))] * 2))
    submit = both.submit.copy()
    submit[len(trace) :] += trace.submit[-1] - trace.submit[0] + 86400
    return table, replace(both, submit=submit)

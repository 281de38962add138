"""Which limits of QOS and associations a job would break, as sacctmgr(1) and the resource limits page define them."""

from collections.abc import Sequence
from typing import NamedTuple

from gpuwaste.sim.assoc_limits import qos_order
from gpuwaste.slurm.site.cluster_model import ClusterModel, LimitSet


class Asked(NamedTuple):
    """A job: user 0 or 1, its QOS and its partition's (-1: none), what it asks for."""

    user: int
    qos: int
    partition_qos: int
    amounts: dict[str, int]
    limit_s: int


def breaks(limits: LimitSet, job: Asked, group: list[Asked], own: list[Asked], *, leaf: bool) -> dict[str, bool]:
    """Return which limits are set, by name, and whether a job that starts now would break each."""
    found: dict[str, bool] = {}
    nodes = max(1, job.amounts.get("node", 0))

    def used(jobs: list[Asked], name: str) -> int:
        return sum(each.amounts.get(name, 0) for each in jobs)

    if limits.grp_jobs is not None:
        found["jobs"] = len(group) >= limits.grp_jobs
    if leaf and limits.max_jobs_per_user is not None:
        found["max jobs"] = len(own) >= limits.max_jobs_per_user
    if leaf and limits.max_wall_s is not None:
        found["wall"] = job.limit_s > limits.max_wall_s
    for name, most in limits.grp_tres.items():
        found[f"group {name}"] = 0 < job.amounts.get(name, 0) > most - used(group, name)
    for name, most in limits.max_tres_per_user.items():
        found[f"user {name}"] = 0 < job.amounts.get(name, 0) > most - used(own, name)
    for name, most in limits.max_tres_per_job.items() if leaf else ():
        found[f"job {name}"] = job.amounts.get(name, 0) > most
    for name, most in limits.max_tres_per_node.items() if leaf else ():
        found[f"node {name}"] = job.amounts.get(name, 0) // nodes > most
    return found


def plainly_held(model: ClusterModel, associations: Sequence[LimitSet], job: Asked, running: list[Asked]) -> bool:
    """Return whether any limit holds a job back: a limit that one sets, those after it do not.

    `associations` are the limits of the job's own and of those above it, which count all jobs that run.
    """
    first, second = (model.qos[k] if k >= 0 else None for k in qos_order(model, job.qos, job.partition_qos))
    taken: set[str] = set()
    for qos in (first, second):
        if qos is None:
            continue
        group = [each for each in running if qos.name in {model.qos[k].name for k in each[1:3] if k >= 0}]
        own = [each for each in group if each.user == job.user]
        found = breaks(qos.limits, job, group, own, leaf=True)
        if any(broken for name, broken in found.items() if name not in taken):
            return True
        taken |= set(found)
    mine = [each for each in running if each.user == job.user]
    for place, limits in enumerate(associations):
        found = breaks(limits, job, running if place else mine, mine, leaf=place == 0)
        if any(broken for name, broken in found.items() if name not in taken):
            return True
    return False

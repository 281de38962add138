"""Why a request could not run: rules of partition, QOS and association that `sbatch --test-only` does not check.

slurmctld's test of 22.05 ignores time limits, AllowAccounts and QOS limits, that of 24.11 AllowGroups too: such a job
is accepted and then waits for ever, or is rejected, by EnforcePartLimits. What is not known is no reason.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from gpuwaste.core.units import format_size, say_duration
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.slurm.site.assoc_mgr import LimitSet, Share
from gpuwaste.slurm.site.limit_order import NO_LIMIT, holds, qos_order
from gpuwaste.slurm.submit.request import JobRequest

Kind = tuple[str, str]
"""What a limit is for, and the TRES that it counts ("" for times and jobs)."""
_CLOSED: Final = frozenset({"DOWN", "INACTIVE", "DRAIN"})
_JOB: Final = "a job"
_NODE: Final = "a node"
_USER: Final = "a user"
_ALL_JOBS: Final = "all its jobs"
_WALL: Final = "time"
_GROUP_SUBMITS: Final = "jobs submitted"
_OWN_SUBMITS: Final = "jobs of a user submitted"
_SUBMITTED: Final = frozenset({_GROUP_SUBMITS, _OWN_SUBMITS})
_OF_GROUPS: Final = frozenset({_ALL_JOBS, _GROUP_SUBMITS})


def tres_of(request: JobRequest) -> dict[str, int]:
    """Return what a request asks for by TRES; memory in bytes, left out where it is not said."""
    found = {"cpu": request.cpus or 0, "node": request.nodes or 0, "gres/gpu": request.gpus, "mem": request.mem_b or 0}
    if request.gpu_type and "," not in request.gpu_type:
        found[f"gres/gpu:{request.gpu_type}"] = request.gpus
    return {name: amount for name, amount in found.items() if amount}


def problems(asked: PlanRequest) -> list[str]:
    """Return why the job would be rejected or would never start, most important first."""
    site, request = asked.site, asked.request
    found: list[str] = []
    names = [name for name in request.partition.split(",") if name]
    each = [list(_partition(asked, name)) for name in names if name in site.partitions]
    if each and all(each):  # of several partitions one that will do is enough
        found += each[0]
    if "limits" in site.enforced or "qos" in site.enforced:
        found += _sets(asked)
    return found


def waits(asked: PlanRequest) -> list[str]:
    """Return what the job would have to wait for besides free nodes: a share of an account or QOS that is in use."""
    if "limits" not in asked.site.enforced:
        return []
    wanted = tres_of(asked.request)
    found = []
    for one, (what, name), share in _standing(asked):
        if what in {_ALL_JOBS, _USER} and _short(wanted.get(name, 0), share) and wanted[name] <= (share.limit or 0):
            found.append(f"{_whose(one)}: {_amount(name, share.left or 0)} of {_amount(name, share.limit or 0)} left")
    return list(dict.fromkeys(found))


def _sets(asked: PlanRequest) -> Iterator[str]:
    site, request = asked.site, asked.request
    member = site.membership(asked.account, asked.partition)
    if request.qos and member is not None and member.qos and request.qos not in member.qos:
        yield f"QOS {request.qos} is not open to you in account {asked.account}"
    if "limits" not in site.enforced:
        return
    wanted, nodes, time_s = tres_of(request), request.nodes or 1, request.time_limit_s
    for one, (what, name), share in _standing(asked):
        most = share.limit or 0
        if what == _WALL:
            if time_s is not None and time_s > most:
                yield f"{_whose(one)}: time limit at most {say_duration(most)}"
        elif what in _SUBMITTED:
            if share.used >= most:
                yield _full_text(one, what, most)
        elif wanted.get(name, 0) // (nodes if what == _NODE else 1) > most:
            yield f"{_whose(one)}: at most {_amount(name, most)} for {what}"


def _standing(asked: PlanRequest) -> Iterator[tuple[LimitSet, Kind, Share]]:
    """Yield each limit that holds for the job, in the order in which slurmctld looks at them (site/limit_order.py)."""
    site, rules = asked.site, asked.site.rules.get(asked.partition)
    names = qos_order(asked.qos, rules.qos if rules else "", "", site.qos_flags.get(asked.qos, frozenset()))
    first, second = (_limits_of(site.qos_limits(name), site.uid) for name in names)
    yield from _holding(site.qos_limits(names[0]), first, {}, {})
    yield from _holding(site.qos_limits(names[1]), second, first, {})
    for place, one in enumerate(site.chain(asked.account, asked.request.user, asked.partition)):
        own = _limits_of(one, site.uid)
        if place or not one.user:  # of accounts above; a user's association has what they set of a job
            own = {kind: share for kind, share in own.items() if kind[0] in _OF_GROUPS}
        yield from _holding(one, own, first, second)


def _holding(
    one: LimitSet | None, own: Mapping[Kind, Share], first: Mapping[Kind, Share], second: Mapping[Kind, Share]
) -> Iterator[tuple[LimitSet, Kind, Share]]:
    for kind, share in own.items():
        if one is not None and holds(_number(own, kind), _number(first, kind), _number(second, kind)):
            yield one, kind, share


def _number(limits: Mapping[Kind, Share], kind: Kind) -> float:
    limit = limits[kind].limit if kind in limits else None
    return NO_LIMIT if limit is None else limit


def _limits_of(one: LimitSet | None, uid: int) -> dict[Kind, Share]:
    """Return the limits of a set by what they limit; a QOS limits the submitted jobs of one user by its own count."""
    if one is None:
        return {}
    found: dict[Kind, Share] = {(_WALL, ""): Share(one.max_wall_s)}
    found |= {(_JOB, name): Share(most) for name, most in one.max_tres_per_job.items()}
    found |= {(_NODE, name): Share(most) for name, most in one.max_tres_per_node.items()}
    found |= {(_USER, name): share for name, share in one.user_tres.get(uid, {}).items()}
    found |= {(_ALL_JOBS, name): share for name, share in one.grp_tres.items()}
    found[_GROUP_SUBMITS, ""] = one.submit_jobs
    own = Share(one.max_submit_jobs, one.submit_jobs.used)
    found[_OWN_SUBMITS, ""] = one.user_submit_jobs.get(uid, Share(None)) if one.qos else own
    return found


def _full_text(one: LimitSet, what: str, most: int) -> str:
    if one.qos and what == _OWN_SUBMITS:
        return f"QOS {one.qos}: you have as many jobs submitted as it allows"
    return f"{_whose(one)}: at most {most} jobs submitted at the same time"


def _partition(asked: PlanRequest, name: str) -> Iterator[str]:
    site, request = asked.site, asked.request
    partition, rules = site.partitions[name], site.rules.get(name)
    if partition.state in _CLOSED:
        yield f"partition {name} is {partition.state}"
    limit = request.time_limit_s
    if limit is not None and partition.max_time_s is not None and limit > partition.max_time_s:
        yield f"partition {name}: time limit at most {say_duration(partition.max_time_s)}"
    if rules is None:
        return
    account, qos = asked.account, asked.qos
    if account and ((rules.allow_accounts and account not in rules.allow_accounts) or account in rules.deny_accounts):
        yield f"partition {name} is not open to account {account}"
    if site.groups is not None and rules.allow_groups and not site.groups & rules.allow_groups:
        yield f"partition {name} is open only to the groups {', '.join(sorted(rules.allow_groups))}"
    if qos and ((rules.allow_qos and qos not in rules.allow_qos) or qos in rules.deny_qos):
        yield f"partition {name} is not open to QOS {qos}"
    if rules.max_nodes is not None and (request.nodes or 1) > rules.max_nodes:
        yield f"partition {name}: at most {rules.max_nodes} nodes for a job"


def _short(wanted: int, share: Share) -> bool:
    return share.left is not None and wanted > share.left


def _whose(one: LimitSet) -> str:
    if one.qos:
        return f"QOS {one.qos}"
    return f"user {one.user} in account {one.account}" if one.user else f"account {one.account}"


def _amount(name: str, amount: int) -> str:
    if name == "mem":
        return f"{format_size(amount)} of memory"
    shown = name.removeprefix("gres/")
    kind, _, model = shown.partition(":")
    words = {"gpu": "GPUs", "cpu": "CPUs", "node": "nodes"}
    return f"{amount} {f'{model} ' if model else ''}{words.get(kind, shown)}"

"""Why a request could not run: rules of partition, QOS and association that `sbatch --test-only` does not check.

slurmctld's test of 22.05 ignores time limits, AllowAccounts and QOS limits, that of 24.11 AllowGroups too: such a job
is accepted and then waits for ever, or is rejected, by EnforcePartLimits. An unknown value is no reason.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from gpuwaste.core.units import format_size, say_duration
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.slurm.site.cluster_model import Association, Qos, UserShare
from gpuwaste.slurm.site.limit_order import NO_LIMIT, holds, qos_order
from gpuwaste.slurm.submit.job_request import request_amounts

Kind = tuple[str, str]
"""The kind of a limit, and the TRES that it counts ("" for times and jobs)."""
LimitOwner = Association | Qos
_JOB: Final = "a job"
_NODE: Final = "a node"
_USER: Final = "a user"
_ALL_JOBS: Final = "all its jobs"
_WALL: Final = "time"
_GROUP_SUBMITS: Final = "jobs submitted"
_OWN_SUBMITS: Final = "jobs of a user submitted"
_SUBMITTED: Final = frozenset({_GROUP_SUBMITS, _OWN_SUBMITS})
_OF_GROUPS: Final = frozenset({_ALL_JOBS, _GROUP_SUBMITS})


class LimitShare(NamedTuple):
    """A limit (None: unlimited) and how much of it is used now; memory in bytes."""

    limit: int | None
    used: int = 0

    @property
    def left(self) -> int | None:
        """The amount that may still be used, None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.used)


def problems(asked: PlanRequest) -> list[str]:
    """Return why the job would be rejected or would never start, most important first."""
    site, request = asked.site, asked.request
    found: list[str] = []
    names = [name for name in request.partition.split(",") if name]
    each = [list(_partition(asked, name)) for name in names if name in site.partitions]
    if each and all(each):  # of several partitions one that can run the job is enough
        found += each[0]
    if "limits" in site.enforced or "qos" in site.enforced:
        found += _sets(asked)
    return found


def waits(asked: PlanRequest) -> list[str]:
    """Return what the job would have to wait for besides free nodes: limits of an account or QOS that are used up."""
    if "limits" not in asked.site.enforced:
        return []
    wanted = request_amounts(asked.request)
    found = []
    for one, (what, name), share in _standing(asked):
        if what in {_ALL_JOBS, _USER} and _short(wanted.get(name, 0), share) and wanted[name] <= (share.limit or 0):
            left, limit = _amount(name, share.left or 0), _amount(name, share.limit or 0)
            found.append(f"{_whose(one)}: {left} left (limit {limit})")
    return list(dict.fromkeys(found))


def _sets(asked: PlanRequest) -> Iterator[str]:
    site, request = asked.site, asked.request
    member = site.membership(asked.account, asked.partition)
    if request.qos and member is not None and member.qos and request.qos not in member.qos:
        yield f"you may not use QOS {request.qos} in account {asked.account}"
    if "limits" not in site.enforced:
        return
    wanted, nodes, time_s = request_amounts(request), request.nodes or 1, request.time_limit_s
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


def _standing(asked: PlanRequest) -> Iterator[tuple[LimitOwner, Kind, LimitShare]]:
    """Yield each limit that applies to the job, in the order in which slurmctld checks them (limit_order.py)."""
    site, partition = asked.site, asked.site.partitions.get(asked.partition)
    job = site.qos.get(asked.qos)
    names = qos_order(asked.qos, partition.qos if partition else "", "", job.flags if job else ())
    stronger, weaker = (site.qos.get(name) for name in names)
    first, second = (_limits_of(one, site.uid) for one in (stronger, weaker))
    yield from _holding(stronger, first, {}, {})
    yield from _holding(weaker, second, first, {})
    for place, one in enumerate(site.chain(asked.account, asked.request.user, asked.partition)):
        own = _limits_of(one, site.uid)
        if place or not one.user:  # of accounts above; a user's association inherits their limits of a job
            own = {kind: share for kind, share in own.items() if kind[0] in _OF_GROUPS}
        yield from _holding(one, own, first, second)


def _holding(
    one: LimitOwner | None,
    own: Mapping[Kind, LimitShare],
    first: Mapping[Kind, LimitShare],
    second: Mapping[Kind, LimitShare],
) -> Iterator[tuple[LimitOwner, Kind, LimitShare]]:
    for kind, share in own.items():
        if one is not None and holds(_number(own, kind), _number(first, kind), _number(second, kind)):
            yield one, kind, share


def _number(limits: Mapping[Kind, LimitShare], kind: Kind) -> float:
    limit = limits[kind].limit if kind in limits else None
    return NO_LIMIT if limit is None else limit


def _limits_of(one: LimitOwner | None, uid: int) -> dict[Kind, LimitShare]:
    """Return the limits of an owner by kind; a QOS limits one user by that user's own usage."""
    if one is None:
        return {}
    limits, used = one.limits, one.used
    user = used.users.get(uid, UserShare()) if isinstance(one, Qos) else UserShare(limits, submit_jobs=used.submit_jobs)
    found: dict[Kind, LimitShare] = {(_WALL, ""): LimitShare(limits.max_wall_s)}
    found |= {(_JOB, name): LimitShare(most) for name, most in limits.max_tres_per_job.items()}
    found |= {(_NODE, name): LimitShare(most) for name, most in limits.max_tres_per_node.items()}
    found |= {
        (_USER, name): LimitShare(most, user.tres.get(name, 0)) for name, most in user.limits.max_tres_per_user.items()
    }
    found |= {(_ALL_JOBS, name): LimitShare(most, used.tres.get(name, 0)) for name, most in limits.grp_tres.items()}
    found[_GROUP_SUBMITS, ""] = LimitShare(limits.grp_submit_jobs, used.submit_jobs)
    found[_OWN_SUBMITS, ""] = LimitShare(user.limits.max_submit_per_user, user.submit_jobs)
    return found


def _full_text(one: LimitOwner, what: str, most: int) -> str:
    if isinstance(one, Qos) and what == _OWN_SUBMITS:
        return f"{_whose(one)}: you have reached the limit on submitted jobs ({most})"
    return f"{_whose(one)}: the limit on submitted jobs ({most}) is reached"


def _partition(asked: PlanRequest, name: str) -> Iterator[str]:
    site, request = asked.site, asked.request
    partition = site.partitions[name]
    if not partition.up:
        yield f"partition {name} is {partition.state}"
    limit = request.time_limit_s
    if limit is not None and partition.max_time_s is not None and limit > partition.max_time_s:
        yield f"partition {name}: time limit at most {say_duration(partition.max_time_s)}"
    account, qos = asked.account, asked.qos
    if account and _shut(account, partition.allow_accounts, partition.deny_accounts):
        yield f"partition {name} is not open to account {account}"
    if site.groups is not None and partition.allow_groups and not site.groups & partition.allow_groups:
        yield f"partition {name} is open only to the groups {', '.join(sorted(partition.allow_groups))}"
    if qos and _shut(qos, partition.allow_qos, partition.deny_qos):
        yield f"partition {name} is not open to QOS {qos}"
    if partition.max_nodes is not None and (request.nodes or 1) > partition.max_nodes:
        yield f"partition {name}: at most {partition.max_nodes} nodes for a job"


def _shut(name: str, allowed: Collection[str], denied: Collection[str]) -> bool:
    return bool(allowed and name not in allowed) or name in denied


def _short(wanted: int, share: LimitShare) -> bool:
    return share.left is not None and wanted > share.left


def _whose(one: LimitOwner) -> str:
    if isinstance(one, Qos):
        return f"QOS {one.name}"
    return f"user {one.user} in account {one.account}" if one.user else f"account {one.account}"


def _amount(name: str, amount: int) -> str:
    if name == "mem":
        return f"{format_size(amount)} of memory"
    shown = name.removeprefix("gres/")
    kind, _, model = shown.partition(":")
    words = {"gpu": "GPUs", "cpu": "CPUs", "node": "nodes"}
    return f"{amount} {f'{model} ' if model else ''}{words.get(kind, shown)}"

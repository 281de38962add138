"""Why a request could not run: rules of partition, QOS and association that `sbatch --test-only` does not check.

slurmctld's test of 22.05 ignores time limits, AllowAccounts and QOS limits, that of 24.11 AllowGroups too: such a job
is accepted and then waits for ever, or is rejected, by EnforcePartLimits. What is not known is no reason.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from gpuwaste.core.request import JobRequest
from gpuwaste.core.units import format_size, say_duration
from gpuwaste.plan.asked import Asked
from gpuwaste.plan.site import Site
from gpuwaste.slurm.assoc_mgr import LimitSet, Share

_CLOSED: Final = frozenset({"DOWN", "INACTIVE", "DRAIN"})


def tres_of(request: JobRequest) -> dict[str, int]:
    """Return what a request asks for by TRES; memory in bytes, left out where it is not said."""
    found = {"cpu": request.cpus or 0, "node": request.nodes or 0, "gres/gpu": request.gpus, "mem": request.mem_b or 0}
    if request.gpu_type and "," not in request.gpu_type:
        found[f"gres/gpu:{request.gpu_type}"] = request.gpus
    return {name: amount for name, amount in found.items() if amount}


def problems(asked: Asked) -> list[str]:
    """Return why the job would be rejected or would never start, most important first."""
    site, request = asked.site, asked.request
    found: list[str] = []
    names = [name for name in request.partition.split(",") if name]
    each = [list(_partition(asked, name)) for name in names if name in site.partitions]
    if each and all(each):  # of several partitions one that will do is enough
        found += each[0]
    if "limits" in site.enforced or "qos" in site.enforced:
        qos = site.qos_limits(asked.qos)
        found += _sets(request, site, asked, qos)
    return found


def waits(asked: Asked) -> list[str]:
    """Return what the job would have to wait for besides free nodes: a share of an account or QOS that is in use."""
    if "limits" not in asked.site.enforced:
        return []
    wanted = tres_of(asked.request)
    found = []
    for one in _limit_sets(asked):
        for name, share in (*one.grp_tres.items(), *one.user_tres.get(asked.site.uid, {}).items()):
            if _short(wanted.get(name, 0), share) and wanted[name] <= (share.limit or 0):
                found.append(
                    f"{_whose(one)}: {_amount(name, share.left or 0)} of {_amount(name, share.limit or 0)} left"
                )
    return list(dict.fromkeys(found))


def _sets(request: JobRequest, site: Site, asked: Asked, qos: LimitSet | None) -> Iterator[str]:
    member = site.membership(asked.account, asked.partition)
    if request.qos and member is not None and member.qos and request.qos not in member.qos:
        yield f"QOS {request.qos} is not open to you in account {asked.account}"
    limit = request.time_limit_s
    if "limits" not in site.enforced:
        return
    chain = site.chain(asked.account, request.user, asked.partition)
    for one in _limit_sets(asked):
        if limit is not None and one.max_wall_s is not None and limit > one.max_wall_s:
            yield f"{_whose(one)}: time limit at most {say_duration(one.max_wall_s)}"
        yield from _too_much(tres_of(request), one, site.uid, request.nodes or 1)
        if _full(one.submit_jobs):
            yield f"{_whose(one)}: at most {one.submit_jobs.limit} jobs submitted at the same time"
    if qos is not None and _full(qos.user_submit_jobs.get(site.uid, Share(None))):
        yield f"QOS {qos.qos}: you have as many jobs submitted as it allows"
    own = chain[0] if chain and chain[0].user else None
    if own is not None and own.max_submit_jobs is not None and own.submit_jobs.used >= own.max_submit_jobs:
        yield f"{_whose(own)}: at most {own.max_submit_jobs} jobs submitted at the same time"


def _limit_sets(asked: Asked) -> list[LimitSet]:
    """Return every set of limits that holds for the job: QOS of the job and partition, association, accounts above."""
    site = asked.site
    rules = site.rules.get(asked.partition)
    names = dict.fromkeys(name for name in (rules.qos if rules else "", asked.qos) if name)
    qos = [found for name in names if (found := site.qos_limits(name)) is not None]
    return [*qos, *site.chain(asked.account, asked.request.user, asked.partition)]


def _too_much(wanted: Mapping[str, int], one: LimitSet, uid: int, nodes: int) -> Iterator[str]:
    totals = {name: share.limit for name, share in one.grp_tres.items() if share.limit is not None}
    user = {name: share.limit for name, share in one.user_tres.get(uid, {}).items() if share.limit is not None}
    on_node = {name: limit * nodes for name, limit in one.max_tres_per_node.items()}
    kinds = (("a job", one.max_tres_per_job), ("a node", on_node), ("a user", user), ("all its jobs", totals))
    for what, limits in kinds:
        for name, most in limits.items():
            if wanted.get(name, 0) > most:
                shown = most // nodes if what == "a node" else most
                yield f"{_whose(one)}: at most {_amount(name, shown)} for {what}"


def _partition(asked: Asked, name: str) -> Iterator[str]:
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


def _full(share: Share) -> bool:
    return share.limit is not None and share.used >= share.limit


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

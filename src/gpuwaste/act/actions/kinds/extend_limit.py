"""extend_limit: raises a running job's time limit, up to a bound and never over its partition's."""

from typing import Final

from gpuwaste.act.actions.action_kind import (
    ActionKind,
    ActionOption,
    ActionRequest,
    ActionSlurm,
    Execution,
    LookResult,
    Plan,
    duration,
)
from gpuwaste.act.actions.action_target import HELD, command, on_run, planned
from gpuwaste.core.units import DAY_S, MINUTE_S, format_duration, parse_duration_s
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob

_LONGEST_S: Final = 365 * DAY_S
_MINUTES: Final = duration(MINUTE_S, _LONGEST_S)


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    limit_s = job.time_limit_s
    if limit_s is None:
        return LookResult("moot", "the run has no time limit")
    wanted_s = planned(plan, "limit_s") if plan else limit_s + _seconds(request, "by")
    if plan and limit_s >= wanted_s:
        return LookResult("done", f"the limit is {format_duration(limit_s)}")
    # Slurm counts limits in minutes.
    to_s = min(wanted_s, _seconds(request, "at_most"), *_partition_s(job, slurm)) // MINUTE_S * MINUTE_S
    if to_s <= limit_s:
        return LookResult("moot", f"the limit of {format_duration(limit_s)} may not be raised")
    return LookResult("todo", "", {"limit_s": str(to_s), "limit": format_duration(to_s)})


def _seconds(request: ActionRequest, name: str) -> int:
    return parse_duration_s(request.options[name]) or 0


def _partition_s(job: RunningJob, slurm: ActionSlurm) -> list[int]:
    found = [partition.max_time_s for partition in slurm.partitions() if partition.name == job.partition]
    return [seconds for seconds in found if seconds is not None]


KIND: Final = ActionKind(
    name="extend_limit",
    about="Raise the time limit of a running job.",
    subject="run",
    needs="operator",
    protects=True,
    undo="scontrol update JobId=JOB TimeLimit=LIMIT",
    execution=Execution(on_run(HELD, _judge), command("scontrol", "update", "JobId={job}", "TimeLimit={limit}")),
    options=(
        ActionOption("by", "how much longer, such as 4:00:00", _MINUTES),
        ActionOption("at_most", "the longest limit that results, such as 2-00:00:00", _MINUTES),
    ),
)

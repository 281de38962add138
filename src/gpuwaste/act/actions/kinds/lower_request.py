"""lower_request: lowers what a waiting job requests: GPUs, time limit, memory per node. Nothing is ever raised.

The request is read with squeue in columns of a fixed width, which no text of a user can imitate; each value is written
back in the spelling that Slurm prints: 22.05 takes `gres/gpu:1` for the request `gres:gpu:4`, and changes nothing. The
number of nodes is left as it is: 22.05 makes 1-2 of NumNodes=1, and programs are written for a number of nodes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

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
from gpuwaste.act.actions.action_target import WAITING, on_run, target_of
from gpuwaste.core.text import words_of
from gpuwaste.core.units import DAY_S, MINUTE_S, format_duration, parse_duration_s
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.site.slurm_values import MIB

KEEP: Final = "keep"
_LONGEST_S: Final = 365 * DAY_S
_COUNT: Final = re.compile(r"[1-9]\d{0,4}", re.ASCII)
_MEMORY: Final = re.compile(r"([1-9]\d{0,6})([MGT])", re.ASCII)
_MIB_OF: Final = {"M": 1, "G": 1 << 10, "T": 1 << 20}
_WIDTH: Final = 200  # of a column; a longer request is left alone
_ID_WIDTH: Final = 16
_COLUMNS: Final = {
    "tres-per-job": "TresPerJob",
    "tres-per-node": "TresPerNode",
    "tres-per-socket": "TresPerSocket",
    "tres-per-task": "TresPerTask",
}
_BY: Final = {"TresPerJob": "job", "TresPerNode": "node"}
_GPUS: Final = re.compile(r"(?:gres[:/])?gpu(?:[:/][A-Za-z][\w.-]{0,63})?(?:[:=](\d{1,6}))?", re.ASCII)
_UNLIMITED: Final = "UNLIMITED"
_WAS: Final = 500  # characters of the old values in an answer


class _Change(NamedTuple):
    """One word of scontrol update: its key, the value now, and the lower one."""

    key: str
    was: str
    to: str


def _or_keep(check: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "" if text == KEEP else check(text)


def _gpus(text: str) -> str:
    return "" if _COUNT.fullmatch(text) else f"{text!r:.40}: expected a number of GPUs, such as 1"


def _memory(text: str) -> str:
    return "" if _MEMORY.fullmatch(text) else f"{text!r:.40}: expected an amount such as 500M or 32G"


def _lowers(options: Mapping[str, str]) -> str:
    lowered = any(options.get(name, KEEP) != KEEP for name in ("gpus", "time_limit", "memory"))
    return "" if lowered else "give at least one of gpus, time_limit and memory"


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    target, problem = target_of(job)
    if problem or job.state not in WAITING:
        return LookResult("moot", problem or f"the job is {job.state}: only a waiting request can be lowered")
    why: list[str] = []
    found = [
        *_lower_limit(job, request.options["time_limit"]),
        *_lower_gpus(job, request.options["gpus"], slurm, target, why),
        *_lower_memory(job, request.options["memory"], why),
    ]
    if found:
        update = " ".join(f"{one.key}={one.to}" for one in found)
        return LookResult("todo", "", {"update": update, "was": " ".join(f"{one.key}={one.was}" for one in found)})
    if plan:  # the stored plan may be from the hub: only words for a person are made of it
        was = words_of(plan.get("was", ""), _WAS)
        return LookResult("done", f"the request is lowered; to undo it: scontrol update JobId={target} {was}")
    return LookResult("moot", "; ".join(["nothing to lower: the request is not larger", *why]))


def _lower_limit(job: RunningJob, wanted: str) -> list[_Change]:
    if wanted == KEEP:
        return []
    to_s = (parse_duration_s(wanted) or 0) // MINUTE_S * MINUTE_S  # Slurm counts limits in minutes
    if job.time_limit_s is not None and job.time_limit_s <= to_s:
        return []
    was = _UNLIMITED if job.time_limit_s is None else format_duration(job.time_limit_s)
    return [_Change("TimeLimit", was, format_duration(to_s))]


def _lower_gpus(job: RunningJob, wanted: str, slurm: ActionSlurm, target: str, why: list[str]) -> list[_Change]:
    """Return the lower request for GPUs, if it has one item for GPUs, of the job or of each node."""
    if wanted == KEEP:
        return []
    asked = {key: text for key, text in _requests(slurm, job, target).items() if "gpu" in text}
    if not asked:
        why.append("no GPUs are requested")
        return []
    key, text = next(iter(asked.items()))
    items = [item for item in text.split(",") if "gpu" in item]
    found = _GPUS.fullmatch(items[0])
    if len(asked) > 1 or len(items) > 1 or key not in _BY or len(text) >= _WIDTH or found is None:
        why.append(f"GPUs requested as {key}={words_of(text, 60)} cannot be lowered: one number per job or node can")
        return []
    most = int(wanted) if key == "TresPerJob" else max(1, int(wanted) // max(1, job.n_nodes))
    if found[1] is None or int(found[1]) <= most:
        return []
    lower = items[0][: found.start(1)] + str(most)
    return [_Change(key, text, ",".join(lower if item == items[0] else item for item in text.split(",")))]


def _requests(slurm: ActionSlurm, job: RunningJob, target: str) -> dict[str, str]:
    """Return the requests for TRES by scontrol's key. Of an array's pending tasks the array is asked: see comment."""
    columns = ",".join((f"jobid:{_ID_WIDTH}", *(f"{name}:{_WIDTH}" for name in _COLUMNS)))
    jobs = f"--jobs={target.partition('_[')[0]}"
    said = slurm.text("squeue", "--noheader", "--all", "--states=all", jobs, "-O", columns)
    for line in said.splitlines():
        if line[:_ID_WIDTH].strip() == str(job.job_id):
            places = (_ID_WIDTH + _WIDTH * number for number in range(len(_COLUMNS)))
            cells = (line[place : place + _WIDTH].strip() for place in places)
            return dict(zip(_COLUMNS.values(), cells, strict=True))
    return {}


def _lower_memory(job: RunningJob, wanted: str, why: list[str]) -> list[_Change]:
    found = _MEMORY.fullmatch(wanted)
    if found is None:
        return []
    if not job.memory_node_b:  # of a CPU or a GPU, or all of a node
        why.append("the job requests no memory per node (--mem)")
        return []
    to_mib, was_mib = int(found[1]) * _MIB_OF[found[2]], job.memory_node_b // MIB
    return [_Change("MinMemoryNode", str(was_mib), str(to_mib))] if to_mib < was_mib else []


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    del request
    return slurm.text("scontrol", "update", f"JobId={plan['job']}", *plan["update"].split())


KIND: Final = ActionKind(
    name="lower_request",
    about="Lower the GPUs, time limit or memory that a waiting job requests.",
    subject="run",
    needs="operator",
    undo="scontrol update JobId=JOB with the old values, which the action's reason has",
    ends_runs=True,  # a run with less than it needs may fail
    severity=1,
    execution=Execution(on_run(WAITING, _judge), _act),
    options=(
        ActionOption("gpus", f"the most GPUs of the job, or {KEEP}", _or_keep(_gpus), KEEP),
        ActionOption(
            "time_limit",
            f"the longest time limit, such as 4:00:00, or {KEEP}",
            _or_keep(duration(MINUTE_S, _LONGEST_S)),
            KEEP,
        ),
        ActionOption("memory", f"the most memory per node, such as 32G, or {KEEP}", _or_keep(_memory), KEEP),
    ),
    together=_lowers,
)

"""Where a run read through slurmrestd cannot equal the same run read through sacct, each with its reason.

Seen by running a mix of real jobs and reading it both ways: Slurm 22.05.8 (v0.0.38), 24.11.5 (v0.0.40 to v0.0.42) and
26.05.5 (v0.0.42 to v0.0.45).
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from gpuwaste.slurm.accounting.job_record import AccountedRun, JobRecord


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that may differ: in which API versions, what slurmrestd gives there instead, and why."""

    name: str
    versions: str
    instead: str
    reason: str


DIFFERENCES: Final = (
    Difference(
        "submit_line",
        "v0.0.38",
        "empty",
        "the JSON has no submit line, though slurmdbd keeps it",
    ),
    Difference(
        "exit_code",
        "v0.0.38",
        "unknown unless the job completed",
        "the JSON says SUCCESS and 0 for every exit code; signals are right",
    ),
    Difference(
        "exit_code",
        "v0.0.40 to v0.0.43",
        "the code itself where it is 128 or more",
        "sacct prints such a code less 128, up to Slurm 25.05",
    ),
    Difference(
        "interactive",
        "v0.0.38",
        "false for the later components of a het job that salloc or srun started",
        "without a submit line the steps must tell, and only the first component has the one that does",
    ),
    Difference(
        "restarts",
        "v0.0.40, v0.0.41",
        "unknown",
        "restart_cnt came with v0.0.42; sacct has Restarts since 23.11",
    ),
    Difference(
        "elapsed_s",
        "all",
        "another number for a run that goes on",
        "each counts to the moment of its query",
    ),
    Difference(
        "flags",
        "v0.0.38",
        "without StartReceived",
        "the JSON names only which scheduler started the job",
    ),
    Difference(
        "reservation",
        "v0.0.38",
        "unknown",
        "the JSON has a number in the place of the name",
    ),
    Difference(
        "steps",
        "v0.0.38",
        "with unknown exit codes unless they completed",
        "as of jobs: the JSON says SUCCESS and 0 for every exit code",
    ),
    Difference(
        "steps",
        "v0.0.40 to v0.0.43",
        "with exit codes of 128 and more",
        "as of jobs: sacct prints them less 128, up to Slurm 25.05",
    ),
)
_STARTED: Final = "StartReceived"
_TAKEN_OFF: Final = 128


def fields_of(run: JobRecord) -> dict[str, Any]:
    """Return the fields of a run, its details among them."""
    told = asdict(run)
    return told | (told.pop("details", None) or {})


def allowed(seen: JobRecord, told: JobRecord) -> dict[str, Any]:
    """Return the fields of `told`, slurmrestd's, in which it may differ from `seen`, sacct's: name -> value.

    A difference that is listed counts only where slurmrestd gives what the list says: a wrong value is no exception.
    """
    later_part = bool(told.het_offset)
    excused = {
        "submit_line": told.submit_line == "",
        "exit_code": _cut(told.exit_code) == seen.exit_code or (told.exit_code is None and seen.state != "COMPLETED"),
        "interactive": later_part and not told.interactive,
        "restarts": told.restarts is None,
        "elapsed_s": told.start is not None and told.end is None,
    }
    if isinstance(seen, AccountedRun) and isinstance(told, AccountedRun):
        flags = (seen.details.flags or "").split(",")
        excused["flags"] = told.details.flags == ",".join(flag for flag in flags if flag != _STARTED)
        excused["reservation"] = told.details.reservation is None
        silent = [step if step.state == "COMPLETED" else replace(step, exit_code=None) for step in seen.steps]
        cut = [replace(step, exit_code=_cut(step.exit_code)) for step in told.steps]
        excused["steps"] = list(told.steps) == silent or cut == list(seen.steps)
    fields = fields_of(told)
    return {name: fields[name] for name, excuse in excused.items() if excuse}


def _cut(code: int | None) -> int | None:
    """Return an exit code as sacct prints it up to Slurm 25.05."""
    return code - _TAKEN_OFF if code is not None and code >= _TAKEN_OFF else code

"""checkpoint: asks a running job to save its state, by the signal that the job itself requested with --signal.

Whether the script handles the signal is not known: one that requested a signal and does not handle it ends by it, as
Slurm's own signal before the time limit would end it. It is an action of its own, beside `signal`, so that a site can
permit it to the actor without permitting signals to every job, and so that a replay knows what it is for.
"""

import re
from typing import Final

from gpuwaste.act.actions.action_kind import (
    ActionKind,
    ActionOption,
    ActionRequest,
    ActionSlurm,
    Execution,
    LookResult,
    Plan,
    choice,
)
from gpuwaste.act.actions.action_target import RUNNING, on_run
from gpuwaste.act.actions.kinds.signal import SIGNALS, send
from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.submit.sbatch_options import directives, walk

OWN: Final = "own"
_SIGNAL: Final = "signal"
_REQUESTED: Final = re.compile(r"(?:([BR]{1,2}):)?(?:SIG)?([A-Z0-9]{1,6})(?:@\d{1,6})?", re.ASCII)
_NUMBERS: Final = {"10": "USR1", "12": "USR2", "2": "INT", "15": "TERM", "18": "CONT"}
_ON_LINE: Final = re.compile(r"(?:^|\s)--signal[=\s]+(\S+)")
_NONE: Final = "the job did not request a signal (sbatch --signal)"


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del plan
    if (named := request.options["signal"]) != OWN:
        if not job.batch:
            return LookResult("moot", "the run is not a batch job: it has no script that a signal could reach")
        return LookResult("todo", "", {"signal": named, "to": "batch"})
    wanted = _requested(job, slurm)
    if not wanted:
        return LookResult("moot", _NONE)
    found = _REQUESTED.fullmatch(wanted.upper())
    name = _NUMBERS.get(found[2], found[2]) if found else ""
    if found is None or name not in SIGNALS:
        return LookResult("moot", f"the job requested signal {wanted!r:.40}: expected one of {', '.join(SIGNALS)}")
    return LookResult("todo", "", {"signal": name, "to": "batch" if "B" in (found[1] or "") else "steps"})


def _requested(job: RunningJob, slurm: ActionSlurm) -> str:
    """Return the value of --signal: of the command line, which goes before the script, "" for none."""
    line = slurm.text("sacct", "-X", "--noheader", "--parsable2", f"--jobs={job.job_id}", "--format=SubmitLine")
    if given := _ON_LINE.findall(line.partition("\n")[0]):
        return str(given[-1])
    if not job.batch:
        return ""
    script = slurm.text("scontrol", "write", "batch_script", str(job.job_id), "-")
    try:
        words = directives(script).components[0]
        return next((one.value or "" for one in reversed(walk(words)[0]) if one.name == _SIGNAL), "")
    except ParseError:  # sbatch has accepted it, so only another release can be the reason
        return ""


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    return send(request, slurm, plan, plan["signal"], plan["to"])


KIND: Final = ActionKind(
    name="checkpoint",
    about="Ask the running job for a checkpoint: send the signal that it requested.",
    subject="run",
    needs="operator",
    undo="",
    ends_runs=True,
    protects=True,
    severity=2,
    execution=Execution(on_run(RUNNING, _judge), _act, visible=False),
    options=(
        ActionOption(
            "signal",
            f"{OWN} (what the job requested with --signal), or for every batch script {', '.join(SIGNALS)}",
            choice(OWN, *SIGNALS),
            OWN,
        ),
    ),
)

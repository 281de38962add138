"""shrink: a running job of several nodes gives back nodes on which all of its GPUs are idle; it goes on with the rest.

The hub names the idle nodes, which the actor cannot check. The actor checks what Slurm shows: each is a node of the
run, the node of the batch script stays (Slurm refuses to release it), and no step runs on a node that is released,
since Slurm kills the tasks of a step there. Slurm's NumNodes= chooses nodes itself, NodeList= names those that stay.
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
from gpuwaste.act.actions.action_target import RUNNING, on_run, planned, target_of
from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.hostlist import expand

_MOST: Final = 6000  # characters of a list of nodes
_NAMES: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}(,[A-Za-z0-9][A-Za-z0-9._-]{0,254})*", re.ASCII)
_FACT: Final = "{ledger.idle_nodes}"  # a rule's file has it, and an intent the names
_OWN: Final = (".batch", ".extern", ".interactive")
_STEP: Final = re.compile(r"(\S{1,64})\|(\S{1,6000})", re.ASCII)


def names_problem(text: str) -> str:
    """Return the error in a list of nodes, "" for none."""
    if len(text) > _MOST:
        return f"{len(text)} characters, {_MOST} at most"
    if text == _FACT or _NAMES.fullmatch(text):
        return ""
    return f"{text!r:.40}: expected {_FACT}, or names of nodes separated by commas"


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del plan
    held = expand(job.node_list)
    if not job.batch_host or job.batch_host not in held:
        return LookResult("moot", "Slurm does not name the node of the batch script, which has to stay")
    named = set(request.options["nodes"].split(","))
    released = [node for node in held if node in named and node != job.batch_host]
    if not released:
        return LookResult("moot", f"none of the idle nodes can be released: the run keeps {job.batch_host}")
    if request.options["steps"] == "keep" and (step := _step_on(slurm, job, set(released))):
        return LookResult("moot", f"step {step}: Slurm would kill its tasks there")
    stay = [node for node in held if node not in released]
    return LookResult("todo", "", {"keep": ",".join(stay), "restarts": str(job.restarts), "nodes": str(len(held))})


def _step_on(slurm: ActionSlurm, job: RunningJob, nodes: set[str]) -> str:
    """Return a step that runs on one of some nodes, in words, "" for none."""
    target, _ = target_of(job)
    said = slurm.text("squeue", "--steps", "--noheader", f"--jobs={target}", "--format=%i|%N")
    for line in said.splitlines():
        found = _STEP.fullmatch(line.strip())
        if found is None or found[1].endswith(_OWN):
            continue
        on = sorted(nodes & set(expand(found[2])))
        if on:
            return f"{found[1]} runs on {on[0]}"
    return ""


_same_run = on_run(RUNNING, _judge)


def _look(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    """Look at the run; after it was sent, the run has fewer nodes."""
    run = request.run
    if plan and run is not None:
        for job in slurm.job(run.job_id):
            same = (job.job_id, job.user, job.restarts) == (run.job_id, request.user, planned(plan, "restarts"))
            if same and job.state in RUNNING and 0 < job.n_nodes < planned(plan, "nodes"):
                return LookResult("done", f"the run has {job.n_nodes} nodes: {job.node_list:.200}")
    return _same_run(request, slurm, plan)


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    del request
    if problem := names_problem(plan["keep"]):
        raise ParseError(f"the nodes to keep: {problem}")
    return slurm.text("scontrol", "update", f"JobId={plan['job']}", f"NodeList={plan['keep']}")


KIND: Final = ActionKind(
    name="shrink",
    about="Release the idle nodes of a running job; it goes on with the others.",
    subject="run",
    needs="operator",
    undo="",
    ends_runs=True,
    severity=3,
    execution=Execution(_look, _act),
    options=(
        ActionOption("nodes", f"the nodes to release: {_FACT}", names_problem),
        ActionOption(
            "steps",
            "keep: nothing is released where a step runs on such a node; kill: Slurm kills its tasks there",
            choice("keep", "kill"),
            "keep",
        ),
    ),
)

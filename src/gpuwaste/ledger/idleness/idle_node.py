"""Judges whether a node is idle: each run that accounting or slurmctld has on it is idle, and nothing else was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.job_states import HOLDING
from gpuwaste.ledger.idleness.idle_judge import IdleKnowledge, IdleLimits, Stretch, common, judge_run
from gpuwaste.ledger.idleness.idleness_types import IdleReason, IdleRun
from gpuwaste.ledger.idleness.run_proofs import NodeRuns, RunProof
from gpuwaste.ledger.idleness.slurm_jobs import SlurmctldJobs
from gpuwaste.slurm.run_key import RunKey

_SLURM_CLOCK_S: Final = 300
"""Slurm's commands are refused between hosts whose clocks are further apart: the life of a munge credential."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node: its GPUs in Slurm, the runs that accounting has there, and the proofs of those that hold GPUs."""

    name: str
    cluster: str
    gpus: int
    runs: NodeRuns
    proofs: Mapping[RunKey, RunProof]
    searched_from: int
    """Runs that ended before this are not in `runs`, UTC seconds."""


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """What is known of a node; `free` is None where it is not known."""

    runs: Sequence[IdleRun]
    reasons: Sequence[IdleReason]
    stretch: Stretch | None
    free: int | None


def judge_node(node: NodeView, limits: IdleLimits, known: IdleKnowledge) -> NodeVerdict:
    """Return the answer about a node; slurmctld is queried only if accounting's runs are all idle."""
    runs = [judge_run(node.proofs[key], limits, known) for key in node.runs.open if key in node.proofs]
    reasons = list[IdleReason](dict.fromkeys(reason for run in runs for reason in run.reasons))
    if len(runs) < len(node.runs.open):
        reasons.append("no_gpus_held")
    if not known.accounting_current and "accounting" not in reasons:
        reasons.append("accounting")
    held = sum(proof.on(node.name) for proof in node.proofs.values())
    free = node.gpus - held if held <= node.gpus else None
    if free is None:
        reasons.append("free_gpus")
    if reasons:
        return NodeVerdict(runs, reasons, None, free)
    jobs = known.slurmctld()
    if jobs is None:
        return NodeVerdict(runs, ["slurmctld"], None, free)
    reasons += _of_slurmctld(node, jobs)
    if not known.nothing_forgotten(jobs):
        reasons.append("accounting")
    stretch = _stretch(node, runs, jobs, known)
    if not reasons and stretch.length_s < limits.for_s:
        reasons.append("short")
    if not reasons and known.now - stretch.as_of > limits.max_age_s:
        reasons.append("stale")
    return NodeVerdict(runs, reasons, stretch, free)


def _of_slurmctld(node: NodeView, jobs: SlurmctldJobs) -> list[IdleReason]:
    """Return why slurmctld has other runs on the node than accounting."""
    there = {RunKey(node.cluster, job.job_id, job.start or 0) for job in jobs.on(node.name) if job.state in HOLDING}
    return [] if there == set(node.runs.open) else ["mismatch"]


def _stretch(node: NodeView, runs: Sequence[IdleRun], jobs: SlurmctldJobs, known: IdleKnowledge) -> Stretch:
    """Return the time in which all runs were idle, and no other run was there: since the last one ended.

    Ends are by Slurm's clock, from which the hub's may be _SLURM_CLOCK_S away.
    """
    own = common(Stretch(run.since, run.as_of) for run in runs if run.since is not None and run.as_of is not None)
    ended = [job.end for job in jobs.on(node.name) if job.state not in HOLDING and job.end is not None]
    last = max((end for end in (node.runs.last_end, *ended) if end is not None), default=node.searched_from)
    last += _SLURM_CLOCK_S
    read = min(known.accounting_read or 0, jobs.read)
    if own is None:
        return Stretch(last, read)
    return Stretch(max(own.since, last), min(own.as_of, read))

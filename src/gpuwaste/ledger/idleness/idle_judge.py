"""Judges whether a run is idle: yes only if everything that it takes is known, recent, and says so.

Each GPU is idle from its last activity on (`HeldGpu.idle_from_ms`), and known from the last break in its rows on. Both
are by its agent's clock. The hub's clock differs from it by an offset that is known within TRANSIT_MS
(agent_clocks.py), so the start of a stretch is taken as late and its end as early as the offset allows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.job_states import HOLDING, QUEUED
from gpuwaste.ledger.hour import MISSING_PREFIX
from gpuwaste.ledger.idleness.agent_clocks import ClockOffset
from gpuwaste.ledger.idleness.idleness_types import NO_REASONS, Idle, IdleGpu, IdleReason, IdleRun
from gpuwaste.ledger.idleness.run_proofs import UNATTRIBUTED, GpuProof, RunProof
from gpuwaste.ledger.idleness.slurm_jobs import SlurmctldJobs
from gpuwaste.slurm.run_key import RunKey

_MIG: Final = "MIG-"
_AHEAD_S: Final = 2  # what was read cannot be from the future: the hub's clock was set back


@dataclass(frozen=True, slots=True)
class IdleLimits:
    """What is asked: idle for `for_s` seconds up to an instant at most `max_age_s` seconds ago."""

    for_s: int
    max_age_s: int


@dataclass(frozen=True, slots=True)
class IdleKnowledge:
    """What a judgement rests on besides the rows; UTC seconds, None is "not known".

    `slurmctld` returns its jobs, None where it does not answer.
    """

    now: int
    accounting_read: int | None
    accounting_max_s: int
    offset: Callable[[str], ClockOffset | None]
    """That of a node's clock."""
    kept: Mapping[RunKey, int]
    """Until when a run is kept."""
    slurmctld: Callable[[], SlurmctldJobs | None]
    complete_by: int | None = None
    """Up to when accounting, as it was read, certainly has everything."""
    memory_s: int = 0
    """For how long slurmctld remembers a job that has ended."""

    def nothing_forgotten(self, jobs: SlurmctldJobs) -> bool:
        """Return whether a run that accounting lacks is in slurmctld's memory still."""
        return self.complete_by is not None and jobs.read - self.memory_s <= self.complete_by

    @property
    def accounting_current(self) -> bool:
        """Whether accounting was read recently."""
        read = self.accounting_read
        return read is not None and -_AHEAD_S <= self.now - read <= self.accounting_max_s


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which all is known and idle, UTC seconds of the hub's clock; empty where `as_of` <= `since`."""

    since: int
    as_of: int

    @property
    def length_s(self) -> int:
        """Its length; 0 where it is empty."""
        return max(0, self.as_of - self.since)


def common(stretches: Iterable[Stretch]) -> Stretch | None:
    """Return the time that is in all of them; None for none."""
    found = list(stretches)
    return Stretch(max(s.since for s in found), min(s.as_of for s in found)) if found else None


def answer_of(reasons: Iterable[IdleReason]) -> Idle:
    """Return the answer: no if a reason says so for certain, else unknown if there is any."""
    found = set(reasons)
    if found & NO_REASONS:
        return "no"
    return "unknown" if found else "yes"


def judge_gpu(proof: GpuProof, limits: IdleLimits, known: IdleKnowledge) -> tuple[IdleGpu, Stretch | None]:
    """Return a GPU as evidence, and the stretch in which it is known to be idle, if any."""
    gpu = proof.gpu
    offset, reasons, stretch = known.offset(gpu.node), list[IdleReason](), None
    if gpu.gpu_uuid.startswith(_MIG):
        reasons.append("mig")
    elif gpu.gpu_uuid.startswith(MISSING_PREFIX) or gpu.seen_ms is None or gpu.idle_from_ms is None:
        reasons.append("not_reported")
    elif proof.known_from_ms is None:
        reasons.append("gap")
    elif offset is None:
        reasons.append("clock")
    else:
        as_of = min(offset.earliest_ms(gpu.seen_ms) // 1000, known.now)
        since = -(-offset.latest_ms(max(gpu.idle_from_ms, proof.known_from_ms)) // 1000)
        stretch = Stretch(since, as_of)
        reasons += _of_stretch(proof, stretch, limits, known.now)
    evidence = IdleGpu(
        node=gpu.node,
        gpu_uuid=gpu.gpu_uuid,
        last_active=None if gpu.last_active_ms is None else gpu.last_active_ms // 1000,
        since=stretch.since if stretch is not None and stretch.length_s else None,
        as_of=None if stretch is None else stretch.as_of,
        age_s=None if stretch is None else max(0, known.now - stretch.as_of),
        map_source=proof.map_source,
        confidence=proof.confidence,
        reasons=reasons,
    )
    return evidence, stretch


def _of_stretch(proof: GpuProof, stretch: Stretch, limits: IdleLimits, now: int) -> list[IdleReason]:
    reasons: list[IdleReason] = []
    if proof.confidence in UNATTRIBUTED or proof.map_source in UNATTRIBUTED:
        reasons.append("unattributed")
    if now - stretch.as_of > limits.max_age_s:
        reasons.append("stale")
    elif stretch.length_s < limits.for_s:
        reasons.append(_why_short(proof))
    return reasons


def _why_short(proof: GpuProof) -> IdleReason:
    gpu = proof.gpu
    if (gpu.idle_from_ms or 0) < (proof.known_from_ms or 0):
        return "gap"
    return "short" if gpu.last_active_ms is None else "active"


def judge_run(proof: RunProof, limits: IdleLimits, known: IdleKnowledge) -> IdleRun:
    """Return the answer about one open run that holds GPUs; slurmctld is queried only if all else says yes."""
    job = proof.run.job
    judged = [judge_gpu(one, limits, known) for one in proof.gpus]
    reasons = _of_run(proof, known)
    reasons += dict.fromkeys(reason for gpu, _ in judged for reason in gpu.reasons)
    stretches = [stretch for _, stretch in judged if stretch is not None]
    stretch = common(stretches)
    if not reasons:
        jobs = known.slurmctld()
        reasons += confirmed(proof, jobs)
        ends = [read for read in (known.accounting_read, None if jobs is None else jobs.read) if read is not None]
        stretch = None if stretch is None else Stretch(max(stretch.since, job.start or 0), min(stretch.as_of, *ends))
        if not reasons:
            reasons += too_little(stretch, limits, known.now)
    whole = stretch is not None and stretch.length_s > 0 and len(stretches) == len(judged)
    return IdleRun(
        cluster=job.cluster,
        job_id=job.job_id,
        start=job.start,
        printed_id=job.printed_id,
        user=job.user,
        state=job.state,
        gpus_held=job.gpus,
        answer=answer_of(reasons),
        since=stretch.since if stretch is not None and whole else None,
        as_of=None if stretch is None else stretch.as_of,
        kept_until=known.kept.get(job.run_key),
        reasons=reasons,
        gpus=[gpu for gpu, _ in judged],
    )


def too_little(stretch: Stretch | None, limits: IdleLimits, now: int) -> list[IdleReason]:
    """Return why the time that all GPUs, accounting and slurmctld have in common is not enough."""
    if stretch is None:
        return ["not_reported"]
    if now - stretch.as_of > limits.max_age_s:
        return ["stale"]
    return [] if stretch.length_s >= limits.for_s else ["short"]


def _of_run(proof: RunProof, known: IdleKnowledge) -> list[IdleReason]:
    """Return the reasons that are not those of one GPU."""
    run, job = proof.run, proof.run.job
    found: dict[IdleReason, bool] = {
        "kept": job.run_key in known.kept,
        "suspended": job.state == "SUSPENDED" or any(one.gpu.level == "suspended" for one in proof.gpus),
        "state": job.state not in {"RUNNING", "SUSPENDED"},
        "overdue": run.overdue(known.now),
        "shared": run.shares > 0,
        "cpus_only": not run.shares and not proof.gpus,
        "count": proof.beyond > 0 or len(proof.gpus) != (job.gpus or 0),
        "accounting": not known.accounting_current,
    }
    return [reason for reason, holds in found.items() if holds]


def confirmed(proof: RunProof, known: SlurmctldJobs | None) -> list[IdleReason]:
    """Return the reasons why slurmctld does not confirm that a run is running with the GPUs that were reported."""
    job = proof.run.job
    found = () if known is None else known.jobs.get(job.job_id, ())
    if not found:
        return ["slurmctld"]
    there = found[0]
    if len(found) > 1:
        return ["mismatch"]
    if there.start != job.start or there.state not in HOLDING:
        return ["replaced"]
    if there.state != "RUNNING" or there.suspended_at is not None:
        return ["suspended" if there.state in {"SUSPENDED", "RUNNING"} else "state"]
    held = {node: gres.gpus for node, gres in there.nodes.items() if gres.gpus}
    reported = {one.gpu.node: proof.on(one.gpu.node) for one in proof.gpus}
    return [] if held == reported else ["placement"]


def others_of(name: str, runs: Collection[RunKey], known: SlurmctldJobs | None) -> list[IdleReason]:
    """Return why slurmctld has more under this printed id than these runs, such as tasks that just started."""
    if known is None:
        return ["slurmctld"]
    number = int(name) if name.isdecimal() else None
    there = [
        job
        for found in known.jobs.values()
        for job in found
        if job.printed_id == name or (number is not None and number in {job.job_id, job.array_job_id, job.het_job_id})
    ]
    if any(job.state in QUEUED for job in there):
        return ["pending"]
    keys = {(run.job_id, run.start) for run in runs}
    return [] if {(job.job_id, job.start) for job in there if job.state in HOLDING} <= keys else ["mismatch"]

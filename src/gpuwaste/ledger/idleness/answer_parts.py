"""The parts of an answer about idleness: what it rests on, the time that runs have in common, runs without GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwaste.core.job_states import HOLDING
from gpuwaste.ledger.idleness.idle_judge import IdleKnowledge, Stretch, answer_of, common
from gpuwaste.ledger.idleness.idleness_types import IdleReason, IdleRun
from gpuwaste.ledger.idleness.slurm_jobs import SlurmctldJobs, SlurmJobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey


@dataclass(slots=True)
class OnceAskedJobs:
    """Slurmctld's jobs for one answer: queried when they are first needed."""

    source: SlurmJobs
    asked: bool = False
    found: SlurmctldJobs | None = None

    def __call__(self) -> SlurmctldJobs | None:
        """Return them; None where slurmctld does not answer."""
        if not self.asked:
            self.asked, self.found = True, self.source.now()
        return self.found


@dataclass(frozen=True, slots=True)
class AnswerBasis:
    """What one answer rests on, with the parts of it that become known while it is made."""

    known: IdleKnowledge
    kept: dict[RunKey, int]
    jobs: OnceAskedJobs


def common_stretch(runs: Sequence[IdleRun]) -> Stretch | None:
    """Return the time in which all runs are known to be idle; None where one is not."""
    if not all(run.since is not None and run.as_of is not None for run in runs):
        return None
    return common(Stretch(run.since or 0, run.as_of or 0) for run in runs)


def run_without_gpus(run: JobRecord) -> IdleRun:
    """Return the answer about an open run that has not started, or holds no GPUs."""
    reason: IdleReason = "pending" if run.start is None or run.state not in HOLDING else "cpus_only"
    return IdleRun(
        cluster=run.cluster,
        job_id=run.job_id,
        start=run.start,
        printed_id=run.printed_id,
        user=run.user,
        state=run.state,
        gpus_held=run.gpus,
        answer=answer_of([reason]),
        since=None,
        as_of=None,
        reasons=[reason],
        gpus=[],
    )

"""Which runs of a job are meant: Slurm uses a job id again, and a requeued job has several runs of one id."""

from collections.abc import Iterable

from gpuwaste.ledger.reports.report_question import JobQuestion
from gpuwaste.slurm.accounting.job import JobRecord


def picked_runs(runs: Iterable[JobRecord], question: JobQuestion) -> list[JobRecord]:
    """Return the runs that a question means, of all runs of a printed id."""
    found = [
        run
        for run in runs
        if question.cluster in {None, run.cluster} and (question.start is None or run.start == question.start)
    ]
    return found if question.ended_since is None else _last(found, question.ended_since)


def _last(runs: list[JobRecord], since: int) -> list[JobRecord]:
    """Return the last run of each task, of the one submission of which a run had not ended at `since`.

    Slurm uses an id again only after all runs of the earlier submission have ended.
    """
    chosen = [run for run in runs if _open_at(run, since)]
    while chosen:
        submit = min(run.submit for run in chosen)
        more = [run for run in runs if _open_at(run, submit)]
        if len(more) == len(chosen):
            break
        chosen = more
    last: dict[tuple[str, int], JobRecord] = {}
    for run in sorted(chosen, key=lambda run: (run.submit, run.start or 0)):
        last[run.cluster, run.job_id] = run
    return list(last.values())


def _open_at(run: JobRecord, at: int) -> bool:
    return run.end is None or run.end >= at

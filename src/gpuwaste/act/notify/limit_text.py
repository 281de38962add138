"""The text of the mail about jobs that will probably reach their time limits."""

from typing import Final

from gpuwaste.act.notify.notice_types import LimitJob, LimitNotice
from gpuwaste.core.text import harmless
from gpuwaste.core.units import MINUTE_S
from gpuwaste.show.cells import fit, local_time, percent, short, uncut
from gpuwaste.show.layout import COLUMNS, Look, wrapped

_ROWS: Final = 40


def limit_subject(document: LimitNotice, look: Look) -> str:
    """Return the subject: the job and when, or how many jobs."""
    first = document.jobs[0]
    if len(document.jobs) == 1:
        at = local_time(first.limit_at, look.zone)[:16]
        return f"Job {first.printed_id} will probably reach its time limit at {at}"
    return f"{len(document.jobs)} of your jobs will probably reach their time limits"


def limit_text(document: LimitNotice, look: Look, end: str) -> str:
    """Return the mail: which jobs, when, what the user can do."""
    jobs = document.jobs
    said = f"{len(jobs)} of your jobs will probably reach their time limits, the first in {_minutes(document)}."
    if len(jobs) == 1:
        said = f"job {jobs[0].printed_id} will probably reach its time limit in {_minutes(document)}."
    lines = [
        f"Dear {harmless(document.user)},",
        "",
        *_paragraph(f"{said} Slurm ends a job at its limit; what the job has not saved by then is lost."),
        "",
        *look.table(("JOBID", "LIMIT", "REACHED AT", "CHANCE", "NAME"), _rows(jobs, look), frozenset({0, 4})),
    ]
    if len(jobs) > _ROWS:
        lines.append(f"  ... and {len(jobs) - _ROWS} more")
    lines += [
        "",
        *_paragraph("The chance is an estimate from how long your earlier jobs ran. The job itself was not changed."),
        "",
        "What you can do:",
        "",
        "  * save a checkpoint, if the job can",
        "  * ask the support of this cluster for a longer limit: users cannot extend it",
        "  * request a longer limit for the next job: #SBATCH --time=...",
        "",
        "  gpuwaste job JOBID         what is known about one job",
        "  gpuwaste notify off        stop these mails",
    ]
    lines += ["", *(harmless(line) for line in end.splitlines())] if end else []
    return "\n".join(lines) + "\n"


def _rows(jobs: list[LimitJob], look: Look) -> list[tuple[str, ...]]:
    return [
        (
            uncut(job.printed_id),
            short(job.time_limit_s),
            local_time(job.limit_at, look.zone)[:16],
            percent(job.p),
            fit(job.name, 24),
        )
        for job in jobs[:_ROWS]
    ]


def _minutes(document: LimitNotice) -> str:
    left_s = max(0, document.jobs[0].limit_at - document.generated)
    count = round(left_s / MINUTE_S)
    if count < 1:
        return "less than a minute"
    return "1 minute" if count == 1 else f"{count} minutes"


def _paragraph(text: str) -> list[str]:
    return wrapped(text, COLUMNS - 4)

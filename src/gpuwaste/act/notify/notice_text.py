"""The texts of mails: the digest to a user, the weekly list to staff, and what operators see of both."""

from collections.abc import Mapping
from typing import Final

from gpuwaste.act.notify.notice_types import Digest, NoticePreview, NoticeReplay, NoticeRun, NoticesDocument, StaffList
from gpuwaste.core.text import harmless
from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.ledger.fix_words import finding_lines
from gpuwaste.show.layout import COLUMNS, Column, Look, bullet, wrapped
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, percent, share, uncut

REASONS: Final = {
    "no_jobs": "no GPU job ended",
    "whole_node": "only jobs with exclusive nodes",
    "little_known": "too much unknown GPU time",
    "little_waste": "less idle time than [notify] min_wasted_gpu_h",
    "small_share": "smaller share than [notify] min_wasted_share",
    "opted_out": "opted out",
    "cooldown": "got a digest recently",
    "no_address": "no mail address",
    "mail_cap": "[notify] max_mails was reached",
    "held_back": "held back by a campaign",
    "day_cap": "3 mails in 24 hours",
}
_ROWS: Final = 40


def digest_subject(document: Digest, look: Look) -> str:
    """Return a digest's subject: how much, and until when."""
    day = local_time(document.end, look.zone)[:10]
    wasted_s = document.waste.wasted_s
    return f"{GpuTimeUnit.of([wasted_s]).words(wasted_s)} of your jobs were idle until {day}"


def digest_text(document: Digest, look: Look, end: str) -> str:
    """Return a digest: the sum, the jobs with the largest waste, what to change, how to opt out."""
    waste, unit = document.waste, GpuTimeUnit.of([document.waste.gpu_s, *(row.gpu_s for row in document.jobs)])
    wasted = percent(share(waste.wasted_s, waste.gpu_s))
    day, until = (local_time(at, look.zone)[:10] for at in (document.start, document.end))
    lines = [
        f"Dear {harmless(document.user)},",
        "",
        *_paragraph(
            f"{unit.words(waste.wasted_s)} of your jobs were idle: {wasted} of the {unit.words(waste.gpu_s)} of the "
            f"{_jobs(waste.jobs)} with GPUs that ended from {day} to {until}. Other users wait for these GPUs."
        ),
        "",
        "Jobs with the most idle GPU time:",
        "",
        *look.fitted(_job_columns(document, unit)),
    ]
    if document.jobs_left_out:
        lines.append(f"  ... and {document.jobs_left_out} more with less idle time")
    if document.findings:
        lines += ["", "What to change:", ""]
        for finding in document.findings:
            lines += finding_lines(finding, unit, look)
    lines += ["", *_small_print(document)]
    lines += [
        "",
        "  gpuwaste report            all your jobs",
        "  gpuwaste job JOBID         one job, each of its GPUs",
        "  gpuwaste appeal JOBID      say that its figures are wrong",
    ]
    lines += ["  gpuwaste notify off        stop these mails", *_ending(end)]
    return "\n".join(lines) + "\n"


def staff_subject(document: StaffList, look: Look) -> str:
    """Return the subject of the weekly list."""
    day = local_time(document.end, look.zone)[:10]
    wasted_s = document.waste.wasted_s
    return f"{GpuTimeUnit.of([wasted_s]).words(wasted_s)} were idle in the week until {day}"


def staff_text(document: StaffList, look: Look, end: str) -> str:
    """Return the weekly list of users with the largest waste."""
    day, until = (local_time(at, look.zone)[:10] for at in (document.start, document.end))
    waste, users = document.waste, document.users
    unit = GpuTimeUnit.of([waste.gpu_s])
    lines = _paragraph(
        f"{unit.words(waste.wasted_s)} were idle: {percent(share(waste.wasted_s, waste.gpu_s))} of the "
        f"{unit.words(waste.gpu_s)} of the {_jobs(waste.jobs)} with GPUs that ended from {day} to {until}."
    )
    columns = [
        Column("JOBS", [str(row.waste.jobs) for row in users]),
        Column(unit.name.upper(), unit.parts([row.waste.gpu_s for row in users], waste.gpu_s)),
        Column("IDLE", unit.parts([row.waste.wasted_s for row in users], waste.wasted_s)),
        Column("IDLE %", [percent(share(row.waste.wasted_s, row.waste.gpu_s)) for row in users]),
        Column("ACCOUNTS", [fit(", ".join(row.accounts), 20) for row in users], left=True),
        Column("USER", [row.user for row in users], most=24),
    ]
    lines += ["", *look.fitted(columns)]
    if document.users_left_out:
        lines.append(f"  ... and {document.users_left_out} more users with less waste")
    for sentence in document.campaigns:
        lines += ["", *_paragraph(sentence)]
    lines += ["", *_small_print(document), *_ending(end)]
    return "\n".join(lines) + "\n"


def preview_text(document: NoticePreview, look: Look) -> str:
    """Render the digest that a user would get now."""
    del look
    if document.why:
        return f"{harmless(document.user)} would get no digest: {_reason(document.why)}\n"
    return f"To: {document.to}\nSubject: {harmless(document.subject)}\n\n{document.text}"


def notices_text(document: NoticesDocument, look: Look) -> str:
    """Render the record: who got a digest, who did not, and why."""
    rows = document.notices[:_ROWS]
    unit = GpuTimeUnit.of(row.gpu_s for row in rows)
    columns = [
        Column("UNTIL", [local_time(row.period_end, look.zone)[:10] for row in rows], left=True),
        Column("KIND", [row.kind for row in rows], left=True, rank=2),
        Column("STATUS", [row.status for row in rows], left=True),
        Column(unit.name.upper(), [unit.number(row.gpu_s) for row in rows], rank=1),
        Column("IDLE", [unit.number(row.wasted_s) for row in rows]),
        Column("USER", [fit(row.user, 20) for row in rows], left=True),
        Column("REASON", [_reason(row.why) if row.why else row.detail for row in rows]),
    ]
    lines = look.title("Mails about idle GPUs") if look.header else []
    lines += look.fitted(columns)
    more = len(document.notices) - _ROWS
    lines += [f"  ... and {more} more (--parsable prints all)"] if more > 0 else []
    if document.dry_run:
        lines += bullet("[notify] dry_run is true: nothing is sent")
    return "\n".join(lines) + "\n"


def replay_text(document: NoticeReplay, look: Look) -> str:
    """Render the digests that a past period would have sent."""
    lines = look.title("Digests that would have been sent") if look.header else []
    idle = [sum(told.wasted_s for told in row.told) for row in document.periods]
    users = document.users[:_ROWS]
    unit = GpuTimeUnit.of([*idle, *(row.gpu_s for row in users)])
    columns = [
        Column("UNTIL", [local_time(row.end, look.zone)[:10] for row in document.periods], left=True),
        Column("SENT", [str(len(row.told)) for row in document.periods]),
        Column(f"IDLE {unit.name.upper()}", [unit.number(amount) for amount in idle]),
        Column("NOT SENT", [_counts(row.not_told) for row in document.periods], most=52),
    ]
    lines += look.fitted(columns)
    lines += look.heading("Users, most idle time first")
    columns = [
        Column("MAILS", [str(row.times) for row in users]),
        Column("JOBS", [str(row.jobs) for row in users]),
        Column(unit.name.upper(), [unit.number(row.gpu_s) for row in users]),
        Column("IDLE", [unit.number(row.wasted_s) for row in users]),
        Column("USER", [row.user for row in users], most=24),
    ]
    lines += look.fitted(columns)
    return "\n".join(lines) + "\n"


def run_text(document: NoticeRun, look: Look) -> str:
    """Render what was decided on the newest period."""
    until = local_time(document.end, look.zone)
    if not document.news:
        return f"the period until {until} was processed before: see gpuwaste digest list\n"
    unit = GpuTimeUnit.of(row.gpu_s for row in document.told)
    rows = [
        (unit.number(row.gpu_s), unit.number(row.wasted_s), fit(row.user, 20), uncut(row.address))
        for row in document.told
    ]
    lines = look.title(f"Period until {until}") if look.header else []
    lines += look.table((unit.name.upper(), "IDLE", "USER", "ADDRESS"), rows, frozenset({2, 3}))
    lines.append(f"  digests: {len(rows)}; no digest: {_counts(document.not_told) or 'nobody'}")
    if document.missing:
        lines += bullet(f"incomplete data: {document.missing}")
    if document.dry_run:
        lines += bullet("dry run: nothing is sent")
    return "\n".join(lines) + "\n"


def _job_columns(document: Digest, unit: GpuTimeUnit) -> list[Column]:
    jobs = document.jobs
    means = [UNKNOWN if row.mean_util_pct is None else percent(row.mean_util_pct / 100) for row in jobs]
    return [
        Column("JOBID", [uncut(row.printed_id) for row in jobs], left=True),
        Column("GPUS", [str(row.gpus) for row in jobs]),
        Column(unit.name.upper(), unit.parts([row.gpu_s for row in jobs], document.waste.gpu_s)),
        Column("IDLE", unit.parts([row.wasted_s for row in jobs], document.waste.wasted_s)),
        Column("IDLE %", [percent(share(row.wasted_s, row.gpu_s)) for row in jobs]),
        Column("MEAN USE", means),
        Column("NAME", [row.name for row in jobs], most=24),
    ]


def _small_print(document: Digest | StaffList) -> list[str]:
    """Return the notes on the figures."""
    lines = []
    if document.waste.exempt_s > 0:
        lines += _paragraph(
            f"Not counted: {GpuTimeUnit.of([document.waste.exempt_s]).words(document.waste.exempt_s)} in which a model "
            "stayed in the memory of an idle GPU, or an interactive job paused for the permitted time."
        )
    if document.unclear_jobs:
        lines += _paragraph(f"Left out: {_jobs(document.unclear_jobs)} with too much unknown GPU time.")
    return lines or ["All figures are measured."]


def _ending(end: str) -> list[str]:
    return ["", *(harmless(line) for line in end.splitlines())] if end else []


def _paragraph(text: str) -> list[str]:
    return wrapped(text, COLUMNS - 4)


def _reason(why: str) -> str:
    return REASONS.get(why, why)


def _counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {why.replace('_', ' ')}" for why, count in reasons.items())


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"

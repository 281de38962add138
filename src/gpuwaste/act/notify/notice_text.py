"""The texts of mails: the digest to a user, the weekly list to staff, and what operators see of both."""

from collections.abc import Mapping
from typing import Final

from gpuwaste.act.notify.notice_types import Digest, NoticePreview, NoticeReplay, NoticeRun, NoticesDocument, StaffList
from gpuwaste.core.text import harmless
from gpuwaste.ledger.fix_words import finding_lines
from gpuwaste.show.layout import COLUMNS, Look, bullet, wrapped
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, percent, share, short, uncut

REASONS: Final = {
    "no_jobs": "no GPU job ended",
    "whole_node": "only jobs on exclusively allocated nodes",
    "little_known": "too much of the GPU time is unknown",
    "little_waste": "less waste than [notify] min_wasted_gpu_h",
    "small_share": "smaller share than [notify] min_wasted_share",
    "opted_out": "opted out",
    "cooldown": "got a digest recently",
    "no_address": "no mail address",
    "mail_cap": "[notify] max_mails was reached",
    "day_cap": "3 mails in 24 hours",
}
_ROWS: Final = 40


def digest_subject(document: Digest, look: Look) -> str:
    """Return a digest's subject: how much, and until when."""
    day = local_time(document.end, look.zone)[:10]
    return f"{short(document.waste.wasted_s)} of GPU time unused by your jobs until {day}"


def digest_text(document: Digest, look: Look, end: str) -> str:
    """Return a digest: the sum, the jobs with the largest waste, what to change, how to opt out."""
    wasted = percent(share(document.waste.wasted_s, document.waste.gpu_s))
    day, until = (local_time(at, look.zone)[:10] for at in (document.start, document.end))
    lines = [
        f"Dear {harmless(document.user)},",
        "",
        *_paragraph(
            f"from {day} to {until} {_jobs(document.waste.jobs)} of yours with GPUs ended. They had "
            f"{short(document.waste.gpu_s)} of GPU time, of which {short(document.waste.wasted_s)} ({wasted}) was "
            "idle. Other users wait for these GPUs."
        ),
        "",
        "Jobs with the most idle GPU time:",
        "",
        *look.table(("JOBID", "GPUS", "HELD", "IDLE", "IDLE%", "MEAN", "NAME"), _job_rows(document), frozenset({0, 6})),
    ]
    if document.jobs_left_out:
        lines.append(f"  ... and {_jobs(document.jobs_left_out)} more with less waste")
    if document.findings:
        lines += ["", "What to change:", ""]
        for finding in document.findings:
            lines += finding_lines(finding)
    lines += ["", *_small_print(document)]
    lines += [
        "",
        "  gpuwaste report            all your jobs",
        "  gpuwaste job JOBID         one job, GPU by GPU",
    ]
    lines += ["  gpuwaste notify off        stop these mails", *_ending(end)]
    return "\n".join(lines) + "\n"


def staff_subject(document: StaffList, look: Look) -> str:
    """Return the subject of the weekly list."""
    day = local_time(document.end, look.zone)[:10]
    return f"{short(document.waste.wasted_s)} of GPU time unused in the week until {day}"


def staff_text(document: StaffList, look: Look, end: str) -> str:
    """Return the weekly list of users with the largest waste."""
    day, until = (local_time(at, look.zone)[:10] for at in (document.start, document.end))
    wasted = percent(share(document.waste.wasted_s, document.waste.gpu_s))
    rows = [
        (
            str(row.waste.jobs),
            short(row.waste.gpu_s),
            short(row.waste.wasted_s),
            percent(share(row.waste.wasted_s, row.waste.gpu_s)),
            fit(", ".join(row.accounts), 20),
            fit(row.user, 24),
        )
        for row in document.users
    ]
    lines = _paragraph(
        f"GPU jobs that ended from {day} to {until}: {document.waste.jobs}, with {short(document.waste.gpu_s)} of "
        f"GPU time allocated and {short(document.waste.wasted_s)} ({wasted}) wasted."
    )
    lines += ["", *look.table(("JOBS", "HELD", "IDLE", "IDLE%", "ACCOUNTS", "USER"), rows, frozenset({4, 5}))]
    if document.users_left_out:
        lines.append(f"  ... and {document.users_left_out} more users with less waste")
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
    rows = [
        (
            local_time(row.period_end, look.zone)[:10],
            row.kind,
            row.status,
            short(row.gpu_s),
            short(row.wasted_s),
            fit(row.user, 20),
            fit(_reason(row.why) if row.why else row.detail, 30),
        )
        for row in document.notices[:_ROWS]
    ]
    lines = look.title("Mails about idle GPUs") if look.header else []
    lines += look.table(("UNTIL", "KIND", "STATUS", "HELD", "IDLE", "USER", "WHY"), rows, frozenset({0, 1, 2, 5, 6}))
    more = len(document.notices) - _ROWS
    lines += [f"  ... and {more} more (--parsable prints all)"] if more > 0 else []
    if document.dry_run:
        lines += bullet("[notify] dry_run is true: nothing is sent")
    return "\n".join(lines) + "\n"


def replay_text(document: NoticeReplay, look: Look) -> str:
    """Render the digests that a past period would have sent."""
    lines = look.title("Digests that would have been sent") if look.header else []
    rows = [
        (
            local_time(row.end, look.zone)[:10],
            str(len(row.told)),
            short(sum(told.wasted_s for told in row.told)),
            fit(_counts(row.not_told), 52),
        )
        for row in document.periods
    ]
    lines += look.table(("UNTIL", "SENT", "IDLE", "NOT SENT"), rows, frozenset({0, 3}))
    lines += look.heading("Users, largest waste first")
    users = [
        (str(row.times), str(row.jobs), short(row.gpu_s), short(row.wasted_s), fit(row.user, 24))
        for row in document.users[:_ROWS]
    ]
    lines += look.table(("TIMES", "JOBS", "HELD", "IDLE", "USER"), users, frozenset({4}))
    return "\n".join(lines) + "\n"


def run_text(document: NoticeRun, look: Look) -> str:
    """Render what was decided on the newest period."""
    until = local_time(document.end, look.zone)
    if not document.news:
        return f"the period until {until} was processed before: see gpuwaste digest list\n"
    rows = [(short(row.gpu_s), short(row.wasted_s), fit(row.user, 20), uncut(row.address)) for row in document.told]
    lines = look.title(f"Period until {until}") if look.header else []
    lines += look.table(("HELD", "IDLE", "USER", "ADDRESS"), rows, frozenset({2, 3}))
    lines.append(f"  digests: {len(rows)}; no digest: {_counts(document.not_told) or 'nobody'}")
    if document.missing:
        lines += bullet(f"incomplete data: {document.missing}")
    if document.dry_run:
        lines += bullet("dry run: nothing is sent")
    return "\n".join(lines) + "\n"


def _job_rows(document: Digest) -> list[tuple[str, ...]]:
    return [
        (
            uncut(row.printed_id),
            str(row.gpus),
            short(row.gpu_s),
            short(row.wasted_s),
            percent(share(row.wasted_s, row.gpu_s)),
            UNKNOWN if row.mean_util_pct is None else percent(row.mean_util_pct / 100),
            fit(row.name, 24),
        )
        for row in document.jobs
    ]


def _small_print(document: Digest | StaffList) -> list[str]:
    """Return the notes on the figures."""
    lines = []
    if document.waste.exempt_s > 0:
        lines += _paragraph(
            f"Not counted: {short(document.waste.exempt_s)} in which an idle GPU kept a model in memory or an "
            "interactive job paused for the permitted time."
        )
    if document.unclear_jobs:
        lines += _paragraph(f"Left out: {_jobs(document.unclear_jobs)} with too much unknown time.")
    return lines or ["All figures are measured, none is estimated."]


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

"""The mail about jobs that will probably reach their limits: one job or several, whatever their names are."""

from datetime import UTC

from gpuwaste.act.notify.limit_notices import limit_subject, limit_text
from gpuwaste.act.notify.notice_types import LimitJob, LimitNotice
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import harmless_document

AT = 1_700_000_000
LOOK = Look(zone=UTC)


def notice(*names: str, left_s: int = 2400) -> LimitNotice:
    """Return a notice of jobs, of which the first reaches its limit in `left_s` seconds."""
    jobs = [
        LimitJob(printed_id=str(n), name=name, partition="gpu", time_limit_s=86400, limit_at=AT + left_s + n - 1, p=0.8)
        for n, name in enumerate(names, 1)
    ]
    return LimitNotice(user="alice", generated=AT, jobs=jobs)


def test_one_job_is_named_with_its_time() -> None:
    """Subject and text say which job, when, in how many minutes, how likely, and how to stop such mails."""
    document = notice("train")
    text = limit_text(document, LOOK, "Ask hpc@example.org")
    assert limit_subject(document, LOOK) == "Job 1 will probably reach its time limit at 2023-11-14T22:53"
    assert "Job 1 will probably reach its time limit in 40 minutes." in text
    assert "80 %" in text
    assert "gpuwaste notify off" in text
    assert text.endswith("Ask hpc@example.org\n")


def test_several_jobs_are_one_mail() -> None:
    """The number of jobs, the time of the first one, a line for each, 40 at most."""
    document = notice(*(f"job{n}" for n in range(45)), left_s=30)
    text = limit_text(document, LOOK, "")
    assert limit_subject(document, LOOK) == "45 of your jobs will probably reach their time limits"
    assert "the first in less than a minute" in " ".join(text.split())
    assert "... and 5 more" in text
    assert "job39" in text
    assert "job40" not in text


def test_no_name_breaks_the_mail() -> None:
    """Control characters, a line's end, a name of 5,000 characters: each stays within its line of 80 columns."""
    document = notice("a\r\nBcc: eve@example.org", "\x1b[31mred\x00", "x" * 5000, "\ud800\u202e")
    shown = harmless_document(document)
    lines = limit_text(shown, LOOK, "").splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.startswith("Bcc") for line in lines)
    assert "\x1b" not in "".join(lines)

"""The words of notices: 80 columns, no name acts on anything, the figures as they are."""

from datetime import UTC
from typing import Any

import pytest

from gpuwaste.act.notify.notice_text import digest_subject, digest_text, notices_text, staff_subject, staff_text
from gpuwaste.act.notify.notice_types import Digest, NoticeRow, NoticesDocument, StaffList
from gpuwaste.core.typed import convert
from gpuwaste.show.layout import Look

LOOK = Look(zone=UTC)
NASTY = "x\r\nBcc: a@b\x1b[2J\u202e" + "w" * 300


def digest(name: str = "train", exempt_s: float = 0.0, **more: Any) -> dict[str, Any]:
    """Return what a digest says."""
    row = {
        "printed_id": "30_[0-4]", "name": name, "partition": "gpu", "state": "COMPLETED", "tasks": 5, "gpus": 5,
        "gpu_s": 180_000.0,
        "mean_util_pct": 0.0, "end": 1_763_000_000, "wasted_s": 180_000.0,
    }  # fmt: skip
    finding = {
        "kind": "gpus_untouched", "title": "no process ever used its 1 GPU: drop the request", "evidence": {},
        "runs": [{"cluster": "gw", "jobid": 30, "start": 1, "printed_id": "30_0"}], "fix": ["#SBATCH --gres=none"],
        "fixes": [{"text": "ask for no GPU", "lines": ["#SBATCH --gres=none"]}, {"text": "use the GPU", "lines": []}],
        "wasted_gpu_s": 36_000.0, "provisional": False,
    }  # fmt: skip
    return {
        "user": "alice", "start": 1_762_400_000, "end": 1_763_000_000, "unclear_jobs": 0,
        "waste": {"jobs": 6, "gpu_s": 200_000.0, "wasted_s": 180_000.0, "exempt_s": exempt_s},
        "jobs": [row], "jobs_left_out": 0,
        "findings": [finding], **more,
    }  # fmt: skip


def test_a_digest_says_what_and_how_to_change_it() -> None:
    """The sum, its share, the job, the line to use, and how to hear no more of it."""
    assert digest_subject(convert(digest(), Digest), LOOK) == "50.0 GPU-hours of your jobs were idle until 2025-11-13"
    text = digest_text(convert(digest(), Digest), LOOK, "Questions: hpc@example.org\nRoom 7")
    for part in (
        "90 % of the 55.6 GPU-hours of the\n6 jobs",
        "30_[0-4]",
        "    Either ask for no GPU:\n        #SBATCH --gres=none\n    or use the GPU.\n",
        "notify off",
    ):
        assert part in text
    assert text.endswith("\n\nQuestions: hpc@example.org\nRoom 7\n")


def test_what_was_left_out_is_said() -> None:
    """Exempt time and jobs that are not clear are named, so that nobody wonders about another sum elsewhere."""
    text = digest_text(convert(digest(exempt_s=7200.0, unclear_jobs=2, jobs_left_out=4), Digest), LOOK, "")
    for part in ("Not counted: 2.00 GPU-hours", "Left out: 2 jobs", "and 4 more"):
        assert part in text


@pytest.mark.parametrize("name", [NASTY, "", "\udcff\x00", "\U0001f600" * 50])
def test_no_name_breaks_a_line(name: str) -> None:
    """Whatever a job, a user or an account is called, lines stay lines of 80 columns."""
    waste = {"jobs": 1, "gpu_s": 7200.0, "wasted_s": 3600.0, "exempt_s": 0.0}
    staff_row = {"user": name, "accounts": [name], "waste": waste}
    staff = {
        "start": 1, "end": 2, "unclear_jobs": 0, "waste": waste,
        "users": [staff_row], "users_left_out": 3,
    }  # fmt: skip
    notice = {
        "kind": "digest", "user": name, "period_start": 1, "period_end": 5, "dry": False, "status": "failed", "why": "",
        "detail": name, "address": "", "at_utc": 5, "jobs": 1, "gpu_s": 1.0, "wasted_s": 1.0, "exempt_s": 0.0,
        "coverage": None, "tries": 1, "next_utc": 0,
    }  # fmt: skip
    plain = digest_text(convert(digest("train"), Digest), LOOK, "").count("\n")
    mail = digest_text(convert(digest(name), Digest), LOOK, "")
    assert mail.count("\n") == plain
    listed = NoticesDocument(generated=5, start=1, end=5, notices=[convert(notice, NoticeRow)], dry_run=False)
    texts = [mail, staff_text(convert(staff, StaffList), LOOK, ""), notices_text(listed, LOOK)]
    for text in texts:
        assert all(line.isprintable() for line in text.split("\n"))
        assert max(map(len, text.split("\n"))) <= 100
    assert "and 3 more users" in texts[1]
    assert staff_subject(convert(staff, StaffList), LOOK) == "1.00 GPU-hours were idle in the week until 1970-01-01"

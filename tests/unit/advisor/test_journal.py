"""The journal and its writer: what was said is on disk, whatever the disk does."""

import errno
import json
import os
from pathlib import Path

import pytest

from gpuwaste.advice.verdicts.verdict_batch import encode_verdict
from gpuwaste.advisor import verdict_journal as module
from gpuwaste.advisor.verdict_journal import VerdictJournal
from gpuwaste.advisor.verdict_outbox import VerdictOutbox
from gpuwaste.advisor.verdict_writer import Writer
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.verdict import Verdict, new_id

T0_US = 1_700_000_000_000_000


def verdict(number: int = 0, *, action: str = "pass", user: str = "ann", held: str = "", override: str = "") -> Verdict:
    at = T0_US + number
    return Verdict(new_id(at), "gw", at, "submit", "p", "reject", action, action, held, override=override, user=user)  # type: ignore[arg-type]


def line(said: Verdict) -> bytes:
    return encode_verdict(said).line + b"\n"


@pytest.fixture
def journal(tmp_path: Path) -> VerdictJournal:
    return VerdictJournal(tmp_path / "spool", SystemClock().utc_us)


@pytest.fixture
def outbox(tmp_path: Path) -> VerdictOutbox:
    return VerdictOutbox(tmp_path / "outbox.sqlite")


def writer(journal: VerdictJournal, outbox: VerdictOutbox) -> Writer:
    return Writer(journal, outbox, lambda work: work(), SystemClock(), every_s=1.0)


def test_verdicts_reach_the_outbox_and_the_spool_is_empty(journal: VerdictJournal, outbox: VerdictOutbox) -> None:
    """Every line once, in the order in which they were said, with what they spend."""
    said = [verdict(n, action="reject" if n == 3 else "pass") for n in range(500)]
    for one in said:
        journal.write(one)
    writer(journal, outbox).step()
    batch = outbox.take()
    assert batch is not None
    assert [json.loads(row.line)["id"] for row in batch.rows] == [one.id for one in said]
    assert outbox.spent_on(outbox.day_of(T0_US)) == {("reject", "ann"): 1}
    assert not journal.left()


def test_what_a_killed_advisor_left_is_taken_over(journal: VerdictJournal, outbox: VerdictOutbox) -> None:
    """A file with a torn last line gives its whole ones."""
    whole, torn = line(verdict(1)), line(verdict(2))
    (journal.directory / "00000000000000000001-9.jsonl").write_bytes(whole + b"\xff{]\n" + torn[:40])
    taking = writer(journal, outbox)
    assert taking.move() == 1
    assert (outbox.depth(), taking.bad_lines) == (1, 2)


def test_a_full_disk_keeps_verdicts_in_memory(
    journal: VerdictJournal, outbox: VerdictOutbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They wait, it is said once, and they go out when there is space again; a torn line harms no other."""
    write = os.write
    journal.write(verdict(0))
    cut = line(verdict(1))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: len(cut) // 2]))
    journal.write(verdict(1))

    def full(_fd: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for number in range(2, 6):
        journal.write(verdict(number))
    monkeypatch.setattr(os, "write", write)
    writer(journal, outbox).step()
    assert outbox.depth() == 6
    assert sum("wait in memory" in record.message for record in caplog.records) <= 2


def test_memory_is_bounded(journal: VerdictJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the bound verdicts are lost and counted: answers go on."""

    def full(_fd: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "MAX_HELD", 3)
    monkeypatch.setattr(os, "write", full)
    for number in range(10):
        journal.write(verdict(number))
    assert journal.lost == 7


def test_an_override_is_spent_where_it_held(journal: VerdictJournal, outbox: VerdictOutbox) -> None:
    """The outbox counts by the line what the loop counted by the decision."""
    journal.write(verdict(1, action="annotate", held="override", override="why"))
    journal.write(verdict(2, action="warn", override="why"))
    writer(journal, outbox).step()
    assert outbox.spent_on(outbox.day_of(T0_US)) == {("override", "ann"): 1}

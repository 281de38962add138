"""ActionJournal: what was sent is known after a restart, and for long."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from gpuwaste.actor.action_journal import ActionJournal, SentBefore
from gpuwaste.core.errors import StoreError

DAY = 86400
NOW = 20_000 * DAY


def _opened(path: Path, now: int) -> contextlib.closing[ActionJournal]:
    return contextlib.closing(ActionJournal(path / "actions.sqlite", now))


def test_what_was_sent_is_known_after_a_restart(tmp_path: Path) -> None:
    """How often, and by which plan the last time."""
    with _opened(tmp_path, NOW) as journal:
        journal.note("a", {"job": "8"}, NOW)
        journal.note("a", {"job": "8_2"}, NOW + 1)
    with _opened(tmp_path, NOW + 2) as journal:
        assert journal.before("a") == SentBefore(2, {"job": "8_2"})
        assert journal.before("b") == SentBefore()
        assert journal.last_hour(NOW + 2) == 2


def test_a_corrupt_journal_is_reported_as_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is set aside and named as the actor's journal, with its path: an outbox it is not."""
    path = tmp_path / "actions.sqlite"
    path.write_bytes(b"no database" * 1000)
    with _opened(tmp_path, NOW) as journal:
        assert journal.before("a") == SentBefore()
    (record,) = caplog.records
    text = record.getMessage()
    assert record.event == "actor-journal-corrupt"  # type: ignore[attr-defined]
    assert (f"journal {path} is corrupt" in text, f"kept as {path}.corrupt-1" in text) == (True, True), text
    assert "outbox" not in text


def test_a_full_disk_leaves_no_rows_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal's error does not promise what only an outbox does."""
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def fails(*_: object) -> None:
        raise full

    with _opened(tmp_path, NOW) as journal:
        monkeypatch.setattr(journal, "_transaction", fails)
        with pytest.raises(StoreError, match=r"actions.sqlite: the disk is full: free space$"):
            journal.note("a", {}, NOW)


def test_old_actions_are_forgotten_but_not_by_a_clock_that_is_ahead(tmp_path: Path) -> None:
    """A host that boots with a clock years ahead remembers what it has sent, or it would do it twice."""
    with _opened(tmp_path, NOW) as journal:
        journal.note("old", {}, NOW - 500 * DAY)
        journal.note("new", {}, NOW)
    with _opened(tmp_path, NOW + 3000 * DAY) as journal:
        assert [journal.before(action).times for action in ("old", "new")] == [0, 1]

"""The outbox keeps every row until it is acknowledged, through kills, full disks and corrupt files."""

import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.unit.net.outboxes import rejected

from gpuwaste.agent.outbox import Outbox
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.run_key import RunKey

HOUR = 1_700_002_800


def row(job: int, seq: int = 1, *, final: bool = True, hour: int = HOUR) -> AllocationHour:
    return AllocationHour(
        RunKey("gw", job, HOUR), "gpu1", "GPU-1", hour, seq, hour * 1000, hour * 1000 + seq, final=final
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "outbox.sqlite"


def versions(outbox: Outbox) -> list[tuple[int, int]]:
    batch = outbox.take()
    return [] if batch is None else [(taken.key[1], taken.seq) for taken in batch.rows]


def test_a_final_row_goes_when_it_is_acknowledged(path: Path) -> None:
    """It is offered until then, in a batch of a new id each time, and is nowhere afterwards."""
    outbox = Outbox(path)
    assert outbox.put([row(1)]) == 1
    first, second = outbox.take(), outbox.take()
    assert first is not None
    assert second is not None
    assert (first.rows, first.batch_id == second.batch_id) == (second.rows, False)
    assert outbox.depth() == 1
    assert outbox.ack(first) == []
    assert (outbox.take(), outbox.depth(), outbox.open_rows()) == (None, 0, [])
    outbox.ack(second)


def test_an_open_row_stays_for_a_restart(path: Path) -> None:
    """After its acknowledgement it is not offered again, is there for the agent's restart, and goes when final."""
    outbox = Outbox(path)
    outbox.put([row(1, 3, final=False)])
    batch = outbox.take()
    assert batch is not None
    outbox.ack(batch)
    outbox.close()
    again = Outbox(path)
    assert (again.take(), again.depth()) == (None, 0)
    assert again.open_rows() == [row(1, 3, final=False)]
    again.put([row(1, 4)])
    assert versions(again) == [(1, 4)]
    assert again.open_rows() == []


def test_a_row_that_changed_on_its_way_is_sent_again(path: Path) -> None:
    """An acknowledgement counts for the version that was sent: a newer one stays and is offered."""
    outbox = Outbox(path)
    outbox.put([row(1, 1), row(2, 1, final=False)])
    batch = outbox.take()
    assert batch is not None
    outbox.put([row(1, 2), row(2, 2)])
    outbox.ack(batch)
    assert versions(outbox) == [(1, 2), (2, 2)]


def test_the_highest_seq_is_kept(path: Path) -> None:
    """A seq that is not above the kept one changes nothing and is counted as no news."""
    outbox = Outbox(path)
    assert outbox.put([row(1, 5)]) == 1
    assert outbox.put([row(1, 5, final=False), row(1, 4), row(2, 1)]) == 1
    assert versions(outbox) == [(1, 5), (2, 1)]


def test_batches_are_bounded_and_oldest_first(path: Path) -> None:
    """Rows leave by hour, within bytes and rows; a row over the bound goes alone and holds up nothing."""
    outbox = Outbox(path)
    outbox.put([row(job, hour=HOUR + 3600 * (9 - job)) for job in range(1, 10)])
    jobs = [job for job, _ in versions(outbox)]
    assert jobs == list(range(9, 0, -1))
    by_rows, by_bytes, tiny = outbox.take(max_rows=4), outbox.take(max_bytes=1200), outbox.take(max_bytes=1)
    assert by_rows is not None
    assert by_bytes is not None
    assert tiny is not None
    assert [len(batch.rows) for batch in (by_rows, tiny)] == [4, 1]
    assert sum(len(taken.line) + 1 for taken in by_bytes.rows) <= 1200
    assert by_bytes.rows == by_rows.rows[: len(by_bytes.rows)]


def test_rejected_rows_are_kept_aside_and_said_once(path: Path) -> None:
    """A final one leaves the queue, an open one stays for a restart; a later version is no news."""
    outbox = Outbox(path)
    outbox.put([row(1), row(2, final=False), row(3)])
    batch = outbox.take()
    assert batch is not None
    said = outbox.ack(batch, {2: "bad", 3: "worse"})
    assert [(refused.key[1], reason) for refused, reason in said] == [(1, "bad"), (2, "worse")]
    assert (outbox.depth(), rejected(outbox)) == (0, 2)
    assert outbox.open_rows() == [row(2, final=False)]
    outbox.put([row(2, 7)])
    batch = outbox.take()
    assert batch is not None
    assert outbox.ack(batch, {2: "worse"}) == []
    assert (outbox.depth(), rejected(outbox)) == (0, 2)


def test_a_put_is_all_or_nothing(path: Path) -> None:
    """A row that cannot be encoded stops the whole put before anything is stored."""
    outbox = Outbox(path)
    bad = row(2)
    bad.energy_j = float("inf")
    with pytest.raises(ParseError):
        outbox.put([row(1), bad])
    assert outbox.depth() == 0


def test_a_full_disk_stores_nothing_and_heals(path: Path) -> None:
    """StoreError names the disk, what was there stays, and the same put succeeds when there is space."""
    outbox = Outbox(path)
    outbox.put([row(1)])
    connection = outbox._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 12")
    many = [row(job) for job in range(2, 500)]
    with pytest.raises(StoreError, match=r"outbox\.sqlite: the disk is full.*memory"):
        outbox.put(many)
    assert outbox.depth() == 1
    connection.execute("PRAGMA max_page_count = 100000")
    assert outbox.put([row(1), *many]) == len(many)
    assert outbox.depth() == 499


def test_a_second_process_is_refused(path: Path) -> None:
    """Two agents with one state_dir: the second is told in one line, and the first goes on."""
    outbox = Outbox(path)
    with pytest.raises(StoreError, match="another agent"):
        Outbox(path)
    outbox.put([row(1)])
    outbox.close()
    assert Outbox(path).depth() == 1


def test_a_newer_file_is_refused_and_left_as_it_is(path: Path) -> None:
    """The error says to update, and every byte stays."""
    Outbox(path).close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"schema 99 is newer.*update"):
        Outbox(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("offset", [0, 4096, 8192])
def test_a_corrupt_file_is_set_aside(path: Path, caplog: pytest.LogCaptureFixture, offset: int) -> None:
    """The file is kept under another name with its bytes, the log says so once, and the outbox works."""
    outbox = Outbox(path)
    outbox.put([row(job) for job in range(1, 200)])
    outbox.close()
    data = bytearray(path.read_bytes())
    data[offset : offset + 3000] = os.urandom(3000)
    path.write_bytes(data)
    assert outbox.put([row(1)]) == 1
    (kept,) = outbox.set_aside
    assert kept.name == "outbox.sqlite.corrupt-1"
    assert kept.read_bytes() == data
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "corrupt" in caplog.text
    assert outbox.depth() == 1


def test_corrupt_files_do_not_overwrite_each_other(path: Path) -> None:
    """Each one gets a number of its own."""
    path.parent.mkdir()
    for _ in range(2):
        path.write_bytes(b"no database" * 1000)
        Outbox(path).close()
    assert sorted(file.name for file in path.parent.glob("*.corrupt-?")) == [
        "outbox.sqlite.corrupt-1",
        "outbox.sqlite.corrupt-2",
    ]


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """A file where the state directory should be gives StoreError with the path."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StoreError, match="state"):
        Outbox(tmp_path / "state" / "outbox.sqlite")


def test_space_comes_back_after_an_outage(path: Path) -> None:
    """A queue that was long makes the file smaller again once the hub has it."""
    outbox = Outbox(path)
    outbox.put([row(job) for job in range(1, 15000)])
    while (batch := outbox.take()) is not None:
        outbox.ack(batch)
    outbox.close()
    assert path.stat().st_size < 4 * 1024**2


def test_two_threads_share_it(path: Path) -> None:
    """One thread puts while another takes and acknowledges: each row arrives in its newest version."""
    outbox = Outbox(path)
    done = threading.Event()
    hub: dict[int, int] = {}

    def ship() -> None:
        while True:
            last = done.is_set()
            while (batch := outbox.take(max_rows=7)) is not None:
                hub.update({taken.key[1]: taken.seq for taken in batch.rows})
                outbox.ack(batch)
            if last:
                return

    shipper = threading.Thread(target=ship)
    shipper.start()
    for seq in range(1, 21):
        outbox.put([row(job, seq, final=seq == 20) for job in range(1, 11)])
    done.set()
    shipper.join(30)
    assert hub == dict.fromkeys(range(1, 11), 20)
    assert outbox.depth() == 0


def test_a_copy_of_a_killed_file_opens(path: Path, tmp_path: Path) -> None:
    """File and WAL as a power cut leaves them, with a torn tail of the WAL, hold what was committed before."""
    outbox = Outbox(path)
    outbox.put([row(1)])
    outbox.put([row(2)])
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    wal = path.with_name(path.name + "-wal").read_bytes()
    copy.with_name("copy.sqlite-wal").write_bytes(wal[:-100])
    again = Outbox(copy)
    assert not again.set_aside
    assert versions(again) == [(1, 1)]

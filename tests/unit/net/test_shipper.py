"""The shipper brings every row to the hub, whatever the hub says, and never lets one bad row hold up the others."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.net.outboxes import rejected

from gpuwaste.agent.outbox import Outbox
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import AuthError, RetryableWireError, WireError
from gpuwaste.ledger.hour import AllocationHour, HourBatch
from gpuwaste.net.batch import Envelope, encode_batch
from gpuwaste.net.hub_client import BusyError, RefusedError
from gpuwaste.net.shipper import BACKOFF_MAX_S, MAX_SUSPECTS, MIN_BATCH_BYTES, Shipper
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.memory_hub import MemoryHub

HOUR = 1_700_002_800
ENVELOPE = Envelope("gw", "gpu1", "boot", "0.1.0")
EVERY_S = 900.0


def row(job: int, seq: int = 1) -> AllocationHour:
    return AllocationHour(
        RunKey("gw", job, HOUR), "gpu1", "GPU-1", HOUR, seq, HOUR * 1000, HOUR * 1000 + seq, final=True
    )


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "outbox.sqlite")


@pytest.fixture
def hub() -> Iterator[MemoryHub]:
    hub = MemoryHub()
    yield hub
    assert {replace(envelope, sent_us=None) for envelope in hub.envelopes} <= {ENVELOPE}
    assert all(envelope.sent_us for envelope in hub.envelopes)


@pytest.fixture
def shipper(outbox: Outbox, hub: MemoryHub) -> Shipper[HourBatch]:
    return Shipper(outbox, hub.post_hours, ENVELOPE, SystemClock(), every_s=EVERY_S, rng=random.Random(1))


def jobs(batch: HourBatch) -> set[int]:
    return {taken.key[1] for taken in batch.rows}


def raises(error: Exception) -> Callable[[HourBatch], dict[int, str]]:
    def judge(_: HourBatch) -> dict[int, str]:
        raise error

    return judge


def refuses(bad: Callable[[HourBatch], bool], status: int = 400) -> Callable[[HourBatch], dict[int, str]]:
    def judge(batch: HourBatch) -> dict[int, str]:
        if bad(batch):
            raise RefusedError("cannot be", status)
        return {}

    return judge


def test_all_that_waits_is_shipped(shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub) -> None:
    """One step empties the outbox, in several batches where one would be too large, and waits for its period."""
    outbox.put([row(job) for job in range(1, 6001)])
    sizes: list[int] = []

    def measure(batch: HourBatch) -> dict[int, str]:
        sizes.append(len(encode_batch(ENVELOPE, batch)))
        return {}

    hub.judge = measure
    assert shipper.step() == EVERY_S
    assert sorted(hub.jobs) == list(range(1, 6001))
    assert len(sizes) > 1
    assert max(sizes) <= 1024 * 1024
    assert outbox.depth() == 0
    assert (shipper.status.sent_rows, shipper.status.failures, shipper.status.last_error) == (6000, 0, "")


@pytest.mark.parametrize(
    "error",
    [RetryableWireError("down"), AuthError("who?"), WireError("no hub"), RefusedError("old", 426), KeyError("defect")],
)
def test_after_any_failure_rows_wait_and_leave_later(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """A failure, even a defect, costs no row, is said once, and ends when the hub is well."""
    caplog.set_level(logging.INFO)
    outbox.put([row(1)])
    hub.judge = raises(error)
    for attempt in range(1, 4):
        assert 0 <= shipper.step() <= BACKOFF_MAX_S
        assert shipper.status.failures == attempt
    assert outbox.depth() == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    hub.judge = lambda _: {}
    assert shipper.step() == EVERY_S
    assert hub.jobs == [1]
    assert "reached again" in caplog.text


def test_retries_back_off_with_full_jitter(shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub) -> None:
    """Waits are spread from 0 to a bound that doubles up to a quarter of an hour."""
    outbox.put([row(1)])
    hub.judge = raises(RetryableWireError("down"))
    waits = [shipper.step() for _ in range(60)]
    assert all(wait <= 2 * 2**turn for turn, wait in enumerate(waits))
    assert 600 < max(waits) <= BACKOFF_MAX_S
    assert min(waits[10:]) < 300


def test_a_busy_hub_is_asked_again_when_it_says(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub, caplog: pytest.LogCaptureFixture
) -> None:
    """The wait is never shorter than the hub's word, its random part doubles, and a success ends that."""
    outbox.put([row(1)])
    hub.judge = raises(RetryableWireError("away"))
    for _ in range(12):
        shipper.step()
    hub.judge = raises(BusyError("busy", 5))
    waits = [shipper.step() for _ in range(40)]
    assert all(5 <= wait <= min(BACKOFF_MAX_S, 5 * 2.0**turn) for turn, wait in enumerate(waits, start=1))
    assert max(waits) > 300
    hub.judge = lambda _: {}
    assert shipper.step() == EVERY_S
    outbox.put([row(2)])
    hub.judge = raises(BusyError("busy", 5))
    assert 5 <= shipper.step() <= 10
    assert sum("busy" in record.message for record in caplog.records) == 2


def test_agents_that_were_put_off_together_come_back_apart(outbox: Outbox, hub: MemoryHub) -> None:
    """A hundred agents that hear the same word spread over the time after it."""
    outbox.put([row(1)])
    hub.judge = raises(BusyError("busy", 5))
    waits = [
        Shipper(outbox, hub.post_hours, ENVELOPE, SystemClock(), every_s=EVERY_S, rng=random.Random(n)).step()
        for n in range(100)
    ]
    assert max(sum(at <= wait < at + 1 for wait in waits) for at in range(5, 10)) < 50


def test_a_hub_that_asks_for_an_absurd_wait_is_asked_all_the_same(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub
) -> None:
    """No word of the hub makes an agent wait longer than a quarter of an hour, or ask without a pause."""
    outbox.put([row(1)])
    for seconds in (0, 999_999):
        hub.judge = raises(BusyError("busy", seconds))
        assert 1 <= shipper.step() <= BACKOFF_MAX_S


def test_what_only_a_person_can_change_is_asked_rarely(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub
) -> None:
    """A protocol out of range or a wrong credential is tried every quarter of an hour or so."""
    outbox.put([row(1)])
    for error in (RefusedError("old", 426, (2, 3)), AuthError("who?")):
        hub.judge = raises(error)
        assert shipper.step() >= BACKOFF_MAX_S / 2


def test_rejected_rows_are_said_once_and_kept(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub, caplog: pytest.LogCaptureFixture
) -> None:
    """The row that the hub rejects leaves the queue for the table of rejected rows; the others arrive."""
    outbox.put([row(1), row(2)])
    hub.judge = lambda _: {2: "job id wraps"}
    shipper.step()
    assert hub.jobs == [2]
    assert (outbox.depth(), rejected(outbox), shipper.status.rejected_rows) == (0, 1, 1)
    assert caplog.text.count("job id wraps") == 1


@pytest.mark.long
@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.parametrize("bad", [{57}, {1}, {100}, {3, 4, 50}])
def test_a_bad_row_blocks_no_other(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub, status: int, bad: set[int]
) -> None:
    """Where the hub refuses the batch as a whole, the bad rows are found and set aside, and all others arrive once."""
    outbox.put([row(job) for job in range(1, 101)])
    hub.judge = refuses(lambda batch: bool(bad & jobs(batch)), status)
    assert shipper.step() == EVERY_S
    assert sorted(hub.jobs) == sorted(set(range(1, 101)) - bad)
    assert (outbox.depth(), rejected(outbox)) == (0, len(bad))
    assert hub.posts < 60


def test_a_hub_that_refuses_everything_loses_no_row(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub
) -> None:
    """Nothing is set aside where no row at all is taken: then the rows are not at fault. It costs few requests."""
    outbox.put([row(job) for job in range(1, 101)])
    hub.judge = refuses(lambda _: True)
    assert shipper.step() >= BACKOFF_MAX_S / 2
    assert (outbox.depth(), rejected(outbox)) == (100, 0)
    assert hub.posts < 4 * MAX_SUSPECTS
    assert "cannot be" in shipper.status.last_error
    hub.judge = lambda _: {}
    shipper.step()
    assert sorted(hub.jobs) == list(range(1, 101))


def test_many_bad_rows_do_not_hide_a_good_one(shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub) -> None:
    """Each attempt tries other rows first, so that bad rows in front of the queue cannot block it for ever."""
    outbox.put([row(job) for job in range(1, 61)])
    hub.judge = refuses(lambda batch: bool(jobs(batch) & set(range(1, 41))))
    for _ in range(20):
        shipper.step()
    assert sorted(hub.jobs) == list(range(41, 61))
    assert (outbox.depth(), rejected(outbox)) == (0, 40)


def test_a_hub_that_wants_less_gets_less(shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub) -> None:
    """After a 413 batches are halved until they fit, for later ones as well, and no row is set aside."""
    outbox.put([row(job) for job in range(1, 201)])
    hub.judge = refuses(lambda batch: len(encode_batch(ENVELOPE, batch)) > 20_000, 413)
    for _ in range(10):
        shipper.step()
    assert sorted(hub.jobs) == list(range(1, 201))
    assert (outbox.depth(), rejected(outbox)) == (0, 0)
    assert MIN_BATCH_BYTES <= shipper._max_bytes < 1024 * 1024


def test_a_failure_in_the_middle_keeps_what_was_taken(
    shipper: Shipper[HourBatch], outbox: Outbox, hub: MemoryHub
) -> None:
    """The hub goes away while a bad row is looked for: nothing is set aside, nothing is lost."""
    outbox.put([row(job) for job in range(1, 21)])

    def judge(batch: HourBatch) -> dict[int, str]:
        if hub.posts > 4:
            raise RetryableWireError("down")
        if 7 in jobs(batch):
            raise RefusedError("cannot be", 400)
        return {}

    hub.judge = judge
    shipper.step()
    assert outbox.depth() == 20 - len(hub.jobs)
    hub.judge = refuses(lambda batch: 7 in jobs(batch))
    shipper.step()
    assert sorted(hub.jobs) == sorted(set(range(1, 21)) - {7})
    outbox.put([row(21)])
    shipper.step()
    assert (outbox.depth(), rejected(outbox)) == (0, 1)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.01)


def test_stop_does_not_wait_for_a_hub_that_is_away(outbox: Outbox, hub: MemoryHub) -> None:
    """A shipper in its backoff ends at once; its rows stay in the outbox."""
    hub.judge = raises(RetryableWireError("down"))
    outbox.put([row(1)])
    shipper = Shipper(outbox, hub.post_hours, ENVELOPE, SystemClock(), every_s=EVERY_S)
    shipper.start()
    shipper.wake()
    until(lambda: shipper.status.failures >= 1)
    shipper.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "shipper"]
    assert outbox.depth() == 1

"""A batch reads back as it was written; whatever is not a batch or its acknowledgement is named."""

import json
import math

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.hour import AllocationHour, HourBatch, encode_hour, parse_hours
from gpuwaste.net.batch import Ack, Batch, Envelope, encode_batch, parse_ack, parse_envelope
from gpuwaste.slurm.run_key import RunKey

ENVELOPE = Envelope("gw", "gpu1", "boot", "0.1.0")
HOUR = 1_700_002_800


def row(job: int, seq: int = 1) -> AllocationHour:
    return AllocationHour(
        RunKey("gw", job, HOUR - 5), "gpu1", "GPU-1", HOUR, seq, HOUR * 1000, HOUR * 1000 + 9, util_ms={3: 9}
    )


def batch(*jobs: int) -> HourBatch:
    return Batch(tuple(encode_hour(row(job)) for job in jobs))


def test_a_batch_reads_back() -> None:
    """Envelope, batch id and rows are those that were written; rows count from line 2."""
    sent = batch(1, 2)
    body = encode_batch(ENVELOPE, sent)
    assert parse_envelope(body) == (ENVELOPE, sent.batch_id)
    assert list(parse_hours(body)) == [(2, row(1)), (3, row(2))]


@pytest.mark.parametrize("said", [None, "7", True, 1.5, -1, 0, 2**60, [], 10**40])
def test_a_senders_clock_reads_back_or_is_not_known(said: object) -> None:
    """The time at which a batch is sent is a whole number of microseconds; anything else is as if it was not stated."""
    now = ENVELOPE.sent_at(1_700_000_000_123_456)
    assert parse_envelope(encode_batch(now, batch(1)))[0] == now
    assert b"sent_us" not in ENVELOPE.line("b")
    line = json.dumps({**json.loads(ENVELOPE.line("b")), "sent_us": said}).encode()
    assert parse_envelope(line + b"\n")[0] == ENVELOPE


def test_a_bad_row_spoils_no_other() -> None:
    """Lines that are no rows come back as errors under their number."""
    body = b"\n".join([ENVELOPE.line("b"), b"{", b"[1]", b"", b"[" * 100_000, encode_hour(row(1)).line, b"\xff", b""])
    found = dict(parse_hours(body))
    assert [line for line, value in found.items() if isinstance(value, ParseError)] == [2, 3, 5, 7]
    assert found[6] == row(1)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'{"protocol":true}',
        b'{"protocol":1}',
        b'{"protocol":1,"batch_id":"","cluster":"a","node":"b","boot_id":"c","agent_version":"d"}',
        b'{"protocol":1,"batch_id":7,"cluster":"a","node":"b","boot_id":"c","agent_version":"d"}',
    ],
)
def test_a_bad_envelope_is_named(line: bytes) -> None:
    """The first line must be a whole envelope."""
    with pytest.raises(ParseError, match="first line"):
        parse_envelope(line + b"\n")


def test_a_row_that_json_cannot_hold_is_refused() -> None:
    """NaN would make the hub refuse the line, so it does not get into the outbox."""
    bad = row(1)
    bad.energy_j = math.nan
    with pytest.raises(ParseError, match="gw/1@"):
        encode_hour(bad)


def test_an_acknowledgement_reads_back() -> None:
    """Accepted and rejected rows together are those of the batch."""
    sent = batch(1, 2, 3)
    ack = Ack(sent.batch_id, 2, {3: "bad"})
    assert parse_ack(ack.to_bytes(), sent) == ack


@pytest.mark.parametrize(
    "change",
    [
        {"batch_id": "another"},
        {"accepted": 1},
        {"accepted": True},
        {"accepted": None},
        {"accepted": 1, "rejected": [{"line": 1, "reason": ""}]},
        {"accepted": 1, "rejected": [{"line": 4, "reason": ""}]},
        {"accepted": 1, "rejected": ["x"]},
        {"accepted": 1, "rejected": [{"line": True, "reason": ""}]},
    ],
)
def test_an_acknowledgement_that_does_not_fit_is_refused(change: dict[str, object]) -> None:
    """Another batch, a wrong count or a line that was not sent: nothing is acknowledged."""
    sent = batch(1, 2)
    body = json.dumps({"protocol": 1, "batch_id": sent.batch_id, "accepted": 2, "rejected": [], **change}).encode()
    with pytest.raises(ParseError):
        parse_ack(body, sent)

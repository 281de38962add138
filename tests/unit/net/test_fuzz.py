"""Whatever comes over the wire is a value of ours or a ParseError: batches, verdicts, events, frames."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.advisor.verdicts import verdict

from gpuwaste.advice.submit_frames import HEADER, decode_body, decode_header
from gpuwaste.advice.verdicts.verdict_batch import encode_verdict, parse_verdicts
from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.jobs.job_event import HistoryEvent, RunUse, event_from_json
from gpuwaste.jobs.verdict import Verdict, verdict_from_json
from gpuwaste.ledger.hour import AllocationHour, encode_hour, hour_from_wire, parse_hours
from gpuwaste.net.batch import Batch, parse_ack, parse_envelope
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.testing.hub_rows import batch, hour

# JSON as Python reads it: NaN, whole numbers beyond every float, lone surrogates, nesting.
HUGE = st.sampled_from([10**400, -(10**400), 2**63, -(2**63) - 1, 1e308, -0.0, float("inf"), float("nan")])
TEXT = st.one_of(st.text(max_size=20), st.sampled_from(["", "\ud800", "\x00", "a" * 300, "GPU-1", "../..", "=1", "gw"]))
LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, HUGE)
VALUE: st.SearchStrategy[Any] = st.recursive(
    LEAF, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)), max_leaves=6
)
JOB = JobRecord("gw", 7, 900, name="a", start=1000, end=2000, total_cpu_s=0.5)
EVENT = HistoryEvent(3, "ended", JOB.run_key, 2000, JOB, RunUse(0.25, 1, 0.9)).to_json()


def damaged(good: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the object with some members replaced, and one left out."""
    changes = st.dictionaries(st.sampled_from(sorted(good)), VALUE, max_size=3)
    return st.tuples(changes, st.sampled_from([None, *sorted(good)])).map(
        lambda drawn: {name: value for name, value in {**good, **drawn[0]}.items() if name != drawn[1]}
    )


@given(damaged(hour(7).to_wire()))
def test_a_row_is_taken_or_refused(row: dict[str, Any]) -> None:
    """What is taken can travel on: it is written and read again as the same."""
    with suppress(ParseError):
        taken = hour_from_wire(row)
        assert isinstance(taken, AllocationHour)
        assert hour_from_wire(json.loads(encode_hour(taken).line)) == taken


@given(damaged(verdict(1).to_json()))
def test_a_verdict_is_taken_or_refused(row: dict[str, Any]) -> None:
    """And what is taken can be written again."""
    with suppress(ParseError):
        taken = verdict_from_json(row)
        assert isinstance(taken, Verdict)
        encode_verdict(taken)


@given(damaged(EVENT), damaged(EVENT["job"]))
def test_an_event_is_taken_or_refused(event: dict[str, Any], job: dict[str, Any]) -> None:
    """Its numbers are numbers that 64 bits hold, its texts are texts."""
    with suppress(ParseError):
        taken = event_from_json({**event, "job": job})
        assert taken.job is not None
        assert all(isinstance(text, str) for text in (taken.job.user, taken.job.name, taken.job.nodes))
        assert abs(taken.seq) < 2**63
        assert abs(taken.job.submit) < 2**63


@given(st.one_of(st.binary(max_size=300), VALUE.map(lambda value: json.dumps(value).encode())), st.integers(0, 400))
def test_a_body_is_rows_and_errors(rubbish: bytes, at: int) -> None:
    """Rubbish anywhere in a batch, or alone, gives rows, bad rows by line, or one ParseError."""
    whole = batch(hour(7), hour(8))
    for body in (rubbish, whole[:at] + rubbish + whole[at:], whole[:at] + rubbish):
        with suppress(ParseError):
            parse_envelope(body)
        for parse in (parse_hours, parse_verdicts):
            for line, _ in parse(body):
                assert line >= 2
        with suppress(ParseError):
            parse_ack(body, Batch((encode_hour(hour(7)),), "b1"))


@given(st.one_of(st.binary(max_size=200), VALUE.map(lambda value: json.dumps(value).encode())))
def test_a_frame_is_an_object_or_refused(data: bytes) -> None:
    """Header and body of a submit plugin's request."""
    with suppress(GpuwasteError):
        assert isinstance(decode_body(data), dict)
    if len(data) >= HEADER.size:
        with suppress(ParseError):
            assert 0 < decode_header(data[: HEADER.size]) <= 65536

"""What programs of 0.1 wrote, kept literally, is read as before, and is what this version writes too."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.advice.verdicts.verdict_batch import encode_verdict, parse_verdicts
from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.job_event import event_from_json
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.hour import AllocationHour, encode_hour, hour_from_wire, parse_hours
from gpuwaste.net.batch import parse_envelope
from gpuwaste.slurm.run_key import RunKey

FIXTURES = Path(__file__).parents[2] / "fixtures" / "protocol1"
HOUR = 1_700_002_800


def lines(name: str) -> tuple[bytes, list[bytes]]:
    body = (FIXTURES / name).read_bytes()
    return body, body.splitlines()[1:]


def written(line: bytes | str) -> str:
    """Return a line as JSON in an order of its own: an object's order says nothing, 1 and 1.0 are two texts."""
    return json.dumps(json.loads(line), sort_keys=True)


def test_hours_of_0_1_are_read_as_they_were_meant() -> None:
    """Each field of a recorded row arrives: milliseconds are whole, what was null is None."""
    body, _ = lines("hours-of-agent-0.1.ndjson")
    assert parse_envelope(body)[0].agent_version == "0.1.0"
    full, least = (row for _, row in parse_hours(body))
    assert full == AllocationHour(
        RunKey("gw", 7, HOUR - 600), "gpu1", "GPU-3d4a", HOUR, 3, HOUR * 1000 + 12_500, HOUR * 1000 + 1_812_511,
        final=True, util_ms={0: 600_001, 97: 1_190_000, 100: 9}, idle_run_ms=590_001,
        unknown_ms={"gap": 9_999, "conflict:prolog": 1}, suspended_ms=1, proc_seen=True, mem_max_b=40 * 1024**3,
        mem_total_b=80 * 1024**3, energy_j=123456.789, last_active_ms=HOUR * 1000 + 1_800_123,
        power_w_at_full=310.125, power_limit_w=400.0, sm_ratio_at_full=0.87, cpu_s=3000.25, host_mem_max_b=10**10,
        map_source="prolog", confidence="confirmed",
    )  # fmt: skip
    assert least == AllocationHour(
        RunKey("gw", 8, HOUR - 600), "gpu1", "missing:gpu1:3", HOUR, 1, HOUR * 1000, HOUR * 1000 + 1, share=0.125,
        unknown_ms={"missing": 1},
    )  # fmt: skip


def test_hours_are_written_as_0_1_reads_them() -> None:
    """A row that is read and written again has the names, values and types of the recorded one."""
    body, sent = lines("hours-of-agent-0.1.ndjson")
    rows = [row for _, row in parse_hours(body) if isinstance(row, AllocationHour)]
    assert [written(encode_hour(row).line) for row in rows] == [written(line) for line in sent]


def test_verdicts_of_0_1_are_read_and_written_as_they_were() -> None:
    """Byte for byte, half of a surrogate pair in a job's name too."""
    body, sent = lines("verdicts-of-advisor-0.1.ndjson")
    rows = [row for _, row in parse_verdicts(body) if isinstance(row, Verdict)]
    assert [encode_verdict(row).line for row in rows] == sent
    assert (rows[0].p, rows[0].lines) == ({"failure": 0.93, "walltime": 0.0}, ("line 1", "line 2"))
    assert (rows[1].name, rows[1].run_job_id) == ("bad \udcff name", 9)


def test_a_text_that_looks_like_a_field_stays() -> None:
    """A job may be named as the field that is left out, which is then still that job's name."""
    body, _ = lines("verdicts-of-advisor-0.1.ndjson")
    row = next(row for _, row in parse_verdicts(body) if isinstance(row, Verdict))
    row.name = '"shadow":{},'
    for shadow in ({}, {"ab": {"failure": 0.5}}):
        row.shadow = shadow
        sent = json.loads(encode_verdict(row).line)
        assert (sent["name"], sent.get("shadow", {})) == ('"shadow":{},', shadow)


def test_events_of_0_1_are_read_and_written_as_they_were() -> None:
    """An unknown number of GPUs is absent there and None here."""
    sent: list[dict[str, Any]] = json.loads((FIXTURES / "history-of-hub-0.1.json").read_text())["events"]
    events = [event_from_json(event) for event in sent]
    assert [event.to_json() for event in events] == sent
    assert events[0].job is not None
    assert (events[0].run_key, events[0].job.total_cpu_s) == (RunKey("gw", 7, 1000), 0.5)
    assert [event.job is None or event.job.gpus is None for event in events] == [False, True, True]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"jobid": 0}, "hours row: jobid: expected `int` >= 1"),
        ({"jobid": 7.0}, "hours row: jobid: expected `int`, got `float`"),
        ({"jobid": True}, "hours row: jobid: expected `int`, got `bool`"),
        ({"jobid": 2**32}, "hours row: jobid: expected `int` <= 4294967295"),
        ({"seq": 10**400}, "hours row: seq: "),
        ({"node": "a b"}, "hours row: node: expected `str` matching"),
        ({"node": "gpu1\n"}, "hours row: node: expected `str` matching"),
        ({"gpu_uuid": "x" * 129}, "hours row: gpu_uuid: expected `str` matching"),
        ({"t0": "now"}, "hours row: t0: expected `float`, got `str`"),
        ({"t0": float("nan")}, "hours row: "),
        ({"cpu_s": float("inf")}, "hours row: "),
        ({"energy_j": -1}, "hours row: energy_j: expected `float` >= 0"),
        ({"share": 1.5}, "hours row: share: expected `float` <= 1"),
        ({"seconds": {"101": 1}}, "hours row: seconds: a key: expected `int` <= 100"),
        ({"seconds": {"5": -1}}, "hours row: seconds[...]: expected `float` >= 0"),
        ({"seconds": {"5": 3602}}, "hours row: seconds[...]: expected `float` <= 3601"),
        ({"unknown_s": {"A B": 1}}, "hours row: unknown_s: a key: expected `str` matching"),
        ({"unknown_s": {f"r{n}": 0 for n in range(129)}}, "hours row: unknown_s: expected `object` of length <= 128"),
        ({"final": 1}, "hours row: final: expected `bool`, got `int`"),
        ({"schema": 3}, "schema 3 is newer than this hub's (1): update the hub"),
        ({"idle_run_s": 700.0}, "hours row of gw/7@1700002200: idle_run_s is more than the seconds at 0 %"),
        ({"hour_utc": HOUR + 1}, "hours row of gw/7@1700002200: t0 or t1 is outside the hour"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(change: dict[str, object], words: str) -> None:
    """The line says which row and which field, and what is expected there."""
    _, sent = lines("hours-of-agent-0.1.ndjson")
    body = b"{}\n" + json.dumps({**json.loads(sent[0]), **change}).encode() + b"\n" + sent[1]
    (place, error), (_, good) = parse_hours(body)
    assert (place, isinstance(good, AllocationHour)) == (2, True)
    assert words in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("name", ["seconds", "idle_run_s", "final", "share", "proc_seen", "t1", "schema", "cluster"])
def test_a_row_without_a_needed_field_is_refused(name: str) -> None:
    """Only what can be null, and the two names added to schema 1 later, may be left out."""
    _, sent = lines("hours-of-agent-0.1.ndjson")
    row = {key: value for key, value in json.loads(sent[0]).items() if key != name}
    ((_, error),) = parse_hours(b"{}\n" + json.dumps(row).encode())
    assert str(error) == f"hours row: object missing required field `{name}`"
    least = {key: value for key, value in json.loads(sent[1]).items() if value is not None}
    del least["map_source"], least["confidence"]
    ((_, taken),) = parse_hours(b"{}\n" + json.dumps(least).encode())
    assert isinstance(taken, AllocationHour)
    assert (taken.mem_max_b, taken.map_source) == (None, "none")


def test_xid_errors_are_written_only_where_there_are_any() -> None:
    """A row without them is that of 0.1; one with them is read back, and an older reader ignores the field."""
    row = AllocationHour(RunKey("gw", 7, HOUR - 600), "gpu1", "GPU-3d4a", HOUR, 3, HOUR * 1000, HOUR * 1000 + 1)
    assert "xids" not in json.loads(encode_hour(row).line)
    row.xids = {79: 2}
    sent = json.loads(encode_hour(row).line)
    assert sent["xids"] == {"79": 2}
    assert hour_from_wire(sent) == row
    with pytest.raises(ParseError, match="xids"):
        hour_from_wire({**sent, "xids": {str(number): 1 for number in range(65)}})

"""Segments: every tick comes back as written, whatever a kill, a full disk or a bad disk does to the others."""

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.samples import BASE, EMPTY, a_segment, at

from gpuwaste.agent.segment import Segment, from_line, lines_of, read_ticks, segments, to_line
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.slurm.run_key import RunKey

COUNTS = st.none() | st.integers(-(2**63), 2**63)
SAMPLES = st.builds(
    Sample,
    t_utc_us=st.integers(0, 2**55),
    mono_us=st.integers(0, 2**55),
    gpu_uuid=st.text(max_size=50),
    instance=st.text(max_size=5),
    source=st.sampled_from(["nvml", "pcp"]),
    util_pct=st.none() | st.floats(allow_nan=False),
    mem_used_b=COUNTS,
    mem_total_b=COUNTS,
    power_mw=COUNTS,
    power_limit_mw=COUNTS,
    energy_mj=COUNTS,
    sm_ratio=st.none() | st.floats(0, 1),
    procs=COUNTS,
    job_id=COUNTS,
    run_key=st.none() | st.builds(RunKey, st.text(max_size=9), st.integers(), st.integers()),
    map_source=st.sampled_from(MapSource),
    confidence=st.sampled_from(Confidence),
    reason=st.text(max_size=9),
)
TICKS = [[at(BASE, n), at(EMPTY, n)] for n in range(4)]


@given(st.lists(SAMPLES, max_size=5))
def test_a_line_says_what_the_samples_said(samples: list[Sample]) -> None:
    """Any samples, odd texts and numbers included, are the same after a line, which is one line."""
    line = to_line(samples)
    assert from_line(line) == samples
    assert line.count(b"\n") == 1


def test_lines_of_other_versions_are_read() -> None:
    """A value that a later version added is left out, and one that an earlier version lacked has its default."""
    row = json.loads(to_line([BASE]))[0]
    assert from_line(json.dumps([[*row, "news"]]).encode()) == [BASE]
    assert from_line(json.dumps([row[:-1]]).encode()) == [BASE]


@pytest.mark.long
def test_a_torn_tail_costs_the_last_tick_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A segment that is cut at any byte has every tick that was whole before the cut, and nothing is said."""
    path = a_segment(tmp_path, 1, TICKS)
    data, ends, so_far = path.read_bytes(), [], Segment(tmp_path, 2, "2026-01-01")
    for tick in TICKS:
        so_far.append(tick)
        ends.append(so_far.size_b)
    so_far.close()
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        assert list(read_ticks(path)) == TICKS[: sum(end <= cut for end in ends)]
    assert not caplog.records


def test_a_flipped_bit_costs_its_own_tick_alone(tmp_path: Path) -> None:
    """Whichever bit of the segment is wrong, all ticks but the one it belongs to are read, in their order."""
    path = a_segment(tmp_path, 1, TICKS)
    data = path.read_bytes()
    ends = [0]
    for number, tick in enumerate(TICKS):
        ends.append(ends[-1] + a_segment(tmp_path, number + 2, [tick]).stat().st_size)
    lines = [to_line(tick) for tick in TICKS]
    for position in range(len(data)):
        hit = next(n for n, end in enumerate(ends[1:]) if position < end)
        for bit in range(8):
            bad = bytearray(data)
            bad[position] ^= 1 << bit
            assert list(lines_of(bytes(bad), path.name)) == [line for n, line in enumerate(lines) if n != hit]


def test_rubbish_between_ticks_is_passed_over(tmp_path: Path) -> None:
    """Whatever a bad disk puts before, between and behind records, they are found."""
    record = a_segment(tmp_path, 1, TICKS[:1]).read_bytes()

    @given(st.binary(max_size=300), st.binary(max_size=300))
    def check(before: bytes, between: bytes) -> None:
        found = list(lines_of(before + record + between + record + before, "x"))
        assert found == [to_line(TICKS[0])] * 2

    check()


def test_damage_in_the_middle_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Ticks that a bad disk took from the middle of a segment are named in the log."""
    path = a_segment(tmp_path, 7, TICKS)
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    assert list(read_ticks(path)) == TICKS[1:]
    assert "00000007-2026-01-01.samples: damaged from byte 0 to" in caplog.text


def test_a_write_that_fails_leaves_whole_ticks(tmp_path: Path) -> None:
    """Where a tick does not fit it leaves nothing behind, and the next one that fits stands right after the last."""
    segment = Segment(tmp_path, 1, "2026-01-01")
    segment.append(TICKS[0])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (segment.size_b + 20, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            segment.append(TICKS[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert segment.path.stat().st_size == segment.size_b
    segment.append(TICKS[2])
    segment.close()
    assert list(read_ticks(segment.path)) == [TICKS[0], TICKS[2]]


def test_an_empty_segment_leaves_no_file(tmp_path: Path) -> None:
    """A segment without a tick goes when it is closed."""
    Segment(tmp_path, 1, "2026-01-01").close()
    assert list(tmp_path.iterdir()) == []


def test_segments_are_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """The number counts, not the day, which steps back where the clock does; other files are none of them."""
    a_segment(tmp_path, 10**8, TICKS)
    a_segment(tmp_path, 9, TICKS, "2026-01-02")
    (tmp_path / "2026-01-01.duckdb").touch()
    (tmp_path / "00000001-2026-01-01.samples.corrupt").touch()
    assert [name.number for name in segments(tmp_path)] == [9, 10**8]


def test_a_tick_that_no_version_wrote_is_a_plain_error(tmp_path: Path) -> None:
    """A whole record with other contents is a ValueError, by which the segment is set aside."""
    path = a_segment(tmp_path, 1, [[replace(BASE, map_source="rumour")]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rumour"):
        list(read_ticks(path))

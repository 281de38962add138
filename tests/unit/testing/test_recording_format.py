"""The recording's format: what goes in comes out, and what is damaged is one clear line."""

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwaste.agent.facts.run_facts import LocalRun, MinorFacts, PositionFacts
from gpuwaste.agent.readings import GpuIdentity, GpuReading, GpuScan, HostUse
from gpuwaste.ledger.gpu_sample import MapSource, UnknownReason
from gpuwaste.slurm.formats.gpu_positions import DRM_MAJOR, DeviceNode
from gpuwaste.testing.recording.format import (
    FORMAT,
    AgentStart,
    Entry,
    Fact,
    Opening,
    RecordedCommand,
    RecordedTick,
    RecordingError,
    Said,
    Scanned,
    decode,
    encode,
    read_recording,
    write_recording,
)
from gpuwaste.testing.recording.tape import Tape, read_tapes, save

Change = Callable[[list[bytes]], list[bytes]]
RENDER = DeviceNode(DRM_MAJOR, 128)
OPENING = Opening(FORMAT, 1_000, "0.1.0", "gw", ("gpu1",), 2.0, 6.0, 3.0, {"finding_min_s": 30.0})
SCAN = GpuScan(
    "nvml",
    (GpuIdentity("GPU-1", 0, 3, mem_total_b=1 << 30), GpuIdentity("GPU-a", 0, 128, vendor="amd", nodes=(RENDER,))),
    {"GPU-1": GpuReading("GPU-1", duty=((1, 50.0), (2, 0.0)), util_pct=25.0, pids=frozenset({7}))},
    generation=2,
)
TICK = RecordedTick(
    2_000,
    77,
    "gpu1",
    (Scanned("nvml", SCAN, (("GPU-1", 79, 1),)), Scanned("pcp", reason=UnknownReason.DRIVER)),
    {5: HostUse(1.5, 1 << 20, frozenset({7}))},
    (LocalRun(5, 1_500, 2_000, steps={-5: 1_600}, anchored=True, start=1),),
    (),
    (
        Fact(MapSource.CGROUP, 5, 1_500, MinorFacts(frozenset({3}), others=frozenset({RENDER}))),
        Fact(MapSource.PROLOG, 5, 1_500, PositionFacts(frozenset({0}), 0)),
    ),
)
ENTRIES: list[Entry] = [
    OPENING,
    AgentStart(1_900, "gpu1"),
    TICK,
    Said(3_000, "done"),
    RecordedCommand(4_000, "bob", ("top",), {}),
]


def test_entries_come_back_as_they_were(tmp_path: Path) -> None:
    """A recording that is written and read again has the same entries, in order of time."""
    path = tmp_path / "run.xz"
    assert write_recording(path, [OPENING, *reversed(ENTRIES[1:])]) == len(ENTRIES)
    opening, entries = read_recording(path)
    assert opening == OPENING
    assert entries == ENTRIES[1:]


@pytest.mark.parametrize("kept", [0, 1, 40, -1, -20])
def test_a_cut_recording_is_one_clear_line(tmp_path: Path, kept: int) -> None:
    """A file that was cut off anywhere is refused with its name and what to do."""
    path = tmp_path / "run.xz"
    write_recording(path, ENTRIES)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RecordingError, match=r"run\.xz: .*take a whole one") as caught:
        read_recording(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:-1], "is cut off after 5 lines"),
        (lambda lines: [*lines[:2], *lines[3:]], "is cut off"),
        (lambda lines: lines[1:], "does not begin as a recording"),
        (lambda lines: [lines[0].replace(b'"format":1', b'"format":2'), *lines[1:]], "its format is 2"),
        (lambda lines: [*lines[:2], b'{"kind":"tick"}', *lines[3:]], r"line 3: no entry of a recording: tick\.t_us"),
        (lambda lines: [*lines[:2], b"\xff\xfe", *lines[3:]], "line 3: no entry"),
        (lambda lines: [lines[0], b'{"kind":"dance","t_us":1}', *lines[2:]], "line 2: no entry"),
        (lambda lines: [lines[0], lines[3], lines[1], lines[2], *lines[4:]], "not in order of time"),
        (lambda lines: [lines[0], lines[0], *lines[2:]], "stands in the middle"),
        (lambda lines: lines[:0], "does not begin"),
    ],
)
def test_a_garbled_recording_is_one_clear_line(tmp_path: Path, change: Change, words: str) -> None:
    """Lines that are missing, foreign, out of order or of another format are named, never played."""
    path = tmp_path / "run.xz"
    write_recording(path, ENTRIES)
    lines = change(lzma.decompress(path.read_bytes()).splitlines())
    path.write_bytes(lzma.compress(b"\n".join(lines)))
    with pytest.raises(RecordingError, match=words) as caught:
        read_recording(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_archive_is_one_clear_line(tmp_path: Path) -> None:
    """A missing file and a file of something else are named."""
    with pytest.raises(RecordingError, match="No such file"):
        read_recording(tmp_path / "none.xz")
    (tmp_path / "text.xz").write_text("hello")
    with pytest.raises(RecordingError, match="damaged or cut off"):
        read_recording(tmp_path / "text.xz")


def test_tapes_keep_whole_lines_and_lose_names(tmp_path: Path) -> None:
    """A daemon killed in a write leaves a torn line: the lines before it count, without this machine's names."""
    tape = Tape(tmp_path / "gpu1.tape")
    tape.add(Said(1, "in /tmp/gwdemo1/site"))
    tape.close()
    with (tmp_path / "gpu1.tape").open("ab") as file:
        file.write(encode(TICK)[:50])
    entries = list(read_tapes(tmp_path, {"/tmp/gwdemo1": "/cluster"}))  # noqa: S108 a name in a text
    assert entries == [Said(1, "in /cluster/site")]
    assert save(tmp_path / "r.xz", [OPENING, Said(2_000, "on badger")], {"badger": "host"}) < 1000
    assert read_recording(tmp_path / "r.xz")[1] == [Said(2_000, "on host")]


def test_a_line_tells_its_kind_first() -> None:
    """Each line begins with its kind, also where nothing else is told."""
    assert encode(AgentStart(1, "n")).startswith(b'{"kind":"start",')
    assert decode(encode(TICK), "here") == TICK

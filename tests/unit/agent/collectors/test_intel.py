"""What the Intel collector makes of counters, groups of engines and processes, whatever a library says."""

import ctypes
import os
from pathlib import Path

import pytest

from gpuwaste.agent.collectors._capabilities import PERFMON, SYS_PTRACE, holds
from gpuwaste.agent.collectors._level_zero import EngineGroup, Process
from gpuwaste.agent.collectors._rate import Rate
from gpuwaste.agent.collectors.intel import busiest, groups_to_read, using

ALL, COMPUTE, MEDIA, COPY, COMPUTE_SINGLE, COPY_SINGLE = 0, 1, 2, 3, 4, 8


def group(kind: int, tile: int | None = None) -> EngineGroup:
    """Make a group of engines."""
    return EngineGroup(ctypes.c_void_p(1), kind, tile)


def test_a_rate_needs_two_readings_and_a_clock_that_goes_on() -> None:
    """A first reading, a clock that stands still or goes back, and a counter that goes back give no rate."""
    rate = Rate()
    assert not rate.started
    readings = [(100, 1000), (150, 1100), (150, 1100), (160, 1200), (10, 1300), (60, 1400), (70, 1390), (80, 1400)]
    assert [rate.since_last(*reading) for reading in readings] == [None, 0.5, None, 0.1, None, 0.5, None, 1.0]
    assert rate.started


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        ([(ALL, 0.3), (COMPUTE_SINGLE, 0.9), (COPY_SINGLE, 0.1)], 0.9),  # "all" may be a mean
        ([(ALL, 0.9), (COMPUTE_SINGLE, 0.4), (COMPUTE_SINGLE, 0.5)], 0.9),  # or what any of them did
        ([(ALL, 1.02)], 1.0),
        ([(ALL, 7.0), (COMPUTE, 0.5)], 0.5),
        ([(ALL, 7.0), (COPY, 0.5)], None),
        ([(ALL, 7.0)], None),
        ([(ALL, None), (COPY, 0.5)], None),
        ([(ALL, 0.5), (COPY, None)], None),
        ([], None),
    ],
)
def test_the_busiest_group_counts_and_none_is_guessed(rates: list[tuple[int, float | None]], share: float) -> None:
    """A share above 1 is no share; without one of what computes there is no utilization."""
    assert busiest(rates) == share


def test_every_tile_is_read_or_the_whole_gpu_or_nothing() -> None:
    """A tile without a group that computes is not left out of the mean."""
    first, second, whole = group(ALL, 0), group(COMPUTE_SINGLE, 1), group(ALL)
    assert groups_to_read([first, second, whole], 2) == ((first,), (second,))
    assert groups_to_read([first, group(COPY, 1), whole], 2) == ((whole,),)
    assert groups_to_read([first, group(MEDIA, 1)], 2) == ()
    assert groups_to_read([whole], 1) == ((whole,),)
    assert groups_to_read([first], 1) == ((first,),)
    assert groups_to_read([], 1) == ()


def test_a_process_that_only_opened_the_gpu_does_not_use_it() -> None:
    """The agent itself is none either; where somebody may be hidden, nobody seen is unknown."""
    own, idle, busy, unclear = (
        Process(os.getpid(), used=True),
        Process(10, used=False),
        Process(11, used=True),
        Process(12, used=None),
    )
    assert using(None, all_seen=True) is None
    assert using([own, idle], all_seen=True) == frozenset()
    assert using([own, idle], all_seen=False) is None
    assert using([idle, busy], all_seen=False) == {11}
    assert using([idle, unclear], all_seen=True) is None
    assert using([busy, unclear], all_seen=True) == {11}


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("CapEff:\t0000004000000000\n", (True, False)),
        ("CapEff:\t0000000000200000\n", (True, False)),  # CAP_SYS_ADMIN
        ("CapEff:\t0000000000080000\n", (False, True)),
        ("CapEff:\t\n", (False, False)),
        ("CapEff:\tnone\n", (False, False)),
        ("\0\xff", (False, False)),
        ("", (False, False)),
    ],
)
def test_a_capability_is_held_only_where_the_kernel_says_so(
    tmp_path: Path, status: str, found: tuple[bool, bool]
) -> None:
    """A status that cannot be read holds none."""
    (tmp_path / "status").write_text(status, encoding="latin-1")
    assert (holds(tmp_path / "status", PERFMON), holds(tmp_path / "status", SYS_PTRACE)) == found
    assert not holds(tmp_path / "none", PERFMON)

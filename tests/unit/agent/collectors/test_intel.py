"""What the Intel collector makes of counters, groups of engines and processes, whatever a library says."""

import ctypes
import os
from pathlib import Path

import pytest

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors._capabilities import PERFMON, SYS_PTRACE, holds
from gpuwaste.agent.collectors._level_zero import EngineGroup, LevelZero, Process, ZeDevice
from gpuwaste.agent.collectors._library import FieldError
from gpuwaste.agent.collectors.intel import CounterRate, IntelCollector, busiest, groups_to_read, using
from gpuwaste.agent.valid_ranges import ReadingCheck
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.ledger.gpu_sample import UnknownReason
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.sim_sysfs import make_pci_devices
from gpuwaste.testing.simnvml import make_intel_gpus

ALL, COMPUTE, MEDIA, COPY, COMPUTE_SINGLE, COPY_SINGLE = 0, 1, 2, 3, 4, 8


def group(kind: int, tile: int | None = None) -> EngineGroup:
    """Make a group of engines."""
    return EngineGroup(ctypes.c_void_p(1), kind, tile)


def test_a_rate_needs_two_readings_and_a_clock_that_goes_on() -> None:
    """A first reading, a clock that stands still or goes back, and a counter that goes back give no rate."""
    rate = CounterRate()
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
        ([(ALL, 7.0), (COPY, 0.5)], 7.0),
        ([(ALL, 7.0)], 7.0),
        ([(ALL, None), (COPY, 0.5)], None),
        ([(ALL, 0.5), (COPY, None)], None),
        ([], None),
    ],
)
def test_the_busiest_group_counts_and_none_is_guessed(rates: list[tuple[int, float | None]], share: float) -> None:
    """A share above 1 is no share, and is handed on as such where no other of what computes is there."""
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
    assert using([idle, busy], all_seen=False) == frozenset({11})
    assert using([idle, unclear], all_seen=True) is None
    assert using([busy, unclear], all_seen=True) == frozenset({11})


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


class Scripted(LevelZero):
    """A library that says what a test has it say: counters by handle, memory, energy."""

    def __init__(self, *devices: ZeDevice) -> None:
        self.listed = list(devices)
        self.counters: dict[int, tuple[int, int] | UnknownReason] = {}
        self.memory: tuple[int, int] | None = (1 << 30, 4 << 30)
        self.energy: tuple[int, int] | None = (1_000_000, 1_000_000)

    def open(self) -> None:
        """Be open."""

    def devices(self) -> list[ZeDevice]:
        """List what the test made."""
        return self.listed

    def check(self, _device: ZeDevice) -> None:
        """Answer."""

    def active(self, group: EngineGroup) -> tuple[int, int]:
        """Return the counter of this handle, or fail with its reason."""
        found = self.counters[group.handle.value or 0]
        if isinstance(found, UnknownReason):
            raise FieldError(found)
        return found

    def memory_b(self, _module: ctypes.c_void_p) -> tuple[int, int] | None:
        """Return the same of each module."""
        return self.memory

    def energy_uj(self, _domain: ctypes.c_void_p) -> tuple[int, int] | None:
        """Return the counter."""
        return self.energy

    def processes(self, _device: ZeDevice) -> list[Process] | None:
        """Return nobody."""
        return []


def device(*kinds: int, pci: str = "0000:3a:00.0", uuid: str = "u", index: int = 0) -> ZeDevice:
    """Make a GPU with an engine group of each kind; handles count from 1."""
    groups = tuple(EngineGroup(ctypes.c_void_p(at), kind, None) for at, kind in enumerate(kinds, 1))
    handle = ctypes.c_void_p(1)
    return ZeDevice(handle, index, pci, uuid, "Max 1550", 1, groups, (handle,), handle, None)


def collector(tmp_path: Path, library: LevelZero) -> IntelCollector:
    """Make a collector of a node whose sysfs has one Intel GPU."""
    make_pci_devices(tmp_path / "bus/pci/devices", make_intel_gpus([0]))
    return IntelCollector(tmp_path, tmp_path, lambda: library)


NO_PERMISSION = UnknownReason.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("copies", "computes", "found"),
    [
        ((10, 100), (20, 100), (40.0, UnknownReason.NONE)),
        (NO_PERMISSION, (20, 100), (40.0, UnknownReason.NONE)),  # copies that were never counted are left out
        ((10, 100), NO_PERMISSION, (None, NO_PERMISSION)),  # computing that cannot be counted is not idle
    ],
)
def test_engines_that_copy_may_be_missing_those_that_compute_may_not(
    tmp_path: Path,
    copies: tuple[int, int] | UnknownReason,
    computes: tuple[int, int] | UnknownReason,
    found: tuple[float | None, UnknownReason],
) -> None:
    """What cannot be read at the start decides only where it is what computes."""
    library = Scripted(device(COPY, COMPUTE))
    library.counters = {1: copies, 2: computes}
    intel = collector(tmp_path, library)
    intel.scan()
    library.counters = {
        at: (counter[0] + 40, counter[1] + 100) if not isinstance(counter, UnknownReason) else counter
        for at, counter in library.counters.items()
    }
    (reading,) = intel.scan().readings.values()
    assert (reading.util_pct, reading.reason) == found


def test_counters_that_lie_give_no_figure(tmp_path: Path) -> None:
    """A clock that stands still, use of 900 %, and watts of a power station are unknown; the next reading is good."""
    library, check = Scripted(device(COMPUTE)), ReadingCheck(EventLog(FakeClock()))
    intel = collector(tmp_path, library)
    found = []
    for counter, energy in (
        ((0, 1000), (0, 1000)),
        ((0, 1000), (10**15, 2000)),
        ((9000, 2000), (10**15, 2000)),
        ((9500, 3000), (10**15 + 500_000, 3000)),
    ):
        library.counters, library.energy = {1: counter}, energy
        (reading,) = check.scan(intel.scan()).readings.values()
        found.append((reading.util_pct, reading.reason, reading.power_mw))
    driver = UnknownReason.DRIVER
    assert found == [
        (None, UnknownReason.GAP, None),
        (None, driver, None),
        (None, UnknownReason.INVALID, None),
        (50.0, "", 500_000),
    ]


def test_memory_that_lies_is_absent(tmp_path: Path) -> None:
    """More in use than there was at the start, and a module that fails, are no figure."""
    library, check = Scripted(device(COMPUTE)), ReadingCheck(EventLog(FakeClock()))
    library.counters = {1: (0, 1)}
    intel = collector(tmp_path, library)
    found = []
    for memory in ((1 << 30, 4 << 30), (8 << 30, 16 << 30), None):
        library.memory = memory
        (reading,) = check.scan(intel.scan()).readings.values()
        found.append((reading.mem_used_b, reading.mem_total_b))
    assert found == [(1 << 30, 4 << 30), (None, 4 << 30), (None, 4 << 30)]


def test_a_gpu_of_two_drivers_is_one_and_two_of_one_uuid_are_refused(tmp_path: Path) -> None:
    """The address decides; without a UUID it is the name."""
    library = Scripted(device(COMPUTE), device(COMPUTE, index=1), device(COMPUTE, pci="0000:4a:00.0", uuid="", index=2))
    library.counters = {1: (0, 1)}
    assert [gpu.uuid for gpu in collector(tmp_path, library).scan().gpus] == ["GPU-u", "INTEL-0000-4a-00.0"]
    library.listed.append(device(COMPUTE, pci="0000:5a:00.0", index=3))
    with pytest.raises(CollectorError, match="two GPUs one UUID"):
        collector(tmp_path, library).scan()


def test_an_energy_counter_that_stands_still_is_no_power(tmp_path: Path) -> None:
    """The power comes from the counter: while it does not move nobody knows the power, which is not 0 W."""
    library = Scripted(device(COMPUTE))
    intel = collector(tmp_path, library)
    found = []
    for at, energy_uj in enumerate((5, 5, 500_005)):
        library.counters, library.energy = {1: (1000 * at, 1000 * at)}, (energy_uj, 1000 * at)
        (reading,) = intel.scan().readings.values()
        found.append(reading.power_mw)
    assert found == [None, None, 500_000]

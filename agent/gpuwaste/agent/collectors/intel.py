"""Intel GPUs through Level Zero (libze_loader): use, memory, power, energy, processes.

Utilization is the mean since the last reading, from the counters of the engine groups: that of the busiest one, since a
driver may count "all engines" as a mean of all. Slurm allocates full GPUs: for one with tiles it is the mean of its
tiles. Device files are found by PCI address in sysfs. Values that Linux shows only with a capability are absent
without it.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.agent.bounded_calls import BoundedCollector, CollectorError
from gpuwaste.agent.collectors import CollectorSettings, _level_zero
from gpuwaste.agent.collectors._capabilities import PERFMON, SYS_PTRACE, holds
from gpuwaste.agent.collectors._drm import has_render_node, minors_at, nodes_of
from gpuwaste.agent.collectors._level_zero import EngineGroup, LevelZero, Process, ZeDevice
from gpuwaste.agent.collectors._library import FieldError
from gpuwaste.agent.readings import GpuIdentity, GpuReading, GpuScan
from gpuwaste.ledger.gpu_sample import UnknownReason

KIND: Final = "gpu"
_VENDOR: Final = "intel"
_PCI_VENDOR: Final = "0x8086"
# zes_engine_group_t of computing engines: all engines, compute and render; the others copy, or encode and decode
_COMPUTES: Final = frozenset({0, 1, 4, 5, 10, 11, 12, 13})
_FULL: Final = 1.0
_OVER: Final = 1.05  # tolerance for two clocks that are read one after the other


class CounterRate:
    """Keeps the last reading of one counter."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    @property
    def started(self) -> bool:
        """Whether there was a reading."""
        return self._last is not None

    def since_last(self, value: int, stamp: int) -> float | None:
        """Return growth of the counter per unit of its clock since the last reading.

        None for the first reading, for a clock that did not advance, and for a counter or clock that decreased: such a
        reading is the start of the next interval.
        """
        last, self._last = self._last, (value, stamp)
        if last is None or stamp <= last[1] or value < last[0]:
            return None
        return (value - last[0]) / (stamp - last[1])


def create(settings: CollectorSettings) -> BoundedCollector:
    """Create the collector; the first scan opens the library."""
    return BoundedCollector(IntelCollector(settings.sys_root, settings.proc_root), settings.scan_limit_s)


@dataclass(frozen=True, slots=True)
class _Meter:
    """A group of engines with its last reading."""

    group: EngineGroup
    rate: CounterRate = field(default_factory=CounterRate)


@dataclass(frozen=True, slots=True)
class _IntelEntry:
    """One GPU to read, with its last readings."""

    identity: GpuIdentity
    device: ZeDevice
    tiles: tuple[tuple[_Meter, ...], ...]
    power: CounterRate = field(default_factory=CounterRate)


class IntelCollector:
    """Reads every Intel GPU."""

    name = "intel"

    def __init__(
        self, sys_root: Path, proc_root: Path, find: Callable[[], LevelZero | None] = _level_zero.find
    ) -> None:
        self._sys_root = sys_root
        self._proc_root = proc_root
        self._find = find
        self._library: LevelZero | None = None
        self._entries: list[_IntelEntry] = []

    def scan(self) -> GpuScan:
        """Read every GPU once. Raises CollectorError("driver") without a library or a driver."""
        library = self._library or self._open()
        capable = {bit: holds(self._proc_root / "self" / "status", bit) for bit in (PERFMON, SYS_PTRACE)}
        readings = {entry.identity.uuid: _read(library, entry, capable) for entry in self._entries}
        return GpuScan(self.name, tuple(entry.identity for entry in self._entries), readings, generation=1)

    def close(self) -> None:
        """Do nothing: Level Zero has no call that releases a GPU before the process ends."""

    def _open(self) -> LevelZero:
        if not has_render_node(self._sys_root, _PCI_VENDOR):
            raise CollectorError("Intel: sysfs shows no GPU of Intel: is the driver (i915 or xe) loaded?")
        library = self._find()
        if library is None:
            raise CollectorError("Intel: no library: install level-zero (libze_loader.so.1)")
        library.open()
        # Two drivers of Level Zero may list one GPU.
        devices = {device.pci: device for device in reversed(library.devices())}.values()
        entries = [self._entry(library, device) for device in sorted(devices, key=lambda device: device.index)]
        if len({entry.identity.uuid for entry in entries}) < len(entries):
            raise CollectorError("Intel: the library gives two GPUs one UUID")
        if not entries:
            raise CollectorError("Intel: the library lists no GPU: may the agent open /dev/dri? Then restart the agent")
        self._library, self._entries = library, entries
        return library

    def _entry(self, library: LevelZero, device: ZeDevice) -> _IntelEntry:
        render, card = minors_at(self._sys_root, device.pci)
        sizes = [library.memory_b(module) for module in device.memories]
        identity = GpuIdentity(
            uuid=f"GPU-{device.uuid}" if device.uuid else f"INTEL-{device.pci.replace(':', '-')}",
            index=device.index,
            minor=render,
            name=device.name,
            pci_bus_id=device.pci,
            mem_total_b=sum(size[1] for size in sizes if size is not None) or None,
            power_limit_mw=device.power_limit_mw,
            vendor=_VENDOR,
            nodes=nodes_of(render, card),
        )
        engines = [group for group in device.engines if _readable(library, group)]
        groups = groups_to_read(engines, device.tiles)
        return _IntelEntry(identity, device, tuple(tuple(map(_Meter, tile)) for tile in groups))


def groups_to_read(engines: Sequence[EngineGroup], tiles: int) -> tuple[tuple[EngineGroup, ...], ...]:
    """Return the groups of each tile, or of the full GPU; () where computing engines of a tile would be left out."""
    by_tile = [tuple(group for group in engines if group.tile == tile) for tile in range(tiles)]
    if all(map(_computes, by_tile)):
        return tuple(by_tile)
    whole = tuple(group for group in engines if group.tile is None)
    return (whole,) if _computes(whole) else ()


def _computes(groups: Sequence[EngineGroup]) -> bool:
    return any(group.kind in _COMPUTES for group in groups)


def _readable(library: LevelZero, group: EngineGroup) -> bool:
    """Return whether to read a group: computing ones always, others if they can be read at the start."""
    try:
        library.active(group)
    except FieldError:
        return group.kind in _COMPUTES
    return True


def _read(library: LevelZero, entry: _IntelEntry, capable: dict[int, bool]) -> GpuReading:
    util, reason = _utilization(library, entry)
    total, used = entry.identity.mem_total_b, _mem_used_b(library, entry.device, trusted=capable[PERFMON])
    energy = None if entry.device.power is None else library.energy_uj(entry.device.power)
    watts = None if energy is None else entry.power.since_last(*energy)
    if reason is UnknownReason.GPU_LOST and (used is not None or energy is not None):
        reason = UnknownReason.DRIVER  # it still answers: not lost
    return GpuReading(
        entry.identity.uuid,
        util_pct=util,
        mem_used_b=used,
        mem_total_b=total,
        power_mw=round(watts * 1000) if watts else None,  # a counter that does not move is no reading of 0 W
        energy_mj=energy[0] // 1000 if energy is not None else None,
        pids=using(library.processes(entry.device), all_seen=capable[SYS_PTRACE]),
        reason=reason,
    )


def _utilization(library: LevelZero, entry: _IntelEntry) -> tuple[float | None, UnknownReason]:
    """Return the mean over tiles since the last reading, or why there is none."""
    first = not all(meter.rate.started for tile in entry.tiles for meter in tile)
    try:
        shares = [_share(library, tile) for tile in entry.tiles]
        if not shares:
            library.check(entry.device)
    except FieldError as error:
        return None, error.reason
    known = [share for share in shares if share is not None]
    if not shares:
        return None, UnknownReason.NOT_SUPPORTED
    if len(known) < len(shares):
        return None, UnknownReason.GAP if first else UnknownReason.DRIVER
    largest = max(known)
    return 100 * (largest if largest > _FULL else sum(known) / len(known)), UnknownReason.NONE


def _share(library: LevelZero, tile: Sequence[_Meter]) -> float | None:
    return busiest([(meter.group.kind, meter.rate.since_last(*library.active(meter.group))) for meter in tile])


def busiest(rates: Sequence[tuple[int, float | None]]) -> float | None:
    """Return the largest share of time of the groups (kind, share); None if one is unknown.

    A share above 1 is skipped; if those of all computing groups are above 1, the largest is returned unchanged.
    """
    known = [(kind, share) for kind, share in rates if share is not None]
    if len(known) < len(rates) or not any(kind in _COMPUTES for kind, _ in known):
        return None
    possible = [(kind, share) for kind, share in known if share <= _OVER]
    if any(kind in _COMPUTES for kind, _ in possible):
        return min(max(share for _, share in possible), _FULL)
    return max(share for _, share in known)


def _mem_used_b(library: LevelZero, device: ZeDevice, *, trusted: bool) -> int | None:
    """Return memory in use of all modules; None for the kernel's 0 to a process without CAP_PERFMON."""
    found = [library.memory_b(module) for module in device.memories]
    known = [state[0] for state in found if state is not None]
    used = sum(known)
    return None if not known or len(known) < len(found) or not (used or trusted) else used


def using(processes: Sequence[Process] | None, *, all_seen: bool) -> frozenset[int] | None:
    """Return the processes that used an engine; None if there may be one that the agent cannot see.

    A process that only opened the GPU does not count: with Level Zero every program opens all GPUs that it may.
    """
    if processes is None:
        return None
    others = [process for process in processes if process.pid != os.getpid()]
    found = frozenset(process.pid for process in others if process.used)
    unclear = not all_seen or any(process.used is None for process in others)
    return None if unclear and not found else found

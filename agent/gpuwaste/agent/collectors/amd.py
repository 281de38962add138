"""AMD GPUs through libamd_smi, or librocm_smi64 where only that is usable: use, memory, power, energy, processes.

The libraries return the current percentage, not a mean since the last reading. A GPU in partition mode (CPX, DPX, ...)
is listed with its power and energy, and each partition with its own use, memory and processes, if the library has
them. Device files are from the library, else by PCI address from sysfs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpuwaste.agent.bounded_calls import BoundedCollector, CollectorError
from gpuwaste.agent.collectors import CollectorSettings, _amdsmi, _rocm_smi
from gpuwaste.agent.collectors._amd_library import AmdDevice, AmdLibrary
from gpuwaste.agent.collectors._drm import minors_at, nodes_of
from gpuwaste.agent.collectors._library import FieldError
from gpuwaste.agent.readings import GpuIdentity, GpuReading, GpuScan
from gpuwaste.ledger.gpu_sample import UnknownReason

KIND: Final = "gpu"
_VENDOR: Final = "amd"
_FINDERS: Final[Sequence[Callable[[], AmdLibrary | None]]] = (_amdsmi.find, _rocm_smi.find)


def create(settings: CollectorSettings) -> BoundedCollector:
    """Create the collector; the first scan opens a library."""
    return BoundedCollector(AmdCollector(settings.sys_root), settings.scan_limit_s)


@dataclass(frozen=True, slots=True)
class _AmdEntry:
    """One GPU or partition to read; `device` is None for the GPU itself in partition mode."""

    identity: GpuIdentity
    device: AmdDevice | None
    sensors: AmdDevice | None = None  # where the full GPU's power and energy are read


class AmdCollector:
    """Reads every AMD GPU and partition."""

    name = "amd"

    def __init__(self, sys_root: Path, finders: Sequence[Callable[[], AmdLibrary | None]] = _FINDERS) -> None:
        self._sys_root = sys_root
        self._finders = finders
        self._library: AmdLibrary | None = None
        self._entries: list[_AmdEntry] = []
        self._modes: list[str] = []
        self._known: dict[str, GpuIdentity] = {}
        self._generation = 0

    def scan(self) -> GpuScan:
        """Read every GPU once. Raises CollectorError("driver") without a library or a driver."""
        try:
            library = self._library or self._open()
            if self._modes_of(library) != self._modes:  # partitions changed: only a restart of the library lists them
                self.close()
                library = self._open()
            return self._scan(library)
        except CollectorError:
            self.close()
            raise

    def close(self) -> None:
        """Shut the library down, so that a GPU can be reset."""
        if self._library is not None:
            self._library.close()
        self._library, self._entries, self._modes = None, [], []

    def _open(self) -> AmdLibrary:
        """Open the first library that lists GPUs. Raises CollectorError with the error of each library."""
        said: list[str] = []
        for find in self._finders:
            library = find()
            if library is None:
                continue
            try:
                library.open()
                devices = library.devices()
            except CollectorError as error:
                said.append(str(error))
                library.close()
                continue
            self._take(library, devices)
            return library
        missing = "AMD: no library: install amd-smi-lib (libamd_smi.so) or rocm-smi-lib (librocm_smi64.so)"
        raise CollectorError("; ".join(said) or missing)

    def _take(self, library: AmdLibrary, devices: Sequence[AmdDevice]) -> None:
        if not devices:
            library.close()
            raise CollectorError(
                "AMD: the library lists no GPU: is the amdgpu driver loaded, and may the agent read it?"
            )
        groups: dict[str, list[AmdDevice]] = {}
        for device in devices:
            groups.setdefault(device.pci, []).append(device)
        self._library = library
        self._entries = [entry for group in groups.values() for entry in _entries(self._with_nodes(group))]
        self._modes = self._modes_of(library)
        here = {entry.identity.uuid for entry in self._entries}
        self._entries += [_AmdEntry(identity, None) for uuid, identity in self._known.items() if uuid not in here]
        self._known.update(
            {entry.identity.uuid: entry.identity for entry in self._entries if not entry.identity.instance}
        )
        self._generation += 1

    def _with_nodes(self, group: list[AmdDevice]) -> list[AmdDevice]:
        """Add device files that the library does not return; those of partitions are not at the GPU's address."""
        (first, *more) = group
        if more or (first.render is not None and first.card is not None):
            return group
        render, card = minors_at(self._sys_root, f"{first.pci}.0")
        if first.render is None:
            return [replace(first, render=render, card=card)]
        return [replace(first, card=card)] if render == first.render else group

    def _modes_of(self, library: AmdLibrary) -> list[str]:
        devices = [entry.device or entry.sensors for entry in self._entries if not entry.identity.instance]
        return [library.mode(device) for device in devices if device is not None]

    def _scan(self, library: AmdLibrary) -> GpuScan:
        processes = library.processes()
        readings = {entry.identity.uuid: _read(library, entry, processes) for entry in self._entries}
        if all(reading.reason is UnknownReason.DRIVER for reading in readings.values()):
            raise CollectorError("AMD: no GPU answers: was the driver unloaded?")
        return GpuScan(self.name, tuple(entry.identity for entry in self._entries), readings, self._generation)


def _uuid(device: AmdDevice) -> str:
    """Return ROCm's UUID of a GPU (rocminfo, ROCR_VISIBLE_DEVICES); its address if it has no id."""
    return f"GPU-{device.unique_id:016x}" if device.unique_id else f"AMD-{device.pci.replace(':', '-')}"


def _entries(group: list[AmdDevice]) -> list[_AmdEntry]:
    """Return the entries of one GPU: itself, or itself and its partitions."""
    first = group[0]
    whole = GpuIdentity(
        uuid=_uuid(first),
        index=first.index,
        minor=first.render,
        name=first.name,
        pci_bus_id=f"{first.pci}.0",
        mem_total_b=first.mem_total_b,
        power_limit_mw=first.power_limit_mw,
        vendor=_VENDOR,
        nodes=nodes_of(first.render, first.card),
    )
    if len(group) == 1:
        return [_AmdEntry(whole, first, first)]
    numbers = {device.partition for device in group}
    distinct = len(numbers) == len(group)  # without numbers they are listed in order
    parts = [replace(device, partition=device.partition if distinct else at) for at, device in enumerate(group)]
    cut = replace(whole, minor=None, nodes=(), mem_total_b=None)
    return [_AmdEntry(cut, None, first), *(_part(cut, device) for device in parts)]


def _part(whole: GpuIdentity, device: AmdDevice) -> _AmdEntry:
    identity = replace(
        whole,
        uuid=f"{whole.uuid}-p{device.partition}",
        index=device.index,
        minor=device.render,
        mem_total_b=device.mem_total_b,
        power_limit_mw=None,
        parent_uuid=whole.uuid,
        instance=str(device.partition),
        nodes=nodes_of(device.render, device.card),
    )
    return _AmdEntry(identity, device)


def _read(library: AmdLibrary, entry: _AmdEntry, processes: dict[int, frozenset[int]] | None) -> GpuReading:
    uuid, device, sensors = entry.identity.uuid, entry.device, entry.sensors
    if device is None and sensors is None:
        return GpuReading(uuid, reason=UnknownReason.GPU_LOST)
    power = library.power_mw(sensors) if sensors else None
    energy = library.energy_mj(sensors) if sensors else None
    if device is None:
        return GpuReading(uuid, power_mw=power, energy_mj=energy, reason=UnknownReason.PARTITION)
    util, reason = _utilization(library, device, partition=bool(entry.identity.instance))
    total, used = entry.identity.mem_total_b, library.mem_used_b(device)
    if reason is UnknownReason.GPU_LOST and (used is not None or power is not None):
        reason = UnknownReason.DRIVER  # it still answers: not lost
    return GpuReading(
        uuid,
        util_pct=util,
        mem_used_b=used,
        mem_total_b=total,
        power_mw=power,
        energy_mj=energy,
        pids=None if processes is None else processes.get(device.index, frozenset()),
        reason=reason,
    )


def _utilization(library: AmdLibrary, device: AmdDevice, *, partition: bool) -> tuple[float | None, UnknownReason]:
    try:
        percent = library.busy_pct(device, partition=partition)
    except FieldError as error:
        return None, error.reason
    return percent, UnknownReason.NONE if percent is not None else UnknownReason.NOT_SUPPORTED

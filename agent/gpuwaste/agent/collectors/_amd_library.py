"""The AMD collector's interface to a library, and code shared by libamd_smi and librocm_smi64: devices, processes."""

import ctypes
import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gpuwaste.agent.collectors._library import MAX_DEVICES, MAX_PID, FieldError, Library
from gpuwaste.ledger.gpu_sample import UnknownReason

VRAM: Final = ctypes.c_uint32(0)
"""The type of GPU memory in these libraries."""
SENSOR: Final = ctypes.c_uint32(0)
"""The first power sensor."""
_MAX_PROCESSES: Final = 1024
_ABSENT: Final = frozenset({0xFFFF, 0xFFFFFFFF})  # all bits of the driver's own field, 16 or 32
_NO_COUNT: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class AmdDevice:
    """One device in ROCm's list: a full GPU, or a partition (CPX, DPX, ...) of one."""

    handle: Any
    index: int
    pci: str  # domain:bus:device, hexadecimal, the same for all partitions of a GPU
    partition: int
    render: int | None  # minor of /dev/dri/renderDN
    card: int | None  # minor of /dev/dri/cardN
    unique_id: int | None  # fused into the GPU; the same for all its partitions
    name: str
    mem_total_b: int | None
    power_limit_mw: int | None


class AmdLibrary(Protocol):
    """One of AMD's libraries. Calls raise CollectorError without a driver."""

    def open(self) -> None:
        """Initialise the library."""
        ...

    def close(self) -> None:
        """Shut it down; never raises."""
        ...

    def devices(self) -> list[AmdDevice]:
        """Return the devices in the library's order."""
        ...

    def mode(self, device: AmdDevice) -> str:
        """Return the GPU's partition mode (SPX, CPX, ...), "" where that cannot be read."""
        ...

    def busy_pct(self, device: AmdDevice, *, partition: bool) -> float | None:
        """Return the percentage of time in which the device is busy; raises FieldError where it cannot be read."""
        ...

    def mem_used_b(self, device: AmdDevice) -> int | None:
        """Return GPU memory in use."""
        ...

    def power_mw(self, device: AmdDevice) -> int | None:
        """Return the current power of the full GPU."""
        ...

    def energy_mj(self, device: AmdDevice) -> int | None:
        """Return the energy counter of the full GPU."""
        ...

    def processes(self) -> dict[int, frozenset[int]] | None:
        """Return the processes with a compute queue by device index, None where they cannot be read."""
        ...


class ProcessInfo(ctypes.Structure):
    """rsmi_process_info_t and amdsmi_process_info_t, all versions (rocm_smi.h, amdsmi.h)."""

    _fields_ = (
        ("process_id", ctypes.c_uint32),
        ("pasid", ctypes.c_uint32),
        ("vram_usage", ctypes.c_uint64),
        ("sdma_usage", ctypes.c_uint64),
        ("cu_occupancy", ctypes.c_uint32),
    )


def read_processes(library: Library, listing: str, devices_of: str, count: int) -> dict[int, frozenset[int]] | None:
    """Return pids by device index, of `count` devices. `listing` and `devices_of` are the functions' names.

    None where the devices of one process cannot be read: a GPU without a process would count as untouched.
    """
    held: dict[int, set[int]] = {index: set() for index in range(count)}
    room = ctypes.c_uint32(_MAX_PROCESSES)
    infos = (ProcessInfo * _MAX_PROCESSES)()
    if not library.fills(listing, infos, ctypes.byref(room)):
        return None
    for info in infos[: min(room.value, _MAX_PROCESSES)]:
        if not 0 < info.process_id <= MAX_PID:
            continue
        size, indices = ctypes.c_uint32(MAX_DEVICES), (ctypes.c_uint32 * MAX_DEVICES)()
        try:
            library.call(devices_of, ctypes.c_uint32(info.process_id), indices, ctypes.byref(size))
        except FieldError as error:
            if error.reason is UnknownReason.GPU_LOST:  # not found: the process has ended
                continue
            return None
        for index in indices[: min(size.value, MAX_DEVICES)]:
            held.get(index, set()).add(info.process_id)
    return {index: frozenset(pids) for index, pids in held.items()}


def percent(value: int | None) -> float | None:
    """Return a percentage unchanged; None for the libraries' "absent": all bits set."""
    return None if value is None or value in _ABSENT else float(value)


def read_energy_mj(library: Library, name: str, handle: Any) -> int | None:
    """Return an energy counter: a count, times its resolution in microjoules; None for all bits set, "absent"."""
    count, resolution, stamp = ctypes.c_uint64(), ctypes.c_float(), ctypes.c_uint64()
    if not library.fills(name, handle, ctypes.byref(count), ctypes.byref(resolution), ctypes.byref(stamp)):
        return None
    found = count.value * resolution.value / 1000
    return int(found) if count.value != _NO_COUNT and math.isfinite(found) else None

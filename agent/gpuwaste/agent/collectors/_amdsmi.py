"""libamd_smi, generations 24 (ROCm 6.2 and 6.3), 25 (6.4) and 26 (7.0).

Its structs change from one generation to the next, so fields of structs are read at the offsets of `_LAYOUTS`:
those of the vendor's Python package amdsmi 6.2.4, 6.3.3, 6.4.4 and 7.0.2 (amdsmi_wrapper.py, made from amdsmi.h).
"""

import ctypes
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors._amd_library import (
    SENSOR,
    VRAM,
    AmdDevice,
    percent,
    read_energy_mj,
    read_processes,
)
from gpuwaste.agent.collectors._library import (
    MAX_DEVICES,
    ErrorCodes,
    FieldError,
    Library,
    address,
    device_count,
    load,
    text,
)
from gpuwaste.agent.valid_ranges import UTILIZATION
from gpuwaste.ledger.gpu_sample import UnknownReason

NAMES: Final = (
    *(f"libamd_smi.so.{generation}" for generation in (26, 25, 24)),
    "/opt/rocm/lib/libamd_smi.so",
    "libamd_smi.so",
)
_CODES: Final = ErrorCodes(
    driver=frozenset({4, 32, 34}), lost=frozenset({31}), absent=frozenset({1, 2, 3, 5, 10, 40, 52, 55})
)
_INIT_AMD_GPUS: Final = ctypes.c_uint64(2)
_BUFFER_BYTES: Final = 16384  # above every struct that is read


@dataclass(frozen=True, slots=True)
class AmdsmiLayout:
    """Offsets and sizes in bytes in one generation."""

    serial: int  # amdsmi_asic_info_t.asic_serial
    serial_bytes: int
    socket_power: int | None  # amdsmi_power_info_t, uint64 watts
    current_power: int  # uint32 watts
    partition_bytes: int  # of one element of amdsmi_gpu_metrics_t.xcp_stats


LAYOUTS: Final = {
    24: AmdsmiLayout(340, 32, None, 0, 168),
    25: AmdsmiLayout(532, 256, 0, 8, 232),
    26: AmdsmiLayout(532, 256, 0, 8, 504),
}
NUM_PARTITION: Final = 472  # amdsmi_gpu_metrics_t.num_partition, uint16
XCP_STATS: Final = 480  # amdsmi_gpu_metrics_t.xcp_stats; each begins with gfx_busy_inst, 8 uint32 percent
_ENGINES: Final = 8
_FIRST: Final = (24, 6)  # ROCm 6.2; earlier ones have another amdsmi_asic_info_t
_MAX_PARTITIONS: Final = 8


class AmdSmi:
    """Reads GPUs through libamd_smi."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._layout: AmdsmiLayout | None = None
        self._count = 0

    def open(self) -> None:
        """Initialise the library. Raises CollectorError where there is no AMD driver."""
        try:
            self._library.call("amdsmi_init", _INIT_AMD_GPUS)
        except FieldError as error:
            raise CollectorError("AMD SMI: amdsmi_init failed: is the amdgpu driver loaded?") from error

    def close(self) -> None:
        """Shut the library down."""
        with suppress(CollectorError, FieldError):
            self._library.call("amdsmi_shut_down")

    def generation(self) -> tuple[int, int]:
        """Return the first two numbers of the library's version; the first is the year up to 25."""
        buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
        if not self._library.fills("amdsmi_get_lib_version", buffer):
            return 0, 0
        return _u32(buffer, 0), _u32(buffer, 4)

    def devices(self) -> list[AmdDevice]:
        """Return the devices in the library's order. Raises CollectorError for an unknown generation."""
        generation, major = self.generation()
        self._layout = None if (generation, major) < _FIRST else LAYOUTS.get(generation)
        if self._layout is None:
            raise CollectorError(f"AMD SMI: libamd_smi {generation}.{major} is not known here: known are 24.6 to 26")
        sockets = self._handles("amdsmi_get_socket_handles")
        handles = [handle for socket in sockets for handle in self._handles("amdsmi_get_processor_handles", socket)]
        self._count = device_count(len(handles), "AMD SMI")
        found = (self._device(index, handle, self._layout) for index, handle in enumerate(handles))
        return [device for device in found if device is not None]

    def _handles(self, name: str, *arguments: Any) -> list[ctypes.c_void_p]:
        count, handles = ctypes.c_uint32(MAX_DEVICES), (ctypes.c_void_p * MAX_DEVICES)()
        if not self._library.fills(name, *arguments, ctypes.byref(count), handles):
            raise CollectorError(f"AMD SMI: cannot list GPUs: {name} failed")
        return [ctypes.c_void_p(handle) for handle in handles[: device_count(count.value, "AMD SMI")]]

    def _device(self, index: int, handle: ctypes.c_void_p, layout: AmdsmiLayout) -> AmdDevice | None:
        bdf = self._library.number("amdsmi_get_gpu_device_bdf", handle)
        if bdf is None:
            return None
        device = AmdDevice(
            handle=handle,
            index=index,
            pci=address(bdf >> 16, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F),
            partition=0,
            render=None,
            card=None,
            unique_id=None,
            name="",
            mem_total_b=self._library.number("amdsmi_get_gpu_memory_total", handle, VRAM),
            power_limit_mw=self._power_limit_mw(handle),
        )
        return self._named(self._numbered(device), layout)

    def _power_limit_mw(self, handle: ctypes.c_void_p) -> int | None:
        buffer = self._filled("amdsmi_get_power_cap_info", handle, SENSOR)
        return None if buffer is None else _u64(buffer, 0) // 1000

    def _numbered(self, device: AmdDevice) -> AmdDevice:
        """Add the partition's number and the device files, which the library has from generation 25 on."""
        kfd = self._filled("amdsmi_get_gpu_kfd_info", device.handle)
        partition = 0 if kfd is None else _u32(kfd, 12)
        nodes = self._filled("amdsmi_get_gpu_enumeration_info", device.handle)
        render, card = (None, None) if nodes is None else (_known(_u32(nodes, 0)), _known(_u32(nodes, 4)))
        return replace(device, partition=partition if partition < _MAX_PARTITIONS else 0, render=render, card=card)

    def _named(self, device: AmdDevice, layout: AmdsmiLayout) -> AmdDevice:
        asic = self._filled("amdsmi_get_gpu_asic_info", device.handle)
        if asic is None:
            return device
        serial = text(asic.raw[layout.serial : layout.serial + layout.serial_bytes])
        with suppress(ValueError):
            device = replace(device, unique_id=int(serial, 16) & 0xFFFF_FFFF_FFFF_FFFF)
        return replace(device, name=text(asic.raw[:256]))

    def mode(self, device: AmdDevice) -> str:
        """Return the GPU's partition mode."""
        name = ctypes.create_string_buffer(64)
        found = self._library.fills("amdsmi_get_gpu_compute_partition", device.handle, name, ctypes.c_uint32(64))
        return text(name.raw) if found else ""

    def busy_pct(self, device: AmdDevice, *, partition: bool) -> float | None:
        """Return the percentage of a full GPU, or the mean over a partition's engines."""
        if partition:
            return self._partition_pct(device)
        buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
        self._library.call("amdsmi_get_gpu_activity", device.handle, buffer)
        return percent(_u32(buffer, 0))

    def _partition_pct(self, device: AmdDevice) -> float:
        buffer = ctypes.create_string_buffer(b"\xff" * _BUFFER_BYTES, _BUFFER_BYTES)
        self._library.call("amdsmi_get_gpu_metrics_info", device.handle, buffer)
        count = ctypes.c_uint16.from_buffer(buffer, NUM_PARTITION).value
        if self._layout is None or not device.partition < count <= _MAX_PARTITIONS:
            raise FieldError(UnknownReason.PARTITION)
        first = XCP_STATS + device.partition * self._layout.partition_bytes
        found = [percent(_u32(buffer, first + 4 * engine)) for engine in range(_ENGINES)]
        known = [value for value in found if value is not None]
        if not known:
            raise FieldError(UnknownReason.PARTITION)
        largest = max(known)
        return largest if UTILIZATION.fault(largest) else sum(known) / len(known)

    def mem_used_b(self, device: AmdDevice) -> int | None:
        """Return GPU memory in use."""
        return self._library.number("amdsmi_get_gpu_memory_usage", device.handle, VRAM)

    def power_mw(self, device: AmdDevice) -> int | None:
        """Return the current power."""
        buffer = self._filled("amdsmi_get_power_info", device.handle)
        if buffer is None or self._layout is None:
            return None
        places = [_u32(buffer, self._layout.current_power), _u32(buffer, self._layout.current_power + 4)]
        if self._layout.socket_power is not None:
            places.insert(0, _u64(buffer, self._layout.socket_power))
        return next((watts * 1000 for watts in places if 0 < watts < 0xFFFF), None)  # noqa: PLR2004 all bits: absent

    def energy_mj(self, device: AmdDevice) -> int | None:
        """Return the energy counter."""
        return read_energy_mj(self._library, "amdsmi_get_energy_count", device.handle)

    def processes(self) -> dict[int, frozenset[int]] | None:
        """Return the processes with a compute queue by device index."""
        names = ("amdsmi_get_gpu_compute_process_info", "amdsmi_get_gpu_compute_process_gpus")
        return read_processes(self._library, *names, self._count)

    def _filled(self, name: str, *arguments: Any) -> "ctypes.Array[ctypes.c_char] | None":
        buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
        return buffer if self._library.fills(name, *arguments, buffer) else None


def _u32(buffer: "ctypes.Array[ctypes.c_char]", offset: int) -> int:
    return ctypes.c_uint32.from_buffer(buffer, offset).value


def _u64(buffer: "ctypes.Array[ctypes.c_char]", offset: int) -> int:
    return ctypes.c_uint64.from_buffer(buffer, offset).value


def _known(value: int) -> int | None:
    return None if value == 0xFFFFFFFF else value  # noqa: PLR2004 all bits set: absent


def find() -> AmdSmi | None:
    """Load the library; None where it is not installed."""
    handle = load(NAMES)
    return None if handle is None else AmdSmi(Library("AMD SMI", handle, _CODES))

"""librocm_smi64, used where libamd_smi is missing or of an unknown generation (rocm_smi.h of ROCm 5.2)."""

import ctypes
from contextlib import suppress
from typing import Final

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors._amd_library import (
    SENSOR,
    VRAM,
    AmdDevice,
    percent,
    read_energy_mj,
    read_processes,
)
from gpuwaste.agent.collectors._library import ErrorCodes, FieldError, Library, address, device_count, load, text
from gpuwaste.ledger.gpu_sample import UnknownReason

NAMES: Final = (
    *(f"librocm_smi64.so.{version}" for version in (7, 6, 5, 1)),
    "/opt/rocm/lib/librocm_smi64.so",
    "librocm_smi64.so",
)
_CODES: Final = ErrorCodes(driver=frozenset({8}), lost=frozenset({10}), absent=frozenset({1, 2, 3, 4, 9}))
_NAME_BYTES: Final = 128


class RocmSmi:
    """Reads GPUs through librocm_smi64."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._count = 0

    def open(self) -> None:
        """Initialise the library. Raises CollectorError where there is no AMD driver."""
        try:
            self._library.call("rsmi_init", ctypes.c_uint64(0))
        except FieldError as error:
            raise CollectorError("ROCm SMI: rsmi_init failed: is the amdgpu driver loaded?") from error

    def close(self) -> None:
        """Shut the library down."""
        with suppress(CollectorError, FieldError):
            self._library.call("rsmi_shut_down")

    def devices(self) -> list[AmdDevice]:
        """Return the devices in the library's order."""
        count = self._library.number("rsmi_num_monitor_devices", kind=ctypes.c_uint32)
        self._count = device_count(count, "ROCm SMI")
        return [device for index in range(self._count) if (device := self._device(index)) is not None]

    def _device(self, index: int) -> AmdDevice | None:
        handle, number = ctypes.c_uint32(index), self._library.number
        bdf = number("rsmi_dev_pci_id_get", handle)
        if bdf is None:
            return None
        name = ctypes.create_string_buffer(_NAME_BYTES)
        named = self._library.fills("rsmi_dev_name_get", handle, name, ctypes.c_size_t(_NAME_BYTES))
        cap_uw = number("rsmi_dev_power_cap_get", handle, SENSOR)
        return AmdDevice(
            handle=handle,
            index=index,
            pci=address(bdf >> 32, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F),
            partition=bdf >> 28 & 0xF,
            render=number("rsmi_dev_drm_render_minor_get", handle, kind=ctypes.c_uint32),
            card=None,
            unique_id=number("rsmi_dev_unique_id_get", handle),
            name=text(name.raw) if named else "",
            mem_total_b=number("rsmi_dev_memory_total_get", handle, VRAM),
            power_limit_mw=None if cap_uw is None else cap_uw // 1000,
        )

    def mode(self, device: AmdDevice) -> str:
        """Return the GPU's partition mode, "" before ROCm 5.5."""
        name = ctypes.create_string_buffer(16)
        found = self._library.fills("rsmi_dev_compute_partition_get", device.handle, name, ctypes.c_uint32(16))
        return text(name.raw) if found else ""

    def busy_pct(self, device: AmdDevice, *, partition: bool) -> float | None:
        """Return the percentage of a full GPU: the library has none for partitions."""
        if partition:
            raise FieldError(UnknownReason.PARTITION)
        value = ctypes.c_uint32()
        self._library.call("rsmi_dev_busy_percent_get", device.handle, ctypes.byref(value))
        return percent(value.value)

    def mem_used_b(self, device: AmdDevice) -> int | None:
        """Return GPU memory in use."""
        return self._library.number("rsmi_dev_memory_usage_get", device.handle, VRAM)

    def power_mw(self, device: AmdDevice) -> int | None:
        """Return the current power (ROCm 6) or the average power (before)."""
        kind, value = ctypes.c_uint32(), ctypes.c_uint64()
        if self._library.fills("rsmi_dev_power_get", device.handle, ctypes.byref(value), ctypes.byref(kind)):
            return value.value // 1000
        average = self._library.number("rsmi_dev_power_ave_get", device.handle, SENSOR)
        return None if average is None else average // 1000

    def energy_mj(self, device: AmdDevice) -> int | None:
        """Return the energy counter."""
        return read_energy_mj(self._library, "rsmi_dev_energy_count_get", device.handle)

    def processes(self) -> dict[int, frozenset[int]] | None:
        """Return the processes with a compute queue by device index."""
        names = ("rsmi_compute_process_info_get", "rsmi_compute_process_gpus_get")
        return read_processes(self._library, *names, self._count)


def find() -> RocmSmi | None:
    """Load the library; None where it is not installed."""
    handle = load(NAMES)
    return None if handle is None else RocmSmi(Library("ROCm SMI", handle, _CODES))

"""NVML for its collector: errors, the listed GPUs and MIG instances, and the counters of GPM."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pynvml

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors._library import FieldError, GpuLostError
from gpuwaste.agent.readings import GpuIdentity
from gpuwaste.ledger.gpu_sample import UnknownReason

_DRIVER: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_LOST: Final = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED})
_ABSENT: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NOT_FOUND,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)
_MINOR_LINE: Final = re.compile(r"gpu(\d+)/gi(\d+)/ci(\d+)/access (\d+)")
MigMinors = dict[tuple[int, int, int], int]
_GRAPHICS_UTIL: Final = pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
_SM_UTIL: Final = pynvml.NVML_GPM_METRIC_SM_UTIL


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call NVML. Raises CollectorError, GpuLostError or FieldError: driver, GPU or field unavailable."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        code = error.value
        if code in _DRIVER:
            raise CollectorError(f"NVML: {error}: is the NVIDIA driver loaded?") from error
        if code in _LOST:
            raise GpuLostError(str(error)) from error
        raise FieldError(UnknownReason.NOT_SUPPORTED if code in _ABSENT else UnknownReason.DRIVER) from error


def optional(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call NVML; None where this field cannot be read."""
    try:
        return call(function, *arguments)
    except FieldError:
        return None


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """One entry to read: a full GPU, or a MIG instance with the handle of its GPU."""

    identity: GpuIdentity
    handle: Any  # None for a GPU that was lost before it could be opened
    gpu_handle: Any
    mig: bool = False  # MIG is on: neither the GPU nor the instance has a duty cycle
    gi: int | None = None


def read_mig_minors(path: Path) -> MigMinors:
    """Read the driver's table: (GPU minor, GPU instance, compute instance) -> minor of its nvidia-caps device."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    found = (_MINOR_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {(int(m[1]), int(m[2]), int(m[3])): int(m[4]) for m in found if m}


def list_devices(minors_file: Path, known: dict[str, GpuIdentity]) -> list[NvmlDevice]:
    """List every GPU, each followed by its MIG instances. `known` keeps GPUs by UUID from one call to the next.

    A known GPU that can no longer be opened is listed last, with its earlier identity.
    """
    devices: list[NvmlDevice] = []
    for index in range(call(pynvml.nvmlDeviceGetCount)):
        try:
            gpu = _gpu(index)
            instances = _instances(gpu, read_mig_minors(minors_file)) if gpu.mig else []
        except (FieldError, GpuLostError):
            continue
        devices += [gpu, *instances]
    here = {device.identity.uuid: device.identity for device in devices if device.gi is None}
    devices += [NvmlDevice(identity, None, None) for uuid, identity in known.items() if uuid not in here]
    known.update(here)
    return devices


def layout(devices: list[NvmlDevice]) -> tuple[object, ...]:
    """Return a value that changes when the list must be rebuilt: a GPU lost or back, MIG switched, a new instance."""
    return (
        call(pynvml.nvmlDeviceGetCount),
        *(_layout(device) for device in devices if device.gi is None),
    )


def _layout(device: NvmlDevice) -> tuple[object, ...]:
    uuid = device.identity.uuid
    try:
        handle = device.handle or call(pynvml.nvmlDeviceGetHandleByUUID, uuid)
        on = _mig_on(handle)
        return (uuid, *([on] + [optional(pynvml.nvmlDeviceGetUUID, h) for h in _instance_handles(handle) if on]))
    except (FieldError, GpuLostError):
        return (uuid, "lost")


def _gpu(index: int) -> NvmlDevice:
    handle = call(pynvml.nvmlDeviceGetHandleByIndex, index)
    memory = optional(pynvml.nvmlDeviceGetMemoryInfo, handle)
    pci = optional(pynvml.nvmlDeviceGetPciInfo, handle)
    identity = GpuIdentity(
        uuid=call(pynvml.nvmlDeviceGetUUID, handle),
        index=index,
        minor=optional(pynvml.nvmlDeviceGetMinorNumber, handle),
        name=optional(pynvml.nvmlDeviceGetName, handle) or "",
        pci_bus_id=str(pci.busId) if pci else "",
        mem_total_b=int(memory.total) if memory else None,
        power_limit_mw=optional(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle),
    )
    return NvmlDevice(identity, handle, handle, mig=_mig_on(handle))


def _mig_on(handle: Any) -> bool:
    modes = optional(pynvml.nvmlDeviceGetMigMode, handle)
    return bool(modes and modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE)


def _instance_handles(gpu_handle: Any) -> list[Any]:
    count = optional(pynvml.nvmlDeviceGetMaxMigDeviceCount, gpu_handle) or 0
    handles = (optional(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu_handle, i) for i in range(count))
    return [handle for handle in handles if handle is not None]


def _instances(gpu: NvmlDevice, minors: MigMinors) -> list[NvmlDevice]:
    made: list[NvmlDevice] = []
    for handle in _instance_handles(gpu.handle):
        gi = optional(pynvml.nvmlDeviceGetGpuInstanceId, handle)
        ci = optional(pynvml.nvmlDeviceGetComputeInstanceId, handle)
        uuid = optional(pynvml.nvmlDeviceGetUUID, handle)
        if gi is None or ci is None or uuid is None:
            continue
        memory = optional(pynvml.nvmlDeviceGetMemoryInfo, handle)
        parent = gpu.identity
        identity = replace(
            parent,
            uuid=uuid,
            minor=None if parent.minor is None else minors.get((parent.minor, gi, ci)),
            name=optional(pynvml.nvmlDeviceGetName, handle) or parent.name,
            mem_total_b=int(memory.total) if memory else None,
            power_limit_mw=None,
            parent_uuid=parent.uuid,
            instance=f"{gi}/{ci}",
        )
        made.append(NvmlDevice(identity, handle, gpu.handle, mig=True, gi=gi))
    return made


class GpmMeter:
    """Two GPM samples of one GPU or MIG instance, read in turn; for the sampling thread only."""

    def __init__(self, gpu_handle: Any, gi: int | None) -> None:
        self._handle = gpu_handle
        self._gi = gi
        self._before: Any = None
        self._after: Any = None
        self._filled = False
        support = optional(pynvml.nvmlGpmQueryDeviceSupport, gpu_handle)
        self.supported = bool(support and support.isSupportedDevice)

    def read(self) -> dict[int, float]:
        """Return percent by GPM metric id since the last call; empty at the first call and without GPM."""
        if not self.supported:
            return {}
        if self._after is None:
            self._before, self._after = call(pynvml.nvmlGpmSampleAlloc), call(pynvml.nvmlGpmSampleAlloc)
        if self._gi is None:
            call(pynvml.nvmlGpmSampleGet, self._handle, self._after)
        else:
            call(pynvml.nvmlGpmMigSampleGet, self._handle, self._gi, self._after)
        values = self._values() if self._filled else {}
        self._before, self._after, self._filled = self._after, self._before, True
        return values

    def close(self) -> None:
        """Free both samples."""
        for sample in (self._before, self._after):
            if sample is not None:
                optional(pynvml.nvmlGpmSampleFree, sample)
        self._before = self._after = None
        self._filled = False

    def _values(self) -> dict[int, float]:
        wanted = (_GRAPHICS_UTIL, _SM_UTIL)
        query = pynvml.c_nvmlGpmMetricsGet_t()
        query.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(wanted)
        query.sample1, query.sample2 = self._before, self._after
        for slot, metric in enumerate(wanted):
            query.metrics[slot].metricId = metric
        call(pynvml.nvmlGpmMetricsGet, query)
        answered = (query.metrics[slot] for slot in range(len(wanted)))
        return {int(m.metricId): float(m.value) for m in answered if m.nvmlReturn == pynvml.NVML_SUCCESS}


def busy_pct(values: dict[int, float]) -> float | None:
    """Return the percent of time in which any compute work ran."""
    return values.get(_GRAPHICS_UTIL)


def sm_ratio(values: dict[int, float]) -> float | None:
    """Return the share of busy SMs, 0..1."""
    percent = values.get(_SM_UTIL)
    return None if percent is None else percent / 100

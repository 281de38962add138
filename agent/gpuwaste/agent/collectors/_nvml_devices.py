"""The GPUs and MIG instances that NVML lists, with the minors by which Slurm names them."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pynvml

from gpuwaste.agent.collectors._errors import FieldError, GpuLostError
from gpuwaste.agent.collectors._nvml_call import call, optional
from gpuwaste.agent.model import GpuIdentity

_MINOR_LINE: Final = re.compile(r"gpu(\d+)/gi(\d+)/ci(\d+)/access (\d+)")
MigMinors = dict[tuple[int, int, int], int]


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """One entry to read: a whole GPU, or a MIG instance with the handle of its GPU."""

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
    """List every GPU, and after it its MIG instances. `known` remembers GPUs by UUID from one call to the next.

    A GPU that was known and cannot be opened any more is listed last, as it was.
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
    """Return what changes when the list has to be made anew: a GPU lost or back, MIG switched, an instance made."""
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

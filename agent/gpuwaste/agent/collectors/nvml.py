"""NVML: identities, the driver's own duty samples, memory, power, energy, compute processes, Xid errors.

A field that fails is None and does not affect others, and neither does a lost GPU. With a missing or reset driver the
scan fails, and the next scan opens the library again.
"""

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pynvml

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.collectors._library import FieldError, GpuLostError
from gpuwaste.agent.collectors._nvml_library import (
    GpmMeter,
    NvmlDevice,
    busy_pct,
    call,
    layout,
    list_devices,
    optional,
    sm_ratio,
)
from gpuwaste.agent.readings import GpuIdentity, GpuReading, GpuScan
from gpuwaste.agent.valid_ranges import UTILIZATION
from gpuwaste.core.clock import Clock, StepDetector
from gpuwaste.ledger.gpu_sample import UnknownReason

KIND: Final = "gpu"
_VALUE_FIELDS: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal")  # by nvmlValueType_t
_AHEAD_US: Final = 1_000_000  # a driver's sample further in the future is ignored
_MAX_EVENTS: Final = 1000  # read in one scan at most


def create(settings: CollectorSettings) -> "NvmlCollector":
    """Create the collector; the first scan opens the library."""
    return NvmlCollector(settings.clock, settings.mig_minors)


class NvmlCollector:
    """Reads every GPU and MIG instance through nvidia-ml-py."""

    name = "nvml"

    def __init__(self, clock: Clock, mig_minors: Path) -> None:
        self._clock = clock
        self._mig_minors = mig_minors
        self._is_open = False
        self._generation = 0
        self._devices: list[NvmlDevice] = []
        self._layout: tuple[object, ...] = ()
        self._known: dict[str, GpuIdentity] = {}
        self._gpm: dict[str, GpmMeter] = {}
        self._events: Any = None
        self._xids: Counter[tuple[str, int]] = Counter()
        self._seen_us: dict[str, int] = {}  # time of the last duty sample, by uuid
        self._steps = StepDetector()

    def scan(self) -> GpuScan:
        """Read every GPU once. Raises CollectorError("driver") where there is no driver."""
        try:
            if not self._is_open:
                self._open()
            elif layout(self._devices) != self._layout:
                self._list()
            if self._steps.stepped(self._clock.utc_us(), self._clock.mono_us()):
                self._seen_us.clear()  # the driver uses the new time from now on
            readings = {device.identity.uuid: self._read(device) for device in self._devices}
            self._read_events()
            if readings and all(reading.reason is UnknownReason.DRIVER for reading in readings.values()):
                raise CollectorError("NVML: no GPU answers: was the driver unloaded?")  # noqa: TRY301 closes, as any failure does
        except CollectorError:
            self.close()
            raise
        except (FieldError, GpuLostError) as error:
            self.close()
            raise CollectorError(f"NVML: cannot list GPUs: {error}") from error
        identities = tuple(device.identity for device in self._devices)
        return GpuScan(self.name, identities, readings, self._generation, dict(self._xids))

    def close(self) -> None:
        """Shut NVML down, so that a GPU can be reset."""
        with contextlib.suppress(CollectorError, GpuLostError):
            self._drop()
        if self._is_open:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
        self._is_open = False
        self._devices, self._layout, self._gpm, self._events = [], (), {}, None

    def _open(self) -> None:
        call(pynvml.nvmlInit)
        self._is_open = True
        self._seen_us = {}
        self._list()

    def _list(self) -> None:
        """List the GPUs; for a new one, duty samples before this moment are ignored."""
        self._drop()
        self._devices = list_devices(self._mig_minors, self._known)
        self._layout = layout(self._devices)
        self._generation += 1
        now_us = self._clock.utc_us()
        for device in self._devices:
            self._seen_us.setdefault(device.identity.uuid, now_us)
            if device.handle is not None and (device.gi is not None or not device.mig):
                with contextlib.suppress(GpuLostError):
                    self._gpm[device.identity.uuid] = GpmMeter(device.gpu_handle, device.gi)
        self._register_events()

    def _drop(self) -> None:
        for meter in self._gpm.values():
            meter.close()
        self._gpm = {}
        if self._events is not None:
            optional(pynvml.nvmlEventSetFree, self._events)
            self._events = None

    def _register_events(self) -> None:
        self._events = optional(pynvml.nvmlEventSetCreate)
        if self._events is None:
            return
        for device in self._devices:
            if device.handle is not None and device.gi is None:
                with contextlib.suppress(GpuLostError):
                    optional(
                        pynvml.nvmlDeviceRegisterEvents,
                        device.handle,
                        pynvml.nvmlEventTypeXidCriticalError,
                        self._events,
                    )

    def _read_events(self) -> None:
        """Read the queued Xid errors without waiting."""
        for _ in range(_MAX_EVENTS if self._events is not None else 0):
            try:
                event = call(pynvml.nvmlEventSetWait_v2, self._events, 0)
                uuid = optional(pynvml.nvmlDeviceGetUUID, event.device)
            except FieldError:  # the timeout: no event is queued
                return
            except GpuLostError:
                continue
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                self._xids[uuid or "", int(event.eventData)] += 1

    def _read(self, device: NvmlDevice) -> GpuReading:
        uuid = device.identity.uuid
        if device.handle is None:
            return GpuReading(uuid, reason=UnknownReason.GPU_LOST)
        try:
            gpm = self._gpm_values(uuid)
            duty, util_pct, reason = self._utilization(device, gpm)
            used, total = _memory(device.handle)
            whole = device.gi is None
            return GpuReading(
                uuid=uuid,
                duty=duty,
                util_pct=util_pct,
                mem_used_b=used,
                mem_total_b=total,
                power_mw=optional(pynvml.nvmlDeviceGetPowerUsage, device.handle) if whole else None,
                energy_mj=optional(pynvml.nvmlDeviceGetTotalEnergyConsumption, device.handle) if whole else None,
                sm_ratio=sm_ratio(gpm),
                pids=_pids(device.handle),
                reason=reason,
            )
        except GpuLostError:
            return GpuReading(uuid, reason=UnknownReason.GPU_LOST)

    def _gpm_values(self, uuid: str) -> dict[int, float]:
        try:
            return self._gpm[uuid].read() if uuid in self._gpm else {}
        except FieldError:
            return {}

    def _utilization(
        self, device: NvmlDevice, gpm: dict[int, float]
    ) -> tuple[tuple[tuple[int, float], ...], float | None, UnknownReason]:
        """Return the driver's samples, and their mean or why there is none; without samples the current use."""
        if device.mig:
            percent = busy_pct(gpm) if device.gi is not None else None
            return (), percent, UnknownReason.NONE if percent is not None else UnknownReason.MIG
        try:
            duty = self._duty(device)
        except FieldError:
            duty = ()
        if any(not UTILIZATION.fault(percent) for _, percent in duty):
            return duty, sum(percent for _, percent in duty) / len(duty), UnknownReason.NONE
        try:
            return duty, float(call(pynvml.nvmlDeviceGetUtilizationRates, device.handle).gpu), UnknownReason.NONE
        except FieldError as error:
            return duty, None, error.reason

    def _duty(self, device: NvmlDevice) -> tuple[tuple[int, float], ...]:
        """Return the driver's samples since the last call, oldest first."""
        uuid, now_us = device.identity.uuid, self._clock.utc_us()
        seen_us = self._seen_us.get(uuid, now_us)
        self._seen_us[uuid] = seen_us
        kind, samples = call(pynvml.nvmlDeviceGetSamples, device.handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, seen_us)
        if not 0 <= kind < len(_VALUE_FIELDS):
            return ()
        field = _VALUE_FIELDS[kind]
        pairs = ((int(s.timeStamp), float(getattr(s.sampleValue, field))) for s in samples)
        duty = tuple(sorted((t, percent) for t, percent in pairs if seen_us < t <= now_us + _AHEAD_US))
        if duty:
            self._seen_us[uuid] = duty[-1][0]
        return duty


def _memory(handle: Any) -> tuple[int | None, int | None]:
    """Return used and total bytes; version 2 excludes the driver's reserved memory."""
    info = optional(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if info is None:
        info = optional(pynvml.nvmlDeviceGetMemoryInfo, handle)
    return (None, None) if info is None else (int(info.used), int(info.total))


def _pids(handle: Any) -> frozenset[int] | None:
    """Return the compute processes, including those of MPS clients."""
    processes = optional(pynvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    if processes is None:
        return None
    clients = optional(pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, handle) or []
    return frozenset(int(process.pid) for process in [*processes, *clients])

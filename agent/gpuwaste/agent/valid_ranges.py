"""The possible values of a GPU's readings, for any vendor; any other value is unknown, and counted.

Drivers return impossible values: all bits set, 808,334,905 percent (driver 550 on H100, dcgm-exporter issue 418),
negative values. Every collector returns what it read, except values that its library's header calls "absent", and the
sampler checks each scan here, once, before anything else uses it. A range is wide enough for hardware of the next ten
years and still below common garbage: 2**32 - 1 milliwatts are 4.3 MW, 2**64 - 1 bytes are 16 EiB.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from gpuwaste.agent.readings import GpuIdentity, GpuProfile, GpuReading, GpuScan
from gpuwaste.core import log_event
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.ledger.gpu_sample import UnknownReason

_IMPOSSIBLE: Final = log_event.warning(
    "impossible-value: collector {source}: impossible value ({reason}): {about}: counted as unknown",
    "A fault of the driver: update the driver or its firmware. "
    "`gpuwaste_agent_invalid_values_total` counts such values.",
)
_T = TypeVar("_T", GpuIdentity, GpuReading, GpuProfile)


class Range(NamedTuple):
    """The least and the largest value of a quantity, and its name in metrics."""

    quantity: str
    low: float
    high: float

    def fault(self, value: float) -> str:
        """Return why a value is impossible: "below" or "above" the range, "not_a_number"; "" for a possible one."""
        if self.low <= value <= self.high:
            return ""
        return "below" if value < self.low else "above" if value > self.high else "not_a_number"


MAX_GPU_W: Final = 20_000
"""Ten times the power of today's largest GPU; roadmaps of ten years end at 15 kW for a package."""
_MAX_MEMORY_B: Final = 16 << 40  # sixteen times the 1 TB that is announced for one package
_MAX_ENERGY_MJ: Final = 2 * 10**16  # thirty years of MAX_GPU_W; a counter of 64 bits at AMD's 15.3 uJ ends at 2.8e17
_MAX_B_S: Final = 2e14  # both ways of a link, fifty times NVLink 5; a blank value of DCGM is 1.4e14 for each way

UTILIZATION: Final = Range("utilization", 0, 100)  # percent
POWER: Final = Range("power", 0, MAX_GPU_W * 1000)  # milliwatts
RANGES: Final[Mapping[str, Range]] = {
    "util_pct": UTILIZATION,
    "mem_used_b": Range("memory_used", 0, _MAX_MEMORY_B),
    "mem_total_b": Range("memory_total", 0, _MAX_MEMORY_B),
    "power_mw": POWER,
    "power_limit_mw": Range("power_limit", 0, MAX_GPU_W * 1000),
    "energy_mj": Range("energy", 0, _MAX_ENERGY_MJ),
    "sm_ratio": Range("sm_ratio", 0, 1),
    "sm_active": Range("sm_active", 0, 1),
    "tensor_active": Range("tensor_active", 0, 1),
    "dram_active": Range("dram_active", 0, 1),
    "nvlink_b_s": Range("nvlink", 0, _MAX_B_S),
    "pcie_b_s": Range("pcie", 0, _MAX_B_S),
}
"""By field of GpuReading, GpuIdentity and GpuProfile."""


class ReadingCheck:
    """Removes impossible values from scans and counts them. For the sampling thread."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self.counts: Mapping[tuple[str, str, str], int] = {}
        """Values since the start by (collector, quantity, reason); replaced, never changed: any thread may read it."""

    def scan(self, found: GpuScan) -> GpuScan:
        """Return a scan without impossible values."""
        gpus = tuple(self._ranged(found.source, gpu.uuid, gpu) for gpu in found.gpus)
        totals_b = {gpu.uuid: gpu.mem_total_b for gpu in gpus}
        readings = {
            uuid: self._reading(found.source, reading, totals_b.get(uuid)) for uuid, reading in found.readings.items()
        }
        return replace(found, gpus=gpus, readings=readings)

    def profiles(self, source: str, found: Mapping[tuple[str, str], GpuProfile]) -> dict[tuple[str, str], GpuProfile]:
        """Return profiles without impossible values."""
        return {key: self._ranged(source, key[0], profile) for key, profile in found.items()}

    def _reading(self, source: str, found: GpuReading, total_b: int | None) -> GpuReading:
        uuid, was_read = found.uuid, found.util_pct is not None
        faults = [fault for _, percent in found.duty if (fault := UTILIZATION.fault(percent))]
        if faults:
            self._count(source, uuid, UTILIZATION, faults[0])
            duty = tuple(pair for pair in found.duty if not UTILIZATION.fault(pair[1]))
            mean = sum(percent for _, percent in duty) / len(duty) if duty else found.util_pct
            found = replace(found, duty=duty, util_pct=mean)
        found = self._ranged(source, uuid, found)
        if was_read and found.util_pct is None:
            found = replace(found, reason=UnknownReason.INVALID)
        most_b = total_b if found.mem_total_b is None else found.mem_total_b
        if found.mem_used_b is not None and most_b is not None and found.mem_used_b > most_b:
            self._count(source, uuid, RANGES["mem_used_b"], "above")
            found = replace(found, mem_used_b=None)
        if found.profile is not None:
            found = replace(found, profile=self._ranged(source, uuid, found.profile))
        return found

    def _ranged(self, source: str, uuid: str, found: _T) -> _T:
        """Return identity, reading or profile with impossible values replaced by unknown ones."""
        gone: dict[str, Any] = {}
        for name, limits in RANGES.items():
            value = getattr(found, name, None)
            if value is not None and (fault := limits.fault(value)):
                self._count(source, uuid, limits, fault)
                gone[name] = None
        return replace(found, **gone) if gone else found

    def _count(self, source: str, uuid: str, limits: Range, fault: str) -> None:
        self._counts[source, limits.quantity, fault] += 1
        self.counts = dict(self._counts)
        about = f"{uuid} {limits.quantity}"  # each has a separate log line and a separate suppression of repeats
        self._events.trouble(_IMPOSSIBLE, about, source=source, reason=fault)

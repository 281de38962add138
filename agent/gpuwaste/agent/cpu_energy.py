"""Divides the energy of a node's CPU packages among jobs by their share of the node's CPU time.

Of the energy in an interval a job gets its CPU time over the time of all online CPUs. The energy of idle CPUs, the
system and jobs with unknown CPU time belongs to no job. A job's part is divided among the GPUs that it holds here, so
that the rows of its GPUs add up to it; a job without GPUs has no row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuwaste.agent.readings import GpuAllocation, HostUse, PackageReading


@dataclass(frozen=True, slots=True)
class CpuPower:
    """The mean CPU power, watts, by job, per GPU that it holds here, from an instant up to the tick."""

    since_ms: int
    watts: Mapping[int, float]


class CpuEnergy:
    """Remembers the previous reading and every job's CPU seconds."""

    def __init__(self, gap_us: int) -> None:
        self._gap_us = gap_us
        self._last: PackageReading | None = None
        self._last_us = 0
        self._cpu_s: dict[int, float] = {}

    def since_last(
        self,
        now_us: int,
        reading: PackageReading | None,
        host: Mapping[int, HostUse],
        holdings: Sequence[GpuAllocation],
        *,
        stepped: bool,
    ) -> CpuPower | None:
        """Process a tick; return the power of jobs since the tick before, None where it was not measured."""
        last, last_us, before = self._last, self._last_us, self._cpu_s
        self._last, self._last_us = reading, now_us
        self._cpu_s = {job: use.cpu_s for job, use in host.items() if use.cpu_s is not None}
        over_us = now_us - last_us
        if reading is None or last is None or stepped or not 0 < over_us <= self._gap_us:
            return None
        if reading.generation != last.generation or reading.energy_j < last.energy_j:
            return None
        used_s = {job: max(0.0, cpu_s - before[job]) for job, cpu_s in self._cpu_s.items() if job in before}
        # Counters are not read at the same instant: the sum over jobs may exceed the available time.
        capacity_s = max(reading.cpus * over_us / 1e6, sum(used_s.values()))
        power_w = (reading.energy_j - last.energy_j) / (over_us / 1e6)
        gpus = Counter(holding.job_id for holding in holdings)
        return CpuPower(
            last_us // 1000,
            {job: power_w * used_s[job] / capacity_s / count for job, count in gpus.items() if job in used_s},
        )

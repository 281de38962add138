"""The open hours of one holding: a GPU held by a run of a job on this node, from t0 on.

All durations are integer milliseconds. An accumulator covers time without gaps: each instant from t0 to `covered_ms`
is known (with a percent), unknown (with a reason) or suspended, so that the parts of a row add up to t1 - t0 exactly.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gpuwaste.agent.readings import GpuAllocation, GpuProfile
from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.hour import FULL_PCT, HOUR_MS, AllocationHour
from gpuwaste.slurm.run_key import RunKey

SUSPENDED: Final = "suspended"
IDLE_RUN_MS: Final = 60_000  # from this length on a run of zeros counts as idle run, from its start
MAX_XIDS: Final = 64  # different numbers in one row, the hub's limit

_RATIOS: Final = ("sm_active", "tensor_active", "dram_active")

State = int | str
"""The state of a stretch of time: a percent 0..100, SUSPENDED, or the reason why it is unknown."""


@dataclass(slots=True)
class OpenHour:
    """One row while it may still change, with the sums behind its means."""

    row: AllocationHour
    power_sum: float = 0.0  # watts x milliseconds
    power_ms: int = 0
    sm_sum: float = 0.0
    sm_ms: int = 0
    changed: bool = True
    sent: bool = False

    @classmethod
    def reopen(cls, row: AllocationHour) -> "OpenHour":
        """Continue a row that was handed out before; its means are weighted with the time at full use."""
        full_ms = sum(ms for pct, ms in row.util_ms.items() if pct >= FULL_PCT)
        own = replace(row, util_ms=dict(row.util_ms), unknown_ms=dict(row.unknown_ms), xids=dict(row.xids))
        hour = cls(own, changed=False, sent=True)
        if row.power_w_at_full is not None:
            hour.power_sum, hour.power_ms = row.power_w_at_full * full_ms, full_ms
        if row.sm_ratio_at_full is not None:
            hour.sm_sum, hour.sm_ms = row.sm_ratio_at_full * full_ms, full_ms
        return hour

    def add_profile(self, ms: int, profile: GpuProfile) -> None:
        """Add the profile of another `ms`; a value that was not read for the full time is None."""
        row, before = self.row, self.row.profiled_ms or 0
        for name in _RATIOS:
            mean, value = getattr(row, name), getattr(profile, name)
            if before:
                value = None if mean is None or value is None else (mean * before + value * ms) / (before + ms)
            setattr(row, name, value)
        for name, rate in (("nvlink_b", profile.nvlink_b_s), ("pcie_b", profile.pcie_b_s)):
            known, more = getattr(row, name) if before else 0, None if rate is None else round(rate * ms / 1000)
            setattr(row, name, None if known is None or more is None else known + more)
        row.profiled_ms = before + ms

    def snapshot(self, run_key: RunKey, final: bool) -> AllocationHour:
        """Return a copy of the row under the next sequence number."""
        row = self.row
        row.seq, row.run_key, row.final = row.seq + 1, run_key, final
        row.power_w_at_full = self.power_sum / self.power_ms if self.power_ms else None
        row.sm_ratio_at_full = self.sm_sum / self.sm_ms if self.sm_ms else None
        self.changed, self.sent = False, True
        return replace(row, util_ms=dict(row.util_ms), unknown_ms=dict(row.unknown_ms), xids=dict(row.xids))


@dataclass(slots=True)
class Accumulator:
    """What one holding did so far, in rows by hour."""

    cluster: str
    node: str
    held: GpuAllocation  # as the device map last had it, with the run's start once it was known
    covered_ms: int
    t0_ms: int = 0  # begin of its first row; 0 after a restart, when earlier rows may be gone
    closed: bool = False
    cpu_s: float | None = None  # the job's counter when last seen
    seen_ms: int = 0  # when the holding was last in the device map
    handed_ms: int = 0  # when rows were last handed out
    hours: dict[int, OpenHour] = field(default_factory=dict)
    zero_pieces: list[tuple[int, int]] = field(default_factory=list)  # (hour, ms) of a run not yet long enough
    zero_ms: int = 0  # length of the run of zeros that ends at covered_ms

    def advance(self, end_ms: int, state: State) -> None:
        """Cover (covered_ms, end_ms] with `state`; does nothing if the end is already covered."""
        if end_ms <= self.covered_ms:
            return
        for hour, length_ms in self._pieces(self.covered_ms, end_ms):
            self._add(hour, length_ms, state)
            self.covered_ms += length_ms

    def _add(self, hour: int, ms: int, state: State) -> None:
        row = self._open(hour, self.covered_ms).row
        row.t1_ms += ms
        if isinstance(state, int):
            row.util_ms[state] = row.util_ms.get(state, 0) + ms
        elif state == SUSPENDED:
            row.suspended_ms += ms
        else:
            row.unknown_ms[state] = row.unknown_ms.get(state, 0) + ms
        if state == 0:
            self._extend_zeros(hour, ms)
        else:
            self.zero_ms = 0
            self.zero_pieces.clear()

    def _extend_zeros(self, hour: int, ms: int) -> None:
        self.zero_ms += ms
        self.zero_pieces.append((hour, ms))
        if self.zero_ms < IDLE_RUN_MS:
            return
        for begun, part_ms in self.zero_pieces:
            open_hour = self._open(begun, self.covered_ms)
            open_hour.row.idle_run_ms += part_ms
            open_hour.changed = True
        self.zero_pieces.clear()

    def _open(self, hour: int, start_ms: int) -> OpenHour:
        """Return the row of an hour to change it; a new one begins at `start_ms`."""
        held, found = self.held, self.hours.get(hour)
        if found is None:
            key = held.run_key or RunKey(self.cluster, held.job_id, 0)
            row = AllocationHour(key, self.node, held.gpu_uuid, hour, 0, start_ms, start_ms, held.share)
            found = self.hours[hour] = OpenHour(row)
        found.changed = True
        found.row.share, found.row.map_source, found.row.confidence = held.share, held.map_source, held.confidence
        return found

    @staticmethod
    def _pieces(start_ms: int, end_ms: int) -> Iterator[tuple[int, int]]:
        """Cut a stretch at full hours: (hour in UTC seconds, milliseconds)."""
        while start_ms < end_ms:
            hour_ms = start_ms // HOUR_MS * HOUR_MS
            cut_ms = min(end_ms, hour_ms + HOUR_MS)
            yield hour_ms // 1000, cut_ms - start_ms
            start_ms = cut_ms

    def extend_back(self, since_ms: int, reason: str) -> None:
        """Add unknown time in front, from `since_ms` to t0; does nothing if the first row was handed out as final."""
        if since_ms >= self.t0_ms:
            return
        if not self.hours:
            self.t0_ms = self.covered_ms = since_ms
            return
        if self.t0_ms // HOUR_MS * HOUR_S not in self.hours:
            return
        for hour, length_ms in self._pieces(since_ms, self.t0_ms):
            start_ms = max(hour * 1000, since_ms)
            row = self._open(hour, start_ms).row
            row.t0_ms, row.t1_ms = start_ms, max(row.t1_ms, start_ms + length_ms)
            row.unknown_ms[reason] = row.unknown_ms.get(reason, 0) + length_ms
        self.t0_ms = since_ms

    def replay_zeros(self, start_ms: int, end_ms: int, state: State) -> None:
        """Continue a run of zeros that ends at `covered_ms`, from time that is covered already."""
        if state != 0:
            self.zero_ms = 0
            self.zero_pieces.clear()
            return
        self.zero_ms += end_ms - start_ms
        self.zero_pieces.extend(self._pieces(start_ms, end_ms))
        if self.zero_ms >= IDLE_RUN_MS or self._counted():
            self.zero_ms = max(self.zero_ms, IDLE_RUN_MS)
            self.zero_pieces.clear()  # the rows hold it as an idle run

    def _counted(self) -> bool:
        """Return whether the idle runs of the last hour hold its pieces: its first hour's row was handed out."""
        last = self.hours.get(self.zero_pieces[-1][0]) if self.zero_pieces else None
        if last is None:
            return False
        pending_ms = sum(ms for hour, ms in self.zero_pieces if hour == last.row.hour_utc)
        return last.row.idle_run_ms + pending_ms > last.row.util_ms.get(0, 0)

    def add_energy(self, power_w: float, start_ms: int, end_ms: int, idle: Sequence[tuple[int, int]] = ()) -> None:
        """Add this holding's share of the GPU's energy at `power_w` in a stretch; `idle` are its times at 0 %."""
        for hour, length_ms in self._pieces(start_ms, end_ms):
            row = self._open(hour, max(hour * 1000, start_ms)).row
            row.energy_j = (row.energy_j or 0.0) + power_w * length_ms / 1000 * self.held.share
            row.energy_ms = (row.energy_ms or 0) + length_ms
            row.idle_energy_j = row.idle_energy_j or 0.0
        for begin_ms, stop_ms in idle:
            for hour, length_ms in self._pieces(max(begin_ms, start_ms), min(stop_ms, end_ms)):
                row = self.hours[hour].row
                row.idle_energy_j = (row.idle_energy_j or 0.0) + power_w * length_ms / 1000 * self.held.share

    def add_cpu_energy(self, power_w: float, start_ms: int, end_ms: int) -> None:
        """Add this GPU's part of the energy of the job's CPUs in a stretch."""
        for hour, length_ms in self._pieces(start_ms, end_ms):
            row = self._open(hour, max(hour * 1000, start_ms)).row
            row.cpu_energy_j = (row.cpu_energy_j or 0.0) + power_w * length_ms / 1000
            row.cpu_energy_ms = (row.cpu_energy_ms or 0) + length_ms

    def at_full(self, ms: int, power_w: float | None, sm_ratio: float | None) -> None:
        """Add power and SM ratio of a stretch of `ms` at full use that ends at `covered_ms`."""
        hour = self.current
        if hour is None:
            return
        if power_w is not None:
            hour.power_sum, hour.power_ms = hour.power_sum + power_w * ms, hour.power_ms + ms
        if sm_ratio is not None:
            hour.sm_sum, hour.sm_ms = hour.sm_sum + sm_ratio * ms, hour.sm_ms + ms

    @property
    def current(self) -> OpenHour | None:
        """The hour that holds the last covered instant."""
        return self.hours.get((self.covered_ms - 1) // HOUR_MS * HOUR_MS // 1000)

    def active_at(self, instant_ms: int) -> None:
        """Note the last instant with utilization above 0."""
        hour = self.hours.get((instant_ms - 1) // HOUR_MS * HOUR_MS // 1000) or self.current
        if hour is not None:
            hour.row.last_active_ms = max(instant_ms, hour.row.last_active_ms or 0)
            hour.changed = True

    def add_profile(self, ms: int, profile: GpuProfile) -> None:
        """Add the profile of a stretch of `ms` that ends at `covered_ms`; ignored for a shared GPU."""
        hour = self.current
        if hour is not None and self.held.share >= 1 and ms > 0:
            hour.add_profile(ms, profile)

    def count_xids(self, counts: Mapping[int, int]) -> None:
        """Add Xid errors to the hour of the last covered instant; numbers beyond MAX_XIDS are left out."""
        hour = self.current
        if hour is None or not counts:
            return
        for xid, count in counts.items():
            if xid in hour.row.xids or len(hour.row.xids) < MAX_XIDS:
                hour.row.xids[xid] = hour.row.xids.get(xid, 0) + count
                hour.changed = True

    def take(self, now_ms: int, ship_every_ms: int) -> list[AllocationHour]:
        """Return the rows that are due, under new sequence numbers, and forget those that are final.

        A row is due at its first piece, when it becomes final, and every `ship_every_ms`; with one row all changed
        rows of the holding are handed out, so that together they always describe one instant.
        """
        if self.held.run_key is None or not self.hours:
            return []
        last = max(self.hours)
        pending = {hour for hour, _ in self.zero_pieces}
        final = {hour for hour in self.hours if self.closed or (hour != last and hour not in pending)}
        urgent = bool(final) or any(not hour.sent for hour in self.hours.values())
        if not urgent and 0 <= now_ms - self.handed_ms < ship_every_ms:
            return []
        rows = [
            self.hours[hour].snapshot(self.held.run_key, hour in final)
            for hour in sorted(self.hours)
            if self.hours[hour].changed or hour in final
        ]
        for row in rows:
            row.share = self.held.share  # it may have become known after the hour
        for hour in final:
            if hour != last:
                del self.hours[hour]
        self.handed_ms = now_ms
        return rows

    @property
    def first_ms(self) -> int:
        """The first instant of the rows that are kept."""
        return min((hour.row.t0_ms for hour in self.hours.values()), default=self.covered_ms)


def whole_percent(pct: float) -> int:
    """Round half up to 0..100; 0 only where it is exactly 0."""
    return 0 if pct <= 0 else min(100, max(1, int(pct + 0.5)))

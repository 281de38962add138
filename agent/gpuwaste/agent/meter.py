"""One tick's measurements, added to the accumulators of their holdings.

A sample covers (previous sample of its GPU, t]. Where the reading has the driver's own samples, the mean is taken over
those inside the holding, so that t0 and t1 cut exactly; where it has none, the cut part of an interval is known only if
all of the interval was at 0 or 100 percent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpuwaste.agent.accumulator import SUSPENDED, Accumulator, State, whole_percent
from gpuwaste.agent.cpu_energy import CpuEnergy, CpuPower
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.valid_ranges import MAX_GPU_W
from gpuwaste.core.clock import StepDetector
from gpuwaste.ledger.gpu_sample import Sample, UnknownReason
from gpuwaste.ledger.hour import FULL_PCT, HOUR_MS, MISSING_PREFIX


@dataclass(frozen=True, slots=True)
class MeterTick:
    """What was seen at one instant, with one sample for each GPU by its uuid."""

    seen: Observation
    samples: Mapping[str, Sample]


class Meter:
    """Remembers the previous sample of each GPU and covers accumulators with the use since then."""

    def __init__(self, gap_us: int) -> None:
        self._gap_us = gap_us
        self._last_us: dict[str, int] = {}
        self._energy: dict[str, tuple[int, int]] = {}  # (time in us, counter in mJ)
        self._still: set[str] = set()  # GPUs whose counter did not move between the last two samples
        self._steps = StepDetector()
        self._stepped = False
        self._xids: Mapping[tuple[str, int], int] = {}  # as counted at the previous tick
        self._cpu_energy = CpuEnergy(gap_us)
        self._cpu_power: CpuPower | None = None

    def begin(self, tick: MeterTick) -> None:
        """Start a tick: detect a step of the clock since the previous one, and compute the power of CPUs."""
        seen = tick.seen
        self._stepped = self._steps.stepped(seen.t_utc_us, seen.mono_us)
        self._cpu_power = self._cpu_energy.since_last(
            seen.t_utc_us, seen.packages, seen.host, seen.jobs.holdings, stepped=self._stepped
        )

    def end(self, tick: MeterTick) -> None:
        """Remember the tick's samples as the previous ones."""
        self._xids = tick.seen.xids or self._xids
        for uuid, sample in tick.samples.items():
            self._last_us[uuid] = tick.seen.t_utc_us
            if sample.energy_mj is None:
                continue
            if uuid in self._energy and self._energy[uuid][1] == sample.energy_mj:
                self._still.add(uuid)
            else:
                self._still.discard(uuid)
            self._energy[uuid] = (tick.seen.t_utc_us, sample.energy_mj)

    def forget(self) -> None:
        """Make the time before the next tick a gap. Energy counters stay: they count without the agent."""
        self._last_us.clear()
        self._steps.forget()

    def last_us(self, uuid: str) -> int | None:
        """Return the time of the GPU's previous sample."""
        return self._last_us.get(uuid)

    def is_fresh(self, uuid: str, since_us: int) -> bool:
        """Return whether a holding began about at the GPU's last sample: all of its job's counters are then covered."""
        last = self._last_us.get(uuid)
        return last is not None and since_us >= last - self._gap_us

    def cover(self, item: Accumulator, end_us: int, tick: MeterTick) -> None:
        """Cover a holding up to `end_us` (the tick, or the holding's end before it)."""
        begin_ms, end_ms = item.covered_ms, end_us // 1000
        sample = tick.samples.get(item.held.gpu_uuid)
        if item.held.gpu_uuid.startswith(MISSING_PREFIX):
            item.advance(end_ms, UnknownReason.NOT_IN_NVML)
            return
        if sample is None:
            return
        last_us = self._last_us.get(item.held.gpu_uuid)
        if end_ms <= begin_ms:
            return
        last_ms, reason = (last_us or 0) // 1000, self.unmeasured(last_us, tick.seen.t_utc_us)
        idle: list[tuple[int, int]] = []
        if reason is not None:
            item.advance(end_ms, reason)
        else:
            item.advance(min(last_ms, end_ms), UnknownReason.GAP)
            idle = self._measured(item, end_ms, last_ms, sample, tick)
        drawn = self._drawn(sample, tick, measured=reason is None)
        if drawn is not None and (since_ms := max(begin_ms, last_ms, drawn.since_ms)) < end_ms:
            item.add_energy(drawn.power_w, since_ms, end_ms, idle)

    def unmeasured(self, last_us: int | None, now_us: int) -> UnknownReason | None:
        """Return why the time from a GPU's previous sample to the tick is unknown; None if it is measured."""
        if self._stepped:
            return UnknownReason.CLOCK_STEP
        return UnknownReason.GAP if last_us is None or now_us - last_us > self._gap_us else None

    def _measured(
        self, item: Accumulator, end_ms: int, last_ms: int, sample: Sample, tick: MeterTick
    ) -> list[tuple[int, int]]:
        """Cover the time since the previous sample; return its stretches at 0 %, as begin and end."""
        state = state_of(item, sample)
        if not isinstance(state, int) or sample.util_pct is None:
            item.advance(end_ms, state)
            return []
        idle = []
        reading = tick.seen.readings.get(item.held.gpu_uuid)
        span = MeterSpan(item.covered_ms, end_ms, last_ms, tick.seen.t_utc_us // 1000)
        for stretch in utilization(sample.util_pct, reading.duty if reading else (), span):
            length_ms = stretch.end_ms - item.covered_ms
            if stretch.state == 0:
                idle.append((item.covered_ms, stretch.end_ms))
            item.advance(stretch.end_ms, stretch.state)
            if stretch.active_ms is not None:
                item.active_at(stretch.active_ms)
            if isinstance(stretch.state, int) and stretch.state >= FULL_PCT:
                item.at_full(length_ms, watts(sample.power_mw), sample.sm_ratio)
            if reading is not None and reading.profile is not None and isinstance(stretch.state, int):
                item.add_profile(length_ms, reading.profile)
        return idle

    def _drawn(self, sample: Sample, tick: MeterTick, *, measured: bool) -> "MeanPower | None":
        """Return the mean power of the GPU up to the tick: from its energy counter, else the power read at the tick.

        A counter that decreased was reset with the driver, one that grows faster than any GPU can draw is wrong, and
        one that does not move is stuck, since a GPU with power always draws some: its next step may cover more than
        one interval. A power reading counts for the sample's own interval only, like its utilization: without a
        counter a gap is unknown. A reading of 0 W of a working GPU is no power reading.
        """
        before = self._energy.get(sample.gpu_uuid)
        if before is not None and sample.energy_mj is not None and sample.gpu_uuid not in self._still:
            used_mj, over_ms = sample.energy_mj - before[1], tick.seen.t_utc_us // 1000 - before[0] // 1000
            if over_ms > 0 and 0 < used_mj <= over_ms * MAX_GPU_W:
                return MeanPower(before[0] // 1000, used_mj / over_ms)
        power_w = watts(sample.power_mw)
        if not measured or power_w is None or (power_w == 0 and sample.util_pct):
            return None
        return MeanPower(0, power_w)

    def cover_cpus(self, item: Accumulator, begin_ms: int, tick: MeterTick) -> None:
        """Add this GPU's part of the energy of the job's CPUs from `begin_ms` on."""
        drawn = self._cpu_power
        power_w = None if drawn is None else drawn.watts.get(item.held.job_id)
        if drawn is not None and power_w is not None and not item.held.conflict:
            item.add_cpu_energy(
                power_w, max(begin_ms, drawn.since_ms), min(item.covered_ms, tick.seen.t_utc_us // 1000)
            )

    def note_xids(self, item: Accumulator, tick: MeterTick) -> None:
        """Add the Xid errors of the holding's GPU since the previous tick, also for a holding that ended since then."""
        news = {
            xid: count - self._xids.get((uuid, xid), 0)
            for (uuid, xid), count in tick.seen.xids.items()
            if uuid == item.held.gpu_uuid
        }
        item.count_xids({xid: count for xid, count in news.items() if count > 0})

    @staticmethod
    def note(item: Accumulator, tick: MeterTick) -> None:
        """Record the state at this instant: memory, processes, use of the host."""
        hour = item.current
        if hour is None:
            return
        row, sample = hour.row, tick.samples.get(item.held.gpu_uuid)
        if sample is not None and not item.held.conflict:
            row.mem_max_b = _larger(row.mem_max_b, sample.mem_used_b)
            row.mem_total_b = row.mem_total_b if sample.mem_total_b is None else sample.mem_total_b
            row.power_limit_w = watts(sample.power_limit_mw) or row.power_limit_w
            row.proc_seen = row.proc_seen or bool(sample.procs)
        use = tick.seen.host.get(item.held.job_id)
        if use is None:
            return
        reading = tick.seen.readings.get(item.held.gpu_uuid)
        if reading is not None and reading.pids and reading.pids & use.pids:
            row.proc_seen = True
        row.host_mem_max_b = _larger(row.host_mem_max_b, use.mem_b)
        if use.cpu_s is not None:
            before, item.cpu_s = item.cpu_s, use.cpu_s
            if before is not None:
                row.cpu_s = (row.cpu_s or 0.0) + max(0.0, use.cpu_s - before)


class MeanPower(NamedTuple):
    """The mean power of a GPU, watts, from an instant on (UTC milliseconds) up to the tick."""

    since_ms: int
    power_w: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """Measured time up to `end_ms` with one state; `active_ms` is its last instant above 0 percent."""

    end_ms: int
    state: State
    active_ms: int | None = None


def state_of(item: Accumulator, sample: Sample) -> State:
    """Return what the sample's interval counts as for this holding, as far as the sample has it."""
    if item.held.suspended:
        return SUSPENDED
    if item.held.conflict:
        return item.held.conflict
    if sample.util_pct is None:
        return sample.reason or UnknownReason.NOT_SUPPORTED
    return whole_percent(sample.util_pct)


class MeterSpan(NamedTuple):
    """The covered part (begin, end] of a reading's own time (last, now], UTC milliseconds."""

    begin_ms: int
    end_ms: int
    last_ms: int
    now_ms: int


def utilization(util_pct: float, duty: Sequence[tuple[int, float]], span: MeterSpan) -> list[Stretch]:
    """Return the states of the covered part of a reading, cut at full hours.

    A driver's sample covers the time since the one before it: one that begins before the holding is left out.
    """
    begin_ms = span.begin_ms
    cut = begin_ms > span.last_ms
    whole = not cut and span.end_ms >= span.now_ms
    stretches = []
    for stop_ms in _cuts(begin_ms, span.end_ms):
        inside = [
            (us, pct)
            for (before_us, _), (us, pct) in zip(((0, 0.0), *duty), duty, strict=False)
            if begin_ms * 1000 < us <= stop_ms * 1000 and not (cut and before_us < begin_ms * 1000)
        ]
        if inside:
            pct = whole_percent(sum(value for _, value in inside) / len(inside))
            active = max((us // 1000 for us, value in inside if value > 0), default=None)
            stretches.append(Stretch(stop_ms, pct, active))
        elif whole or util_pct in {0, 100}:
            pct = whole_percent(util_pct)
            stretches.append(Stretch(stop_ms, pct, stop_ms if pct else None))
        else:
            stretches.append(Stretch(stop_ms, UnknownReason.GAP))
        begin_ms, cut = stop_ms, False
    return stretches


def _cuts(begin_ms: int, end_ms: int) -> Iterator[int]:
    """Yield the ends of the pieces of (begin_ms, end_ms] by hour."""
    while begin_ms < end_ms:
        begin_ms = min(end_ms, begin_ms // HOUR_MS * HOUR_MS + HOUR_MS)
        yield begin_ms


def watts(power_mw: int | None) -> float | None:
    """Convert milliwatts to watts; None stays None."""
    return None if power_mw is None else power_mw / 1000


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)

"""HourAggregator: samples in, AllocationHours out.

Time of a holding that was not measured is unknown, by reason:

- "gap": no sample for more than 2.5 intervals, before the first sample, or while the agent did not run;
- "clock_step": wall clock and monotonic clock disagree by more than 2 s over the interval;
- a sample's own reason, a conflict's reason, "not_in_nvml" for a GPU that only Slurm has.

Called from the sampling thread only. `cpu_s` and `host_mem_max_b` are the job's on this node, the same in the row of
each of its GPUs; `energy_j` of a shared GPU is the job's share of it.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Final

from gpuwaste.agent.accumulator import SUSPENDED, Accumulator, OpenHour
from gpuwaste.agent.meter import Meter, MeterTick, state_of
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuAllocation
from gpuwaste.ledger.gpu_sample import Sample, UnknownReason
from gpuwaste.ledger.hour import HOUR_MS, AllocationHour
from gpuwaste.slurm.run_key import RunKey

GAP_INTERVALS: Final = 2.5
_BACK_MS: Final = 7 * 86_400_000  # no row is made for time before this, whatever a file's date is
_PENDING_MS: Final = 86_400_000  # for so long an ended run waits for its start
_REPLAY_MS: Final = 120_000  # twice the shortest idle run, which may be open at a restart
_SLACK_US: Final = 5_000_000  # a run's local start may be this much later than the first sight of the holding


class HourAggregator:
    """The accumulators of all holdings of this node."""

    def __init__(self, cluster: str, node: str, interval_s: float, ship_every_s: float) -> None:
        self._cluster = cluster
        self._node = node
        gap_us = int(GAP_INTERVALS * interval_s * 1e6)
        self._meter = Meter(gap_us)
        self._gap_us = gap_us
        self._dormant_ms = max(60_000, gap_us // 1000)
        self._ship_ms = int(ship_every_s * 1000)
        self._open: dict[tuple[int, str], Accumulator] = {}
        self._ending: list[Accumulator] = []  # closed, not handed out yet
        self._closed: dict[tuple[int, str], Accumulator] = {}  # handed out as final; may be continued

    def observe(self, tick: MeterTick) -> None:
        """Take in one tick.

        A GPU without a sample is not covered at this tick: the `reason` of a sample is why there is no utilization.
        """
        jobs = tick.seen.jobs
        self._meter.begin(tick)
        for job_id, end_us in jobs.ended:
            self._end(job_id, end_us, tick)
        for job_id, since_us, key in jobs.late_keys:
            self._bind_late(job_id, since_us, key)
        ended = dict(jobs.ended)
        for holding in jobs.holdings:
            item = self._accumulator(holding, tick)
            if holding.since_us <= ended.get(holding.job_id, -1):  # it began and ended since the last tick
                self._end(holding.job_id, ended[holding.job_id], tick)
            else:
                begin_ms = item.covered_ms
                self._meter.cover(item, tick.seen.t_utc_us, tick)
                self._meter.cover_cpus(item, begin_ms, tick)
                self._meter.note(item, tick)
                self._meter.note_xids(item, tick)
        self._close_dormant(tick.seen.t_utc_us // 1000)
        self._meter.end(tick)

    def due(self, now_us: int) -> list[AllocationHour]:
        """Return the rows that are due now; they then count as handed out. Put them into the outbox all at once."""
        now_ms = now_us // 1000
        rows = [row for item in self._open.values() for row in item.take(now_ms, self._ship_ms)]
        waiting = []
        for item in self._ending:
            if item.held.run_key is not None:
                rows.extend(item.take(now_ms, self._ship_ms))
                self._closed[item.held.job_id, item.held.gpu_uuid] = item
            elif now_ms - item.covered_ms < _PENDING_MS:
                waiting.append(item)
        self._ending = waiting
        self._closed = {key: item for key, item in self._closed.items() if now_ms - item.covered_ms < HOUR_MS}
        return rows

    def flush(self, now_us: int) -> list[AllocationHour]:
        """Return every changed row whose run is known, for an orderly stop of the agent."""
        for item in self._open.values():
            item.handed_ms = 0
        return self.due(now_us)

    def _accumulator(self, holding: GpuAllocation, tick: MeterTick) -> Accumulator:
        """Return the holding's accumulator, begun or taken up where there is none, with the holding of this tick."""
        key = (holding.job_id, holding.gpu_uuid)
        now_ms = tick.seen.t_utc_us // 1000
        since_ms = min(now_ms, max(holding.since_us // 1000, now_ms - _BACK_MS))
        item = self._open.get(key)
        if item is not None and not _same_run(item, holding):
            self._close(item, item.covered_ms)
            since_ms = max(since_ms, item.covered_ms)
            item = None
        if item is None:
            item = self._take_up(holding) or self._begin(holding, since_ms)
            self._open[key] = item
        item.extend_back(since_ms, UnknownReason.GAP)
        item.seen_ms = now_ms
        item.held = replace(holding, run_key=item.held.run_key) if holding.run_key is None else holding
        return item

    def _begin(self, holding: GpuAllocation, t0_ms: int) -> Accumulator:
        item = Accumulator(self._cluster, self._node, holding, t0_ms, t0_ms)
        item.cpu_s = 0.0 if self._meter.is_fresh(holding.gpu_uuid, holding.since_us) else None
        return item

    def _take_up(self, holding: GpuAllocation) -> Accumulator | None:
        key = (holding.job_id, holding.gpu_uuid)
        ending = [item for item in self._ending if (item.held.job_id, item.held.gpu_uuid) == key]
        for item in [*ending, *([self._closed[key]] if key in self._closed else [])]:
            if _same_run(item, holding):
                self._closed.pop(key, None)
                self._ending = [other for other in self._ending if other is not item]
                item.closed = False
                return item
        return None

    def _end(self, job_id: int, end_us: int, tick: MeterTick) -> None:
        for item in [
            item for item in self._open.values() if item.held.job_id == job_id and item.held.since_us <= end_us
        ]:
            until_us = min(end_us, tick.seen.t_utc_us)
            self._meter.cover(item, until_us, tick)
            self._meter.note_xids(item, tick)
            self._close(item, until_us // 1000)

    def _close(self, item: Accumulator, end_ms: int) -> None:
        """End a holding; time not covered up to its end is a gap."""
        item.advance(end_ms, UnknownReason.GAP)
        item.closed = True
        self._open.pop((item.held.job_id, item.held.gpu_uuid), None)
        if item.hours:
            self._ending.append(item)

    def _close_dormant(self, now_ms: int) -> None:
        """Close holdings missing from the device map for a while, at their last covered instant."""
        for item in [item for item in self._open.values() if item.seen_ms != now_ms]:
            item.seen_ms = item.seen_ms or now_ms  # after a restart the wait begins at the first tick
            if not 0 <= now_ms - item.seen_ms < self._dormant_ms:
                self._close(item, item.covered_ms)

    def _bind_late(self, job_id: int, since_us: int, key: RunKey) -> None:
        for item in [*self._open.values(), *self._ending]:
            if item.held.job_id == job_id and item.held.since_us == since_us and item.held.run_key is None:
                item.held = replace(item.held, run_key=key)

    def restore(self, rows: Iterable[AllocationHour], samples: Iterable[Sample]) -> None:
        """Continue after a restart with the outbox's open rows, and raw samples in order of time.

        Samples must reach back to `replay_from_us(rows)`. The time from the last sample to the first tick is a gap; a
        holding that has ended by then is closed at its last sample.
        """
        for item in sorted(_from_rows(rows), key=lambda item: item.covered_ms):
            earlier = self._open.get((item.held.job_id, item.held.gpu_uuid))
            if earlier is not None:
                self._close(earlier, earlier.covered_ms)
            self._open[item.held.job_id, item.held.gpu_uuid] = item
        known, group = set(self._open), []
        for now_us, stretch in groupby(samples, key=lambda sample: sample.t_utc_us):
            group = list(stretch)
            tick = MeterTick(Observation(now_us, group[0].mono_us), {sample.gpu_uuid: sample for sample in group})
            self._meter.begin(tick)
            for sample in group:
                self._replay(sample, tick)
            self._meter.end(tick)
        self._meter.forget()
        # Without a row, only what was held to the end is ours to report: all else was handed out before.
        for key in self._open.keys() - known - {(sample.job_id, sample.gpu_uuid) for sample in group}:
            del self._open[key]

    def _replay(self, sample: Sample, tick: MeterTick) -> None:
        key = (sample.job_id or 0, sample.gpu_uuid)
        item = self._open.get(key)
        last_us = self._meter.last_us(sample.gpu_uuid)
        if item is None:
            if sample.job_id is None:
                return
            begin_us = tick.seen.t_utc_us if last_us is None or tick.seen.t_utc_us - last_us > self._gap_us else last_us
            item = self._begin(GpuAllocation(sample.job_id, sample.gpu_uuid, begin_us), begin_us // 1000)
            self._open[key] = item
        if item.held.run_key is not None and sample.run_key not in {None, item.held.run_key}:
            return
        item.held = replace(
            item.held,
            run_key=item.held.run_key or sample.run_key,
            map_source=sample.map_source,
            confidence=sample.confidence,
            suspended=sample.reason == SUSPENDED,
            reason=sample.reason,
        )
        if tick.seen.t_utc_us // 1000 > item.covered_ms:
            self._meter.cover(item, tick.seen.t_utc_us, tick)
            self._meter.note(item, tick)
        elif last_us is not None and item.first_ms < tick.seen.t_utc_us // 1000:
            start_ms = max(last_us // 1000, item.first_ms)
            state = self._meter.unmeasured(last_us, tick.seen.t_utc_us) or state_of(item, sample)
            item.replay_zeros(start_ms, tick.seen.t_utc_us // 1000, state)


def replay_from_us(rows: Iterable[AllocationHour], now_us: int) -> int:
    """Return from when restore needs raw samples: before the end of the oldest open row, at least two hours."""
    oldest_ms = min((row.t1_ms for row in rows if not row.final), default=now_us // 1000)
    return min(oldest_ms * 1000 - _REPLAY_MS * 1000, now_us - 2 * HOUR_MS * 1000)


def _from_rows(rows: Iterable[AllocationHour]) -> list[Accumulator]:
    """Return one accumulator for each run and GPU of open rows."""
    found: dict[tuple[RunKey, str], Accumulator] = {}
    for row in rows:
        if row.final:
            continue
        run = row.run_key
        held = GpuAllocation(run.job_id, row.gpu_uuid, 0, run, row.share)
        item = found.setdefault((run, row.gpu_uuid), Accumulator(run.cluster, row.node, held, 0))
        item.held = held
        item.hours[row.hour_utc] = OpenHour.reopen(row)
        item.covered_ms = max(item.covered_ms, row.t1_ms)
    return list(found.values())


def _same_run(item: Accumulator, holding: GpuAllocation) -> bool:
    if item.held.run_key is not None and holding.run_key is not None:
        return item.held.run_key == holding.run_key
    return holding.since_us <= item.covered_ms * 1000 + _SLACK_US

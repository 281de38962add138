"""HourBook: each millisecond of a holding is in exactly one part of one row, also through restarts."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.agent.accumulator import SUSPENDED, State
from gpuwaste.agent.hour_aggregator import HourAggregator, replay_from_us
from gpuwaste.agent.meter import MeterTick
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuAllocation, GpuReading, HostUse, JobMap
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.ledger.hour import HOUR_MS, AllocationHour, hour_from_wire
from gpuwaste.slurm.run_key import RunKey

HOUR_0 = 1_800_000_000 // 3600 * 3600 * 1000  # ms
KEY = RunKey("gw", 7, HOUR_0 // 1000)
GPU = "GPU-1"
STEP_MS = 10_000


def sample(t_ms: int, util: float | None = 0.0, **more: Any) -> Sample:
    """Return one sample of the GPU under test."""
    base = Sample(t_ms * 1000, t_ms * 1000, GPU, "", "nvml", util_pct=util, job_id=7, confidence=Confidence.SINGLE)
    return replace(base, **more)


def holding(since_ms: int, key: RunKey | None = KEY, **more: Any) -> GpuAllocation:
    """Return the holding under test."""
    base = GpuAllocation(7, GPU, since_ms * 1000, key, map_source=MapSource.PROLOG, confidence=Confidence.CONFIRMED)
    return replace(base, **more)


def tick(one: Sample, duty: tuple[tuple[int, float], ...] = (), host: HostUse | None = None, **more: Any) -> MeterTick:
    """Return a tick with one GPU's sample."""
    reading = GpuReading(GPU, duty=duty, pids=frozenset({100}))
    use = {} if host is None else {7: host}
    return MeterTick(Observation(one.t_utc_us, one.mono_us, readings={GPU: reading}, host=use, **more), {GPU: one})


@dataclass
class Outbox:
    """What the hub has in the end: the highest seq of each row; and what the agent's outbox still has open."""

    rows: dict[tuple[object, ...], AllocationHour] = field(default_factory=dict)

    def put(self, rows: Iterable[AllocationHour]) -> None:
        """Keep the newest of each row."""
        for row in rows:
            sent = hour_from_wire(row.to_wire())
            before = self.rows.get(row.key)
            assert before is None or sent.seq > before.seq, "a row was sent twice under one seq"
            self.rows[row.key] = sent

    def open(self) -> list[AllocationHour]:
        """Return what a restart finds."""
        return [row for row in self.rows.values() if not row.final]

    def final(self) -> list[AllocationHour]:
        """Return all rows, of which none may be open any more."""
        assert not self.open()
        return sorted(self.rows.values(), key=lambda row: row.hour_utc)


@dataclass(frozen=True)
class Step:
    """One tick of a drawn life."""

    dt_ms: int
    util: float | None
    suspended: bool = False
    conflict: bool = False
    restart: bool = False  # the agent is killed after this tick

    @property
    def state(self) -> State:
        """Say what the interval counts as."""
        if self.suspended:
            return SUSPENDED
        if self.conflict:
            return "conflict"
        return "gpu_lost" if self.util is None else int(self.util)


ZEROS = st.builds(Step, st.just(STEP_MS), st.just(0.0))
STEPS = st.one_of(
    ZEROS,
    ZEROS,
    ZEROS,
    st.builds(
        Step,
        st.sampled_from([STEP_MS, STEP_MS, 7_001, 24_999, 25_000, 25_001, 61_000]),
        st.sampled_from([None, 0.0, 1.0, 50.0, 100.0]),
        st.sampled_from([False, False, False, True]),
        st.sampled_from([False, False, False, True]),
        st.booleans(),
    ),
)


def _ending(steps: list[Step]) -> list[Step]:
    """Let the last tick bring the end alone: what the map last said of the holding still holds."""
    return [*steps[:-1], replace(steps[-1], suspended=steps[-2].suspended, conflict=steps[-2].conflict)]


LIVES = st.lists(STEPS, min_size=2, max_size=45).map(_ending)


def live(steps: list[Step], begin_ms: int, since_ms: int, end_ms: int | None, late_key: int) -> list[AllocationHour]:
    """Run a life through HourBook, the agent being killed where a step says so."""
    book, outbox, stored = HourAggregator("gw", "gpu1", 10, 900), Outbox(), []
    now_ms = begin_ms
    book.observe(tick(sample(now_ms, job_id=None)))
    stored.append(sample(now_ms, job_id=None))
    for index, step in enumerate(steps):
        now_ms += step.dt_ms
        over = index == len(steps) - 1
        key = KEY if index >= late_key else None
        reason = (
            SUSPENDED
            if step.suspended
            else "conflict"
            if step.conflict
            else ""
            if step.util is not None
            else "gpu_lost"
        )
        confidence = Confidence.CONFLICT if step.conflict else Confidence.SINGLE
        one = sample(now_ms, step.util, reason=reason, confidence=confidence, run_key=key)
        held = holding(since_ms, key, suspended=step.suspended, confidence=confidence)
        last = end_ms is not None and over
        drive(book, JobMap((), ((7, (end_ms or 0) * 1000),)) if last else JobMap((held,)), tick(one))
        if last:
            book._bind_late(7, since_ms * 1000, KEY)
        # The first sample after a start has nothing before it that it could cover, and says so in the store.
        stored.append(replace(one, util_pct=None, reason="gap") if index and steps[index - 1].restart else one)
        outbox.put(book.due(now_ms * 1000))
        if step.restart and not over:
            book = HourAggregator("gw", "gpu1", 10, 900)
            from_us = replay_from_us(outbox.open(), now_ms * 1000)
            book.restore(outbox.open(), [item for item in stored if item.t_utc_us >= from_us])
    return outbox.final()


def oracle(steps: list[Step], begin_ms: int, since_ms: int, end_ms: int) -> list[tuple[int, int, State]]:
    """Say the same by brute force: one state per stretch."""
    pieces: list[tuple[int, int, State]] = []
    before, state, was_restart = begin_ms, steps[0].state, False
    for step in steps:
        now = before + step.dt_ms
        state = step.state
        start, stop = max(before, since_ms), min(now, end_ms)
        cut = start > before or stop < now
        if was_restart or step.dt_ms > 25_000 or (cut and isinstance(state, int) and state not in {0, 100}):
            state = "gap"
        if start < stop:
            pieces.append((start, stop, state))
        before, was_restart = now, step.restart
    return pieces


def sums(pieces: list[tuple[int, int, State]]) -> dict[int, dict[State, int]]:
    """Add up the oracle's stretches by hour; "idle_run" is what lies in runs of zeros of at least 60 s."""
    found: dict[int, dict[State, int]] = {}

    def add(start: int, stop: int, what: State) -> None:
        for ms in range(start // HOUR_MS * HOUR_MS, stop, HOUR_MS):
            part = min(stop, ms + HOUR_MS) - max(start, ms)
            hour = found.setdefault(ms // 1000, {})
            hour[what] = hour.get(what, 0) + part

    run: list[tuple[int, int]] = []
    for start, stop, state in [*pieces, (0, 0, "end")]:
        if state == 0:
            run.append((start, stop))
        else:
            if run and run[-1][1] - run[0][0] >= 60_000:
                add(run[0][0], run[-1][1], "idle_run")
            run = []
        if start < stop:
            add(start, stop, state)
    return found


def as_sums(rows: list[AllocationHour]) -> dict[int, dict[State, int]]:
    found: dict[int, dict[State, int]] = {}
    for row in rows:
        known: dict[State, int] = dict(row.util_ms.items())
        unknown: dict[State, int] = dict(row.unknown_ms.items())
        parts: dict[State, int] = {**known, **unknown, SUSPENDED: row.suspended_ms, "idle_run": row.idle_run_ms}
        found[row.hour_utc] = {state: ms for state, ms in parts.items() if ms}
    return found


@settings(max_examples=examples(150), deadline=None)
@given(
    steps=LIVES,
    offset_ms=st.integers(-300_000, 100_000),
    into_ms=st.sampled_from([0, 0, 1, 3_000]),
    early_ms=st.sampled_from([0, 0, 1, 4_000]),
)
@example(steps=[Step(10_000, 0.0)] * 7, offset_ms=-30_000, into_ms=0, early_ms=0)
def test_rows_equal_a_brute_force_oracle(steps: list[Step], offset_ms: int, into_ms: int, early_ms: int) -> None:
    """Known, unknown, suspended and idle-run time of each hour equal the oracle's, to the millisecond, to t1 - t0."""
    steps = [replace(step, restart=False) for step in steps]
    begin_ms = HOUR_0 + offset_ms
    now_ms = begin_ms + sum(step.dt_ms for step in steps)
    since_ms, end_ms = begin_ms + into_ms, now_ms - early_ms
    rows = live(steps, begin_ms, since_ms, end_ms, late_key=0)
    assert as_sums(rows) == sums(oracle(steps, begin_ms, since_ms, end_ms))
    for row in rows:
        assert row.known_ms + sum(row.unknown_ms.values()) + row.suspended_ms == row.t1_ms - row.t0_ms
    assert (rows[0].t0_ms, rows[-1].t1_ms) == (since_ms, end_ms)


@settings(max_examples=examples(150), deadline=None)
@given(steps=LIVES, offset_ms=st.integers(-300_000, 100_000), late_key=st.integers(0, 50))
# An idle run began in the hour before, whose row has left when the agent comes back within a minute of zeros.
@example(_ending([*[Step(STEP_MS, 0.0)] * 7, Step(STEP_MS, None, restart=True), *[Step(STEP_MS, 0.0)] * 2]), -1, 0)
@example(_ending([*[Step(STEP_MS, 0.0)] * 7, Step(STEP_MS, 0.0, restart=True), *[Step(STEP_MS, 0.0)] * 9]), -35_000, 0)
# The first interval was too long to be measured, though its sample says zero, and only its row has left.
@example(
    _ending([Step(25_001, 0.0), Step(STEP_MS, 0.0), Step(STEP_MS, None, restart=True), *[Step(STEP_MS, 0.0)] * 2]), 0, 0
)
def test_a_restart_at_any_tick_loses_the_outage_alone(steps: list[Step], offset_ms: int, late_key: int) -> None:
    """Killed after any ticks, before or after the run's start is known, rows differ by a gap of each outage."""
    # A run that nobody saw after the restart ends at its last sample: its own test.
    steps[-2] = replace(steps[-2], restart=False)
    begin_ms = HOUR_0 + offset_ms
    end_ms = begin_ms + sum(step.dt_ms for step in steps)
    rows = live(steps, begin_ms, begin_ms, end_ms, late_key)
    assert as_sums(rows) == sums(oracle(steps, begin_ms, begin_ms, end_ms))


def drive(book: HourAggregator, jobs: JobMap, *ticks: MeterTick) -> None:
    """Show the same map at several ticks."""
    for one in ticks:
        book.observe(replace(one, seen=replace(one.seen, jobs=jobs)))


def test_t0_and_t1_cut_the_drivers_own_samples() -> None:
    """A job that is busy from its start on is 100 % busy, though the GPU idled in the first half of the interval."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    t0 = HOUR_0 + 1_000_000
    duty = tuple(((t0 + ms) * 1000, 100.0 if 5_000 < ms <= 15_000 else 0.0) for ms in range(500, 20_001, 500))
    drive(book, JobMap(), tick(sample(t0)))
    drive(book, JobMap((holding(t0 + 5_000),)), tick(sample(t0 + 10_000, 50.0), duty[:20]))
    drive(book, JobMap((), ((7, (t0 + 15_000) * 1000),)), tick(sample(t0 + 20_000, 50.0), duty[20:]))
    (row,) = book.due((t0 + 20_000) * 1000)
    assert row.util_ms == {100: 10_000}
    assert (row.t0_ms, row.t1_ms, row.final) == (t0 + 5_000, t0 + 15_000, True)
    assert row.last_active_ms == t0 + 15_000


def test_a_job_between_two_ticks_has_its_row() -> None:
    """A run that began and ended since the last tick is told with its end, and gets the driver's samples in between."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    t0 = HOUR_0 + 1_000_000
    duty = tuple(((t0 + ms) * 1000, 80.0 if 2_000 < ms <= 6_000 else 0.0) for ms in range(500, 10_001, 500))
    drive(book, JobMap(), tick(sample(t0)))
    both = JobMap((holding(t0 + 2_000),), ((7, (t0 + 6_000) * 1000),))
    drive(book, both, tick(sample(t0 + 10_000, 32.0), duty))
    (row,) = book.due((t0 + 10_000) * 1000)
    assert (row.util_ms, row.final) == ({80: 4_000}, True)


def test_rows_wait_for_the_runs_start_and_leave_with_it() -> None:
    """Without a run key nothing is due; the key, even after the end, sends all of it."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    t0 = HOUR_0 + 1_000_000
    drive(book, JobMap(), tick(sample(t0)))
    drive(book, JobMap((holding(t0, None),)), tick(sample(t0 + 10_000)))
    assert not book.due((t0 + 10_000) * 1000)
    drive(book, JobMap((), ((7, (t0 + 15_000) * 1000),)), tick(sample(t0 + 20_000)))
    assert not book.due((t0 + 20_000) * 1000)
    drive(book, JobMap(late_keys=((7, t0 * 1000, KEY),)), tick(sample(t0 + 30_000)))
    (row,) = book.due((t0 + 30_000) * 1000)
    assert (row.run_key, row.util_ms, row.final) == (KEY, {0: 15_000}, True)


def test_a_step_of_the_clock_is_unknown_and_nothing_is_covered_twice() -> None:
    """Forward, the interval is unknown; backward, nothing is added until the clock passes what was covered."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    t0, mono = HOUR_0 + 1_000_000, 0
    for wall_ms in (0, 10_000, 40_000, 50_000, 20_000, 30_000, 40_000, 50_000, 60_000):
        one = replace(sample(t0 + wall_ms, 100.0), mono_us=mono)
        drive(book, JobMap((holding(t0),)), tick(one))
        mono += 10_000_000
    (row,) = book.flush((t0 + 60_000) * 1000)
    assert row.util_ms == {100: 10_000 + 10_000 + 10_000}
    assert row.unknown_ms == {"clock_step": 30_000}


def test_an_idle_run_over_the_hour_changes_the_earlier_row() -> None:
    """Zeros that become an idle run after the full hour are sent again with the earlier hour, only then final."""
    book, outbox = HourAggregator("gw", "gpu1", 10, 900), Outbox()
    t0 = HOUR_0 - 30_000
    for at in range(0, 50_001, 10_000):
        drive(book, JobMap((holding(t0),)), tick(sample(t0 + at)))
        outbox.put(book.due((t0 + at) * 1000))
    earlier = outbox.rows[KEY.cluster, 7, KEY.start, "gpu1", GPU, HOUR_0 // 1000 - 3600]
    assert (earlier.final, earlier.idle_run_ms, earlier.util_ms) == (False, 0, {0: 30_000})
    for at in (60_000, 70_000):
        drive(book, JobMap((holding(t0),)), tick(sample(t0 + at)))
        outbox.put(book.due((t0 + at) * 1000))
    earlier = outbox.rows[KEY.cluster, 7, KEY.start, "gpu1", GPU, HOUR_0 // 1000 - 3600]
    assert (earlier.final, earlier.idle_run_ms) == (True, 30_000)


def test_a_holding_that_slurm_alone_knows_is_unknown() -> None:
    """A GPU that NVML lacks has no samples; its time is not_in_nvml."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    t0 = HOUR_0 + 1_000_000
    for at in (0, 10_000, 20_000):
        jobs = JobMap((holding(t0, gpu_uuid="missing:gpu1:3"),))
        book.observe(MeterTick(Observation((t0 + at) * 1000, at * 1000, jobs=jobs), {}))
    (row,) = book.flush((t0 + 20_000) * 1000)
    assert row.unknown_ms == {"not_in_nvml": 20_000}


def test_counters_are_differences_and_survive_a_reset() -> None:
    """Energy and CPU seconds are what was used while covered; where a counter goes back, the power read then counts."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    t0 = HOUR_0 + 1_000_000
    energy = [5_000_000, 6_000_000, 7_500_000, 100, 500_100]
    for index, counter in enumerate(energy):
        one = sample(t0 + index * 10_000, 100.0, energy_mj=counter, power_mw=300_000 + index, mem_used_b=index)
        use = HostUse(cpu_s=float(index), mem_b=10 - index, pids=frozenset({100}))
        drive(book, JobMap((holding(t0),)) if index else JobMap(), tick(one, host=use))
    (row,) = book.flush((t0 + 50_000) * 1000)
    assert row.energy_j == pytest.approx(1_000 + 1_500 + 3_000.03 + 500)
    assert row.cpu_s == 4
    assert (row.host_mem_max_b, row.mem_max_b, row.proc_seen) == (9, 4, True)
    assert row.power_w_at_full is not None
    assert round(row.power_w_at_full) == 300


def test_another_run_of_the_same_job_has_its_own_rows() -> None:
    """A requeued job's second run, whose first end nobody saw, does not continue the first one's row."""
    book, outbox = HourAggregator("gw", "gpu1", 10, 900), Outbox()
    t0 = HOUR_0 + 1_000_000
    second = RunKey("gw", 7, KEY.start + 2000)
    drive(book, JobMap((holding(t0),)), tick(sample(t0)), tick(sample(t0 + 10_000)))
    outbox.put(book.due((t0 + 10_000) * 1000))
    drive(book, JobMap((holding(t0 + 13_000, second),)), tick(sample(t0 + 20_000)), tick(sample(t0 + 30_000)))
    drive(book, JobMap((), ((7, (t0 + 33_000) * 1000),)), tick(sample(t0 + 40_000)))
    outbox.put(book.due((t0 + 40_000) * 1000))
    spans = {row.run_key: (row.t0_ms - t0, row.t1_ms - t0) for row in outbox.final()}
    assert spans == {KEY: (0, 10_000), second: (13_000, 33_000)}


def test_a_run_that_is_gone_after_a_restart_ends_at_its_last_sample() -> None:
    """Nobody knows its end: the row is closed where it was covered, and the hub adds the rest."""
    book, outbox = HourAggregator("gw", "gpu1", 10, 900), Outbox()
    t0 = HOUR_0 + 1_000_000
    samples = [sample(t0 + at, 0.0, run_key=KEY) for at in range(0, 30_001, 10_000)]
    for one in samples:
        drive(book, JobMap((holding(t0),)), tick(one))
        outbox.put(book.due(one.t_utc_us))
    book = HourAggregator("gw", "gpu1", 10, 900)
    book.restore(outbox.open(), samples)
    for at in range(600_000, 700_000, 10_000):
        drive(book, JobMap(), tick(sample(t0 + at, job_id=None)))
        outbox.put(book.due((t0 + at) * 1000))
    (row,) = outbox.final()
    assert row.t1_ms == t0 + 30_000


def test_a_holding_that_comes_back_continues_its_row() -> None:
    """A run without a socket for a while (salloc between two steps) is one row with a gap, not two."""
    book, outbox = HourAggregator("gw", "gpu1", 10, 900), Outbox()
    t0 = HOUR_0 + 1_000_000
    for at in range(0, 300_001, 10_000):
        away = 30_000 < at < 200_000
        drive(book, JobMap() if away else JobMap((holding(t0),)), tick(sample(t0 + at, 100.0)))
        outbox.put(book.due((t0 + at) * 1000))
    drive(book, JobMap((), ((7, (t0 + 310_000) * 1000),)), tick(sample(t0 + 310_000, 100.0)))
    outbox.put(book.due((t0 + 310_000) * 1000))
    (row,) = outbox.final()
    assert row.known_ms + row.unknown_ms["gap"] == row.t1_ms - row.t0_ms == 310_000
    assert row.unknown_ms == {"gap": 160_000}


def test_shared_gpus_have_a_row_for_each_holder() -> None:
    """Two jobs with shards of one GPU each have their share and their part of its energy."""
    book = HourAggregator("gw", "gpu1", 10, 900)
    t0 = HOUR_0 + 1_000_000
    other = RunKey("gw", 8, KEY.start)
    jobs = JobMap((holding(t0, share=0.25), holding(t0, other, job_id=8, share=0.5)))
    for index, pct in enumerate((3, 99, 100, 0, 41)):
        one = sample(t0 + index * 10_000, float(pct), energy_mj=index * 8_000_000)
        drive(book, jobs if index else JobMap(), tick(one))
    rows = {row.run_key.job_id: row for row in book.flush((t0 + 50_000) * 1000)}
    assert {job: (row.share, row.energy_j) for job, row in rows.items()} == {7: (0.25, 8_000), 8: (0.5, 16_000)}
    assert rows[7].util_ms == rows[8].util_ms


def test_xid_errors_are_in_the_hour_in_which_they_were_seen() -> None:
    """Counters of the agent become counts by hour; another GPU's are left out; the run that ended of one has it."""
    book, hub = HourAggregator("gw", "n1", 10.0, 900.0), Outbox()
    seen = [{}, {(GPU, 79): 1, ("GPU-2", 79): 9}, {(GPU, 79): 3, (GPU, 13): 1}, {(GPU, 79): 3, (GPU, 13): 1}]
    for number, counts in enumerate(seen, start=1):
        drive(book, JobMap((holding(HOUR_0),)), tick(sample(HOUR_0 + number * STEP_MS), xids=counts))
    hub.put(book.flush((HOUR_0 + 5 * STEP_MS) * 1000))
    (row,) = hub.rows.values()
    assert row.xids == {79: 3, 13: 1}
    end_us = (HOUR_0 + 4 * STEP_MS + 5000) * 1000
    last = tick(sample(HOUR_0 + 5 * STEP_MS), xids={(GPU, 79): 4, (GPU, 13): 1})
    drive(book, JobMap(ended=((7, end_us),)), last)
    hub.put(book.flush((HOUR_0 + 6 * STEP_MS) * 1000))
    (row,) = hub.rows.values()
    assert (row.final, row.xids) == (True, {79: 4, 13: 1})


def test_a_row_has_a_bounded_number_of_xid_errors_and_keeps_them_through_a_restart() -> None:
    """A driver that counts hundreds of numbers fills no row; what an open row has stays."""
    book, hub = HourAggregator("gw", "n1", 10.0, 900.0), Outbox()
    counts = {(GPU, number): 1 for number in range(1, 200)}
    for number in (1, 2):
        drive(book, JobMap((holding(HOUR_0),)), tick(sample(HOUR_0 + number * STEP_MS), xids=counts))
    hub.put(book.flush((HOUR_0 + 3 * STEP_MS) * 1000))
    again = HourAggregator("gw", "n1", 10.0, 900.0)
    again.restore(hub.open(), [sample(HOUR_0 + 2 * STEP_MS)])
    drive(again, JobMap((holding(HOUR_0),)), tick(sample(HOUR_0 + 3 * STEP_MS)))
    hub.put(again.flush((HOUR_0 + 4 * STEP_MS) * 1000))
    (row,) = hub.rows.values()
    assert len(row.xids) == 64
    assert set(row.xids.values()) == {1}

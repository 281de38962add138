"""The ledger against an oracle that walks every second of every GPU."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.ledger.builders import LATER, T0, job, load, store

from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.ledger import DeviceLedger
from gpuwaste.slurm.accounting.job_record import JobRecord

pytestmark = pytest.mark.long

# What one second of one GPU was: a percent, an unknown reason, suspended, or (None) not reported.
Second = int | str | None
SUSPENDED = "suspended"


@dataclass(frozen=True)
class Case:
    """A run of up to three hours, and each second of each of its GPUs; GPUs beyond the lists have no agent."""

    record: JobRecord
    timelines: list[list[Second]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw runs that start anywhere in an hour, in stretches of up to half an hour."""
    offset = draw(st.integers(0, 3599))
    seconds = draw(st.integers(1, 9000))
    kinds = st.one_of(st.integers(0, 100), st.just(0), st.sampled_from(["gap", "gpu_lost", SUSPENDED, None]))
    timelines = []
    for _ in range(draw(st.integers(0, 3))):
        line: list[Second] = []
        while len(line) < seconds:
            line += [draw(kinds)] * draw(st.integers(1, 1800))
        timelines.append(line[:seconds])
    record = job(seconds=seconds, start=T0 + offset, end=T0 + offset + seconds, gpus=draw(st.integers(0, 3)))
    return Case(record, timelines)


def rows_of(case: Case) -> list[AllocationHour]:
    """Cut the timelines into hours rows, as an agent would."""
    rows = []
    assert case.record.start is not None
    for gpu, line in enumerate(case.timelines):
        hours: dict[int, Counter[Second]] = {}
        for i, kind in enumerate(line):
            hours.setdefault((case.record.start + i) // 3600 * 3600, Counter())[kind] += 1
        for hour_utc, seen in hours.items():
            if set(seen) == {None}:
                continue
            ends = (max(hour_utc, case.record.start), min(hour_utc + 3600, case.record.start + len(line)))
            rows.append(
                AllocationHour(
                    run_key=case.record.run_key,
                    node="gpu1",
                    gpu_uuid=f"GPU-{gpu}",
                    hour_utc=hour_utc,
                    seq=1,
                    t0_ms=ends[0] * 1000,
                    t1_ms=ends[1] * 1000,
                    util_ms={k: n * 1000 for k, n in seen.items() if isinstance(k, int)},
                    unknown_ms={
                        k: n * 1000 for k, n in seen.items() if k in {"gap", "gpu_lost"} and isinstance(k, str)
                    },
                    suspended_ms=seen[SUSPENDED] * 1000,
                    proc_seen=any(isinstance(k, int) and k > 0 for k in seen),
                )
            )
    return rows


def oracle(line: list[Second]) -> Counter[str]:
    """Name the class of each second, one after the other."""
    classes: Counter[str] = Counter()
    for second in line:
        if second is None:
            classes["unreported"] += 1
        elif isinstance(second, str):
            classes[second] += 1
        elif second == 0:
            classes["idle"] += 1
        else:
            classes["low" if second < 33 else "moderate" if second <= 66 else "high"] += 1
    return classes


def classes_of(device: DeviceLedger) -> Counter[str]:
    """Return the device's classes in seconds."""
    parts = {
        "idle": device.idle_ms,
        "low": device.low_ms,
        "moderate": device.moderate_ms,
        "high": device.high_ms,
        SUSPENDED: device.suspended_ms,
        "pending": device.pending_ms,
        **device.unknown,
    }
    return Counter({name: ms // 1000 for name, ms in parts.items() if ms})


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_every_second_is_one_class_and_the_oracle_agrees(case: Case) -> None:
    """Each device has the oracle's seconds of each class, GPUs without an agent are unknown, and all adds up."""
    for ledger in load(store([case.record], rows_of(case))):
        seconds = case.record.elapsed_s
        assert seconds is not None
        reported = [line for line in case.timelines if set(line) != {None}]
        by_uuid = {f"GPU-{i}": line for i, line in enumerate(case.timelines)}
        gpus = len(reported) if case.record.gpus is None else case.record.gpus
        assert len(ledger.devices) == gpus
        assert ledger.beyond == max(0, len(reported) - gpus)
        for device in ledger.devices:
            found = classes_of(device)
            assert found.total() * 1000 == device.alloc_ms
            if not device.use.gpu_uuid:
                assert found == Counter({"no_agent": seconds})
                continue
            assert found == oracle(by_uuid[device.use.gpu_uuid])


@settings(max_examples=examples(40), deadline=None)
@given(cases(), st.integers(1, 9000))
def test_a_running_job_adds_up_with_what_is_still_on_its_way(case: Case, age: int) -> None:
    """While a job runs, the classes and the pending time make up the time up to now."""
    running = job(seconds=None, start=case.record.start, gpus=max(1, len(case.timelines)))
    assert running.start is not None
    seconds = case.record.elapsed_s or 0
    now = running.start + seconds + age
    for ledger in load(store([running], rows_of(case)), now=now):
        for device in ledger.devices:
            assert classes_of(device).total() == seconds + age
            assert device.pending_ms <= min(1080, seconds + age) * 1000


def test_the_oracle_can_fail() -> None:
    """A row whose seconds are put into another class is noticed: the oracle is no tautology."""
    case = Case(job(seconds=100), [[50] * 100])
    rows = rows_of(case)
    rows[0].util_ms = {70: 100_000}
    device = load(store([case.record], rows), now=LATER)[0].devices[0]
    assert classes_of(device) != oracle(case.timelines[0])

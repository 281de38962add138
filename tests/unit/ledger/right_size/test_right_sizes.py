"""Findings about the size of requests, from jobs and hours in a store to a report."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.ledger.builders import GIB, SETTINGS, T0, hour, job

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.ledger.right_size.findings import SIZE_FINDINGS
from gpuwaste.ledger.right_size.keeper import RightSizes
from gpuwaste.ledger.right_size.reads import SizeReader
from gpuwaste.store.hub.hub_store import HubStore

NOW = T0 + 10 * 86400
RUNS = 140
"""Of one name: 40 are read of each name, so three names give more than 99 growths."""


class FixedClock(SystemClock):
    """A clock that does not move."""

    def __init__(self, at: int = NOW) -> None:
        self.at = at

    def utc_s(self) -> int:
        """Return the instant."""
        return self.at


def fill(store: HubStore, *, waits_s: int = 7200, sm: float = 0.1, mem: int = 6, **changes: Any) -> None:
    """Store runs of four names on a100, each with a peak of `mem` GiB, and runs on slices, which waited a minute."""
    jobs, hours = [], []
    for number in range(RUNS):
        start = T0 + number * 3600
        name = f"train{'abcd'[number % 4]}-{number}"
        same = {"start": start, "end": start + 3600, "submit": start - waits_s, "name": name}
        record = job(number + 1, **{**same, "total_cpu_s": 3600.0, "time_limit_s": 86400, **changes})
        jobs.append(record)
        seen = {"mem_max_b": mem * GIB, "mem_total_b": 80 * GIB, "host_mem_max_b": 5 * GIB, "profiled_ms": 3_600_000}
        hours.append(hour(record, 0, number, {50: 3600}, sm_active=sm / 2, dram_active=0.01, **seen))
    for number in range(30):
        start = T0 + number * 3600
        times = {"start": start, "end": start + 60, "submit": start - 60, "time_limit_s": 300}
        jobs.append(job(1000 + number, user="bob", gpu_type="1g.10gb", **times))
    upsert_jobs(store, jobs)
    upsert_hours(store, hours)


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Provide an empty store."""
    store = HubStore.open(":memory:", SystemClock())
    yield store
    store.close()


def found(store: HubStore) -> dict[str, dict[str, Any]]:
    """Return the finding of each kind in the report of alice, after a pass."""
    RightSizes(store, SETTINGS, FixedClock()).step()
    with store.reader() as db:
        report = report_document(db, "user", "alice", T0, NOW, SETTINGS, NOW)
    return {one.kind: {"title": one.title, "fixes": one.fixes, **one.evidence} for one in report.findings}


def test_such_jobs_get_a_smaller_gpu_and_smaller_requests(store: HubStore) -> None:
    """6 of 80 GiB and a tenth of the multiprocessors: a slice, fewer CPUs, less memory, a shorter limit, with lines."""
    fill(store)
    sizes = found(store)
    assert set(SIZE_FINDINGS) <= set(sizes)
    gpu = sizes["gpu_larger_than_needed"]
    assert gpu["title"].startswith("1g.10gb would be enough instead of a100: the last 20 runs used at most 6.0 GiB")
    assert gpu["fixes"][0].lines == ["#SBATCH --gres=gpu:1g.10gb:1"]
    assert gpu["exceeded_ratio"] <= 0.01
    assert (gpu["wait_s"], gpu["wait_there_s"]) == (7200, 60)
    assert gpu["freed_gpu_s"] == pytest.approx(20 * 3600 * 6 / 7)
    assert sizes["memory_more_than_needed"]["fixes"][0].lines == ["#SBATCH --mem=6G"]
    assert sizes["time_limit_longer_than_needed"]["fixes"][0].lines == ["#SBATCH --time=01:00:00"]
    assert sizes["cpus_more_than_needed"]["enough_cpus"] == 2


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("nobody waits longer for the large GPU", {"waits_s": 60}),
        ("half of the multiprocessors are busy: a seventh of them would take too long", {"sm": 0.5}),
        ("the memory does not fit", {"mem": 10}),
        ("GPUs of several slices cannot exchange data", {"gpus": 2}),
    ],
)
def test_near_misses(store: HubStore, why: str, changes: dict[str, Any]) -> None:
    """No smaller GPU is proposed where one condition does not hold."""
    fill(store, **changes)
    assert "gpu_larger_than_needed" not in found(store), why


def test_limits_that_runs_reached_stay(store: HubStore) -> None:
    """A run that its limit ended, or that ran out of memory, keeps the limit and the memory of such jobs."""
    fill(store)
    ended = [(name, state) for name in "abcd" for state in ("TIMEOUT", "OUT_OF_MEMORY")]
    jobs = [
        job(5000 + number, start=NOW - 9000, end=NOW - 5000, name=f"train{name}-1", state=state)
        for number, (name, state) in enumerate(ended)
    ]
    upsert_jobs(store, jobs)
    assert not {"time_limit_longer_than_needed", "memory_more_than_needed"} & set(found(store))


def test_unknown_peaks_give_no_finding(store: HubStore) -> None:
    """Runs of which no agent reported keep their GPU and their memory."""
    fill(store)
    with store.writing() as db:
        db.execute("DELETE FROM hours").fetchall()
    assert not {"gpu_larger_than_needed", "memory_more_than_needed"} & set(found(store))


def test_a_reader_gets_only_findings_in_scope(store: HubStore) -> None:
    """The report of another user has none of alice's."""
    fill(store)
    RightSizes(store, SETTINGS, FixedClock()).step()
    with store.reader() as db:
        report = report_document(db, "user", "bob", T0, NOW, SETTINGS, NOW)
        jobs = SizeReader(db, SETTINGS, NOW).jobs("gw", ["alice"])
    assert not set(SIZE_FINDINGS) & {one.kind for one in report.findings}
    assert {each.key[2] for each in jobs} == {"traina-#", "trainb-#", "trainc-#", "traind-#"}


def test_plan_reads_the_findings_of_one_user(store: HubStore) -> None:
    """The part gives each finding with the name, GPUs and type of such jobs, and none of another user's."""
    fill(store)
    part = RightSizes(store, SETTINGS, FixedClock())
    part.step()
    gpu = [one for one in part.of_user("alice") if one.finding.kind == "gpu_larger_than_needed"]
    assert {(one.cluster, one.name, one.gpus, one.gpu_type) for one in gpu} == {
        ("gw", f"train{letter}-#", 1, "a100") for letter in "abcd"
    }
    assert part.of_user("carol") == []


def test_advisors_get_options_the_smaller_gpu_first(store: HubStore) -> None:
    """The table for sbatch's line has options, no #SBATCH, and leaves out what has no line to copy."""
    fill(store)
    part = RightSizes(store, SETTINGS, FixedClock())
    part.step()
    options = [row.option for row in part.table().rows if (row.user, row.name) == ("alice", "traina-#")]
    assert options == ["--gres=gpu:1g.10gb:1", "--mem=6G", "--time=01:00:00"]


def test_jobstats_counts_where_no_agent_reported(store: HubStore) -> None:
    """Peaks of GPU memory and mean utilization in accounting give the finding, with their source."""
    fill(store, mem=1)
    with store.writing() as db:
        db.execute(
            "INSERT INTO accounted_use BY NAME SELECT cluster, job_id, run_start, 'jobstats' AS source, node,"
            " '0' AS gpu, 2.0 AS mean_pct, mem_max_b AS gpu_mem_max_b, mem_total_b AS gpu_mem_total_b FROM hours"
        ).fetchall()
        db.execute("DELETE FROM hours").fetchall()
    sizes = found(store)
    assert sizes["gpu_larger_than_needed"]["source"] == "jobstats"
    assert "memory_more_than_needed" not in sizes


def test_a_later_pass_reads_users_with_a_new_run_and_forgets_old_findings(store: HubStore) -> None:
    """A pass hours later draws nothing anew where no run ended; findings of jobs that stopped long ago go."""
    fill(store)
    clock = FixedClock()
    part = RightSizes(store, SETTINGS, clock)
    assert part.step() > 0
    clock.at += 6 * 3600
    assert part.step() == 0
    upsert_jobs(store, [job(9000, start=clock.at - 4000, end=clock.at - 1000, name="traina-1")])
    assert part.step() > 0
    assert part.of_user("alice")
    clock.at += 61 * 86400
    part.step()
    assert part.of_user("alice") == []


def test_batches_of_users_give_the_same_findings(store: HubStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one user at a time changes no finding."""
    fill(store)
    whole = found(store)
    monkeypatch.setattr("gpuwaste.ledger.right_size.reads.RUNS_AT_ONCE", 1)
    assert found(store) == whole

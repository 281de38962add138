"""Use of GPUs that only accounting tells of: in the store, the ledger, findings, documents and labels."""

from dataclasses import asdict, replace
from typing import Any

import pytest
from tests.unit.ledger.builders import GIB, LATER, SETTINGS, hour, job

from gpuwaste.cli.check import Status
from gpuwaste.cli.checks.hub import _sources
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.history.from_store import read_table
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.reports.accounted_rows import accounted_words
from gpuwaste.ledger.reports.job_document import job_document
from gpuwaste.ledger.reports.job_page import job_sentence
from gpuwaste.ledger.reports.job_types import JobDocument
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.ledger.source_comparison import SourceComparison
from gpuwaste.net.health_types import SourcesHealth
from gpuwaste.slurm.accounting.accounted_use import AccountedUse
from gpuwaste.slurm.accounting.job_record import AccountedRun
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import StandingClock

FULL = 80 * GIB


def told(gpu: int, mean: float | None, memory: int | None = 0, node: str = "gpu1") -> AccountedUse:
    """Return jobstats' figures of a GPU; an integer 0 is exactly 0."""
    peak = 0.0 if mean == 0 and isinstance(mean, int) else None
    mean = None if mean is None else float(mean)
    return AccountedUse("jobstats", node, str(gpu), mean, peak, memory, FULL, 8, 100.0, GIB, 64 * GIB)


def run(*uses: AccountedUse, **changes: Any) -> AccountedRun:
    """Return a run of an hour with a GPU for each of `uses`."""
    return AccountedRun(**asdict(job(**{"gpus": len(uses), **changes})), uses=uses)


@pytest.fixture
def store() -> HubStore:
    """Return a new store."""
    return HubStore.open(":memory:", SystemClock())


def document(store: HubStore) -> JobDocument:
    with store.reader() as db:
        found = job_document(db, "7", SETTINGS, LATER)
    assert found is not None
    return found


def findings(store: HubStore) -> list[tuple[str, float, str]]:
    return [(f.kind, f.wasted_gpu_s, f.evidence["source"]) for f in document(store).findings]


def test_a_mean_is_no_hours(store: HubStore) -> None:
    """All of the time is unknown, but for the mean and the level of each GPU; nothing is wasted."""
    upsert_jobs(store, [run(told(0, 45.5, GIB), told(1, 0.0, GIB))])
    (found,) = document(store).runs
    assert found.totals.unknown_by_reason_s == {"mean_only": 7200.0}
    assert (found.totals.wasted_s, found.totals.coverage, found.totals.mean_util_pct) == (0.0, 0.0, 22.75)
    assert [(d.level, d.mean_util_pct, d.under_used, d.untouched) for d in found.devices] == [
        ("moderate", 45.5, False, False),
        ("low", 0.0, True, False),  # rounded: below 0.05 %
    ]
    assert job_sentence(document(store)) == "Job 7 train: mean use 23 %, by jobstats."
    assert "2 of 2 GPUs are jobstats' means" in accounted_words(found)[0]


def test_only_zero_at_every_reading_is_idle(store: HubStore) -> None:
    """One GPU of four was used: three hours are idle and wasted, and the mean is still that of all four."""
    upsert_jobs(store, [run(told(0, 40.0, GIB), told(1, 0), told(2, 0), told(3, 0))])
    (found,) = document(store).runs
    assert (found.totals.idle_s, found.totals.wasted_s, found.totals.untouched_s) == (10_800.0,) * 3
    assert (found.totals.unknown_s, found.totals.mean_util_pct) == (3600.0, 10.0)
    assert findings(store) == [("one_gpu_of_many", 10_800.0, "jobstats")]


@pytest.mark.parametrize(
    ("uses", "found"),
    [
        ((told(0, 0), told(1, 0, GIB // 2)), [("gpus_untouched", 7200.0, "jobstats")]),
        ((told(0, 0, 70 * GIB),), [("memory_resident", 3600.0, "jobstats")]),
        ((told(0, 0, None),), [("gpus_opened_idle", 3600.0, "jobstats")]),
        ((told(0, 2.0), told(1, 1.5)), [("low_use", 0.0, "jobstats")]),
        ((told(0, 50.0), told(1, 60.0), told(2, 0), told(3, 0)), [("gpus_untouched", 7200.0, "jobstats")]),
        ((told(0, 50.0), told(1, 0.0)), []),
        ((told(0, None),), []),
    ],
)
def test_findings_that_a_mean_can_carry(
    store: HubStore, uses: tuple[AccountedUse, ...], found: list[tuple[str, float, str]]
) -> None:
    """Untouched, resident in memory, opened, low; a GPU that was used a little is no GPU of which nothing was used."""
    upsert_jobs(store, [run(*uses)])
    assert findings(store) == found


def test_an_agent_s_hours_count_before_a_mean(store: HubStore) -> None:
    """On a node with an agent its hours count; the difference of both sources is in the document."""
    record = run(told(0, 80.0, GIB))
    upsert_jobs(store, [record])
    upsert_hours(store, [hour(record, 0, 0, {90: 3600})])
    (found,) = document(store).runs
    assert [(d.gpu_uuid, d.mean_util_pct) for d in found.devices] == [("GPU-0", 90.0)]
    assert found.check is not None
    assert (found.check.agent_mean_pct, found.check.difference_pct) == (90.0, 10.0)
    assert accounted_words(found) == [
        "Mean use: 90 % by the agents, 80 % by jobstats (difference 10.0 percentage points)."
    ]


def test_accounting_fills_nodes_without_agents_up_to_its_own_count(store: HubStore) -> None:
    """One node has an agent: of the other one's GPUs as many count as the run held."""
    record = run(told(0, 80.0), told(0, 0, node="gpu2"), told(1, 0, node="gpu2"), gpus=2, nodes="gpu[1-2]")
    upsert_jobs(store, [record])
    upsert_hours(store, [hour(record, 0, 0, {90: 3600})])
    (found,) = document(store).runs
    assert [(d.node, d.map_source) for d in found.devices] == [("gpu1", "prolog"), ("gpu2", "jobstats")]
    assert found.check is None


def test_a_summary_that_comes_late_is_judged_and_told(store: HubStore) -> None:
    """A summary is written after the end: the run is judged again, once, and the stream has an event with the use."""
    upsert_jobs(store, [run(told(0, 0), gpus=1)])
    with store.writing() as db:
        db.execute("DELETE FROM accounted_use")
        db.execute("INSERT INTO rules VALUES (1, 1, '{}', true, 5000000000)")
    last = store.counts()["last_event"]
    with store.watching() as changes:
        upsert_jobs(store, [run(told(0, 0), gpus=1)])
    assert changes.touches(("gw", 7, job().start or 0), 0)
    (event,) = history_events(store, last, 9)
    assert event.kind == "ledger"
    with store.reader() as db:
        assert db.execute("SELECT judged_until FROM rules").fetchall() == [((job().end or 0) - 1,)]
    upsert_jobs(store, [run(told(0, 0), gpus=1)])
    assert store.counts()["last_event"] == event.seq


def test_slurm_s_peaks_are_the_largest_of_all_times(store: HubStore) -> None:
    """Only steps that overlap a window are listed: what an earlier window had is kept, a zero is not."""
    record = run(AccountedUse("slurm", peak_pct=180.0, gpu_mem_max_b=GIB))
    upsert_jobs(store, [record])
    upsert_jobs(store, [replace(record, uses=(AccountedUse("slurm", peak_pct=20.0, gpu_mem_max_b=4 * GIB),))])
    (found,) = document(store).runs
    assert [(row.peak_pct, row.gpu_mem_max_b) for row in found.accounted] == [(180.0, 4 * GIB)]
    assert accounted_words(found) == [
        "Slurm's largest readings: 180 % (one or several GPUs of a task together) and 4.0 GiB of GPU memory in a task."
    ]
    other = replace(record, job_id=8, uses=(AccountedUse("slurm", peak_pct=0.0, gpu_mem_max_b=0),))
    upsert_jobs(store, [other])
    upsert_jobs(store, [replace(other, uses=(AccountedUse("slurm", gpu_mem_max_b=0),))])
    with store.reader() as db:
        assert db.execute("SELECT peak_pct FROM accounted_use WHERE job_id = 8").fetchall() == [(None,)]


def test_a_report_adds_up_with_means(store: HubStore) -> None:
    """A day's report has the idle GPU as waste, the others as unknown, and the mean of all; a cut run its part."""
    upsert_jobs(store, [run(told(0, 60.0, GIB), told(1, 0))])
    start = job().start or 0
    with store.reader() as db:
        whole = report_document(db, "cluster", "gw", start - 60, start + 7200, SETTINGS, LATER).totals
        part = report_document(db, "cluster", "gw", start - 60, start + 900, SETTINGS, LATER).totals
    assert (whole.gpu_s, whole.wasted_s, whole.unknown_s, whole.mean_util_pct) == (7200.0, 3600.0, 3600.0, 30.0)
    assert (part.gpu_s, part.wasted_s, part.unknown_s, part.mean_util_pct) == (1800.0, 900.0, 900.0, 30.0)


@pytest.mark.parametrize(
    ("uses", "hours", "found"),
    [
        ((told(0, 60.0), told(1, 0)), None, (0.3, 1, 1, 1.0)),
        ((told(0, 3.0), told(1, 0.0)), None, (0.015, 1, 2, 1.0)),  # below the limit, but one is needed
        ((told(0, 60.0), told(1, None)), None, (0.6, 1, 1, 0.5)),
        ((told(0, 0), told(1, 0)), None, (0.0, 0, 0, 1.0)),
        ((told(0, 60.0), told(1, 0)), 3600, (0.9, 2, 2, 1.0)),  # agents know as much, hour by hour
        ((told(0, 60.0), told(1, 0)), 600, (0.3, 1, 1, 1.0)),  # they came when the run was nearly over
    ],
)
def test_labels_and_predictions_learn_from_the_better_source(
    store: HubStore, uses: tuple[AccountedUse, ...], hours: int | None, found: tuple[float, int, int, float]
) -> None:
    """Mean use, GPUs in use, GPUs ever used and coverage are the same in the history stream and in training's table."""
    record = run(*uses)
    upsert_jobs(store, [record])
    if hours:
        upsert_hours(store, [hour(record, gpu, 0, {90: hours}) for gpu in (0, 1)])
    event = next(event for event in history_events(store, 0, 9) if event.kind == "ended")
    assert event.use is not None
    assert (event.use.used_ratio, event.use.gpus_active, event.use.gpus_used, event.use.coverage) == pytest.approx(
        found
    )
    with store.reader() as db:
        table = read_table(db, "gw").table
    assert table.gpus_used is not None
    columns = (table.used_ratio, table.gpus_active, table.gpus_used, table.gpu_coverage)
    assert [float(column[0]) for column in columns] == pytest.approx(found)


def test_agents_are_checked_against_jobstats(store: HubStore) -> None:
    """Of the last week's runs that both have: how much they differ, and how many differ much; doctor has a line."""
    now = (job().end or 0) + 60
    for job_id, mean in ((7, 88.0), (8, 91.0), (9, 40.0)):
        record = run(told(0, mean), job_id=job_id)
        upsert_jobs(store, [record])
        upsert_hours(store, [hour(record, 0, 0, {90: 3600})])
    upsert_jobs(store, [run(told(0, 50.0), job_id=10)])
    exported = run(replace(told(0, 20.0), gpu="0fe3a91c"), job_id=11)  # by gpuwaste itself: no other source
    upsert_jobs(store, [exported])
    upsert_hours(store, [hour(exported, 0, 0, {90: 3600})])
    comparison = SourceComparison(store, StandingClock(now))
    comparison.step()
    nothing = SourceComparison(HubStore.open(":memory:", SystemClock()), StandingClock(now))
    nothing.step()
    assert nothing.health() == SourcesHealth()
    found = comparison.health()
    assert (found.runs, found.far_runs) == (3, 1)
    assert found.typical_pct == pytest.approx(2.0)
    (line,) = _sources(found)
    assert (line.status, line.found) == (
        Status.WARN,
        "mean use by agents and by jobstats differs by 2.0 percentage points (median of 3 runs); by more than 10 in 1",
    )
    assert list(_sources(SourcesHealth())) == []

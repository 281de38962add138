"""The balance of a store: computed, stored by hour, read of any window, counted for /metrics, shown as a view."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from gpuwaste.jobs.machine import machine_store
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.balance.balance_store import stored_hours
from gpuwaste.ledger.balance.findings import STRAND_FINDINGS
from gpuwaste.ledger.balance.keeper import BalanceKeeper
from gpuwaste.ledger.balance.types import BalanceClass as Of
from gpuwaste.ledger.balance.window import WindowBalance, add_window, parts_of
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.job_document import job_document
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.slurm.site.machine_events import NodeOutage
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.views.view import look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

HOUR = 3600
DAY = 1_760_054_400 // 86400 * 86400
NOW = DAY + 30 * HOUR + 1234
GIB = 1 << 30


def job(number: int, start: int | None, end: int | None, *, gpus: int = 1, gib: int = 16, wait: int = 0) -> JobRecord:
    tres = f"cpu=4,mem={gib}G,node=1,gres/gpu={gpus}"
    return JobRecord(
        "gw", number, (start or DAY) - wait, printed_id=str(number), user="alice", account="physics", partition="gpu",
        time_limit_s=86400, req_tres=tres, start=start, nodes="" if start is None else "a", n_nodes=1, cpus=4,
        gpus=0 if start is None else gpus, gpu_type="a100", alloc_tres="" if start is None else tres, end=end,
        state="PENDING" if start is None else "COMPLETED" if end else "RUNNING",
    )  # fmt: skip


HOG = job(1, DAY + 100, DAY + 20 * HOUR, gib=60)
MODEST = job(2, DAY + 200, DAY + 25 * HOUR, gib=3)
WAITED = replace(job(3, DAY + 20 * HOUR, None, wait=5 * HOUR), gpus=2)


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Nodes a and b with 4 GPUs each; b is down; on a job 1 holds the memory that job 3 waits for."""
    clock = FakeClock(NOW)
    with closing(HubStore.open(":memory:", clock)) as opened:
        with opened.writing() as db:
            nodes = [Node(name, 16, 64 * GIB, {"a100": 4}, partitions=("gpu",)) for name in ("a", "b")]
            machine_store.write_nodes(db, "gw", nodes, DAY)
            machine_store.replace_outages(db, "gw", [NodeOutage("b", DAY, None, "DOWN")], DAY)
            machine_store.set_complete(db, "machine_events", "gw", 1, NOW)
        upsert_jobs(opened, [HOG, MODEST, WAITED])
        yield opened


def window(store: HubStore, start: int, end: int) -> WindowBalance:
    found = WindowBalance(start, end, NOW, HOUR)
    with store.reader() as db:
        add_window(db, "gw", found)
    return found


def in_the_way(store: HubStore) -> dict[tuple[int, str], int]:
    return {(blocker.run[0], blocker.node): gpu_s for blocker, gpu_s in window(store, DAY, NOW).blocked.items()}


def stored_from(store: HubStore) -> int:
    with store.reader() as db:
        return stored_hours(db, "gw").since


def test_all_of_the_machine_is_counted_and_the_hog_is_named(store: HubStore) -> None:
    """Two GPUs of node a are stranded by the memory of job 1 while job 3 waits; job 2 beside it is not named."""
    found = window(store, DAY, NOW)
    by_class = found.by_class()
    assert by_class.total() == 8 * (NOW - DAY)
    assert by_class[Of.DOWN] == 4 * (NOW - DAY)
    assert by_class[Of.FREE_MEMORY] == 2 * 5 * HOUR
    assert in_the_way(store) == {(1, "a"): 10 * HOUR}


def test_stored_hours_give_what_is_computed(store: HubStore) -> None:
    """Of a window with cut edges the full hours come from the store, and all sums are the same as without it."""
    asked = (DAY + 1111, NOW - 222)
    before = window(store, *asked)
    keeper = BalanceKeeper(store, FakeClock(NOW), LedgerSettings())
    keeper.step()
    with store.reader() as db:
        assert stored_hours(db, "gw") == (DAY, NOW - NOW % HOUR)
    after = window(store, *asked)
    assert (after.seconds, after.blocked) == (before.seconds, before.blocked)


def test_of_many_runs_in_the_way_in_stored_hours_the_worst_are_told(
    store: HubStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two to tell, the two largest of the stored hours are, on all their nodes, and each of the computed hours."""
    BalanceKeeper(store, FakeClock(NOW), LedgerSettings()).step()
    small = [(1, "b", 7), (7, "a", 50), (7, "b", 60), (8, "a", 99), (9, "a", 100)]
    rows = [
        {
            "hour_utc": DAY,
            "class": Of.FREE_MEMORY.value,
            "job_id": job_id,
            "run_start": HOG.start if job_id == HOG.job_id else DAY,
            "node": node,
            "gpu_s": gpu_s,
        }
        for job_id, node, gpu_s in small
    ]
    with store.writing() as db:
        db.execute("DELETE FROM balance_blockers")
        db.run("balance_blockers_add", {"cluster": "gw", "rows": to_json(rows)}).fetchall()
    monkeypatch.setattr("gpuwaste.ledger.balance.window.MOST_BLOCKERS", 2)
    assert in_the_way(store) == {(7, "a"): 50, (7, "b"): 60, (9, "a"): 100}
    with store.writing() as db:
        db.run("mark_set", {"key": "balance:gw", "value": DAY + 17 * HOUR}).fetchall()
    computed = {(1, "a"): 6 * HOUR, (1, "b"): 7}
    assert in_the_way(store) == {(7, "a"): 50, (7, "b"): 60, (9, "a"): 100} | computed


def test_the_time_before_the_first_run_is_one_part(store: HubStore) -> None:
    """A year with a day of jobs is computed in two parts, and all of its GPU-seconds are counted."""
    since = DAY - 364 * 86400
    with store.reader() as db:
        parts = [part[:2] for part in parts_of(db, "gw", (since, DAY + 86400), NOW)]
    assert parts == [(since, DAY), (DAY, DAY + 86400)]
    assert window(store, since, DAY + 86400).by_class().total() == 8 * 365 * 86400


def test_a_reader_waits_for_few_runs_and_the_last_days_come_first(store: HubStore) -> None:
    """What is not stored is counted back to where the runs are too many; before, each GPU-second is not known."""
    upsert_jobs(store, [job(10 + n, DAY - 86400 + n, DAY - 86400 + HOUR) for n in range(71)])
    asked = (DAY - 2 * 86400, NOW)
    found = WindowBalance(*asked, NOW, HOUR, runs_left=120)
    with store.reader() as db:
        add_window(db, "gw", found)
    assert found.counted_from == DAY
    assert sum(gpu_s for place, gpu_s in found.seconds.items() if place.step < 48) == 2 * 8 * 86400
    assert {place.of for place in found.seconds if place.step < 48} == {Of.NOT_KNOWN}
    whole, last = window(store, *asked), window(store, DAY, NOW)
    assert whole.by_class().total() == found.by_class().total()
    assert {place: found.seconds[place._replace(step=place.step + 48)] for place in last.seconds} == last.seconds
    clock = FakeClock(NOW)
    stored: list[int] = []
    clock.on_wait = lambda: stored.append(stored_from(store))
    BalanceKeeper(store, clock, LedgerSettings()).step()
    assert stored == [DAY, DAY, DAY - 86400]
    found = WindowBalance(*asked, NOW, HOUR, runs_left=120)
    with store.reader() as db:
        add_window(db, "gw", found)
    assert (found.counted_from, found.seconds) == (0, whole.seconds)


def test_a_run_that_accounting_tells_late_is_counted(store: HubStore) -> None:
    """The last hours are counted at each turn, days before once a day where a run changed, older history at once."""
    clock = FakeClock(NOW)
    keeper = BalanceKeeper(store, clock, LedgerSettings())
    keeper.step()
    upsert_jobs(store, [job(4, DAY + 26 * HOUR, DAY + 27 * HOUR), job(5, DAY + 2 * HOUR, DAY + 3 * HOUR, gib=1)])
    keeper.step()
    assert window(store, DAY + 26 * HOUR, DAY + 27 * HOUR).by_class()[Of.ALLOCATED] == (2 + 1) * HOUR
    assert window(store, DAY + 2 * HOUR, DAY + 3 * HOUR).by_class()[Of.ALLOCATED] == 2 * HOUR
    clock.advance(86400)
    keeper.step()
    assert window(store, DAY + 2 * HOUR, DAY + 3 * HOUR).by_class()[Of.ALLOCATED] == 3 * HOUR
    upsert_jobs(store, [job(6, DAY - 40 * HOUR, DAY - 39 * HOUR)])
    keeper.step()
    with store.reader() as db:
        assert stored_hours(db, "gw").since == DAY - 2 * 86400
    assert window(store, DAY - 40 * HOUR, DAY - 39 * HOUR).by_class()[Of.ALLOCATED] == HOUR


def test_settled_hours_are_counted_once_for_metrics(store: HubStore) -> None:
    """The counter begins at 0 and gains all GPU-seconds of the hours that have settled since."""
    clock = FakeClock(NOW)
    keeper = BalanceKeeper(store, clock, LedgerSettings())
    keeper.step()
    keeper.step()
    (family,) = keeper.metrics()
    assert {sample.value for sample in family.samples} == {0.0}
    clock.advance(2 * HOUR)
    keeper.step()
    (family,) = keeper.metrics()
    values = {sample.labels["class"]: sample.value for sample in family.samples}
    assert sum(values.values()) == 8 * 2 * HOUR
    assert values["down"] == 4 * 2 * HOUR
    assert values["unknown"] == 2 * 2 * HOUR


def test_the_view_adds_up_and_names_the_job(store: HubStore) -> None:
    """The rows of the table are all GPU-hours; the sentences name the cause and job 1 with what it held."""
    with store.reader() as db:
        document = look(view_named("balance"), ViewQuery(db, Window(DAY, NOW, NOW))).document
    hours = [row[2] for row in document.rows if isinstance(row[2], int | float)]
    assert len(hours) == len(document.rows)
    assert sum(hours) * HOUR == pytest.approx(8 * (NOW - DAY), abs=1e-6)
    text = " ".join(document.narrative)
    assert "the largest part: memory of the node taken." in text
    assert "Job 1 of alice (physics) kept 10.0 GPU-hours on a from jobs that waited" in text
    assert "94 % of the memory with 1 of 4 GPUs" in text


def test_a_job_that_used_less_memory_than_it_held_gets_the_line(store: HubStore) -> None:
    """Report and job document name job 1 with --mem; a job that used its memory, or stood in nobody's way, has none."""
    upsert_jobs(store, [replace(HOG, max_rss_b=9 * GIB), replace(MODEST, max_rss_b=GIB // 4)])
    BalanceKeeper(store, FakeClock(NOW), LedgerSettings()).step()
    with store.reader() as db:
        report = report_document(db, "user", "alice", DAY, NOW, LedgerSettings(), NOW)
        document = job_document(db, "1", LedgerSettings(), NOW)
    kept = [finding for finding in report.findings if finding.kind in STRAND_FINDINGS]
    assert [(one.kind, [run.printed_id for run in one.runs]) for one in kept] == [("memory_strands_gpus", ["1"])]
    assert kept[0].fix == ["#SBATCH --mem=12G"]
    assert kept[0].title == (
        "jobs that waited could not use 10.0 GPU-hours on a: it held 60.0 GiB memory with 1 GPU and used 9.0 GiB"
    )
    assert document is not None
    assert "memory_strands_gpus" in {finding.kind for finding in document.findings}
    upsert_jobs(store, [replace(HOG, max_rss_b=50 * GIB)])
    with store.reader() as db:
        report = report_document(db, "user", "alice", DAY, NOW, LedgerSettings(), NOW)
    assert not [finding for finding in report.findings if finding.kind in STRAND_FINDINGS]

"""The documents: scope, roll-up, requeued runs, and what a reader may not see."""

import json
from collections.abc import Collection

import pytest
from tests.unit.ledger.builders import LATER, SETTINGS, T0, add_rows, hour, job, store
from tests.unit.show.documents import END, one_job, report, top, week

from gpuwaste.core.scope import ClusterAccount
from gpuwaste.ledger.reports.job_document import job_document
from gpuwaste.ledger.reports.report_builder import report_document, top_document


def test_an_array_is_one_line_and_a_requeued_run_another() -> None:
    """Tasks of an array are rolled up; the first run of a requeued job stands beside its second."""
    rows = {(r["jobid"], r["requeued"]): r for r in report()["jobs"]}
    assert rows["30_[0-2]", False]["tasks"] == 3
    assert rows["30_[0-2]", False]["gpu_s"] == 3 * 3600
    assert rows["40", True]["gpu_s"] == 600
    assert rows["40", False]["gpu_s"] == 3600


def test_the_totals_are_the_sum_of_the_rows() -> None:
    """Every class of the totals is the sum over the job table, and the classes add up to the GPU-time."""
    document = report()
    names = ["idle", "low", "moderate", "high", "unknown", "suspended", "pending"]
    for name in [*names, "wasted", "gpu"]:
        assert sum(r[f"{name}_s"] for r in document["jobs"]) == document["totals"][f"{name}_s"]
    assert sum(document["totals"][f"{name}_s"] for name in names) == document["totals"]["gpu_s"]
    assert sum(v["gpu_s"] for v in document["levels"].values()) == document["totals"]["gpu_s"]


def test_a_limit_keeps_the_largest_waste_and_says_what_it_left_out() -> None:
    """Totals and counts stay whole; rows and findings are cut."""
    db = week()
    cut = report_document(db, "user", "alice", T0, END, SETTINGS, END, limit=2).to_json()
    assert [r["jobid"] for r in cut["jobs"]] == ["7", "70"]
    assert cut["jobs_left_out"] == 6
    assert cut["totals"] == report(db)["totals"]
    assert sum(c["findings"] for c in cut["finding_counts"].values()) == 3


@pytest.mark.long
def test_scopes_select_runs() -> None:
    """User, account, cluster and the reader's accounts each keep to their runs; the window to what overlaps it."""
    mine, other = job(1), job(2, user="bob", account="chemistry", cluster="gw2")
    db = store([mine, other], [])

    def count(
        scope: str, name: str, start: int = T0, end: int = LATER, accounts: Collection[ClusterAccount] | None = None
    ) -> int:
        return report_document(db, scope, name, start, end, SETTINGS, LATER, accounts=accounts).job_count  # type: ignore[arg-type]

    assert [count("user", n) for n in ("alice", "bob", "alic_", "%")] == [1, 1, 0, 0]
    assert [count("account", n) for n in ("physics", "chemistry", "x")] == [1, 1, 0]
    assert [count("cluster", n) for n in ("", "gw", "gw2")] == [2, 1, 1]
    physics, chemistry = ClusterAccount("gw", "physics"), ClusterAccount("gw2", "chemistry")
    scopes: list[set[ClusterAccount]] = [set(), {physics}, {physics, chemistry}, {ClusterAccount("gw", "chemistry")}]
    assert [count("cluster", "", accounts=a) for a in scopes] == [0, 1, 2, 0]
    assert count("cluster", "", start=T0 + 3600) == 0
    assert count("cluster", "", end=T0) == 0
    assert count("cluster", "", start=T0 + 3599) == 2


def test_a_job_is_found_by_each_of_its_ids() -> None:
    """7, 3_1, 4+1, and the array's or het job's own number name the runs they should."""
    jobs = [
        job(31, printed_id="30_1", array_job_id=30, array_task_id=1),
        job(30, printed_id="30_0", array_job_id=30, array_task_id=0),
        job(4, printed_id="4+0", het_job_id=4, het_offset=0),
        job(5, printed_id="4+1", het_job_id=4, het_offset=1),
        job(9, start=None, end=None, state="PENDING"),
    ]
    db = store(jobs, [hour(jobs[0], 3, 0, {50: 3600})])

    def ids(printed: str) -> list[str]:
        document = job_document(db, printed, SETTINGS, LATER)
        return [] if document is None else [run.printed_id for run in document.runs]

    assert ids("30") == ["30_0", "30_1"]
    assert ids("30_1") == ["30_1"]
    assert ids("31") == ["30_1"]
    assert ids("4") == ["4+0", "4+1"]
    assert ids("4+1") == ["4+1"]
    assert ids("9") == ["9"]
    assert ids("1") == ids("30_7") == ids("30" * 12) == ids("' OR 1=1") == []


def test_a_job_that_one_may_not_read_is_a_job_that_does_not_exist() -> None:
    """An id that came round again shows a reader his own run alone, and nothing if he has none."""
    db = store([job(7), job(7, user="bob", start=T0 + 9000, end=T0 + 9600)], [])
    theirs = job_document(db, "7", SETTINGS, LATER, accounts=(), reader="bob")
    assert theirs is not None
    assert [run.user for run in theirs.runs] == ["bob"]
    assert job_document(db, "7", SETTINGS, LATER, accounts=()) is None


def test_a_job_document_has_both_ends_beside_each_other() -> None:
    """Accounting's start and end, and each agent's t0 and t1."""
    (run,) = one_job()["runs"]
    assert (run["start"], run["end"]) == (T0, T0 + 3600)
    assert [(d["t0"], d["t1"]) for d in run["devices"]] == [(T0, T0 + 3600)] * 4


def test_a_device_is_final_when_its_last_hour_is() -> None:
    """A finished earlier hour of a device whose last row is still open does not make it final."""
    record = job(7, 7200)
    db = store([record], [hour(record, 0, 0, {90: 3600}), hour(record, 0, 1, {90: 60}, final=False)])
    document = job_document(db, "7", SETTINGS, LATER)
    assert document is not None
    assert [d.final for d in document.runs[0].devices] == [False]


def test_top_is_of_running_jobs_and_whole_hours() -> None:
    """Only running jobs count, from the UTC hour of `since` on."""
    document = top()
    assert [r["jobid"] for r in document["jobs"]] == ["70"]
    assert document["totals"]["gpu_s"] == 3600
    db = week()
    assert top_document(db, END - 1, SETTINGS, END, accounts=(), reader="bob").jobs == []


def test_a_coordinator_sees_his_accounts_and_his_own_runs() -> None:
    """Of four running jobs a coordinator of chemistry sees that account's and his own in another account."""
    running = [
        job(1, None, user="carol", account="physics"),
        job(2, None, user="bob", account="chemistry"),
        job(3, None, user="alice", account="physics"),
        job(4, None, user="", account="physics"),
    ]
    db = store(running, [])
    shown = top_document(db, T0, SETTINGS, T0 + 60, accounts={ClusterAccount("gw", "chemistry")}, reader="carol")
    assert sorted(row.printed_id for row in shown.jobs) == ["1", "2"]
    nobody = top_document(db, T0, SETTINGS, T0 + 60, accounts=(), reader=None)
    assert nobody.jobs == []


def test_a_recording_says_so() -> None:
    """The mark of a recording is in every document."""
    db = week()
    assert not report(db)["recorded"]
    db.execute("INSERT INTO marks VALUES ('recorded', 1)")
    assert report(db)["recorded"]
    assert one_job(db=db)["recorded"]


def test_whole_node_partitions_are_known_to_the_findings() -> None:
    """In a partition that gives whole nodes the report never proposes fewer GPUs."""
    db = week()
    db.execute("INSERT INTO partitions VALUES ('gw', 'gpu', true)")
    fixes = [fix for finding in report(db)["findings"] for fix in finding["fixes"]]
    assert fixes
    assert not any(fix["lines"] or "ask for" in fix["text"] for fix in fixes)


def test_documents_are_json() -> None:
    """Each document is plain JSON, hostile names included."""
    db = week()
    record = job(99, name='"\n\ud800', user="alice")
    add_rows(db, [job(98, name='"\n\x00')], [])
    assert record.name
    for document in (report(db), one_job("98", db), top()):
        assert json.loads(json.dumps(document)) == document

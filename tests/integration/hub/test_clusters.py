"""A hub that holds two clusters: whose runs of which cluster a reader sees, and what reports of several add up to."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.unit.advisor.verdicts import verdict

from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.associations import AccountPlace
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import HOUR, hour, record

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
NOW = HOUR + 3 * DAY_S  # nothing that agents may still report: sums stand while the clock goes on
AROUND = f"start={HOUR - 9}&end={HOUR + 7200}"
OPEN: dict[str, Any] = {"end": None, "elapsed_s": None, "state": "RUNNING"}
ELSEWHERE: dict[str, Any] = {"cluster": "east"}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Rig]:
    """Run the hub of gw, where carol coordinates proj1. East has jobs of proj1, too: 9 has ended, 19 runs."""
    slurm = FakeSlurm(
        levels={"oper": "Operator"},
        account_coordinators={"proj1": frozenset({"carol"})},
        places=[AccountPlace("gw", "proj1", "root", "")],
    )
    with running_hub(tmp_path, slurm, clock=ShiftedClock(NOW), hub_keys={"check_origin": False}) as rig:
        upsert_jobs(
            rig.store,
            [
                record(7, "alice"),
                record(17, "alice", **OPEN),
                record(9, "dave", **ELSEWHERE),
                record(19, "dave", **ELSEWHERE, **OPEN),
            ],
        )
        yield rig


def seen(rig: Rig, uid: int, target: str) -> tuple[int, bytes]:
    answer = rig.get(uid, target)
    return answer.status, answer.body


def test_a_coordinator_of_an_account_reads_it_in_the_cluster_of_that_account_alone(two: Rig) -> None:
    """Carol's proj1 is gw's: dave's jobs in the proj1 of east look to her like jobs that do not exist, everywhere."""
    nothing = seen(two, CAROL, "/v1/jobs/4711")
    assert nothing[0] == 404
    for target in (
        "/v1/jobs/9",
        "/v1/jobs/19",
        "/v1/jobs/9?cluster=east",
        "/v1/jobs/9/curves",
        f"/v1/report?user=dave&{AROUND}",
    ):
        assert seen(two, CAROL, target) == nothing, target
    report = two.get(CAROL, f"/v1/report?account=proj1&{AROUND}").json
    assert {(job["cluster"], job["jobid"]) for job in report["jobs"]} == {("gw", "7"), ("gw", "17")}
    assert [row["user"] for row in report["users"]] == ["alice"]
    assert [job["jobid"] for job in two.get(CAROL, "/v1/top").json["jobs"]] == ["17"]
    everybody = two.get(OPER, f"/v1/report?account=proj1&{AROUND}").json
    assert {job["cluster"] for job in everybody["jobs"]} == {"gw", "east"}


def test_pages_keep_a_coordinator_to_their_cluster(two: Rig) -> None:
    """The pages of the account, of dave and of his jobs show carol what the API shows her."""
    absent = two.page(CAROL, "/jobs/4711")
    for target in ("/jobs/9", "/jobs/19", "/jobs/9?cluster=east"):
        found = two.page(CAROL, target)
        assert (found.status, found.body) == (404, absent.body), target
    assert two.page(CAROL, f"/users/dave?{AROUND}").status == 404
    found = two.page(CAROL, f"/accounts/proj1.json?{AROUND}").json
    assert {job["cluster"] for job in found["jobs"]} == {"gw"}
    assert "dave" not in two.page(CAROL, f"/accounts/proj1?{AROUND}").body.decode()
    assert "dave" in two.page(OPER, f"/accounts/proj1?{AROUND}").body.decode()


def test_what_was_told_in_another_cluster_stays_there(two: Rig) -> None:
    """Verdicts of dave's submissions in east, and events of his runs there, are not for the coordinator of gw."""
    said = {"mode": "warn", "action": "warn", "at_utc_us": (NOW - 60) * 10**6}
    verdicts = [
        verdict(1, user="alice", account="proj1", cluster="gw", **said),
        verdict(2, user="dave", account="proj1", cluster="east", **said),
    ]
    VerdictStore(two.store, two.clock).add(verdicts, "ctl")
    listed = [row["user"] for row in two.get(CAROL, f"/v1/verdicts?start={NOW - 600}").json["verdicts"]]
    assert listed == ["alice"]
    clusters = {
        uid: {one["subject"].partition("/")[0] for one in two.get(uid, "/v1/events?kinds=*").json["events"]}
        for uid in (CAROL, OPER)
    }
    assert clusters == {CAROL: {"gw"}, OPER: {"gw", "east"}}


@pytest.fixture
def used(two: Rig) -> Rig:
    """Add hours: alice's job 7 of gw was busy, dave's job 9 of east idle; alice has job 29 in east, of no agent."""
    idle: dict[str, Any] = {"util_ms": {0: 1_800_000}, "idle_run_ms": 1_800_000, "final": True}
    upsert_jobs(two.store, [record(29, "alice", "proj2", **ELSEWHERE)])
    upsert_hours(two.store, [hour(7, final=True), hour(9, run_key=RunKey("east", 9, HOUR), gpu_uuid="GPU-e", **idle)])
    return two


SUBJECTS = ("", "user=alice&", "user=dave&", "account=proj1&", "account=proj2&")
ADDED = ("gpu_s", "idle_s", "low_s", "moderate_s", "high_s", "unknown_s", "pending_s", "wasted_s", "devices")


def reported(rig: Rig, question: str, uid: int = OPER) -> Any:
    answer = rig.get(uid, f"/v1/report?{question}&{AROUND}")
    assert answer.status == 200, answer.body
    return answer.json


def sums(report: Any) -> Counter[str]:
    """Return what adds up."""
    return Counter({name: report["totals"][name] for name in ADDED} | {"jobs": report["job_count"]})


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("clusters", ["gw,east", "all"])
def test_sums_of_several_clusters_are_those_of_each(used: Rig, subject: str, clusters: str) -> None:
    """Totals, users and the row of each cluster of one report are what the reports of single clusters say."""
    whole = reported(used, f"{subject}cluster={clusters}")
    single = {name: reported(used, f"{subject}cluster={name}") for name in ("gw", "east")}
    assert sums(whole) == sums(single["gw"]) + sums(single["east"])
    rows = {row.pop("cluster"): row for row in whole["clusters"]}
    assert set(rows) == {name for name, report in single.items() if report["job_count"] or "," in clusters}
    for name, row in rows.items():
        assert (row.pop("jobs"), row.pop("running") >= 0) == (single[name]["job_count"], True)
        assert row.pop("energy") == single[name]["energy"]
        assert row == single[name]["totals"]
    wasted = Counter[str]()
    for report in single.values():
        wasted.update({row["user"]: row["wasted_s"] for row in report["users"]})
    assert {row["user"]: row["wasted_s"] for row in whole["users"]} == wasted
    keys = {(job["cluster"], job["jobid"]) for report in single.values() for job in report["jobs"]}
    assert {(job["cluster"], job["jobid"]) for job in whole["jobs"]} == keys


def test_own_runs_are_reported_over_all_clusters(used: Rig) -> None:
    """Alice gets her jobs of both clusters and a row for each; names of clusters without her jobs tell her nothing."""
    mine = reported(used, "cluster=all&user=alice", ALICE)
    assert [(row["cluster"], row["jobs"]) for row in mine["clusters"]] == [("east", 1), ("gw", 2)]
    assert [row["jobs"] for row in reported(used, "cluster=east&user=alice", ALICE)["clusters"]] == [1]
    there, nowhere = (reported(used, f"cluster={name}&user=bob", BOB) for name in ("east", "none"))
    assert there["clusters"][0] | {"cluster": "none"} == nowhere["clusters"][0]
    assert reported(used, "cluster=all&user=bob", BOB)["clusters"] == []
    nothing = seen(used, ALICE, "/v1/jobs/4711")
    for question in ("cluster=all", "cluster=gw,east", "cluster=gw", "user=dave&cluster=east"):
        assert seen(used, ALICE, f"/v1/report?{question}&{AROUND}") == nothing, question


def test_a_coordinator_s_report_over_all_clusters_has_their_own_accounts_alone(used: Rig) -> None:
    """Carol asks for proj1 of all clusters, and for east's alone: there is a row for gw, and nothing of east."""
    assert [row["cluster"] for row in reported(used, "account=proj1&cluster=all", CAROL)["clusters"]] == ["gw"]
    east = reported(used, "account=proj1&cluster=east", CAROL)
    assert (east["job_count"], east["jobs"], east["users"]) == (0, [], [])
    alice = reported(used, "user=alice&cluster=all", CAROL)
    assert [row["cluster"] for row in alice["clusters"]] == ["gw"]


@pytest.mark.parametrize("clusters", ["gw,,east", ",", ",".join(f"c{n}" for n in range(33))])
def test_a_list_of_clusters_that_is_none_is_one_line(used: Rig, clusters: str) -> None:
    """Empty names and more than 32 are refused with what was expected."""
    answer = used.get(OPER, f"/v1/report?cluster={clusters}")
    assert answer.status == 400
    assert "cluster" in answer.json["error"]


def test_one_cluster_is_reported_as_it_always_was(used: Rig) -> None:
    """A report of one cluster, of a user without clusters, and of everything have no rows of clusters."""
    for question in ("cluster=gw", "cluster=1", "user=alice"):
        assert reported(used, question)["clusters"] == []


def test_pages_offer_the_clusters_and_all_of_them(used: Rig) -> None:
    """Alice's page has a choice of her clusters and their sums; the choice keeps to one, in links and other formats."""
    whole = used.page(ALICE, f"/me?{AROUND}").body.decode()
    assert '<select name="cluster"><option value="">all clusters</option><option value="east">east' in whole
    assert "<h2>Clusters</h2>" in whole
    east = used.page(ALICE, f"/me?{AROUND}&cluster=east").body.decode()
    assert '<option value="east" selected>' in east
    assert '<input type="hidden" name="cluster" value="east">' in east
    assert "/jobs/29" in east
    assert "/jobs/7" not in east
    jobs = used.page(ALICE, f"/me.json?{AROUND}&cluster=east").json["jobs"]
    assert [job["jobid"] for job in jobs] == ["29"]
    for path in ("/users/alice", "/accounts/proj2"):
        assert '<option value="east"' in used.page(OPER, f"{path}?{AROUND}&cluster=east").body.decode()
    assert used.page(ALICE, f"/me?{AROUND}&cluster=a,,b").status == 400


def test_pages_of_a_coordinator_offer_no_cluster_of_others(used: Rig) -> None:
    """Carol's page of proj1 names gw alone, which is no choice."""
    found = used.page(CAROL, f"/accounts/proj1?{AROUND}").body.decode()
    assert "east" not in found
    assert 'name="cluster"' not in found


def test_a_hub_of_one_cluster_offers_no_choice(hub: Rig) -> None:
    """Nothing is asked of clusters where there is but one."""
    upsert_jobs(hub.store, [record(7, "alice")])
    found = hub.page(ALICE, f"/me?{AROUND}")
    assert found.status == 200
    assert 'name="cluster"' not in found.body.decode()
    assert hub.page(ALICE, f"/me.json?{AROUND}").json["clusters"] == []

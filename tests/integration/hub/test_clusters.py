"""A hub that holds two clusters: whose runs of which cluster a reader sees."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.unit.advisor.verdicts import verdict
from tests.unit.hub.rig import HOUR, ShiftedClock, record

from gpuwaste.slurm.coordination import AccountPlace
from gpuwaste.store.hub.verdict_store import VerdictStore
from gpuwaste.testing.fake_slurm import FakeSlurm

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
NOW = HOUR + 2400
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
        rig.store.upsert_jobs(
            [
                record(7, "alice"),
                record(17, "alice", **OPEN),
                record(9, "dave", **ELSEWHERE),
                record(19, "dave", **ELSEWHERE, **OPEN),
            ]
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
    assert clusters == {CAROL: {"gw"}, OPER: {"gw", "east", "verdict"}}

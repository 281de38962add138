"""Views over real HTTP: operators get them, nobody else learns anything."""

import pytest
from tests.integration.hub.rig import Rig

from gpuwaste.core.typed import convert
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.show.view_document import ComparisonDocument, ViewDocument, ViewsDocument
from gpuwaste.testing.hub_rows import AGENT_UID, HOUR, batch, hour, record
from gpuwaste.views.view import all_views

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
EDGES = f"start={HOUR - 86400}&end={HOUR + 86400}"


@pytest.fixture
def filled(hub: Rig) -> Rig:
    """Job 7 is alice's, job 8 bob's; the agent has reported both."""
    upsert_jobs(hub.store, [record(7, "alice"), record(8, "bob", "proj2")])
    assert hub.post(batch(hour(7), hour(8, gpu_uuid="GPU-b"))).status == 200
    return hub


def test_an_operator_gets_each_view_as_its_type(filled: Rig) -> None:
    """The list names every view; each one is a whole document; waste is that of the ledger."""
    listed = convert(filled.get(OPER, "/v1/views").json, ViewsDocument)
    assert [entry.name for entry in listed.views] == list(all_views())
    for entry in listed.views:
        answer = filled.get(OPER, f"/v1/views/{entry.name}?{EDGES}&clusters=gw&offset=-3600")
        assert answer.status == 200, answer.body
        found = convert(answer.json, ViewDocument)
        assert (found.view, found.clusters, found.start) == (entry.name, ["gw"], HOUR - 86400)
    waste = convert(filled.get(OPER, f"/v1/views/waste?{EDGES}").json, ViewDocument)
    assert {fact.id: fact.value for fact in waste.facts}["held_hours"] == pytest.approx(1.0)


def test_two_windows_are_compared(filled: Rig) -> None:
    """The other window comes first; what is known on both sides is a change."""
    other = f"other_start={HOUR - 20 * 86400}&other_end={HOUR - 10 * 86400}"
    answer = filled.get(OPER, f"/v1/views/jobs/compare?{EDGES}&{other}")
    assert answer.status == 200, answer.body
    found = convert(answer.json, ComparisonDocument)
    assert (found.before.start, found.after.start) == (HOUR - 20 * 86400, HOUR - 86400)
    assert {c.id: c.difference for c in found.changes}["submitted"] == 2


def test_others_get_no_view(filled: Rig) -> None:
    """Users, coordinators and agents are refused alike, whether the view exists or not."""
    for uid in (ALICE, BOB, CAROL, AGENT_UID):
        refused = {
            filled.get(uid, target).status
            for target in ("/v1/views", f"/v1/views/jobs?{EDGES}", "/v1/views/nothing", f"/v1/views/waste?{EDGES}")
        }
        assert refused == {403}
    assert filled.send("GET", "/v1/views").status == 401


@pytest.mark.parametrize(
    ("target", "status", "said"),
    [
        ("/v1/views/nothing", 404, "views are balance, energy, hours"),
        ("/v1/views/jobs?start=5&end=5", 400, "not before"),
        ("/v1/views/jobs?start=0&end=1099511627776", 400, "longer than"),
        ("/v1/views/jobs?start=-1", 400, "start"),
        ("/v1/views/jobs?offset=99999", 400, "offset"),
        ("/v1/views/jobs?clusters=", 400, "clusters"),
        ("/v1/views/jobs/compare?start=1&end=2", 400, "other_start"),
    ],
)
def test_a_bad_question_is_one_clear_line(filled: Rig, target: str, status: int, said: str) -> None:
    """What is wrong is named."""
    answer = filled.get(OPER, target)
    assert (answer.status, said in answer.json["error"]) == (status, True), answer.body


def test_a_hostile_cluster_name_is_a_value(filled: Rig) -> None:
    """Quotes in the name of a cluster select nothing."""
    answer = filled.get(OPER, f"/v1/views/jobs?{EDGES}&clusters=%27%29%20OR%20true%20--")
    assert answer.status == 200
    assert {f["id"]: f["value"] for f in answer.json["facts"]}["submitted"] == 0

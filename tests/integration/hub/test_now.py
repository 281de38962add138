"""GET /v1/now over real HTTP: what is held and idle, what is silent, what waits, and what each caller sees of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.hub.rig import Rig, running_hub
from tests.unit.show.pages.parsed import without_spans

from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import StoreError
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.now.now_reads import FRESH_S, OLD_S, NowReads
from gpuwaste.ledger.now.now_text import now_text
from gpuwaste.ledger.now.now_types import NowDocument
from gpuwaste.ledger.run_advice import RunAdvice
from gpuwaste.show.layout import Look
from gpuwaste.show.machine_formats import to_parsable
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock, ShiftedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import AGENT_UID, HOUR, batch, hour, record

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
NOW = HOUR + 2400
REPORTED = HOUR + 2000
OPEN: dict[str, Any] = {"end": None, "elapsed_s": None, "state": "RUNNING", "exit_code": None, "time_limit_s": 86400}


def used(job: int, pct: int, *, until: int = REPORTED, **more: Any) -> Any:
    """Return an hour of a GPU that was at `pct` % from the hour's begin on."""
    span = (until - HOUR) * 1000
    idle = {"idle_run_ms": span, "last_active_ms": None} if pct == 0 else {"last_active_ms": until * 1000}
    values = {"t1_ms": until * 1000, "util_ms": {pct: span}, **idle, "gpu_uuid": f"GPU-{job}", "proc_seen": pct > 0}
    return hour(job, **{**values, **more})


@pytest.fixture
def now_hub(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub forty minutes into the hour whose Slurm has two nodes of four GPUs."""
    nodes = [Node(f"gpu{n}", address=f"10.0.0.{n}", state="MIXED", gpus={"a100": 4}) for n in (1, 2)]
    slurm = FakeSlurm(
        node_list=nodes,
        levels={"oper": "Operator"},
        account_coordinators={"proj1": frozenset({"carol"})},
    )
    with running_hub(tmp_path, slurm, clock=ShiftedClock(NOW)) as rig:
        rig.hub.get(ClusterFacts).refresh()
        yield rig


@pytest.fixture
def filled(now_hub: Rig) -> Rig:
    """Job 7 of alice idles on gpu1, job 8 of bob works there; job 9 of bob holds gpu2, of which nothing comes."""
    upsert_jobs(
        now_hub.store,
        [
            record(7, "alice", **OPEN, name="train"),
            record(8, "bob", "proj2", **OPEN),
            record(9, "bob", "proj2", **{**OPEN, "nodes": "gpu2", "gpus": 2}),
        ],
    )
    assert now_hub.post(batch(used(7, 0), used(8, 90))).status == 200
    return now_hub


def asked(rig: Rig, uid: int, question: str = "") -> Any:
    """Return the answer to a user."""
    answer = rig.get(uid, f"/v1/now{question}")
    assert answer.status == 200, answer.body
    return answer.json


def test_an_idle_gpu_is_named_with_its_job_its_time_and_its_waste(filled: Rig) -> None:
    """An operator reads who holds the idle GPU, since when, what it wasted, and how old the report is."""
    document = asked(filled, OPER)
    assert document["totals"] == {
        "gpus": 8, "held": 4, "high": 1, "moderate": 0, "low": 0, "idle": 1, "suspended": 0, "unknown": 2, "shares": 0,
        "jobs": 3, "idle_jobs": 1, "idle_wasted_s": 2000.0, "silent_nodes": 1,
    }  # fmt: skip
    (idle,) = document["idle"]
    assert (idle["jobid"], idle["user"], idle["idle"], idle["never_active"]) == ("7", "alice", 1, 1)
    assert (idle["since"], idle["reported"], idle["wasted_s"], idle["nodes"]) == (HOUR, REPORTED, 2000.0, ["gpu1"])
    ages = document["ages"]
    assert NOW - REPORTED <= ages["report_median_s"] == ages["report_max_s"] <= ages["report_limit_s"]
    assert [(node["node"], node["levels"], node["mean_pct"], node["jobs"]) for node in document["nodes"]] == [
        ("gpu1", "ih", [0, 90], ["7", "8"]),
        ("gpu2", "uu", [None, None], ["9", "9"]),
    ]


def test_a_gpu_at_0_percent_is_idle_from_its_first_second_on(now_hub: Rig) -> None:
    """Three GPUs of a job that began 24 s ago stand at 0 %: they are idle, for 24 s, in every text; a fourth works."""
    began = REPORTED - 24
    run: dict[str, Any] = {**OPEN, "start": began}
    upsert_jobs(now_hub.store, [record(7, "alice", **run, gpus=3, name="train"), record(8, "bob", **run)])
    span: dict[str, Any] = {"t0_ms": began * 1000, "idle_run_ms": 0, "proc_seen": True}
    rows = [
        used(7, 0, gpu_uuid=f"GPU-{n}", util_ms={0: 24_000}, run_key=RunKey("gw", 7, began), **span) for n in range(3)
    ]
    worked = used(8, 10, util_ms={0: 23_900, 10: 100}, run_key=RunKey("gw", 8, began), **span)
    assert now_hub.post(batch(*rows, worked)).status == 200
    document = asked(now_hub, OPER)
    assert (document["totals"]["idle"], document["totals"]["low"]) == (3, 1)
    assert next((node["levels"], node["mean_pct"]) for node in document["nodes"]) == ("iiil", [0, 0, 0, 1])
    assert [(row["jobid"], row["idle"], row["reported"] - row["since"]) for row in document["idle"]] == [("7", 3, 24)]
    assert "00:00:24" in now_text(convert(document, NowDocument, "an answer"), Look())
    page = without_spans(now_hub.page(OPER, "/now").body.decode())
    assert "3 of 8 GPUs are held and idle now" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "24 s" in page.replace("\N{NO-BREAK SPACE}", " ")


def test_a_node_whose_agent_is_silent_is_named_since_its_last_word(filled: Rig) -> None:
    """gpu2 holds GPUs and never reported: silent since its job began; later gpu1 is, since its last report."""
    assert asked(filled, OPER)["silent"] == [{"node": "gpu2", "state": "MIXED", "since": HOUR, "gpus": 2, "jobs": 1}]
    reads = NowReads(
        filled.store, filled.hub.get(ClusterFacts), filled.hub.get(RunAdvice), settings=LedgerSettings(),
        clock=FakeClock(HOUR + 7200), importer=filled.hub.get(Importer),
    )  # fmt: skip
    later = reads.document(Scope("oper", everything=True), 50)
    assert [(node.node, node.since, node.gpus) for node in later.silent] == [("gpu2", HOUR, 2), ("gpu1", REPORTED, 2)]
    assert (later.totals.idle, later.totals.unknown, later.idle) == (0, 4, [])


def test_others_see_counts_and_their_own_jobs_alone(filled: Rig) -> None:
    """Bob sees no job, name or node of alice; carol sees her account's; the agents' user and a stranger see no job."""
    everything = asked(filled, OPER)
    for uid, jobs, nodes in ((ALICE, ["7"], ["7"]), (CAROL, ["7"], ["7"]), (BOB, [], ["8", "9", "9"])):
        document = asked(filled, uid)
        assert [row["jobid"] for row in document["idle"]] == jobs
        assert [job for node in document["nodes"] for job in node["jobs"]] == nodes
        assert (document["totals"], document["queue"]) == (everything["totals"], everything["queue"])
    assert "alice" not in str(asked(filled, BOB))
    assert "train" not in str(asked(filled, BOB))
    assert [row["node"] for row in asked(filled, BOB)["silent"]] == ["gpu2"]
    assert asked(filled, ALICE)["silent"] == []
    nobody = asked(filled, AGENT_UID)
    assert (nobody["idle"], nobody["nodes"], nobody["silent"]) == ([], [], [])
    assert filled.send("GET", "/v1/now").status == 401


def test_each_held_gpu_has_exactly_one_level(now_hub: Rig) -> None:
    """High, moderate, low, suspended, reported too long ago, never reported: the six levels add up to what is held."""
    runs = [record(n, "alice", **OPEN) for n in (1, 2, 3, 5)]
    suspended = record(4, "alice", **{**OPEN, "state": "SUSPENDED"})
    upsert_jobs(now_hub.store, [*runs, suspended, record(6, "alice", **{**OPEN, "gpus": 2, "nodes": "gpu[1-2]"})])
    rows = [used(1, 90), used(2, 50), used(3, 20), used(4, 0), used(5, 90, until=HOUR + 600), used(6, 90)]
    assert now_hub.post(batch(*rows)).status == 200
    document = asked(now_hub, OPER)
    totals = document["totals"]
    levels = ("high", "moderate", "low", "idle", "suspended", "unknown")
    assert [totals[name] for name in levels] == [2, 1, 1, 0, 1, 2]
    assert sum(totals[name] for name in levels) == totals["held"] == 7
    assert {node["node"]: node["levels"] for node in document["nodes"]} == {"gpu1": "hmlsuh", "gpu2": "u"}


def test_idle_needs_a_minute_and_counts_from_the_last_activity(now_hub: Rig) -> None:
    """A GPU active 59 s before its last report is not idle; one active 61 s before it is, since then."""
    upsert_jobs(now_hub.store, [record(n, "alice", **OPEN) for n in (1, 2)])
    rows = [used(1, 50, last_active_ms=(REPORTED - 59) * 1000), used(2, 50, last_active_ms=(REPORTED - 61) * 1000)]
    assert now_hub.post(batch(*rows)).status == 200
    (idle,) = asked(now_hub, OPER)["idle"]
    assert (idle["jobid"], idle["since"], idle["never_active"]) == ("2", REPORTED - 61, 0)


def test_the_queue_counts_each_task_and_what_it_asks_for(now_hub: Rig) -> None:
    """A job of 4 GPUs and an array of ten tasks with 2 each wait in one partition, a CPU job in another."""
    waiting: dict[str, Any] = {"start": None, "end": None, "elapsed_s": None, "state": "PENDING", "gpus": 0}
    upsert_jobs(
        now_hub.store,
        [
            record(1, "alice", **waiting, req_tres="cpu=4,gres/gpu=4"),
            record(2, "bob", **waiting, printed_id="2_[0-9%4]", req_tres="gres/gpu:a100=2", submit=HOUR - 600),
            record(3, "bob", **waiting, partition="cpu", req_tres="cpu=1"),
            record(4, "bob", **{**waiting, "state": "CANCELLED", "end": HOUR}, req_tres="gres/gpu=99"),
        ],
    )
    found = [(row["partition"], row["jobs"], row["gpus"], row["oldest"]) for row in asked(now_hub, BOB)["queue"]]
    assert found == [("gpu", 11, 24, HOUR - 600), ("cpu", 1, 0, HOUR - 60)]


def test_a_run_that_accounting_lost_is_left_out_and_said(now_hub: Rig) -> None:
    """A run two days past its limit holds nothing; a note names the command that lists such runs."""
    old = {**OPEN, "start": HOUR - 3 * 86400, "submit": HOUR - 4 * 86400, "time_limit_s": 3600}
    upsert_jobs(now_hub.store, [record(1, "alice", **old), record(2, "alice", **OPEN)])
    document = asked(now_hub, OPER)
    assert (document["totals"]["jobs"], document["totals"]["held"]) == (1, 1)
    assert any("runawayjobs" in note for note in document["notes"])


def test_the_limit_cuts_the_jobs_and_says_how_many(now_hub: Rig) -> None:
    """Of three idle jobs the two of the largest waste come, and one is left out; totals count all."""
    upsert_jobs(now_hub.store, [record(n, "alice", **OPEN) for n in (1, 2, 3)])
    rows = [used(n, 0, until=REPORTED + n) for n in (1, 2, 3)]
    assert now_hub.post(batch(*rows)).status == 200
    document = asked(now_hub, OPER, "?limit=2")
    assert [row["jobid"] for row in document["idle"]] == ["3", "2"]
    assert (document["idle_left_out"], document["totals"]["idle_jobs"]) == (1, 3)
    for wrong in ("-1", "x", "999999"):
        assert now_hub.get(OPER, f"/v1/now?limit={wrong}").status == 400


def test_what_was_told_at_submission_stands_with_the_job(filled: Rig) -> None:
    """The owner reads the warning of their job; what shadow mode kept from them only an operator reads."""
    warned, hidden = "0000000000000abc", "0000000000000abd"
    upsert_jobs(
        filled.store,
        [
            record(7, "alice", **OPEN, verdict_id=warned),
            record(10, "alice", **OPEN, verdict_id=hidden),
        ],
    )
    said: dict[str, Any] = {"cluster": "gw", "user": "alice", "at_utc_us": HOUR * 1_000_000, "would_be": "warn"}
    said |= {"op": "submit", "policy": "gpus", "mode": "shadow", "lines": ("use 1 GPU",)}
    VerdictStore(filled.store, filled.clock).add(
        [Verdict(id=warned, action="warn", **said), Verdict(id=hidden, action="pass", **said)], "login1"
    )
    assert filled.post(batch(used(10, 0))).status == 200
    told = {row["jobid"]: [a["action"] for a in row["advice"]] for row in asked(filled, ALICE)["idle"]}
    assert told == {"7": ["warn"], "10": []}
    told = {row["jobid"]: [a["action"] for a in row["advice"]] for row in asked(filled, OPER)["idle"]}
    assert told == {"7": ["warn"], "10": ["pass"]}


def test_an_empty_store_answers_with_zeros(now_hub: Rig) -> None:
    """Without jobs there is a document of zeros that says that accounting has not been read."""
    document = asked(now_hub, OPER)
    assert (document["totals"]["held"], document["idle"], document["queue"]) == (0, [], [])
    assert [node["levels"] for node in document["nodes"]] == ["", ""]
    assert any("accounting has not been read" in note for note in document["notes"])


class CountingStore(HubStore):
    """A store that counts how often it is read, and may refuse."""

    reads = 0
    broken = False

    def reader(self) -> Any:
        self.reads += 1
        if self.broken:
            raise StoreError("the disk refuses")
        return super().reader()


def test_figures_are_shared_while_they_are_young_and_never_shown_when_old(filled: Rig) -> None:
    """Young figures answer without the store, a thread takes them anew, old ones are taken before the answer."""
    store = filled.store
    store.__class__ = CountingStore
    assert isinstance(store, CountingStore)
    clock = FakeClock(NOW)
    reads = NowReads(
        store, filled.hub.get(ClusterFacts), filled.hub.get(RunAdvice), settings=LedgerSettings(), clock=clock,
        importer=filled.hub.get(Importer),
    )  # fmt: skip
    stranger = Scope("nobody")

    def generated() -> int:
        return reads.document(stranger, 50).generated

    assert (generated(), store.reads) == (NOW, 1)
    clock.advance(FRESH_S + 1)
    assert (generated(), store.reads) == (NOW, 1)
    reads.worker.turn()
    assert (generated(), store.reads) == (NOW + int(FRESH_S) + 1, 2)
    clock.advance(FRESH_S + 1)
    store.broken = True
    reads.worker.turn()
    assert generated() == NOW + int(FRESH_S) + 1
    clock.advance(OLD_S)
    with pytest.raises(StoreError):
        generated()
    store.broken = False
    assert generated() == clock.utc_s()


def test_the_text_has_each_part_and_the_rows_their_columns(filled: Rig) -> None:
    """The text names the idle job, the silent node and the ages; the rows are those of the idle jobs."""
    document = convert(asked(filled, OPER), NowDocument, "answer")
    text = now_text(document, Look())
    assert "4 of 8" in text
    assert "alice: train" in text
    assert "gpu2" in text
    assert "  none" in text
    header, row = to_parsable(document).splitlines()
    cells = dict(zip(header.split("|"), row.split("|"), strict=True))
    assert (cells["jobid"], cells["idle"], cells["wasted_s"], cells["nodes"]) == ("7", "1", "2000", "gpu1")
    own = now_text(convert(asked(filled, ALICE), NowDocument, "answer"), Look())
    assert "1, none runs a job of yours" in own
    assert "gpu2" not in own


def test_the_page_says_the_same(filled: Rig) -> None:
    """/now names the count, the holder, the silent node and each node's GPUs; alice sees no job and node of bob."""
    text = without_spans(filled.page(OPER, "/now").body.decode())
    assert "1 of 8 GPUs is held and idle now, by 1 job; 1 node does not report." in text
    assert 'href="/jobs/7"' in text
    assert "gpu1: 2 of 4 GPUs held: 1 high, 1 idle" in text
    assert "gpu2" in text
    own = without_spans(filled.page(ALICE, "/now").body.decode())
    assert "1 of 8 GPUs is held and idle now" in own
    assert "gpu2" not in own
    assert filled.page(OPER, "/now.json").json["totals"]["idle"] == 1
    assert filled.page(OPER, "/now.csv").body.decode().count("\n") > 1

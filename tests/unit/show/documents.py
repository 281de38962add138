"""Documents for the renderers: a user's week with one job of each interesting kind."""

from copy import deepcopy
from functools import cache
from typing import Any

from tests.unit.ledger.builders import GIB, LATER, SETTINGS, T0, add_rows, hour, job, store

from gpuwaste.act.campaigns.effect_types import EffectsDocument
from gpuwaste.act.keeps.keep_types import KeepsDocument
from gpuwaste.act.notify.notice_types import NoticesDocument
from gpuwaste.advice.predict.prediction_types import PredictionsDocument
from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.advice.verdicts.verdict_types import VerdictsDocument
from gpuwaste.core.codec import convert
from gpuwaste.core.fields import Document
from gpuwaste.ledger.appeals.appeal_types import AppealsDocument
from gpuwaste.ledger.now.now_types import IdleJob, NodeRow, NowAges, NowDocument, NowTotals, QueueRow, SilentNode
from gpuwaste.ledger.reports.job_document import job_document
from gpuwaste.ledger.reports.job_types import Advice, JobDocument
from gpuwaste.ledger.reports.report_builder import report_document, top_document
from gpuwaste.ledger.reports.report_types import ReportDocument, TopDocument
from gpuwaste.store.database import Database

KINDS: dict[str, type[Document]] = {
    "report": ReportDocument, "job": JobDocument, "top": TopDocument, "predict": PredictionsDocument,
    "now": NowDocument, "verdicts": VerdictsDocument, "score": ScoreDocument, "notices": NoticesDocument,
    "effects": EffectsDocument,
    "keeps": KeepsDocument, "appeals": AppealsDocument,
}  # fmt: skip
END = T0 + 7 * 86400
HOSTILE_NAMES = (
    "\x1b]0;owned\x07=cmd|' /C calc'!A0",
    "=HYPERLINK(1)\n漢字" * 20,
    "|" * 10_000,
    "-2+3",
    "@SUM\t\U0001f600",
)


def week() -> Database:
    """Return a hub store with one job of each interesting kind."""
    busy = job(5, total_cpu_s=20_000.0)
    one = job(7, gpus=4, submit_line="sbatch --gres=gpu:a100:4 train.sh", name="resnet50")
    tasks = [
        job(
            30 + i,
            printed_id=f"30_{i}",
            array_job_id=30,
            array_task_id=i,
            name="sweep",
            start=T0 + 7200,
            end=T0 + 10800,
        )
        for i in range(3)
    ]
    first = job(40, state="REQUEUED", end=T0 + 600, name="again")
    second = job(40, start=T0 + 3600, end=T0 + 7200, submit=T0 + 600, restarts=1, name="again")
    gap = job(50, name="night")
    shard = job(60, gpus=0, name="notebook")
    running = job(70, seconds=None, start=END - 7200, name="bert")
    rows = [hour(busy, 0, 0, {90: 3600}), hour(one, 1, 0, {90: 3600})]
    rows += [hour(one, gpu, 0, {0: 3600}) for gpu in (2, 3, 4)]
    rows += [hour(task, 10, 2, {3: 1800, 50: 1800}) for task in tasks]
    rows += [hour(first, 11, 0, {0: 600}), hour(second, 11, 1, {99: 3600})]
    rows += [hour(gap, 12, 0, {80: 1800}, t1_ms=(T0 + 3600) * 1000, unknown_ms={"gap": 1_800_000})]
    rows += [hour(shard, 13, 0, {10: 3600}, share=0.25)]
    rows += [hour(running, 14, 7 * 24 - 2 + i, {0: 3600}, final=False) for i in range(2)]
    return store([busy, one, *tasks, first, second, gap, shard, running], rows)


def read(document: dict[str, Any]) -> Any:
    """Return a document as its declared type."""
    return convert(document, KINDS[document["document"]], "document")


@cache
def _week() -> Database:
    """Return a week to read."""
    return week()


def report(db: Database | None = None, scope: Any = "user", name: str = "alice") -> dict[str, Any]:
    """Return the report document of the week."""
    if db is None:
        return deepcopy(_report(scope, name))
    return report_document(db, scope, name, T0, END, SETTINGS, END).to_json()


@cache
def _report(scope: Any, name: str) -> dict[str, Any]:
    return report(_week(), scope, name)


def one_job(job_id: str = "7", db: Database | None = None) -> dict[str, Any]:
    """Return a job document of the week."""
    if db is None:
        return deepcopy(_one_job(job_id))
    document = job_document(db, job_id, SETTINGS, END)
    assert document is not None
    return document.to_json()


@cache
def _one_job(job_id: str) -> dict[str, Any]:
    return one_job(job_id, _week())


def top() -> dict[str, Any]:
    """Return who wastes now."""
    return deepcopy(_top())


@cache
def _top() -> dict[str, Any]:
    return top_document(_week(), END - 3600, SETTINGS, END).to_json()


def now() -> dict[str, Any]:
    """Return what a cluster does now: an idle job that was warned, a silent node, a queue."""
    return NowDocument(
        recorded=False,
        generated=END,
        ages=NowAges(
            accounting_read=END - 40, nodes_read=END, report_median_s=400, report_max_s=900, report_limit_s=1080
        ),
        totals=NowTotals(
            gpus=32, held=20, high=10, moderate=2, low=1, idle=3, suspended=0, unknown=4, shares=2, jobs=6, idle_jobs=2,
            idle_wasted_s=40_000.0, silent_nodes=1,
        ),
        idle=[
            IdleJob(
                cluster="gw", printed_id="12345_67", name="resnet50", user="alice", account="proj1", partition="gpu",
                start=END - 20_000, gpus=4, idle=2, never_active=1, since=END - 15_000, reported=END - 900,
                nodes=["gpu1"], nodes_left_out=0, wasted_s=29_000.0, exempt_s=0.0,
                advice=[Advice(at=END - 21_000, op="submit", action="warn", lines=["use 2 GPUs"])],
            )
        ],
        idle_left_out=1,
        silent=[SilentNode(node="gpu4", state="DOWN*", since=END - 7200, gpus=4, jobs=1)],
        queue=[QueueRow(partition="gpu", jobs=12, gpus=48, oldest=END - 90_000, longest_wait_s=90_000)],
        nodes=[
            NodeRow(
                node="gpu1", state="MIXED", gpus=4, reported=END - 900, levels="ih", mean_pct=[0, 90], jobs=["7", "8"]
            )
        ],
        notes=["1 run is left out: past the time limit by more than a day"],
    ).to_json()  # fmt: skip


@cache
def hostile() -> Database:
    """Return a store to read whose names try to act on a terminal, a line format and a spreadsheet."""
    db = store([], [])
    for i, name in enumerate(HOSTILE_NAMES):
        record = job(100 + i, name=name, user=name[:200], account=name[:200], partition=name, nodes=name, gpu_type=name)
        add_rows(db, [record], [hour(record, i, 0, {0: 3600}, mem_total_b=40 * GIB)])
    assert LATER > END
    return db


def keeps() -> dict[str, Any]:
    """Return two keeps: one active, one over."""
    one = {
        "id": "k1", "cluster": "gw", "job_id": 7, "start": T0, "printed_id": "7", "user": "alice", "account": "proj1",
        "asked_by": "carol", "at": T0 + 60, "since": T0 + 60, "until": END + 60, "reason": "it waits for data",
    }  # fmt: skip
    return {"document": "keeps", "schema": 1, "generated": END, "keeps": [one, {**one, "id": "k0", "until": T0 + 90}]}


def appeals() -> dict[str, Any]:
    """Return an open appeal about an action, and a closed one about rejected advice."""
    one = {
        "id": "3f2a9c81d0b4", "kind": "action", "about": "c3", "printed_id": "7", "user": "alice", "at_utc": T0,
        "words": "it waited for a license", "runs": 2, "evidence": '{"rule": "idle"}', "status": "open", "outcome": "",
        "reply": "", "replied_by": "", "replied_utc": None,
    }  # fmt: skip
    closed = {"status": "closed", "outcome": "upheld", "reply": "You are right.", "replied_by": "oper"}
    other = {**one, **closed, "kind": "verdict", "printed_id": "", "replied_utc": T0 + 60}
    return {"document": "appeals", "schema": 1, "generated": END, "appeals": [one, other]}

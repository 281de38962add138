"""docs/explanation/privacy.md: the lines that erase a user do so, and take nothing else."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from tests.unit.store.test_verdict_store import run, said
from tests.unit.waste import builders

from gpuwaste.core.accounted_run import AccountedRun, JobDetails, StepRecord
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.intent import Intent
from gpuwaste.core.job import JobRecord
from gpuwaste.core.run import RunKey
from gpuwaste.hub.actions.action_manager import ActionManager
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.hub.action_store import ActionStore
from gpuwaste.store.hub.hub_store import Aside, HubStore
from gpuwaste.store.hub.notice_store import NoticeStore
from gpuwaste.store.hub.verdict_store import VerdictStore

PAGE = (Path(__file__).parents[2] / "docs/explanation/privacy.md").read_text(encoding="utf-8")


def notice(user: str, document: str) -> dict[str, Any]:
    """Return a notice that waits to be sent."""
    return {
        "user": user, "period_start": 1, "status": "due", "why": "", "address": f"{user}@x", "jobs": 1, "gpu_s": 2.0,
        "wasted_s": 1.0, "exempt_s": 0.0, "coverage": None, "document": document,
    }  # fmt: skip


def accounted(job: JobRecord) -> AccountedRun:
    """Return a run whose constraint and whose step name its user."""
    values = {field.name: getattr(job, field.name) for field in fields(JobRecord)}
    step = StepRecord("0", f"{job.user}-step", 1, 1, 1, None, "COMPLETED", 0, 0)
    return AccountedRun(**values, details=JobDetails(constraints=f"of-{job.user}"), steps=(step,))


def fill(path: Path) -> None:
    """Write a store in which each table that can name a user names alice, and dave."""
    store, clock = HubStore.open(path, SystemClock()), SystemClock()
    try:
        records = [
            accounted(
                run(
                    job,
                    str(job),
                    user=user,
                    name=f"{user}-job",
                    account=account,
                    group=user,
                    submit_line=f"sbatch {user}",
                )
            )
            for job, user, account in ((1, "alice", "alice"), (2, "alice", "physics"), (3, "dave", "physics"))
        ]
        store.upsert_jobs(records)
        store.upsert_hours([builders.hour(record, 0, 0, {0: 3600}) for record in records])
        verdicts = VerdictStore(store, clock)
        verdicts.add([said(1, user="alice", name="alice-job"), said(2, user="dave", name="dave-job")], "ctl")
        notices = NoticeStore(store, clock)
        assert notices.add_period("digest", 100, [notice("alice", "alice"), notice("dave", "dave")], dry=False)
        assert notices.add_period("staff", 100, [notice("", '["alice", "dave"]')], dry=False)
        notices.want("alice", mail=False)
        notices.want("dave", mail=False)
        manager = ActionManager(ActionStore(store, clock), 1)
        for number, (user, person) in enumerate((("alice", "dave"), ("dave", "alice"), ("dave", "dave"))):
            run_key = RunKey("gw", number + 1, 1)
            intent = Intent(
                id=f"{number:064x}", rule="idle", rule_hash="", kind="cancel", subject=str(run_key), decided_utc=1,
                expires_utc=2**40, facts="{}", run=run_key, user=user, account="physics", approve="person",
            )  # fmt: skip
            assert manager.intend([intent])
            assert manager.decide(manager.store.found(intent.id)[0], person, approve=True)
        store.quarantine("sacct", [Aside(1, "odd", "alice|x"), Aside(2, "odd", "dave|x")])
    finally:
        store.close()


def texts(path: Path) -> str:
    """Return every row of every table of a store, as text."""
    found = []
    with connect(path, read_only=True) as db:
        for (table,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            found += [repr(row) for row in db.execute(f'SELECT * FROM "{table}"').fetchall()]  # noqa: S608 its own name
    return "\n".join(found)


def erase(path: Path, user: str) -> None:
    """Run the page's program, as it stands."""
    (program,) = re.findall(r"<<'END'\n(import sys\n.*?)\nEND\n", PAGE, flags=re.DOTALL)
    subprocess.run([sys.executable, "-", user, str(path)], input=program, text=True, check=True, capture_output=True)


def test_the_lines_erase_a_user_everywhere(tmp_path: Path) -> None:
    """After the page's program no text of any table holds the name; runs, hours and verdicts are still counted."""
    path = tmp_path / "hub.duckdb"
    fill(path)
    before = texts(path)
    assert before.count("alice") > 10
    erase(path, "alice")
    after = texts(path)
    assert "alice" not in after
    assert "dave-job" in after
    assert "dave-step" in after
    assert "sbatch dave" in after
    store = HubStore.open(path, SystemClock())
    try:
        counts = store.counts()
        assert (counts["jobs"], counts["hours"], counts["verdicts"]) == (3, 3, 2)
    finally:
        store.close()

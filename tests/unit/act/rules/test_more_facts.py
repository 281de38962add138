"""Facts of hangs, of what was predicted again, of Xid errors and of the model in use, each beside what it is for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.act.rules.rule_facts import GpuState
from gpuwaste.act.rules.rule_file import load_rule
from gpuwaste.act.rules.rule_matching import Subject, matches, subjects
from gpuwaste.act.rules.rule_moments import ModelMoment, Moment, gpu_state, model_facts, node_facts, running_facts
from gpuwaste.advice.rescore_store import Rescore, RescoreStore
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.held_gpus import held_runs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import HOUR, hour, record

SHIPPED = Path(__file__).parents[4] / "etc" / "rules.d"
NOW = HOUR + 5 * 3600
XIDS = (48, 79)


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Open a store in memory."""
    found = HubStore.open(":memory:", SystemClock())
    yield found
    found.close()


def row(job: int, number: int, pct: int, **more: Any) -> Any:
    """Return an hour of a GPU at one percent, with a process on it."""
    begin = HOUR + number * 3600
    span = min(3_600_000, (NOW - begin) * 1000)
    known: dict[str, Any] = {
        "hour_utc": begin, "t0_ms": begin * 1000, "t1_ms": begin * 1000 + span, "util_ms": {pct: span},
        "idle_run_ms": span if pct == 0 else 0, "last_active_ms": None if pct == 0 else begin * 1000 + span,
        "proc_seen": True, "gpu_uuid": f"GPU-{job}", "power_limit_w": 400.0, **more,
    }  # fmt: skip
    return hour(job, **known)


def states(store: HubStore, *jobs: int) -> dict[int, GpuState]:
    """Return what is known of the GPUs of running jobs of one GPU each, begun at HOUR."""
    for job in jobs:
        upsert_jobs(store, [record(job, "alice", start=HOUR, submit=HOUR, end=None, elapsed_s=None, state="RUNNING")])
    with store.reader() as db:
        found = held_runs(db, "gw", LedgerSettings(), NOW)
    return {run.job.job_id: gpu_state(run.held, NOW) for run in found}


def test_a_hang_is_full_use_without_work_up_to_now(store: HubStore) -> None:
    """Job 1 hangs for two hours and draws no power, job 2 works, job 3 hung and works again, job 4 tells no power."""
    quiet: dict[str, Any] = {"power_w_at_full": 60.0}
    loud: dict[str, Any] = {"power_w_at_full": 350.0}
    rows = [row(1, n, 100, **(quiet if n >= 3 else loud)) for n in range(5)]
    rows += [row(2, n, 100, **loud) for n in range(5)]
    rows += [row(3, n, 100, **(loud if n == 4 else quiet)) for n in range(5)]
    rows += [row(4, n, 100) for n in range(5)]
    rows += [row(5, n, 100, power_w_at_full=60.0, sm_ratio_at_full=0.8) for n in range(5)]
    upsert_hours(store, rows)
    found = states(store, 1, 2, 3, 4, 5)
    assert {job: state.hang_s for job, state in found.items()} == {1: 7200.0, 2: 0.0, 3: 0.0, 4: None, 5: 0.0}


def test_cpu_cores_are_of_the_last_two_hours_on_each_node(store: HubStore) -> None:
    """Two GPUs on one node both have the run's CPU time of that node: it counts once."""
    rows = [row(1, n, 0, cpu_s=9.0 if n >= 3 else 50_000.0) for n in range(5)]
    rows += [row(1, n, 0, cpu_s=9.0 if n >= 3 else 50_000.0, gpu_uuid="GPU-b") for n in range(5)]
    upsert_hours(store, [*rows, *(row(2, n, 0) for n in range(5))])
    upsert_jobs(store, [record(1, "alice", start=HOUR, submit=HOUR, end=None, elapsed_s=None, state="RUNNING", gpus=2)])
    found = states(store, 2)
    assert found[1].cpu_cores == pytest.approx(18 / 7200)
    assert found[2].cpu_cores is None


def looked(store: HubStore, *jobs: int) -> dict[int, Subject]:
    with store.reader() as db:
        running_facts(db, [Moment(RunKey("gw", job, HOUR), NOW, GpuState()) for job in jobs])
        return {int(one.facts["job.id"]): one for one in subjects(db, "running", range(len(jobs)))}


def test_what_was_predicted_again_is_the_newest_before_the_instant(store: HubStore) -> None:
    """The start's is followed by the one ten minutes later; what was said after the instant does not count."""
    for job in (1, 2):
        upsert_jobs(store, [record(job, "alice", start=HOUR, submit=HOUR, end=None, elapsed_s=None, state="RUNNING")])
    run = RunKey("gw", 1, HOUR)
    said = [
        Rescore(run, "start", HOUR + 1, {"failure": 0.5}),
        Rescore(run, "early", HOUR + 600, {"failure": 0.97, "timeout": 0.1}),
        Rescore(run, "limit", NOW + 60, {"failure": 0.2}, limit_p=0.9),
    ]
    assert RescoreStore(store, SystemClock()).add(said, []) == 3
    found = looked(store, 1, 2)
    names = ("rescore.failure", "rescore.timeout", "rescore.limit", "rescore.age_s")
    assert [found[1].facts[name] for name in names] == [0.97, 0.1, None, NOW - HOUR - 600]
    assert [found[2].facts[name] for name in names] == [None] * 4
    rule = load_rule(SHIPPED / "bound-to-fail.toml")
    with store.reader() as db:
        running_facts(db, [Moment(RunKey("gw", job, HOUR), HOUR + 700, GpuState()) for job in (1, 2)])
        hit = subjects(db, "running", matches(db, [rule])[0].places)
    assert [one.facts["job.id"] for one in hit] == [1]


def test_the_node_rule_counts_hardware_errors_of_several_runs(store: HubStore) -> None:
    """n1 has them in two runs; n2's are of one run; n3's are errors of programs (13); n4's are of the day before."""

    def seen(job: int, node: str, **more: Any) -> Any:
        return row(job, 4, 50, node=node, gpu_uuid=f"GPU-{node}", **more)

    old = HOUR - 2 * 86400
    rows = [seen(1, "n1", xids={79: 2}), seen(2, "n1", xids={48: 1, 13: 50}), seen(3, "n2", xids={79: 9})]
    rows += [seen(4, "n3", xids={13: 9}), seen(5, "n3", xids={13: 9})]
    rows += [hour(6 + n, node="n4", hour_utc=old, t0_ms=old * 1000, t1_ms=old * 1000, xids={79: 5}) for n in (0, 1)]
    upsert_hours(store, rows)
    rule = load_rule(SHIPPED / "node-xid.toml")
    with store.reader() as db:
        node_facts(db, "gw", NOW, XIDS)
        found = {one.key: one.facts for one in subjects(db, "node", range(10))}
        hit = subjects(db, "node", matches(db, [rule])[0].places)
    assert [one.key for one in hit] == ["node/n1"]
    names = ("node.xids_1d", "node.xid_gpus_1d", "node.xid_runs_1d", "node.ended_1d")
    assert [found["node/n1"][name] for name in names] == [3, 1, 2, 0]
    assert set(found) == {"node/n1", "node/n2"}


def test_a_shared_gpus_errors_count_once(store: HubStore) -> None:
    """Three runs share the GPU: each row has its two errors."""
    upsert_hours(store, [row(job, 4, 50, node="n1", gpu_uuid="GPU-1", share=0.25, xids={79: 2}) for job in (1, 2, 3)])
    with store.reader() as db:
        node_facts(db, "gw", NOW, XIDS)
        (found,) = subjects(db, "node", [0])
    assert (found.facts["node.xids_1d"], found.facts["node.xid_runs_1d"]) == (2, 3)


def judged(store: HubStore, p_of_failed: float, p_of_completed: float, model: str = "cafe") -> Subject:
    """Say something of 1,200 jobs of which a third failed, and return the facts of the model."""
    verdicts, jobs = [], []
    for number in range(1, 1201):
        failed = number % 3 == 0
        p = p_of_failed if failed else p_of_completed
        token = f"{number:016x}"
        verdicts.append(
            Verdict(
                token,
                "gw",
                HOUR * 1_000_000,
                "submit",
                "p",
                "shadow",
                "pass",
                "pass",
                user="alice",
                p={"failure": p},
                model_hash=model,
            )
        )
        state = "FAILED" if failed else "COMPLETED"
        jobs.append(record(number, "alice", verdict_id=token, state=state))
    upsert_jobs(store, jobs)
    VerdictStore(store, SystemClock()).add(verdicts, "n1")
    with store.reader() as db:
        model_facts(db, "gw", NOW, ModelMoment("nightly", "cafe", HOUR - 86400))
        (found,) = subjects(db, "model", [0])
        return found


def test_a_model_is_judged_by_what_it_said_at_submission(store: HubStore) -> None:
    """One that says 0.9 where it fails and 0.05 where it does not has skill; the calibration error is by tenths."""
    found = judged(store, 0.9, 0.05)
    facts = found.facts
    assert found.key == "model/nightly"
    assert (facts["model.judged_7d"], facts["model.age_s"]) == (1200, NOW - HOUR + 86400)
    assert facts["model.failed_ratio"] == pytest.approx(1 / 3)
    assert facts["model.expected_ratio"] == pytest.approx(1 / 3)
    assert facts["model.ece"] == pytest.approx((0.1 + 0.05 * 2) / 3)
    assert facts["model.skill"] == pytest.approx(1 - ((0.01 + 0.0025 * 2) / 3) / (2 / 9))


@pytest.mark.parametrize(
    ("p_of_failed", "p_of_completed", "model", "drifted"),
    [(0.97, 0.02, "cafe", False), (0.02, 0.02, "cafe", True), (0.02, 0.02, "other", False)],
    ids=["good", "drifted", "another model"],
)
def test_the_drift_rule(store: HubStore, p_of_failed: float, p_of_completed: float, model: str, drifted: bool) -> None:
    """It matches where the model in use is far off; what another model said does not count."""
    judged(store, p_of_failed, p_of_completed, model)
    with store.reader() as db:
        model_facts(db, "gw", NOW, ModelMoment("nightly", "cafe", HOUR - 86400))
        assert bool(matches(db, [load_rule(SHIPPED / "champion-drift.toml")])[0].places) == drifted


def test_without_a_model_there_is_nothing_to_judge(store: HubStore) -> None:
    """No row of facts, so no rule matches."""
    with store.reader() as db:
        model_facts(db, "gw", NOW, ModelMoment())
        assert db.execute("SELECT count(*) FROM facts").fetchall() == [(0,)]

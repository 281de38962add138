"""GET /v1/programs/runs over real HTTP: labels from accounting, ledger and audit, the caller's own alone."""

from typing import Any

import pytest
from tests.integration.hub.rig import Answer, Rig

from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.net.hub_client import PROGRAM_RUNS_PATH
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.hub_rows import hour

ALICE, BOB, OPER = 1001, 1002, 1004
NOW = 1_700_000_000
HASH = "ab" * 32
VERDICT = "abcdefgh12345678"


def ended(job: int, user: str = "alice", program: str | None = f"{HASH},steps=100", **more: Any) -> AccountedRun:
    """Return a completed run of a minute on one H100."""
    values: dict[str, Any] = {
        "cluster": "gw", "job_id": job, "submit": NOW + 100 * job, "user": user, "name": "train", "state": "COMPLETED",
        "start": NOW + 100 * job + 5, "end": NOW + 100 * job + 65, "elapsed_s": 60, "gpus": 1, "gpu_type": "h100",
    }  # fmt: skip
    return AccountedRun(**{**values, **more}, details=JobDetails(program=program))


def ask(hub: Rig, uid: int, program: str) -> Answer:
    target = f"{PROGRAM_RUNS_PATH}?program={program}"
    return hub.send("GET", target, headers={"Authorization": hub.credential(uid, "GET", target)})


def runs(hub: Rig, uid: int) -> list[dict[str, Any]]:
    answer = ask(hub, uid, HASH)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json["runs"]
    return found


def test_a_run_is_a_label(hub: Rig) -> None:
    """Declared steps, run time, GPUs, the memory that the ledger saw of a whole GPU, and what was expected of it."""
    upsert_jobs(hub.store, [ended(7, verdict_id=VERDICT)])
    key = RunKey("gw", 7, NOW + 705)
    upsert_hours(
        hub.store,
        [
            hour(run_key=key, gpu_uuid=name, mem_max_b=used, mem_total_b=80, share=share)
            for name, used, share in (("GPU-1", 10, 1.0), ("GPU-2", 30, 1.0), ("GPU-3", 70, 0.5))
        ],
    )
    said = Verdict(
        VERDICT, "gw", NOW * 1_000_000, "submit", "default", "shadow", "pass", "pass", user="alice",
        quantiles={"walltime": {"0.5": 75.0, "0.9": 90.0}},
    )  # fmt: skip
    VerdictStore(hub.store, hub.clock).add([said], "login1")
    assert runs(hub, ALICE) == [
        {
            "submit": NOW + 700, "end": NOW + 765, "run_s": 60, "name": "train", "steps": 100, "gpus": 1,
            "gpu_type": "h100", "gpu_mem_max_b": 30, "gpu_mem_total_b": 80, "predicted_s": 75.0,
        }
    ]  # fmt: skip


def test_only_completed_runs_of_this_program_the_newest_first(hub: Rig) -> None:
    """A failed run, another program, one without a tie, and what only begins like the hash are no labels."""
    upsert_jobs(
        hub.store,
        [
            ended(1),
            ended(2, program=HASH),
            ended(3, state="FAILED"),
            ended(4, program="cd" * 32),
            ended(5, program=""),
            ended(6, program=None),
            ended(8, program=f"{HASH}ff"),
            ended(9, program=f"{HASH},steps=99999999999999"),
        ],
    )
    assert [(run["end"], run["steps"]) for run in runs(hub, ALICE)] == [(NOW + 265, None), (NOW + 165, 100)]


def test_nobody_gets_runs_of_others(hub: Rig) -> None:
    """Bob writes alice's hash and a lie into his comment: her labels are hers alone, and an operator's are none."""
    upsert_jobs(hub.store, [ended(1), ended(2, "bob", f"{HASH},steps=1000000")])
    assert [run["steps"] for run in runs(hub, ALICE)] == [100]
    assert [run["steps"] for run in runs(hub, BOB)] == [1000000]
    assert runs(hub, OPER) == []


@pytest.mark.parametrize("program", ["x", HASH[:-1], f"{HASH}%27%20OR%201", "%00" * 64])
def test_what_is_no_fingerprint_is_refused(hub: Rig, program: str) -> None:
    """One line says what is expected."""
    answer = ask(hub, ALICE, program)
    assert answer.status == 400
    assert b"expected the fingerprint" in answer.body

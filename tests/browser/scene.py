"""Jobs for the tests in a browser: a wasteful one, an array, one that nobody reported, names that attack the page."""

from typing import Any, Final

from tests.integration.hub.rig import Rig

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.machine import machine_store
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.hub_rows import batch, hour, record

ALICE, BOB, CAROL, OPER = 1001, 1002, 1003, 1004
WASTEFUL: Final = 4711
ARRAY: Final = 4302
HOSTILE: Final = 4800
NOBODY: Final = 4900
_EVIL: Final = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe",
    "x" * 10_000,
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
)


def fill(rig: Rig, now: int) -> None:
    """Store the node and the jobs; `now` is a whole hour, UTC seconds."""
    with rig.store.writing() as db:
        node = Node("gpu1", 64, 512 << 30, {"a100": 8}, partitions=("gpu",))
        machine_store.write_nodes(db, "gw", [node], now - 40 * DAY_S)
    _train(rig, WASTEFUL, now - 9 * HOUR_S, 6, name="train")
    for place in range(1, 7):
        _train(rig, WASTEFUL - place * 10, now - place * DAY_S, 2 + place % 3, name="train", busy=place % 3)
    tasks = [
        _ran(ARRAY + place, now - 3 * DAY_S, 1, name="sweep", array_job_id=ARRAY, array_task_id=place,
             printed_id=f"{ARRAY}_{place}", state="FAILED" if place == 3 else "COMPLETED")
        for place in range(10)
    ]  # fmt: skip
    upsert_jobs(rig.store, tasks)
    _send(
        rig, [_hour(task.job_id, task.start or 0, 0, {12: HOUR_S * 1000}, f"GPU-s{n}") for n, task in enumerate(tasks)]
    )
    upsert_jobs(rig.store, [_ran(HOSTILE + place, now - 5 * HOUR_S, 1, name=name) for place, name in enumerate(_EVIL)])
    upsert_jobs(rig.store, [_ran(NOBODY, now - 30 * HOUR_S, 4, gpus=2, name="unreported")])
    upsert_jobs(rig.store, [_ran(5000 + n, now - 40 * HOUR_S, 1, name=f"small-{n}") for n in range(70)])


def _train(rig: Rig, job: int, start: int, hours: int, *, name: str, busy: int = 1) -> None:
    """Store a job of four GPUs of which `busy` work, and whose agent was away in its second hour."""
    upsert_jobs(
        rig.store,
        [_ran(job, start, hours, gpus=4, name=name, gpu_type="a100", alloc_tres="cpu=8,gres/gpu=4", cpus=8,
              submit_line="sbatch --gres=gpu:a100:4 train.sh", time_limit_s=4 * HOUR_S)],
    )  # fmt: skip
    rows = []
    for gpu in range(4):
        for place in range(hours):
            if place == 1 and gpu == 2:
                continue
            used = {91 if place % 3 else 48: HOUR_S * 1000} if gpu < busy else {0: HOUR_S * 1000}
            rows.append(_hour(job, start, place, used, f"GPU-{job}-{gpu}"))
    _send(rig, rows)


def _ran(job: int, start: int, hours: int, **more: Any) -> Any:
    end = start + hours * HOUR_S
    values: dict[str, Any] = {"submit": start - 60, "start": start, "end": end, "elapsed_s": end - start}
    return record(job, "alice", **{**values, **more})


def _hour(job: int, start: int, place: int, used: dict[int, int], uuid: str) -> Any:
    begin = start + place * HOUR_S
    idle = 0 in used
    return hour(
        job, run_key=RunKey("gw", job, start), gpu_uuid=uuid, hour_utc=begin, t0_ms=begin * 1000,
        t1_ms=(begin + HOUR_S) * 1000, util_ms=used, idle_run_ms=used.get(0, 0), proc_seen=not idle,
        mem_max_b=0 if idle else 30 << 30, mem_total_b=80 << 30,
    )  # fmt: skip


def _send(rig: Rig, rows: list[Any]) -> None:
    answer = rig.post(batch(*rows))
    assert (answer.status, answer.json["rejected"]) == (200, []), answer.body

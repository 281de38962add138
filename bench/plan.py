"""Figure: when five candidates start, with 5,000 queued jobs on 2,000 nodes: seconds of the answer (--jobs 500).

The queue is drawn: nodes of four GPUs in two partitions, most of them busy. It is asked about three times: without
limits; with 3,000 jobs of one user at its top, whom MaxJobsPU and MaxTRESPU of the QOS hold; in 20 accounts that may
have 400 GPUs each (GrpTRES) with a maintenance of half of the nodes in a day.

Slurm's own part (three RPCs, the text of
which is read here from memory) and the candidates' `sbatch --test-only` are not in it. `learnt` is what a model of
waits needs instead of `expect`: the queue as its rows, 20 plays of it, the features of five requests. Prints a table,
the median of seconds and of CPU seconds, then a line of JSON.
"""

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gpuwaste.plan.expectations import DRAWS
from gpuwaste.plan.learnt_waits import LiveRows
from gpuwaste.plan.live_queue import live_queue
from gpuwaste.plan.start_time.run_times import PastRuns
from gpuwaste.plan.start_time.start_expectation import expect
from gpuwaste.plan.wait_bundle import PoolSize, WaitMachine
from gpuwaste.plan.wait_features import simulated, vector
from gpuwaste.plan.wait_knowledge import Knowledge
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob, parse_jobs
from gpuwaste.slurm.site.cluster_model import (
    Association,
    ClusterModel,
    LimitSet,
    Node,
    Partition,
    Qos,
    Reservation,
)
from gpuwaste.slurm.site.site_fields import parse_nodes
from gpuwaste.slurm.submit.job_request import JobRequest

TARGET_S: Final = 2.0
NOW: Final = 1_800_000_000
CANDIDATES: Final = 5
_PLAYS: Final = 20
_GPUS: Final = (1, 1, 1, 2, 4, 4, 8, 16)
_USERS: Final = 300
_ACCOUNTS: Final = 20


def main() -> int:
    """Draw the queue, read it, and ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5_000)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rng = random.Random(1)  # noqa: S311 a queue, no secret
    nodes = parse_nodes("\n".join(node_text(n) for n in range(options.nodes)))
    running = [running_text(n + 1, rng) for n in range(int(options.nodes * 0.97))]
    text = "\n".join([*running, *(waiting_text(100_000 + n, rng) for n in range(options.jobs))])
    past = PastRuns()
    for n in range(50_000):
        past.observe(f"u{n % 300}", ("gpu", _GPUS[n % 8]), rng.random() * 36_000, 43_200)
    rows: dict[str, dict[str, float]] = {}
    for name, model in site_models(nodes).items():
        jobs = crowded(text, options.jobs * 3 // 5) if name == "one user" else text
        took = [once(jobs, nodes, past, options.draws, model) for _ in range(options.rounds + 1)][1:]  # one compiles
        parts = {part: statistics.median(one[part] for one in took) for part in took[0]}
        for part in ("read", "queue", "expect", "learnt"):
            print(f"{name:<9} {part:<8} {parts[part] * 1000:8.0f} ms {parts[f'{part}_cpu'] * 1000:8.0f} ms of CPU")
        rows[name] = {**parts, "answer": parts["queue"] + parts["expect"]}
    print(json.dumps({"bench": "plan", "limits": rows, "target_s": TARGET_S, **vars(options)}))
    return 0 if all(row["answer"] <= TARGET_S for row in rows.values()) else 1


def site_models(nodes: Sequence[Node]) -> dict[str, ClusterModel | None]:
    """Return the limits of each row of the table."""
    machine = tuple(Node(one.name, 64, 512_000 << 20, {"a100": 4}) for one in nodes)
    partitions = (Partition("gpu", tuple(one.name for one in nodes), default=True),)
    user = LimitSet(max_jobs_per_user=40, max_tres_per_user={"gres/gpu": 120})
    bare = ClusterModel("bench", machine, partitions, (Qos("normal"),))
    accounts = [Association(f"a{n}", limits=LimitSet(grp_tres={"gres/gpu": 400})) for n in range(_ACCOUNTS)]
    users = [Association(f"a{n % _ACCOUNTS}", user=f"u{n}", parent=f"a{n % _ACCOUNTS}") for n in range(_USERS)]
    maintenance = Reservation("maint", tuple(one.name for one in nodes[::2]), NOW + 86_400, NOW + 2 * 86_400)
    return {
        "no limits": None,
        "one user": replace(bare, qos=(Qos("normal", limits=user),)),
        "accounts": replace(bare, associations=(*accounts, *users), reservations=(maintenance,)),
    }


def crowded(text: str, count: int) -> str:
    """Return the queue with `count` of the waiting jobs at the top, all of one user."""
    running, *records = re.split(r"(?m)^(?=JobId=1\d{5} )", text)
    changed = [re.sub(r"UserId=\w+", "UserId=u0", one) for one in records[:count]]
    changed = [re.sub(r"Priority=\d+", f"Priority={200_000 + n}", one) for n, one in enumerate(changed)]
    return running + "".join([*changed, *records[count:]])


def once(text: str, nodes: Sequence[Node], past: PastRuns, draws: int, model: ClusterModel | None) -> dict[str, float]:
    """Return seconds and CPU seconds of reading what scontrol printed, of making the queue, and of the expectation."""
    marks = [_clocks()]
    jobs = parse_jobs(text).jobs
    marks.append(_clocks())
    live = live_queue(jobs, nodes, "gpu", past, NOW, model)
    marks.append(_clocks())
    asked = [
        JobRequest(
            user="u7",
            submit=NOW,
            account="a7",
            qos="normal",
            cpus=4,
            nodes=1,
            gpus=gpus,
            time_limit_s=limit,
            mem_b=1 << 34,
        )
        for gpus, limit in ((4, 43_200), (1, 43_200), (4, 7_200), (1, 7_200), (2, 14_400))
    ]
    found = expect(live.queue, [live.candidate(request) for request in asked], draws)
    marks.append(_clocks())
    features = _features(jobs, asked, len(nodes))
    marks.append(_clocks())
    assert len(features) == CANDIDATES  # noqa: S101 what was timed is what was asked for
    assert len(found) == CANDIDATES  # noqa: S101 what was timed is what was asked for
    assert all(one is not None and one.p90 > NOW for one in found)  # noqa: S101 a queue that starts all at once is none
    spent: dict[str, float] = {}
    for name, before, after in zip(("read", "queue", "expect", "learnt"), marks, marks[1:], strict=False):
        spent |= {name: after[0] - before[0], f"{name}_cpu": after[1] - before[1]}
    return spent


def _features(jobs: Sequence[RunningJob], asked: Sequence[JobRequest], nodes: int) -> list[list[float]]:
    rows, known = LiveRows(WaitMachine([PoolSize("gpu", nodes * 64, nodes * 4)], _PLAYS)), Knowledge()
    named = [replace(request, partition="gpu") for request in asked]
    at = rows.instant(NOW, 0, *rows.queue(jobs, NOW), rows.asked(named))
    hints = simulated(at, known.past, _PLAYS, 1)
    return [vector(at, row, known, hint) for row, hint in enumerate(hints)]


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def node_text(number: int) -> str:
    """Return a node of four GPUs; each fourth is in a second partition too."""
    more = ",long" if number % 4 == 0 else ""
    return (
        f"NodeName=n{number} Arch=x86_64\n   Gres=gpu:a100:4\n   State=MIXED\n   Partitions=gpu{more}\n"
        "   CPUTot=64 RealMemory=512000\n"
    )


def running_text(number: int, rng: random.Random) -> str:
    """Return a job that has a node of its own for up to half a day."""
    start = NOW - rng.randrange(40_000)
    return _record(
        number,
        "RUNNING",
        f"StartTime={start} EndTime={start + 43_200}",
        f"NodeList=n{number - 1}\n   NumNodes=1 TRES=cpu=16,mem=64G,node=1,gres/gpu=4\n"
        f"   Nodes=n{number - 1} CPU_IDs=0-15 Mem=65536 GRES=gpu:a100:4(IDX:0-3)",
        rng,
    )


def waiting_text(number: int, rng: random.Random) -> str:
    """Return a job that waits."""
    gpus = rng.choice(_GPUS)
    return _record(
        number,
        "PENDING",
        "StartTime=Unknown EndTime=Unknown",
        f"NodeList=\n   NumNodes=1 TRES=cpu={gpus * 4},mem={gpus * 16}G,node={max(1, gpus // 4)},gres/gpu={gpus}",
        rng,
    )


def _record(number: int, state: str, times: str, rest: str, rng: random.Random) -> str:
    user = rng.randrange(_USERS)
    return (
        f"JobId={number} JobName=train\n   UserId=u{user}(1000) GroupId=g(1000) MCS_label=N/A\n"
        f"   Priority={rng.randrange(1, 100_000)} Nice=0 Account=a{user % _ACCOUNTS} QOS=normal\n"
        f"   JobState={state} Reason=Priority Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=1\n"
        f"   TimeLimit=12:00:00 TimeMin=N/A\n   SubmitTime={NOW - rng.randrange(90_000)} EligibleTime={NOW - 5}\n"
        f"   {times}\n   Partition=gpu AllocNode:Sid=login:1\n   {rest}\n"
        "   MinCPUsNode=1 MinMemoryNode=1G MinTmpDiskNode=0\n   OverSubscribe=OK Contiguous=0\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())

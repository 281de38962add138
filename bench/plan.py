"""When five candidates would start, with 5,000 queued jobs on 2,000 nodes: seconds of the hub's answer and its parts.

The queue is drawn: nodes of four GPUs in two partitions, most of them busy. Slurm's own part (three RPCs, the text of
which is read here from memory) and the candidates' `sbatch --test-only` are not in it. `learnt` is what a model of
waits needs instead of `expect`: the queue as its rows, 20 plays of it, the features of five requests. Prints a table,
the median of seconds and of CPU seconds, then a line of JSON.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gpuwaste.core.request import JobRequest
from gpuwaste.hub.expectations import DRAWS
from gpuwaste.plan.live_queue import live_queue
from gpuwaste.plan.waits.features import vector
from gpuwaste.plan.waits.knowledge import Knowledge
from gpuwaste.plan.waits.live_rows import LiveRows
from gpuwaste.plan.waits.simulated import simulated
from gpuwaste.plan.waits.trees import Machine, PoolSize
from gpuwaste.plan.when.expectation import expect
from gpuwaste.plan.when.past_runs import PastRuns
from gpuwaste.slurm.cluster_config import NodeInfo, parse_nodes
from gpuwaste.slurm.scontrol import RunningJob, parse_jobs

TARGET_S: Final = 2.0
NOW: Final = 1_800_000_000
CANDIDATES: Final = 5
_PLAYS: Final = 20
_GPUS: Final = (1, 1, 1, 2, 4, 4, 8, 16)


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
    took = [once(text, nodes, past, options.draws) for _ in range(options.rounds + 1)][1:]  # the first one compiles
    parts = {name: statistics.median(one[name] for one in took) for name in took[0]}
    for name in ("read", "queue", "expect", "learnt"):
        print(f"{name:<8} {parts[name] * 1000:8.0f} ms {parts[f'{name}_cpu'] * 1000:8.0f} ms of CPU")
    whole = parts["queue"] + parts["expect"]
    print(json.dumps({"bench": "plan", **parts, "answer": whole, "target_s": TARGET_S, **vars(options)}))
    return 0 if whole <= TARGET_S else 1


def once(text: str, nodes: Sequence[NodeInfo], past: PastRuns, draws: int) -> dict[str, float]:
    """Return seconds and CPU seconds of reading what scontrol printed, of making the queue, and of the expectation."""
    marks = [_clocks()]
    jobs = parse_jobs(text).jobs
    marks.append(_clocks())
    live = live_queue(jobs, nodes, "gpu", past, NOW)
    marks.append(_clocks())
    asked = [
        JobRequest(user="u7", submit=NOW, cpus=4, nodes=1, gpus=gpus, time_limit_s=limit, mem_b=1 << 34)
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
    rows, known = LiveRows(Machine([PoolSize("gpu", nodes * 64, nodes * 4)], _PLAYS)), Knowledge()
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
        "   CfgTRES=cpu=64,mem=512000M,billing=64,gres/gpu=4,gres/gpu:a100=4\n"
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
    return (
        f"JobId={number} JobName=train\n   UserId=u{rng.randrange(300)}(1000) GroupId=g(1000) MCS_label=N/A\n"
        f"   Priority={rng.randrange(1, 100_000)} Nice=0 Account=a QOS=normal\n"
        f"   JobState={state} Reason=Priority Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=1\n"
        f"   TimeLimit=12:00:00 TimeMin=N/A\n   SubmitTime={NOW - rng.randrange(90_000)} EligibleTime={NOW - 5}\n"
        f"   {times}\n   Partition=gpu AllocNode:Sid=login:1\n   {rest}\n"
        "   MinCPUsNode=1 MinMemoryNode=1G MinTmpDiskNode=0\n   OverSubscribe=OK Contiguous=0\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())

"""Figure: a job's samples from a node, 8 GPUs, 24 hours at 10 s: seconds, bytes, the agent's memory.

The whole agent (bench/agent_child.py) runs on a store that has the day, once without a question and once with one after
the other while it samples; peak_rss_mb is its own, child_rss_mb that of the largest child: what the agent would take if
it read itself. The hub's part is timed beside: to unpack, check and pack again. All over loopback with real munge.
Prints a table, then one line of JSON.
"""

import argparse
import gzip
import json
import random
import shutil
import statistics
import tempfile
import threading
import time
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.agent import HOUR_TICKS, AgentProcess
from bench.agent_child import GPUS, INTERVAL_S, NODE
from gpuwaste.agent.node_store import RAW, NodeStore
from gpuwaste.agent.segment import to_line
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.curves.agent_curves import checked
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.net.request_signing import sign_request
from gpuwaste.net.sample_query import RunWindow, SampleQuestion
from gpuwaste.net.tokens import TokenChecker
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.fake_hub import FakeHub
from gpuwaste.testing.lone_hub import private_munged
from gpuwaste.testing.simnvml import Arch, SimNode, make_gpus

JOB: Final = 424242
TICKS: Final = DAY_S // INTERVAL_S


def fill(state: Path, start_s: int) -> int:
    """Store a day of one job on all GPUs, as an agent does; return what its ticks are as packed lines, bytes."""
    draw = random.Random(1)  # noqa: S311 a figure is repeatable
    store, as_rows = NodeStore(state, 14, 1 << 30), []
    run = RunKey("gw", JOB, start_s)
    for tick in range(1, TICKS + 1):
        t_us = (start_s + tick * INTERVAL_S) * 1_000_000
        busy = draw.random() < 0.9
        base = Sample(
            t_us, t_us, "", "", "nvml", mem_total_b=80 << 30, power_limit_mw=700_000, procs=1, job_id=JOB, run_key=run,
            map_source=MapSource.PROLOG, confidence=Confidence.CONFIRMED,
        )  # fmt: skip
        samples = [
            replace(
                base,
                gpu_uuid=f"GPU-{gpu}",
                util_pct=round(draw.uniform(60, 100), 2) if busy else 0.0,
                mem_used_b=draw.randrange(40 << 20, 80 << 20) << 10,
                power_mw=draw.randrange(90_000, 700_000),
                sm_ratio=round(draw.random(), 4),
            )
            for gpu in range(GPUS)
        ]
        store.append(samples)
        as_rows.append(to_line(samples))
    list(store.samples_since(base.t_utc_us))  # a child folds all of it first
    store.close()
    return len(gzip.compress(b"".join(as_rows), 5))


class Asking:
    """One agent and the questions to it."""

    def __init__(self, agent: AgentProcess, munge: str, question: SampleQuestion) -> None:
        self._port = agent.ask("port")
        self._issuer = MungeIssuer(Munge(munge))
        self._question = question
        self.seconds: list[float] = []
        self.body = b""

    def once(self) -> None:
        """Ask, and note how long the whole exchange took."""
        target = self._question.target
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        began = time.perf_counter()
        connection.request("GET", target, headers=sign_request(self._issuer, "GET", target))
        answer = connection.getresponse()
        self.body = answer.read()
        self.seconds.append(time.perf_counter() - began)
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"the agent answers {answer.status}: {self.body!r}")


def run_agent(home: Path, filled: Path, munge: str, question: SampleQuestion, questions: int) -> dict[str, Any]:
    """Run an agent on a copy of the store for an hour of ticks, with so many questions meanwhile."""
    home.mkdir()
    shutil.copytree(filled, home / "state" / RAW)
    node = SimNode.create(home / "node", make_gpus(range(GPUS), Arch.HOPPER))
    for file, text in (("token", "secret-of-the-node\n"), ("tokens", f"{NODE} secret-of-the-node\n")):
        (home / file).write_text(text)
        (home / file).chmod(0o600)
    (home / "spool").mkdir()
    with FakeHub({"token": TokenChecker(home / "tokens")}) as hub:
        agent = AgentProcess(home, node, hub.url, "--munge", munge)
        agent.ask(f"go {HOUR_TICKS // 4}")
        asking = Asking(agent, munge, question)
        before = agent.ask("usage")
        ticking = threading.Thread(target=agent.ask, args=(f"go {HOUR_TICKS}",))
        ticking.start()
        for _ in range(questions):
            asking.once()
        ticking.join()
        after = agent.ask("usage")
        agent.stop()
    return {"before": before, "after": after, "seconds": asking.seconds, "body": asking.body}


def hub_seconds(body: bytes, question: SampleQuestion, rounds: int) -> tuple[list[float], int]:
    """Return what the hub takes for an answer each time, and the bytes of what it answers, packed."""
    times, packed = [], b""
    for _ in range(rounds):
        began = time.perf_counter()
        found = checked(body, question, (), GPUS)
        packed = gzip.compress(msgspec.json.encode(found), 5)
        times.append(time.perf_counter() - began)
    return times, len(packed)


def main() -> None:
    """Fill a store, run both agents, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=20)
    options = parser.parse_args()
    start_s = time.time_ns() // 1_000_000_000 // DAY_S * DAY_S  # the agent's clock begins a day later
    window = RunWindow(JOB, start_s, start_s * 1_000_000, (start_s + DAY_S) * 1_000_000, 2000)
    question = SampleQuestion(NODE, window)
    with tempfile.TemporaryDirectory(prefix="gwbench") as name, private_munged() as munge:
        home = Path(name)
        rows_b = fill(home / "filled", start_s)
        plain = run_agent(home / "plain", home / "filled" / RAW, munge, question, 0)
        asked = run_agent(home / "asked", home / "filled" / RAW, munge, question, options.questions)
    hub_s, hub_b = hub_seconds(asked["body"], question, options.questions)
    times = asked["seconds"]
    result = {
        "answer_s": round(statistics.median(times), 3),
        "answer_max_s": round(max(times), 3),
        "answer_kb": round(len(asked["body"]) / 1000, 1),
        "all_samples_kb": round(rows_b / 1000, 1),
        "hub_ms": round(1000 * statistics.median(hub_s), 1),
        "hub_answer_kb": round(hub_b / 1000, 1),
        "peak_rss_mb": round(asked["after"]["own_mb"], 1),
        "peak_rss_without_mb": round(plain["after"]["own_mb"], 1),
        "child_rss_mb": round(asked["after"]["child_mb"], 1),
        "child_rss_without_mb": round(plain["after"]["child_mb"], 1),
        "child_cpu_s": round((asked["after"]["child_cpu_s"] - asked["before"]["child_cpu_s"]) / options.questions, 3),
    }
    spread = {
        "answer_s": f"{min(times):.2f} to {max(times):.2f} s in {len(times)} questions, the agent samples meanwhile",
        "answer_kb": "as it travels: mean, minimum and maximum of 1,000 slots, gzip",
        "all_samples_kb": "beside it: all samples of the day as lines, gzip",
        "hub_ms": f"{1000 * min(hub_s):.0f} to {1000 * max(hub_s):.0f} ms: unpack, check, pack",
        "peak_rss_mb": "of the agent, asked",
        "peak_rss_without_mb": "of the agent, not asked",
        "child_rss_mb": "of the largest child; what the agent would take beside its own if it read itself",
        "child_rss_without_mb": "of the largest child that folds",
        "child_cpu_s": "a question",
    }
    print(f"A node with {GPUS} GPUs x {TICKS} samples of one job; {options.questions} questions\n")
    for figure, value in result.items():
        print(f"{figure:22} {value:>9}  {spread.get(figure, '')}")
    print(json.dumps({"bench": "curves", "gpus": GPUS, "samples": TICKS, **result}))


if __name__ == "__main__":
    main()

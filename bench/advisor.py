"""Figure: verdicts a second on one core, the time of an exchange at a paced load, memory with 100,000 users.

The advisor is a process of its own on one core (taskset) with the history of many users and no hub beside it; a second
process asks as a plugin does, a connection each. Beside each exchange stands that of a program that reads a request and
answers at once. cpu_us is the advisor's CPU for a lone request. Prints a table, then one line of JSON.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from gpuwaste.advice.predict.bundle import BASELINE, Registry
from gpuwaste.advice.submit_frames import HEADER, encode_frame
from gpuwaste.advisor.advisor_history import SAVED
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.testing.histories import made_table
from gpuwaste.testing.lone_advisor import LoneAdvisor

TARGETS: Final = {"verdicts_per_s": 5000, "p99_us": 1000, "p999_us": 2000, "cpu_us": 150, "rss_mb": 250}
NAMES: Final = ("train", "eval", "prep")
PIPELINE: Final = 32  # connections that the busy asker keeps open
_SCRIPT: Final = "#!/bin/bash\n#SBATCH --gres=gpu:4 --mem=64G\nmodule load cuda\n" + "srun python train.py\n" * 40


def main() -> int:
    """Make a history, start the advisor, ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measured load")
    parser.add_argument("--model", action="store_true", help="with the baseline bundle as champion")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gwadv", dir="/tmp") as folder:
        place = Path(folder)
        save_history(place / "advisor" / SAVED, options.users)
        pinned = ("taskset", "-c", str(max(os.sched_getaffinity(0)))) if shutil.which("taskset") else ()
        advisor = LoneAdvisor(place, "http://127.0.0.1:9", "", {"max_queue": PIPELINE * 2}, prefix=pinned)
        if options.model:
            advisor.models.mkdir()
            registry = Registry(advisor.models)
            registry.promote(registry.add(BASELINE))
        advisor.start()
        try:
            figures = measure(advisor, options.seconds)
        finally:
            advisor.stop()
    facts = {"users": options.users, "model": "baseline" if options.model else "history", "cores": os.cpu_count()}
    facts["load_average"] = round(os.getloadavg()[0], 1)
    print(json.dumps({"bench": "advisor", "targets": TARGETS, **facts, **figures}))
    return 0


def save_history(directory: Path, users: int) -> None:
    """Write a state in which every user has a few names, sizes and limits, and three quarters of a ring of runs."""
    table = made_table(users * 2, users=users, gap_s=2.0)
    rng = np.random.default_rng(3)
    table.user.codes[:] = rng.permutation(np.arange(users * 2) % users)  # everybody, not only the busiest
    table.name.codes[:] = table.user.codes
    state = replay(table)
    follower = Follower(state, "gw")
    for number in range(users):
        job = JobRecord("gw", number + 1, 1, user=f"u{number}", name="train", gpus=4)
        follower.recall.ended(job, 1_700_000_000 + number, Outcome.COMPLETED)
        follower.recall.used(job, 1)
    directory.parent.mkdir(parents=True)
    follower.save(directory)
    print(f"{'history':<24}{len(state.keys):>12} keys{len(follower.recall):>12} names")


def measure(advisor: LoneAdvisor, seconds: float) -> dict[str, Any]:
    """Print the table and return the figures."""
    figures: dict[str, Any] = {"rss_start_mb": round(advisor.rss_b() / 1e6)}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(paced, (str(advisor.path), 500.0, 2.0))  # caches of both sides
        for rate in (200.0, 1000.0):
            before = cpu_s(advisor)
            found = pool.apply(paced, (str(advisor.path), rate, seconds))
            found["cpu_us"] = round((cpu_s(advisor) - before) / (rate * seconds) * 1e6)
            figures[f"at_{rate:g}_per_s"] = found
            bare = pool.apply(beside_bare, (rate, seconds))
            figures[f"bare_at_{rate:g}_per_s"] = bare
            for what, values in ((f"{rate:g} requests/s", found), ("  a bare program", bare)):
                text = "".join(f"{name} {value:>8.0f}  " for name, value in values.items())
                print(f"{what:<24}{text}", flush=True)
        before, began = cpu_s(advisor), time.perf_counter()
        count = pool.apply(busy, (str(advisor.path), seconds))
        used, wall = cpu_s(advisor) - before, time.perf_counter() - began
    figures["verdicts_per_s"] = round(count / seconds)
    figures["verdicts_per_cpu_s"] = round(count / used)
    figures["behind"] = int(advisor.metric('gpuwaste_advisor_requests_total{result="behind"}'))
    figures["rss_mb"] = round(advisor.rss_b() / 1e6)
    print(f"{'as many as it can':<24}{count / seconds:>8.0f} verdicts/s, {count / used:.0f} for each second of CPU")
    print(f"{'core in use':<24}{used / wall:>8.0%}")
    print(f"{'resident memory':<24}{figures['rss_mb']:>8} MB ({figures['rss_start_mb']} at the start)", flush=True)
    return figures


def frames(count: int) -> list[bytes]:
    """Return requests of several users of this host's directory and of others, names and sizes."""
    rng = random.Random(5)  # noqa: S311 made-up requests
    jobs = [
        {
            "user_id": rng.choice((0, 1, 2, 65534)), "name": rng.choice(NAMES), "account": "proj", "partition": "gpu",
            "time_limit": rng.choice((60, 600)), "min_nodes": 1, "num_tasks": 1, "cpus_per_task": 8,
            "min_cpus": rng.choice((8, 16)), "mem_per_node_mb": 64_000,
            "tres_per_node": f"gres:gpu:{rng.choice((1, 4))}",
            "script": _SCRIPT, "script_bytes": len(_SCRIPT), "script_hash": f"{rng.randrange(1 << 64):016x}",
        }
        for _ in range(count)
    ]  # fmt: skip
    return [encode_frame({"op": "submit", "via": "c", "uid": 0, "deadline_us": 5_000_000, "job": job}) for job in jobs]


def exchange(path: str, frame: bytes) -> None:
    """Ask once, as a plugin does. Raises RuntimeError where there is no answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(path)
        sock.sendall(frame)
        if not sock.recv(4096):
            raise RuntimeError("the advisor hung up")


def paced(path: str, rate: float, seconds: float) -> dict[str, float]:
    """Ask at a rate, evenly; return percentiles of the exchange in microseconds, counted from when it was due."""
    ours, took = frames(500), []
    due = time.perf_counter()
    for number in range(int(rate * seconds)):
        due += 1 / rate
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left if left > 0.0002 else 0)
        began = time.perf_counter()
        exchange(path, ours[number % len(ours)])
        took.append(time.perf_counter() - began)
    p50, p99, p999 = np.percentile(np.array(took) * 1e6, (50, 99, 99.9))
    return {"p50_us": round(float(p50)), "p99_us": round(float(p99)), "p999_us": round(float(p999))}


def beside_bare(rate: float, seconds: float) -> dict[str, float]:
    """Ask a program that reads a request and answers at once, on the advisor's core: what the host itself costs."""
    with tempfile.TemporaryDirectory(prefix="gwbare", dir="/tmp") as folder:
        path = f"{folder}/s"
        ready, child = multiprocessing.get_context("fork").Event(), os.fork()
        if not child:
            _answer_bare(path, ready.set)
        try:
            ready.wait(30)
            return paced(path, rate, seconds)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _answer_bare(path: str, ready: Callable[[], None]) -> NoReturn:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(PIPELINE)
    ready()
    while True:
        peer, _ = listener.accept()
        with peer:
            data = peer.recv(1 << 16)
            while len(data) < HEADER.size + HEADER.unpack_from(data)[0]:
                data += peer.recv(1 << 16)
            peer.sendall(data[:64])


def busy(path: str, seconds: float) -> int:
    """Ask with PIPELINE connections open at a time; return how many were answered."""
    ours, done = frames(500), 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        socks = []
        for number in range(PIPELINE):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(path)
            sock.sendall(ours[(done + number) % len(ours)])
            socks.append(sock)
        for sock in socks:
            if not sock.recv(4096):
                raise RuntimeError("the advisor hung up")
            sock.close()
        done += PIPELINE
    return done


def cpu_s(advisor: LoneAdvisor) -> float:
    """Return the processor time that the advisor has used, seconds."""
    pid = advisor.process.pid if advisor.process else 0
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())

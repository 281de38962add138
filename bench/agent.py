"""Figure: what the agent costs a node of 8 GPUs at one sample in 10 s, over 24 simulated hours (--amd 8, --intel 8).

The whole agent (daemon.Agent) runs in a process of its own on the simulated NVML, with eight jobs at a time on real
processes, new ones every hour, and ships to a hub. A clock that jumps from tick to tick makes the day short:

- the first hour runs with 1 ms slept in each NVML call, the other 23 without; the CPU of the day is the first hour's
  times 24, plus what the 23 hours cost more than 23 of that (midnight, checkpoints), plus a scrape every 15 s;
- each tick reads the driver's duty samples of the last 10 real seconds, as many as a real tick does;
- scrapes are timed at the end, while ticks with slow calls follow each other without a pause.

Prints a table and one line of JSON. CPU includes the agent's children; bytes include segments, WAL and outbox. Memory
is read every 10 ms: rss_mb and pss_mb are medians of the agent while no child runs, those with_child are peaks of both.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any, Final, TextIO

from bench.agent_child import GPUS, INTERVAL_S, NODE
from gpuwaste.core.units import DAY_S
from gpuwaste.net.tokens import TokenChecker
from gpuwaste.testing.fake_hub import FakeHub
from gpuwaste.testing.sim_build import build_level_zero, build_native, library_env
from gpuwaste.testing.sim_gpus import FIRST_RENDER
from gpuwaste.testing.simnvml import Arch, SimGpu, SimNode, make_amd_gpus, make_gpus, make_intel_gpus

HOUR_TICKS: Final = 3600 // INTERVAL_S
LATENCY_US: Final = 1000
SCRAPES: Final = 400
SCRAPE_EVERY_S: Final = 15
WATCH_S: Final = 0.01
TARGETS: Final = {"cpu_pct": 0.3, "rss_mb": 60.0, "bytes_per_day_mb": 2.0, "scrape_p99_ms": 10.0}

# Plays slurmstepd: listens on the socket that it is told by a line of input, and has four processes.
STEPD: Final = """
import os, socket, subprocess, sys
held = None
tasks = [subprocess.Popen(["sleep", "100000"]) for _ in range(4)]
for line in sys.stdin:
    if held: held.close()
    held = socket.socket(socket.AF_UNIX); held.bind(line.strip()); held.listen()
    print("ok", flush=True)
for task in tasks: task.kill()
"""


class Jobs:
    """Eight jobs with one GPU each, as slurmd would show them: sockets, processes, prolog and epilog files."""

    def __init__(self, directory: Path) -> None:
        self._spool, self._files = directory / "spool", directory / "jobs"
        for folder in (self._spool, self._files):
            folder.mkdir(parents=True)
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", STEPD]
        self._stepds = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(GPUS)]
        self._now: list[int] = []
        self._next = 1

    def change(self, now_us: int) -> None:
        """End all jobs and start new ones at a simulated instant."""
        times = (now_us * 1000, now_us * 1000)
        for job in self._now:
            (self._spool / f"{NODE}_{job}.4294967291").unlink()
            (self._files / f"{job}.end").write_text("")
            os.utime(self._files / f"{job}.end", ns=times)
        self._now = list(range(self._next, self._next + GPUS))
        self._next += GPUS
        for position, (job, stepd) in enumerate(zip(self._now, self._stepds, strict=True)):
            start = self._files / f"{job}.start"
            start.write_text(f"gpus={position}\nstart={now_us // 1_000_000}\n")
            path = self._spool / f"{NODE}_{job}.4294967291"
            _tell(stepd, str(path))
            for file in (start, path):
                os.utime(file, ns=times)

    def stop(self) -> None:
        """End the processes."""
        for stepd in self._stepds:
            stepd.communicate()


def _tell(process: "subprocess.Popen[str]", line: str) -> None:
    stdin, stdout = _pipes(process)
    stdin.write(line + "\n")
    stdin.flush()
    stdout.readline()


def _pipes(process: "subprocess.Popen[str]") -> tuple[TextIO, TextIO]:
    assert process.stdin is not None  # noqa: S101 it was opened with pipes
    assert process.stdout is not None  # noqa: S101 same
    return process.stdin, process.stdout  # type: ignore[return-value]


class AgentProcess:
    """The child, as the parent speaks to it."""

    def __init__(self, directory: Path, node: SimNode, hub_url: str, *more: str) -> None:
        command = [sys.executable, "-m", "bench.agent_child", str(directory), hub_url, *more]
        env = {**os.environ, **library_env(build_native()), **node.env}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, line: str) -> Any:
        """Send a line and return the answer."""
        stdin, stdout = _pipes(self._process)
        stdin.write(line + "\n")
        stdin.flush()
        return json.loads(stdout.readline())

    @property
    def pid(self) -> int:
        """The agent's process."""
        return self._process.pid

    def stop(self) -> None:
        """End the agent in an orderly way."""
        self._process.communicate(timeout=60)


class Memory(threading.Thread):
    """Reads the agent's memory every few milliseconds: by itself, and together with the child that folds samples."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._stop_it = threading.Event()
        self.alone: list[tuple[float, float]] = []
        self.together: list[tuple[float, float]] = []

    def run(self) -> None:
        """Read until stop()."""
        while not self._stop_it.wait(WATCH_S):
            pids = [self._pid, *self._children()]
            with contextlib.suppress(OSError):
                sizes = [memory_mb(pid) for pid in pids]
                total = (sum(size[0] for size in sizes), sum(size[1] for size in sizes))
                (self.together if len(pids) > 1 else self.alone).append(total)

    def stop(self) -> None:
        """End the thread."""
        self._stop_it.set()
        self.join()

    def _children(self) -> list[int]:
        found: list[int] = []
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{self._pid}/task").glob("*/children"):
                found.extend(map(int, path.read_text().split()))
        return found


def memory_mb(pid: int) -> tuple[float, float]:
    """Return RSS and PSS of a process in MiB. Raises OSError."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    values = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
    return values.get("Rss:", 0.0), values.get("Pss:", 0.0)


def bytes_of(state: Path) -> int:
    """Return the bytes of the agent's state directory."""
    return sum(file.stat().st_size for file in state.rglob("*") if file.is_file())


def start_loads(native: Path, node: SimNode, rng: random.Random) -> list["subprocess.Popen[bytes]"]:
    """Use the GPUs at random: utilization, memory and power change every few (simulated) minutes."""
    loads = []
    for minor in range(GPUS):
        phases = [
            f"{rng.uniform(0.1, 0.6):.3f}:{rng.choice([0, rng.uniform(1, 99), 100]):.1f}"
            f":{rng.randrange(500, 70_000)}:{rng.randrange(90, 700)}:{rng.random():.3f}"
            for _ in range(60)
        ]
        flags = [flag for phase in phases for flag in ("--phase", phase)]
        command = [str(native / "gpuwaste-load"), "--gpus", str(minor), "--for", "600", *flags]
        loads.append(subprocess.Popen(command, env={**os.environ, **node.env}, stdout=subprocess.DEVNULL))
    return loads


def end_loads(loads: list["subprocess.Popen[bytes]"]) -> None:
    """End the load programs."""
    for load in loads:
        load.kill()
        load.wait()


def run_day(agent: AgentProcess, jobs: Jobs, node: SimNode, gpus: list[Any], plan: tuple[int, int]) -> dict[str, Any]:
    """Run the hours of the plan, with new jobs and new load each, and return their figures."""
    hours, seed = plan
    native, rng = build_native(), random.Random(seed)  # noqa: S311 a figure is repeatable
    state = Path(node.directory.parent) / "state"
    before = agent.ask("usage")["cpu_s"]
    hourly, peak_b, outbox_b = [], 0, 0
    for hour in range(hours):
        jobs.change(int(agent.ask("time")) + 1_000_000)
        node.set_gpus(gpus, latency_us=LATENCY_US if hour == 0 else 0)
        loads = start_loads(native, node, rng)
        try:
            agent.ask(f"go {HOUR_TICKS}")
        finally:
            end_loads(loads)
        after = agent.ask("usage")["cpu_s"]
        hourly.append(after - before)
        before = after
        peak_b = max(peak_b, bytes_of(state / "raw"))
        outbox_b = max(outbox_b, sum(file.stat().st_size for file in state.glob("outbox*")))
    agent.ask("go 2")  # over midnight: the day is compacted
    compaction_s = agent.ask("usage")["cpu_s"] - before
    packed_b = max(file.stat().st_size for file in (state / "raw").iterdir())
    return {
        "hourly_cpu_s": hourly,
        "compaction_s": compaction_s,
        "peak_b": peak_b,
        "packed_b": packed_b,
        "outbox_b": outbox_b,
    }


def time_scrapes(agent: AgentProcess, node: SimNode, gpus: list[Any]) -> dict[str, Any]:
    """Scrape while ticks with slow calls run without a pause; then once more with nothing beside, for the CPU."""
    node.set_gpus(gpus, latency_us=LATENCY_US)
    url = f"http://127.0.0.1:{agent.ask('port')}/metrics"
    times: list[float] = []

    def scrape() -> None:
        began = time.perf_counter()
        with urllib.request.urlopen(url, timeout=10) as answer:
            answer.read()
        times.append((time.perf_counter() - began) * 1000)

    ticking = threading.Thread(target=agent.ask, args=(f"go {HOUR_TICKS // 4}",))
    ticking.start()
    while len(times) < SCRAPES:
        scrape()
        time.sleep(0.01)
    ticking.join()
    busy_ms = times[:]
    before = agent.ask("usage")["cpu_s"]
    for _ in range(100):
        scrape()
    cpu_s = (agent.ask("usage")["cpu_s"] - before) / 100
    return {"busy_ms": busy_ms, "cpu_s": cpu_s}


def measure(hours: int, seed: int, amd: int = 0, intel: int = 0) -> dict[str, Any]:
    """Run everything in a private folder and return the figures; idle AMD and Intel GPUs are beside the NVIDIA ones."""
    with tempfile.TemporaryDirectory(prefix="gwbench") as name:
        directory = Path(name)
        gpus: list[SimGpu] = make_gpus(range(GPUS), Arch.HOPPER) + make_amd_gpus(range(GPUS, GPUS + amd))
        first = GPUS + amd
        gpus += make_intel_gpus(range(first, first + intel), first_render=FIRST_RENDER + amd)
        if intel and build_level_zero() is None:
            raise SystemExit("no zes_api.h on this machine: install libze-dev")
        vendors = [name for name, count in (("amd", amd), ("intel", intel)) if count]
        node = SimNode.create(directory / "node", gpus)
        for file, text in (("token", "secret-of-the-node\n"), ("tokens", f"{NODE} secret-of-the-node\n")):
            (directory / file).write_text(text)
            (directory / file).chmod(0o600)
        jobs = Jobs(directory)
        try:
            with FakeHub({"token": TokenChecker(directory / "tokens")}) as hub:
                began = time.monotonic()
                agent = AgentProcess(directory, node, hub.url, *(f"--vendor={name}" for name in vendors))
                start_s = agent.ask("usage")["cpu_s"]
                memory = Memory(agent.pid)
                memory.start()
                figures = run_day(agent, jobs, node, gpus, (hours, seed))
                figures |= {"scrape": time_scrapes(agent, node, gpus), "start_cpu_s": start_s}
                memory.stop()
                figures |= {"usage": agent.ask("usage"), "rows": len(hub.rows)}
                figures |= {"alone": memory.alone, "together": memory.together}
                agent.stop()
                return figures | {"took_s": time.monotonic() - began}
        finally:
            jobs.stop()


def summarize(figures: dict[str, Any], hours: int) -> dict[str, float]:
    """Return the published figures."""
    slow, *fast = figures["hourly_cpu_s"]
    usual = statistics.median(fast) if fast else slow
    extra_s = sum(max(0.0, hour - usual) for hour in fast) + figures["compaction_s"]
    scrape_s = figures["scrape"]["cpu_s"] * DAY_S / SCRAPE_EVERY_S
    times = sorted(figures["scrape"]["busy_ms"])
    return {
        "cpu_pct": round(100 * (max(slow, usual) * 24 + extra_s * 24 / hours + scrape_s) / DAY_S, 4),
        "cpu_pct_without_latency": round(100 * (usual * 24 + scrape_s) / DAY_S, 4),
        **summarize_memory(figures, hours),
        "bytes_per_day_mb": round(figures["peak_b"] / 1e6, 3),
        "bytes_per_day_compacted_mb": round(figures["packed_b"] / 1e6, 3),
        "outbox_mb": round(figures["outbox_b"] / 1e6, 3),
        "scrape_p50_ms": round(times[len(times) // 2], 2),
        "scrape_p99_ms": round(times[int(len(times) * 0.99)], 2),
    }


def summarize_memory(figures: dict[str, Any], hours: int) -> dict[str, float]:
    """Return the figures of memory; `usage` has the peaks of the agent and of its largest child."""
    usage, alone = figures["usage"], figures["alone"]
    together = figures["together"] or alone
    return {
        "rss_mb": round(statistics.median(rss for rss, _ in alone), 1),
        "pss_mb": round(statistics.median(pss for _, pss in alone), 1),
        "peak_rss_mb": round(usage["own_mb"], 1),
        "child_peak_rss_mb": round(usage["child_mb"], 1),
        "peak_rss_with_child_mb": round(max(rss for rss, _ in together), 1),
        "peak_pss_with_child_mb": round(max(pss for _, pss in together), 1),
        "child_time_pct": round(100 * usage["folding_s"] / (hours * 3600), 4),
        "child_cpu_pct": round(100 * usage["child_cpu_s"] / (hours * 3600), 4),
    }


def main() -> None:
    """Print the table and the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--amd", type=int, default=0, help="AMD GPUs beside the 8 NVIDIA ones (0)")
    parser.add_argument("--intel", type=int, default=0, help="Intel GPUs of two tiles beside them (0)")
    options = parser.parse_args()
    figures = measure(options.hours, options.seed, options.amd, options.intel)
    result = summarize(figures, options.hours)
    fast = figures["hourly_cpu_s"][1:] or figures["hourly_cpu_s"]
    times = figures["scrape"]["busy_ms"]
    spread = {
        "cpu_pct": f"{min(fast):.2f} to {max(fast):.2f} s an hour without latency",
        "scrape_p99_ms": f"{min(times):.2f} to {max(times):.2f} ms in {len(times)} scrapes",
        "rss_mb": "95.4 with DuckDB in the agent",
        "child_time_pct": "share of the time in which a child runs",
        "bytes_per_day_mb": "raw samples with segments and WAL, at its largest",
        "outbox_mb": "a fixed size, its WAL included: rows leave when the hub has them",
    }
    print(f"Agent: {GPUS} GPUs at {INTERVAL_S} s, {options.hours} h simulated in {figures['took_s']:.0f} s")
    print(f"{figures['rows']} rows reached the hub. How the day was made short, and what is in the figures:\n")
    print(__doc__.split("\n\n", 1)[1])
    print(f"{'figure':28} {'value':>9} {'target':>9}  {'':6} spread")
    for name, value in result.items():
        target = TARGETS.get(name)
        verdict = "" if target is None else "ok" if value <= target else "MISSED"
        print(f"{name:28} {value:>9} {'' if target is None else target:>9}  {verdict:6} {spread.get(name, '')}")
    print(json.dumps({"bench": "agent", "gpus": GPUS, "interval_s": INTERVAL_S, "hours": options.hours, **result}))


if __name__ == "__main__":
    main()

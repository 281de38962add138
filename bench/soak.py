"""Figure: a thousand agents against one hub: a month, 8 hours without it, an hour of life (--hours 48).

A month of hourly rows, made short; then eight hours without a hub, after which all agents come back in the same moment;
then an hour of the life of such a site, every agent shipping each quarter of an hour, in a part of that time. At the
end the rows that were put and the rows in the store are compared, keys and values.

Each agent is a node of its own, with a token of its own: munge would prove one uid for all. Prints a table and one line
of JSON. Nothing is fed by Slurm: the runs are in the store from the start, and accounting is not there.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.soak_fill import fill_hours
from bench.soak_phase import Phase, print_head, print_phase
from bench.soak_samples import EVERY_S, SERIES, bytes_of_a_gpu_day
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.hub.hub_store import STORE_NAME, HubStore
from gpuwaste.testing.fleet import FleetPlan, write_tokens
from gpuwaste.testing.fleet_compare import compare
from gpuwaste.testing.fleet_processes import FleetProcesses
from gpuwaste.testing.fleet_rows import GPUS, START, jobs_of
from gpuwaste.testing.lone_hub import LoneHub

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 where it is there the agents' disks cost nothing
SHIP_S = 900.0
HOURS_A_DAY = DAY_S // HOUR_S
ROUNDS = 4  # shipments of each open hour


class Soak:
    """One hub, its fleet, and the phases."""

    def __init__(self, hub: LoneHub, fleet: FleetProcesses) -> None:
        self.hub = hub
        self.fleet = fleet
        self.phases: list[Phase] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        """Measure what is done in the block; the hub must live through it."""
        phase = Phase(name)
        cpu_s, commits, began = self.hub.cpu_s(), self.commits(), time.monotonic()
        yield phase
        phase.wall_s = time.monotonic() - began
        phase.cpu_s = self.hub.cpu_s() - cpu_s
        phase.commits = self.commits() - commits
        tally = self.fleet.tally()
        phase.rows, phase.seconds, phase.outcomes = tally.rows, tally.seconds, phase.outcomes + tally.outcomes
        phase.peak_rss_mb = self.hub.peak_rss_b() / 1e6
        phase.store_mb = sum(f.stat().st_size for f in store_path(self.hub).parent.glob(f"{STORE_NAME}*")) / 1e6
        self.phases.append(phase)
        print_phase(phase)

    def commits(self) -> float:
        """Return how often the hub has committed rows."""
        return self.hub.metric("gpuwaste_hub_commits_total")

    def month(self, first: int, hours: int, step: int, window: int) -> None:
        """Ship every hour of a month, `step` hours at a time."""
        with self.phase(f"{hours} hours"):
            for done in range(0, hours, step):
                self.fleet.call("run_hours", first + done, min(step, hours - done), window)
                print(f"  {done + step} hours, {time.strftime('%H:%M:%S')}", end="\r", flush=True)

    def outage(self, first: int, hours: int) -> None:
        """Take the hub away for hours; when it is back all agents are at its door."""
        self.hub.stop()
        for hour in range(first, first + hours):
            self.fleet.call("put", hour, 1)
            self.fleet.call("fail")
        away = self.fleet.tally().outcomes["not reached"]
        self.hub.start()
        with self.phase(f"{hours} hours without the hub, all back at once") as phase:
            self.fleet.call("wake")
            self.fleet.call("wait_empty", 1200.0)
            phase.outcomes["not reached while it was away"] = away

    def idle(self, seconds: float) -> float:
        """Return the share of a core that the hub takes while nobody sends."""
        with self.phase("idle") as phase:
            time.sleep(seconds)
        return phase.cpu_s / phase.wall_s

    def live(self, hour: int, period_s: float) -> Phase:
        """Live one hour of a site in four periods of `period_s`, each agent at a moment of its own."""
        with self.phase(f"an hour of {ROUNDS} shipments each") as phase:
            for version in range(1, ROUNDS + 1):
                minutes = 60 * version // ROUNDS
                self.fleet.call("run_round", hour, version, minutes, period_s, final=version == ROUNDS)
            self.fleet.call("wait_empty", 600.0)
        return phase


def store_path(hub: LoneHub) -> Path:
    """Return the file of the hub's store."""
    return hub.directory / "state" / STORE_NAME


def used_b(store: Path) -> int:
    """Return the bytes of a store's file that hold data; DuckDB keeps the rest for what comes next."""
    with connect(store, read_only=True) as db:
        found = db.execute("SELECT block_size * used_blocks FROM pragma_database_size()").fetchone()
    assert found is not None  # noqa: S101 one row for one database
    return int(found[0])


def fill_jobs(hub: LoneHub, nodes: int, hours: int) -> int:
    """Put the runs that the rows belong to into the store, before the hub has it; returns how many."""
    store = HubStore.open(store_path(hub), SystemClock())
    count = 0
    for first in range(0, nodes, 50):
        jobs = [job for node in range(first, min(first + 50, nodes)) for job in jobs_of(node, hours)]
        count += upsert_jobs(store, jobs)
    store.close()
    return count


def print_alternative(nodes: int, store_b: float) -> dict[str, int | None]:
    """Print what the same GPUs are as samples of ten seconds; `store_b` is what a node's day takes in the store."""
    gpu_b = bytes_of_a_gpu_day(GPUS)
    rows, samples = nodes * GPUS * ROUNDS / HOUR_S, nodes * GPUS * len(SERIES) / EVERY_S
    print(f"a node's day in the store: {store_b / 1e6:.3f} MB, {rows:.1f} rows/s of the whole site", end="; ")
    prometheus = "promtool is not installed" if gpu_b is None else f"{gpu_b * GPUS / 1e6:.2f} MB"
    print(f"as {len(SERIES)} series of each GPU every {EVERY_S} s: {prometheus}, {samples:.0f} samples/s")
    return {"store_b_node_day": round(store_b), "samples_b_node_day": None if gpu_b is None else round(gpu_b * GPUS)}


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000, help="agents, each with eight GPUs")
    parser.add_argument("--hours", type=int, default=720, help="hours of the accelerated month")
    parser.add_argument("--stored", type=int, default=0, help="hours that are in the store before, in whole days")
    parser.add_argument("--step", type=int, default=24, help="hours that an agent ships at a time there")
    parser.add_argument("--window", type=int, default=4, help="agents of a process that ship at the same time there")
    parser.add_argument("--outage", type=int, default=8, help="hours without a hub")
    parser.add_argument("--period", type=float, default=60.0, help="seconds that stand for the 900 between shipments")
    parser.add_argument("--idle", type=float, default=30.0, help="seconds of watching the hub do nothing")
    parser.add_argument("--processes", type=int, default=2, help="processes of agents")
    parser.add_argument("--directory", type=Path, help="where the hub's store is made; a temporary one by default")
    return parser.parse_args()


def main() -> None:
    """Run the phases and print."""
    chosen = options()
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gwsoak-", dir=chosen.directory)))
        place = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else base
        agents = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gwfleet-", dir=place)))
        tokens = base / "tokens"
        write_tokens(tokens, chosen.nodes)
        hub = LoneHub(base, hub={"node_tokens_file": str(tokens), "rollup_days": 0}, common={"token_file": str(tokens)})
        first = chosen.stored
        if first:
            fill_hours(store_path(hub), chosen.nodes, first)
        hours = first + chosen.hours + chosen.outage + 1
        runs = fill_jobs(hub, chosen.nodes, hours)
        print(f"{chosen.nodes} agents, {chosen.nodes * GPUS} GPUs, {runs} runs; load of this host {os.getloadavg()}")
        print_head()
        stack.callback(hub.stop)
        hub.start()
        plan = FleetPlan(hub.url, agents, 0, chosen.nodes)
        with FleetProcesses(plan, chosen.processes) as fleet:
            soak = Soak(hub, fleet)
            soak.month(first, chosen.hours, chosen.step, chosen.window)
            soak.outage(first + chosen.hours, chosen.outage)
            idle = soak.idle(chosen.idle)
            live = soak.live(hours - 1, chosen.period)
        hub.stop()
        found = compare(store_path(hub), fleet.records, START + first * HOUR_S)
        store_b = used_b(store_path(hub))
    per_batch_s = (live.cpu_s - idle * live.wall_s) / max(1, len(live.seconds))
    share = idle + per_batch_s * chosen.nodes / SHIP_S
    print(f"at the real rate, {chosen.nodes / SHIP_S:.2f} batches/s: {share:.2%} of a core"
          f" (idle {idle:.2%}, {1000 * per_batch_s:.1f} ms a batch of {GPUS} rows)")  # fmt: skip
    print(f"rows put {found.sent}, stored {found.stored}: {'equal' if found.equal else 'DIFFERENT'}, {found}")
    alternative = print_alternative(chosen.nodes, store_b / chosen.nodes / hours * HOURS_A_DAY)
    result = {
        "bench": "soak",
        "nodes": chosen.nodes,
        "hub_cpu_of_a_core": round(share, 4),
        "hub_peak_rss_mb": round(max(p.peak_rss_mb for p in soak.phases)),
        "sets_equal": found.equal,
        "rows": found.stored,
        **alternative,
        "phases": [p.document() for p in soak.phases],
        "load": os.getloadavg()[1],
        "targets": {"hub_cpu_of_a_core": 1, "hub_peak_rss_mb": 1000, "sets_equal": True},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

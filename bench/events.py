"""Figure: events handed over: catch-up a second, milliseconds to a webhook and a Kafka broker (--jobs 100000).

A store on disk with `--jobs` runs (two events each); a webhook's receiver in a process of its own, which reads and
answers and no more; a broker of the Kafka protocol (tansu, in memory). The alternative beside: the events made into
JSON, and thrown away. Then events are told at `--rate` a second, and each is timed from its commit to the answer.
"""

import argparse
import contextlib
import json
import multiprocessing
import resource
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import numpy as np

from gpuwaste.act.events.outlet import DeliveryResult, Outlet, OutletFile, load_outlet
from gpuwaste.act.events.outlet_sender import IDLE_S, OutletSender
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.events.envelope import StoredEvent, encoded, tell
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.events.kinds.node import NodeHeard
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.kafka_broker import kafka_broker

START: Final = 1_700_000_000
_PAGE: Final = 20_000
_TELL_S: Final = 0.05


class Nowhere:
    """Makes the JSON and throws it away."""

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Make it."""
        for event in events:
            encoded(event, cluster)
        return DeliveryResult()

    def close(self) -> None:
        """Do nothing."""


class Timed:
    """Notes when each event was acknowledged."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self.at: dict[str, float] = {}

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Hand over and note the time."""
        given = self._outlet.deliver(events, cluster)
        now = time.monotonic()
        self.at |= {event.subject: now for event in events}
        return given

    def close(self) -> None:
        """Close the outlet."""
        self._outlet.close()


def receive(ready: Connection) -> None:
    """Answer requests until the process is ended."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 http.server's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        ready.send(server.server_address[1])
        server.serve_forever()


@contextlib.contextmanager
def receiver() -> Iterator[str]:
    """Lend the URL of a receiver in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/hook"
    finally:
        process.kill()
        process.join()


def filled(store: HubStore, jobs: int) -> None:
    """Store runs that have started and ended."""
    for first in range(0, jobs, _PAGE):
        upsert_jobs(store, [
                JobRecord(
                    "gw", n + 1, START + n, user=f"user{n % 300}", account=f"a{n % 40}", name="train", partition="gpu",
                    start=START + n + 60, end=START + n + 3660, elapsed_s=3600, state="COMPLETED", gpus=0, cpus=8,
                    n_nodes=1, nodes=f"gpu{n % 2000}", req_tres="cpu=8,mem=64G,node=1", time_limit_s=86400,
                )
                for n in range(first, min(jobs, first + _PAGE))
            ]
        )  # fmt: skip


def caught_up(name: str, file: OutletFile, events: EventStore) -> tuple[float, float]:
    """Take an outlet from the first event to the last; return events a second, and its CPU a 1,000 events in ms."""
    sender = OutletSender(file, events, lambda: "gw", SystemClock())
    cpu, began = time.process_time(), time.monotonic()
    while sender.step() != IDLE_S:
        if sender.state.failures:
            raise SystemExit(f"{name}: {sender.state.error}")
    seconds, spent = time.monotonic() - began, time.process_time() - cpu
    return sender.state.delivered / seconds, 1e6 * spent / sender.state.delivered


def latencies(file: OutletFile, events: EventStore, rate: int, seconds: float) -> list[float]:
    """Tell events at a rate while an outlet runs; return the seconds from each commit to the receiver's answer."""
    timed = Timed(file.make())
    sender = OutletSender(
        OutletFile("live", file.way, lambda: timed, file.kinds, "now"), events, lambda: "gw", SystemClock()
    )
    sender.step()
    told: dict[str, float] = {}
    sender.worker.start()
    count, began, stop = 0, time.monotonic(), threading.Event()
    while (now := time.monotonic()) - began < seconds:
        news = []
        while count < (now - began) * rate:
            count += 1
            data = NodeHeard("gw", f"n{count}", START, 1.0)
            news.append(tell("node.silent", data, START + 10**8 + count, subject=f"node/n{count}", unique=file.way))
        events.tell(news)
        done = time.monotonic()
        told |= {event.subject: done for event in news}
        stop.wait(_TELL_S)
    wait_until(lambda: len(timed.at) >= count, 120, "the last event")
    sender.worker.stop()
    return [timed.at[subject] - at for subject, at in told.items()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500_000)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gwbench-")))
        store = HubStore.open(directory / "hub.duckdb", SystemClock(), 512)
        stack.callback(store.close)
        events = EventStore(store, SystemClock())
        filled(store, options.jobs)
        before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        url = stack.enter_context(receiver())
        broker = stack.enter_context(kafka_broker(directory))
        broker.create("gpuwaste.job", "gpuwaste.node")
        texts = {
            "webhook": f'[webhook]\nurl = "{url}"\nbatch = 1000\nnetworks = ["127.0.0.0/8"]\n',
            "kafka": f'[kafka]\nbrokers = ["{broker.address}"]\n',
        }
        files = {}
        for name, text in texts.items():
            path = directory / f"{name}.toml"
            path.write_text(f'[outlet]\nbegin = "oldest"\n{text}')
            files[name] = load_outlet(path)
        nowhere = OutletFile("nowhere", "nowhere", Nowhere, files["kafka"].kinds, "oldest")
        result: dict[str, object] = {"bench": "events", "events": 2 * options.jobs}
        print(f"{'way':<10} {'events/s':>9} {'CPU ms/1000':>12} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
        for name, file in {"nowhere": nowhere, **files}.items():
            rate, cpu_ms = caught_up(name, file, events)
            row = f"{name:<10} {rate:>9.0f} {cpu_ms:>12.0f}"
            result |= {f"{name}_per_s": round(rate), f"{name}_cpu_ms_per_1000": round(cpu_ms, 1)}
            if name != "nowhere":
                took = 1000 * np.array(latencies(file, events, options.rate, options.seconds))
                p50, p99 = np.percentile(took, [50, 99])
                row += f" {p50:>8.0f} {p99:>8.0f} {took.max():>8.0f}"
                result |= {f"{name}_p50_ms": round(p50), f"{name}_p99_ms": round(p99)}
            print(row)
        grown_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before_mb
        result |= {"peak_grown_mb": round(grown_mb), "target_per_s": 20_000, "target_p99_ms": 1000, "target_mb": 100}
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""Figure: hours rows per second that one hub and three hubs take on one lake, over real HTTP, munge and PostgreSQL.

A round sends the same batches to one hub that serves, or to it and two that stand by, in turn. `acked` is when the last
batch was acknowledged, `merged` when the last row was in the tables. CPU is that of the hubs; PostgreSQL and senders
run on the same cores. Prints a table of the rounds and one line of JSON.
"""

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.ingest import make_batches
from gpuwaste.core.errors import RetryableWireError
from gpuwaste.ledger.hour import HourBatch
from gpuwaste.net.batch import Envelope
from gpuwaste.net.hub_client import HubClient
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.lone_hub import LoneHub, private_munged
from gpuwaste.testing.postgres_server import PostgresServer, postgres_server

PATIENCE_S = 600.0
SENDERS = 3


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took, seconds."""

    hubs: int
    acked_s: float
    merged_s: float
    serving_cpu_s: float
    others_cpu_s: float


@contextlib.contextmanager
def running(count: int, munge: str, postgres: PostgresServer) -> Iterator[list[LoneHub]]:
    """Run hubs on a new lake; the first one serves."""
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gwmany-")))
        (base / "lake").mkdir()
        keys = {"store": "lake", "lake_catalog": postgres.new_database(), "lake_data": str(base / "lake")}
        hubs = []
        for number in range(count):
            (base / str(number)).mkdir()
            hubs.append(LoneHub(base / str(number), munge, hub=keys))
            stack.callback(hubs[-1].stop)
        hubs[0].start()
        for hub in hubs[1:]:
            hub.stand_by()
        for hub in hubs[1:]:
            wait_until(partial(_takes, hub), PATIENCE_S, "a hub to take batches")
        yield hubs


def _takes(hub: LoneHub) -> bool:
    return hub.words("hub-takes-batches") > 0


def _sent(client: HubClient, batch: HourBatch) -> int:
    """Send a batch until it is acknowledged, as an agent does."""
    while True:
        with contextlib.suppress(RetryableWireError):
            return client.post_hours(Envelope("gw", "n1", "boot", "bench"), batch).accepted


def send(hubs: Sequence[LoneHub], batches: Sequence[HourBatch]) -> Round:
    """Send all batches, to the hubs in turn, and wait until all rows are in the tables."""
    waiting, lock, failures = list(enumerate(batches)), threading.Lock(), list[BaseException]()

    def work() -> None:
        clients = [hub.client() for hub in hubs]
        try:
            while True:
                with lock:
                    if not waiting:
                        return
                    number, batch = waiting.pop()
                accepted = _sent(clients[number % len(hubs)], batch)
                assert accepted == len(batch.rows)  # noqa: S101 a bench that lies is worse than none
        except BaseException as error:  # noqa: BLE001 raised again below
            failures.append(error)

    before = [hub.cpu_s() for hub in hubs]
    threads = [threading.Thread(target=work) for _ in range(SENDERS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    acked_s = time.monotonic() - began
    wait_until(
        lambda: hubs[0].metric("gpuwaste_hub_inbox_batches") == 0, PATIENCE_S, "the inbox to be merged", poll_s=0.2
    )
    merged_s = time.monotonic() - began
    used = [hub.cpu_s() - cpu_s for hub, cpu_s in zip(hubs, before, strict=True)]
    return Round(len(hubs), acked_s, merged_s, used[0], sum(used[1:]))


def main() -> None:
    """Run the rounds and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8000, help="rows a round")
    parser.add_argument("--batch-bytes", type=int, default=64 * 1024)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rounds: list[Round] = []
    print(
        f"{'hubs':>4} {'rows':>6} {'batches':>7} {'acked rows/s':>12} {'merged rows/s':>13} {'CPU s':>7} {'others':>7}"
    )
    with private_munged() as munge, postgres_server() as postgres, contextlib.ExitStack() as stack:
        sites = [stack.enter_context(running(count, munge, postgres)) for count in (1, 3)]
        for number in range(1, options.rounds + 1):
            batches = make_batches(options.rows, number, options.batch_bytes)
            for hubs in sites:
                found = send(hubs, batches)
                rounds.append(found)
                print(
                    f"{found.hubs:>4} {options.rows:>6} {len(batches):>7} {options.rows / found.acked_s:>12.0f}"
                    f" {options.rows / found.merged_s:>13.0f} {found.serving_cpu_s:>7.2f} {found.others_cpu_s:>7.2f}"
                )
    print(
        json.dumps({"bench": "many", "rows": options.rows, "load": os.getloadavg()[0], **summary(rounds, options.rows)})
    )


def summary(rounds: Sequence[Round], rows: int) -> dict[str, object]:
    """Return medians by number of hubs."""
    found: dict[str, object] = {}
    for hubs in (1, 3):
        mine = [asdict(one) for one in rounds if one.hubs == hubs]
        middle = {name: statistics.median(one[name] for one in mine) for name in mine[0]}
        found[f"hubs_{hubs}"] = {
            "acked_rows_per_s": round(rows / middle["acked_s"]),
            "merged_rows_per_s": round(rows / middle["merged_s"]),
            "serving_cpu_s": round(middle["serving_cpu_s"], 2),
            "others_cpu_s": round(middle["others_cpu_s"], 2),
        }
    return found


if __name__ == "__main__":
    main()

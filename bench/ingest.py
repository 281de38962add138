"""Figure: hours rows per second that the hub takes over real HTTP with real munge, on disk before each answer.

Prints a table of the rounds and one line of JSON. Batches are made before the clock starts; what the sender costs
besides (signing, checking acknowledgements) runs on the same cores and is part of the figure.
"""

import argparse
import contextlib
import json
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from gpuwaste.ledger.hour import AllocationHour, HourBatch, HourLine, encode_hour
from gpuwaste.net.batch import MAX_BATCH_BYTES, Batch, Envelope
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.lone_hub import LoneHub, private_munged

START = 1_700_000_000 // 3600 * 3600
MS = 3_600_000


def make_hour(rng: random.Random, index: int, seq: int) -> AllocationHour:
    """Return an hour like a training job's: a dozen and a half percents, a gap now and then."""
    hour = START + (index // 8000) * 3600
    weights = [rng.random() for _ in range(rng.randint(6, 18))]
    known = MS - 20_000
    util = {
        pct: int(known * w / sum(weights)) for pct, w in zip(rng.sample(range(101), len(weights)), weights, strict=True)
    }
    return AllocationHour(
        RunKey("gw", 1000 + index // 8, START - 600), "n1", f"GPU-{index % 8000:08x}-1111-2222-3333-444444444444",
        hour, seq, hour * 1000, hour * 1000 + MS, util_ms=util, unknown_ms={"gap": 20_000}, final=seq > 3,
        proc_seen=True, mem_max_b=40 * 1024**3, mem_total_b=80 * 1024**3, energy_j=1.1e6, last_active_ms=hour * 1000,
        power_w_at_full=310.5, power_limit_w=400.0, cpu_s=3000.0, host_mem_max_b=10**10, map_source="prolog",
        confidence="confirmed",
    )  # fmt: skip


def make_batches(rows: int, seq: int, max_bytes: int) -> list[HourBatch]:
    """Return full batches of `rows` rows; the same seed gives the same keys with a higher seq."""
    rng = random.Random(7)  # noqa: S311 a figure is repeatable
    batches: list[HourBatch] = []
    part: list[HourLine] = []
    size = 0
    for index in range(rows):
        row = encode_hour(make_hour(rng, index, seq))
        if part and size + len(row.line) > max_bytes:
            batches.append(Batch(tuple(part)))
            part, size = [], 0
        part.append(row)
        size += len(row.line) + 1
    return [*batches, Batch(tuple(part))]


def send(hub: LoneHub, batches: list[HourBatch], senders: int) -> float:
    """Send all from `senders` threads; returns the seconds until the last acknowledgement."""
    envelope = Envelope("gw", "n1", "boot", "bench")
    waiting = list(batches)
    lock = threading.Lock()

    def work() -> None:
        client = hub.client()
        while True:
            with lock:
                if not waiting:
                    return
                batch = waiting.pop()
            ack = client.post_hours(envelope, batch)
            assert ack.accepted == len(batch.rows), ack.rejected  # noqa: S101 a bench that lies is worse than none

    threads = [threading.Thread(target=work) for _ in range(senders)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


def main() -> None:
    """Run the rounds and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000, help="rows a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--senders", type=int, default=2)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gwbench-")))
        hub = LoneHub(directory, stack.enter_context(private_munged()))
        stack.callback(hub.stop)
        hub.start()
        rates, small = [], []
        print(f"{'round':>5} {'what':<28} {'rows':>7} {'batches':>8} {'seconds':>8} {'rows/s':>8}")
        for number in range(1, options.rounds + 1):
            what = "new rows" if number == 1 else "the same keys, higher seq"
            batches = make_batches(options.rows, number, MAX_BATCH_BYTES - 512)
            seconds = send(hub, batches, options.senders)
            rates.append(options.rows / seconds)
            print(f"{number:>5} {what:<28} {options.rows:>7} {len(batches):>8} {seconds:>8.2f} {rates[-1]:>8.0f}")
        for number in range(1, 4):
            batches = make_batches(1600, 100 + number, 8 * 800)
            seconds = send(hub, batches, options.senders)
            small.append(len(batches) / seconds)
            what = "small batches of one node"
            print(f"{number:>5} {what:<28} {1600:>7} {len(batches):>8} {seconds:>8.2f} {1600 / seconds:>8.0f}")
        result = {
            "bench": "ingest",
            "rows_per_s": round(statistics.median(rates)),
            "rows_per_s_min": round(min(rates)),
            "rows_per_s_max": round(max(rates)),
            "small_batches_per_s": round(statistics.median(small)),
            "peak_rss_mb": round(hub.peak_rss_b() / 1e6),
            "target_rows_per_s": 5000,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

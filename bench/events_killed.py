"""Figure: a million events while hub and broker are killed: lost, twice, out of order (--events 60000).

A real hub on a store with `--events` events of runs, a broker (tansu, in memory) and a reader of its own. The hub is
killed with -9 at any time. The broker's log is gone with its process: before it is killed the hub is stopped (SIGSTOP,
in the middle of what it does) and the reader reads the log to its end: that is what a broker with a log on disk keeps.
What the hub had sent and the broker had not acknowledged is lost with it, and has to come again.
"""

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, TopicPartition

from bench.events import START, filled
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.typed import decoder
from gpuwaste.jobs.events.envelope import event_id
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.kafka_broker import KafkaBroker, kafka_broker
from gpuwaste.testing.lone_hub import LoneHub, private_munged

TOPIC: Final = "gpuwaste.job"
_KINDS: Final = ("job.started", "job.ended")
_PATIENCE_S: Final = 180.0
_BATCH: Final = 5000


class Came(msgspec.Struct):
    """What is read of an event."""

    id: str
    type: str
    subject: str


@dataclass
class Tally:
    """What came of each run: its two events, each the first time or again; and what came in the wrong order."""

    jobs: int
    seen: list[bytearray] = field(default_factory=list)
    distinct: int = 0
    twice: int = 0
    disorder: int = 0
    strange: int = 0

    def __post_init__(self) -> None:
        self.seen = [bytearray(self.jobs) for _ in _KINDS]
        self._decoder = decoder(Came)

    def take(self, text: bytes) -> None:
        """Note one event."""
        event = self._decoder.decode(text)
        kind = event.type.removeprefix("gpuwaste.")
        job = int(event.subject.partition("/")[2].partition("@")[0]) - 1
        place = _KINDS.index(kind)
        if event.id != event_id(kind, f"gw/{job + 1}@{START + job + 60}"):
            self.strange += 1
        elif self.seen[place][job]:
            self.twice += 1
        else:
            self.seen[place][job] = 1
            self.distinct += 1
            self.disorder += place == 1 and not self.seen[0][job]


class Reader:
    """Reads the topic from its beginning; a broker that was started again has another one."""

    def __init__(self, broker: KafkaBroker, tally: Tally) -> None:
        self._broker = broker
        self._tally = tally
        self._consumer = self._connected()
        self._next = 0

    def read(self, seconds: float) -> int:
        """Take what comes within some seconds; return how many messages that was."""
        found = [one for one in self._consumer.consume(_BATCH, seconds) if one.error() is None]
        for message in found:
            self._tally.take(message.value() or b"")
            self._next = (message.offset() or 0) + 1
        return len(found)

    def drain(self) -> None:
        """Read the log to its end."""
        place = TopicPartition(TOPIC, 0)
        while self._next < self._consumer.get_watermark_offsets(place, 30.0)[1]:
            self.read(1.0)

    def again(self) -> None:
        """Begin with another log."""
        self._consumer.close()
        self._consumer, self._next = self._connected(), 0

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _connected(self) -> Any:
        self._broker.create(TOPIC)
        consumer = Consumer({"bootstrap.servers": self._broker.address, "group.id": "bench", "log_level": 0})
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        return consumer


def kill_hub(hub: LoneHub) -> None:
    """End it as a crash does, whatever it was doing, and start it again."""
    hub.kill()
    hub.start()


def kill_broker(hub: LoneHub, broker: KafkaBroker, reader: Reader) -> None:
    """Stop the hub where it is, read what was acknowledged, end the broker as a crash does, and go on."""
    assert hub.process is not None  # noqa: S101 it runs
    hub.process.send_signal(signal.SIGSTOP)
    reader.drain()
    broker.kill()
    broker.start()
    reader.again()
    hub.process.send_signal(signal.SIGCONT)


def watched(hub: LoneHub, broker: KafkaBroker, tally: Tally, kills: Sequence[str]) -> float:
    """Read until each event has come, with the kills on the way; return the seconds."""
    reader = Reader(broker, tally)
    began = last = time.monotonic()
    total, done = 2 * tally.jobs, 0
    while tally.distinct < total:
        if reader.read(1.0):
            last = time.monotonic()
        elif time.monotonic() - last > _PATIENCE_S:
            print(f"{total - tally.distinct} events did not come within {_PATIENCE_S:.0f} s", file=sys.stderr)
            break
        if done < len(kills) and tally.distinct >= total * (done + 1) // (len(kills) + 1):
            print(
                f"{time.monotonic() - began:7.1f} s {tally.distinct:>9,} events: kill -9 of the {kills[done]}",
                flush=True,
            )
            if kills[done] == "hub":
                kill_hub(hub)
            else:
                kill_broker(hub, broker, reader)
            done, last = done + 1, time.monotonic()
    seconds = time.monotonic() - began
    reader.read(5.0)
    reader.close()
    return seconds


def main() -> int:
    """Measure and print; the exit code is 1 where something was lost or out of order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=5, help="of hub and broker in turn")
    options = parser.parse_args()
    jobs = max(1, options.events // 2)
    kills = [("hub", "broker")[number % 2] for number in range(options.kills)]
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gwbench-")))
        store = HubStore.open(directory / "state" / "hub.duckdb", SystemClock(), 512)
        filled(store, jobs)
        store.close()
        broker = stack.enter_context(kafka_broker(directory))
        outlets = directory / "outlets.d"
        outlets.mkdir()
        kafka = f'[kafka]\nbrokers = ["{broker.address}"]\ntimeout_s = 20.0\n'
        (outlets / "bus.toml").write_text(f'[outlet]\nbegin = "oldest"\nevents = ["job.*"]\n{kafka}')
        munge = stack.enter_context(private_munged())
        hub = LoneHub(directory, munge, {"outlets_dir": str(outlets)})
        stack.callback(hub.stop)
        tally = Tally(jobs)
        hub.start()
        seconds = watched(hub, broker, tally, kills)
    lost = 2 * jobs - tally.distinct
    print(f"{2 * jobs:,} events in {seconds:.0f} s with kill -9 of the hub {kills.count('hub')} times, of the broker "
          f"{kills.count('broker')} times: lost {lost}, duplicates {tally.twice:,}, order per key "
          f"{'kept' if not tally.disorder else f'broken {tally.disorder} times'}")  # fmt: skip
    result = {
        "bench": "events-killed", "events": 2 * jobs, "kills": len(kills), "lost": lost, "duplicates": tally.twice,
        "out_of_order": tally.disorder, "strange": tally.strange, "seconds": round(seconds),
    }  # fmt: skip
    print(json.dumps(result))
    return int(bool(lost or tally.disorder or tally.strange))


if __name__ == "__main__":
    sys.exit(main())

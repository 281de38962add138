"""Many agents in one process: the product's outbox, shipper and client for each node, fed with rows of fleet_rows.

What each agent has put is written to a file, one line a row, so that it can be compared with what the hub stored.
"""

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fleet_rows import CLUSTER, check, node_name, rows_of_hour
from gpuwaste.wire.batch import Ack, Batch, Envelope
from gpuwaste.wire.client import HubClient
from gpuwaste.wire.outbox import Outbox
from gpuwaste.wire.shipper import Shipper
from gpuwaste.wire.tokens import TokenIssuer

_MANUAL_S: Final = 1e9  # between two shipments of a fleet that ships when it is told to


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Which nodes a fleet has, where it keeps its files and how its agents ship.

    `every_s` 0: only on `wake`. `speed` makes the agents' time run faster than the hub's.
    """

    url: str
    directory: Path
    first: int
    nodes: int
    every_s: float = 0.0
    speed: float = 1.0
    timeout_s: float = 20.0

    @property
    def record(self) -> Path:
        """The file that holds what was put."""
        return self.directory / f"sent-{self.first}.tsv"


def token(node: int) -> str:
    """Return the token of a node."""
    return f"token-of-node-{node:06d}-of-the-fleet"


def write_tokens(path: Path, nodes: int) -> None:
    """Write the hub's file of tokens for nodes 0 to `nodes` - 1."""
    path.write_text("".join(f"{node_name(n)} {token(n)}\n" for n in range(nodes)), encoding="ascii")
    path.chmod(0o600)


@dataclass
class Tally:
    """Exchanges with the hub: seconds of those that went well, and how many of each outcome; threads share it."""

    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def good(self, seconds: float, rows: int) -> None:
        """Note an acknowledged batch."""
        with self._lock:
            self.seconds.append(seconds)
            self.outcomes["acknowledged"] += 1
            self.rows += rows

    def bad(self, error: GpuwasteError) -> None:
        """Note a failed attempt."""
        text = str(error)
        with self._lock:
            self.outcomes[_outcome(text)] += 1
            self.errors[text[:160]] += 1

    def take(self) -> "Tally":
        """Return what was noted since the last call."""
        with self._lock:
            taken = Tally(self.seconds, self.outcomes, self.errors, self.rows)
            self.seconds, self.outcomes, self.errors, self.rows = [], Counter(), Counter(), 0
        return taken

    def __getstate__(self) -> tuple[list[float], Counter[str], Counter[str], int]:
        """Travel between processes without the lock."""
        return (self.seconds, self.outcomes, self.errors, self.rows)

    def __setstate__(self, state: tuple[list[float], Counter[str], Counter[str], int]) -> None:
        """Come out of another process."""
        self.seconds, self.outcomes, self.errors, self.rows = state
        self._lock = threading.Lock()


class FastClock(SystemClock):
    """A clock whose waits are shorter than they say."""

    def __init__(self, speed: float) -> None:
        self._speed = speed

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Block the calling thread for a part of the time."""
        return super().wait(stop, min(seconds / self._speed, threading.TIMEOUT_MAX))


class _Agent:
    """One node's way out: outbox, shipper, client."""

    def __init__(self, plan: FleetPlan, node: int, tally: Tally, clock: Clock) -> None:
        self.node = node
        self._tally = tally
        place = plan.directory / node_name(node)
        place.mkdir(parents=True, exist_ok=True)
        secret = place / "token"
        secret.touch(0o600)
        secret.write_text(token(node), encoding="ascii")
        self.outbox = Outbox(place / "outbox.sqlite")
        self._client = HubClient(plan.url, TokenIssuer(secret), timeout_s=plan.timeout_s)
        self.shipper: Shipper[Batch] = Shipper(
            self.outbox,
            self._send,
            Envelope(CLUSTER, node_name(node), "boot", "soak"),
            clock,
            every_s=plan.every_s or _MANUAL_S,
            rng=random.Random(node),  # noqa: S311 spreads load, keeps no secret
        )

    def _send(self, envelope: Envelope, batch: Batch) -> Ack:
        began = time.monotonic()
        try:
            ack = self._client.post_hours(envelope, batch)
        except GpuwasteError as error:
            self._tally.bad(error)
            raise
        self._tally.good(time.monotonic() - began, ack.accepted)
        return ack


class Fleet:
    """The agents of a plan, running."""

    def __init__(self, plan: FleetPlan) -> None:
        plan.directory.mkdir(parents=True, exist_ok=True)
        self._tally = Tally()
        clock = FastClock(plan.speed) if plan.speed != 1.0 else SystemClock()
        self._agents = [_Agent(plan, plan.first + n, self._tally, clock) for n in range(plan.nodes)]
        self._record = plan.record.open("a", encoding="ascii")
        for agent in self._agents:
            agent.shipper.start()

    def put(self, first: int, hours: int, version: int = 1, *, final: bool = True, minutes: int = 60) -> int:
        """Put the rows of `hours` hours into every outbox; returns how many."""
        return sum(self._put(agent, first, hours, version, final=final, minutes=minutes) for agent in self._agents)

    def wake(self) -> None:
        """Let every agent ship now."""
        for agent in self._agents:
            agent.shipper.wake()

    def put_and_wake(self, first: int, hours: int) -> int:
        """Put the rows of `hours` hours and let each agent ship as soon as it has its own."""
        count = 0
        for agent in self._agents:
            count += self._put(agent, first, hours, 1, final=True, minutes=60)
            agent.shipper.wake()
        return count

    def wait_empty(self, timeout_s: float) -> None:
        """Wait until the hub has acknowledged all. Raises ClusterError."""
        waiting = list(self._agents)

        def empty() -> bool:
            while waiting and not waiting[-1].outbox.depth():
                waiting.pop()
            return not waiting

        wait_until(empty, timeout_s, "the outboxes to be empty", lambda: str(self._tally.errors), poll_s=0.05)

    def tally(self) -> Tally:
        """Return the exchanges since the last call."""
        return self._tally.take()

    def stop(self) -> None:
        """End the agents; what is left stays in their outboxes."""
        for agent in self._agents:
            agent.shipper.stop(0)
        for agent in self._agents:
            agent.shipper.stop(60)
            agent.outbox.close()
        self._record.close()

    def _put(self, agent: _Agent, first: int, hours: int, version: int, *, final: bool, minutes: int) -> int:
        rows = [
            row
            for hour in range(first, first + hours)
            for row in rows_of_hour(agent.node, hour, version, final=final, minutes=minutes)
        ]
        agent.outbox.put(rows)
        self._record.writelines("\t".join(map(str, (*row.key, row.seq, check(row)))) + "\n" for row in rows)
        self._record.flush()
        return len(rows)


def _outcome(text: str) -> str:
    if "no whole answer" in text:
        return "too late"
    if "HTTP 503" in text:
        return "put off"
    return "not reached" if "is the hub running" in text else "other"

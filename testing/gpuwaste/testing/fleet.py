"""Many agents in one process: the product's outbox, shipper and client for each node, fed with rows of fleet_rows.

What each agent has put is written to a file, one line a row, so that it can be compared with what the hub stored.
"""

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.agent.outbox import Outbox
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.ledger.hour import HourBatch
from gpuwaste.net.batch import Ack, Envelope
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.shipper import Shipper
from gpuwaste.net.tokens import TokenIssuer
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.fleet_rows import CLUSTER, check, node_name, rows_of_hour

_FAR_S: Final = 1e6  # between two shipments: agents ship when they are told to


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Which nodes a fleet has, and where it keeps its files. Its agents ship when they are told to."""

    url: str
    directory: Path
    first: int
    nodes: int

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
class FleetTally:
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

    def take(self) -> "FleetTally":
        """Return what was noted since the last call."""
        with self._lock:
            taken = FleetTally(self.seconds, self.outcomes, self.errors, self.rows)
            self.seconds, self.outcomes, self.errors, self.rows = [], Counter(), Counter(), 0
        return taken

    def __getstate__(self) -> tuple[list[float], Counter[str], Counter[str], int]:
        """Travel between processes without the lock."""
        return (self.seconds, self.outcomes, self.errors, self.rows)

    def __setstate__(self, state: tuple[list[float], Counter[str], Counter[str], int]) -> None:
        """Come out of another process."""
        self.seconds, self.outcomes, self.errors, self.rows = state
        self._lock = threading.Lock()


class _Agent:
    """One node's way out: outbox, shipper, client."""

    def __init__(self, plan: FleetPlan, node: int, tally: FleetTally, clock: Clock) -> None:
        self.node = node
        self._tally = tally
        place = plan.directory / node_name(node)
        place.mkdir(parents=True, exist_ok=True)
        secret = place / "token"
        secret.touch(0o600)
        secret.write_text(token(node), encoding="ascii")
        self.outbox = Outbox(place / "outbox.sqlite")
        self._client = HubClient(plan.url, TokenIssuer(secret))
        self.shipper: Shipper[HourBatch] = Shipper(
            self.outbox,
            self._send,
            Envelope(CLUSTER, node_name(node), "boot", "soak"),
            clock,
            every_s=_FAR_S,
            rng=random.Random(node),  # noqa: S311 spreads load, keeps no secret
        )

    def _send(self, envelope: Envelope, batch: HourBatch) -> Ack:
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
        self._tally = FleetTally()
        clock = SystemClock()
        self._agents = [_Agent(plan, plan.first + n, self._tally, clock) for n in range(plan.nodes)]
        self._record = plan.record.open("a", encoding="ascii")
        for agent in self._agents:
            agent.shipper.start()

    @property
    def acknowledged(self) -> int:
        """How many rows the hub has acknowledged so far."""
        return sum(agent.shipper.status.sent_rows for agent in self._agents)

    def put(self, first: int, hours: int, version: int = 1, *, final: bool = True, minutes: int = 60) -> int:
        """Put the rows of `hours` hours into every outbox; returns how many."""
        return sum(self._put(agent, first, hours, version, final=final, minutes=minutes) for agent in self._agents)

    def wake(self) -> None:
        """Let every agent ship now."""
        for agent in self._agents:
            agent.shipper.wake()

    def fail(self, timeout_s: float = 120.0) -> None:
        """Let every agent try a hub that is not there, and wait until each knows. Raises ClusterError."""
        before = [agent.shipper.status.failures for agent in self._agents]
        self.wake()
        wait_until(
            lambda: all(a.shipper.status.failures > n for a, n in zip(self._agents, before, strict=True)),
            timeout_s,
            "every agent to miss the hub",
        )

    def run_hours(self, first: int, hours: int, window: int, timeout_s: float = 600.0) -> int:
        """Put the rows of `hours` hours and ship them, `window` agents at a time; returns how many rows."""
        count = 0
        flying: deque[_Agent] = deque()
        for agent in self._agents:
            if len(flying) >= window:
                self._wait_for([flying.popleft()], timeout_s)
            count += self._put(agent, first, hours, 1, final=True, minutes=60)
            agent.shipper.wake()
            flying.append(agent)
        self.wait_empty(timeout_s)
        return count

    def run_round(self, hour: int, version: int, minutes: int, period_s: float, *, final: bool) -> int:
        """Let each agent ship a newer version of an open hour, at a moment of its own in a period; returns the rows."""
        rng = random.Random(hour * 100 + version)  # noqa: S311 a fleet is repeatable
        moments = sorted((rng.uniform(0, period_s), agent.node, agent) for agent in self._agents)
        began, count = time.monotonic(), 0
        for moment, _, agent in moments:
            time.sleep(max(0.0, began + moment - time.monotonic()))
            count += self._put(agent, hour, 1, version, final=final, minutes=minutes)
            agent.shipper.wake()
        return count

    def wait_empty(self, timeout_s: float) -> None:
        """Wait until the hub has acknowledged all. Raises ClusterError."""
        self._wait_for(self._agents, timeout_s)

    def tally(self) -> FleetTally:
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

    def _wait_for(self, agents: Iterable[_Agent], timeout_s: float) -> None:
        waiting = {node_name(agent.node): agent.outbox for agent in agents}

        def empty() -> bool:
            for node in [node for node, outbox in waiting.items() if outbox.depth() == 0]:
                del waiting[node]
            return not waiting

        said = "the outboxes of nodes to be empty"
        wait_until(empty, timeout_s, said, lambda: f"{', '.join(waiting)}: {self._tally.errors}", poll_s=0.01)

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
    if "no complete answer" in text:
        return "too late"
    if "HTTP 503" in text:
        return "put off"
    return "not reached" if "is the hub running" in text else "other"

"""POST /v1/hours: rows of hours from the agent of each node, and their counts for Prometheus."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from typing import Final, Self

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.refusal import FORBIDDEN, LATER, Refusal
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.batch_receiver import BatchReceiver, LocalUid, OpenedBatch
from gpuwaste.hub.group_commit import GroupCommit
from gpuwaste.hub.inbox_room import InboxRoom
from gpuwaste.jobs.cluster_facts import ClusterFacts, UnknownSiteError
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.gpu_claims import GpuClaims
from gpuwaste.ledger.hour import AllocationHour, parse_hours
from gpuwaste.ledger.hour_store import put_hours, upsert_hours
from gpuwaste.ledger.idleness.agent_clocks import AgentClocks
from gpuwaste.ledger.unaccounted import Unaccounted
from gpuwaste.net.addresses import is_loopback_address
from gpuwaste.net.batch import Envelope
from gpuwaste.net.peers import is_own_address
from gpuwaste.net.request_signing import Caller, sender_of
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

MAX_NODES: Final = 16_384  # with a batch age each; without check_origin a node's name is the one that its agent writes
_AHEAD_S: Final = DAY_S  # how far a node's clock may be ahead of this host's
_EARLY_S: Final = HOUR_S  # how far a node's clock may be behind the controller's, which gives the start
_FIRST_S: Final = 946_684_800  # 2000-01-01: before it there was no Slurm


class BatchCounts:
    """Counts of batches; for any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last_batch_us: dict[str, int] = {}
        self._rows = Counter("gpuwaste_hub_rows", "Hour rows received, by result.", ["result"], registry=None)
        for result in ("accepted", "changed", "rejected"):
            self._rows.labels(result)
        self._commits = Counter(
            "gpuwaste_hub_commits", "Commits of hour rows; one can contain the batches of many nodes.", registry=None
        )
        self._committed = Counter(
            "gpuwaste_hub_committed_batches", "Batches of hour rows that were committed.", registry=None
        )

    def batch(self, node: str, accepted: int, changed: int, rejected: int, age_us: int = 0) -> None:
        """Note a batch that was acknowledged `age_us` ago."""
        self._rows.labels("accepted").inc(accepted)
        self._rows.labels("changed").inc(changed)
        self._rows.labels("rejected").inc(rejected)
        with self._lock:
            self._last_batch_us.pop(node, None)
            self._last_batch_us[node] = self._clock.mono_us() - age_us
            if len(self._last_batch_us) > MAX_NODES:
                del self._last_batch_us[next(iter(self._last_batch_us))]  # the node with the oldest batch

    def rejected(self, rows: int) -> None:
        """Note rows of a batch that were rejected, where another hub counts the others."""
        self._rows.labels("rejected").inc(rows)

    def committed(self, batches: int) -> None:
        """Note a commit of hours rows, and how many batches were in it."""
        self._commits.inc()
        self._committed.inc(batches)

    def batch_ages_s(self) -> dict[str, float]:
        """Return the seconds since each node's last batch; without nodes that sent none since the start."""
        now = self._clock.mono_us()
        with self._lock:
            return {node: (now - at) / 1e6 for node, at in sorted(self._last_batch_us.items())}

    def counted(self) -> Iterator[Metric]:
        """Yield what was counted."""
        for counter in (self._rows, self._commits, self._committed):
            yield from counter.collect()

    def ages(self) -> Iterator[Metric]:
        """Yield the time since each node's last batch."""
        ages = GaugeMetricFamily("gpuwaste_hub_batch_age_seconds", "Time since a node's last batch.", labels=["node"])
        for node, age_s in self.batch_ages_s().items():
            ages.add_metric([node], age_s)
        yield ages


class Ingest(BatchReceiver[AllocationHour], Part):
    """Receives hours."""

    path = "/v1/hours"
    what = "hours"
    sender = "agent"

    def __init__(
        self,
        store: HubStore,
        identity: Identity,
        site: ClusterFacts,
        clock: Clock,
        *,
        check_origin: bool = True,
        unaccounted: Unaccounted | None = None,
        inbox: InboxRoom | None = None,
        clocks: AgentClocks | None = None,
    ) -> None:
        """Without `unaccounted` rows are accepted whatever accounting has; `clocks` learns the agents' clocks."""
        super().__init__(identity, site, clock, inbox)
        self._store = store
        self.counts = BatchCounts(clock)
        self._commits = GroupCommit(partial(upsert_hours, store), self.counts.committed)
        self._claims = GpuClaims(store)
        self.check_origin = check_origin
        self._unaccounted = unaccounted
        self._agent_clocks = clocks

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(
            parts.get(HubStore),
            parts.get(Identity),
            parts.get(ClusterFacts),
            parts.get(HostPorts).clock,
            check_origin=parts.get(Config).hub.check_origin,
            unaccounted=parts.get(Unaccounted),
            inbox=parts.find(InboxRoom),
            clocks=parts.get(AgentClocks),
        )

    @property
    def reloads(self) -> Reloads:
        """The key check_origin: whether a batch has to be sent by its node."""
        return {("hub.check_origin",): lambda c: setattr(self, "check_origin", c.hub.check_origin)}

    def counted(self) -> Iterable[Metric]:
        """Yield what was received."""
        return self.counts.counted()

    def metrics(self) -> Iterable[Metric]:
        """Yield how long each node has sent nothing."""
        return self.counts.ages()

    def _store_rows(self, rows: Sequence[AllocationHour], envelope: Envelope, rejected: int) -> None:
        changed = self._commits.put(rows)
        self.counts.batch(envelope.node, len(rows), changed, rejected)

    def merge(self, db: Database, batches: Sequence[OpenedBatch[AllocationHour]]) -> Callable[[], None]:
        """Write the rows of opened batches, as one commit of several batches does."""
        changed = put_hours(self._store, db, [row for batch in batches for row in batch.rows])

        def count() -> None:
            self.counts.committed(len(batches))
            now_us = self._clock.utc_us()
            for batch, more in zip(batches, chain([changed], repeat(0)), strict=False):
                age_us = max(0, now_us - batch.arrival.at_us)
                self.counts.batch(batch.envelope.node, len(batch.rows), more, len(batch.rejected), age_us)

        return count

    def _count_rejected(self, rejected: int) -> None:
        self.counts.rejected(rejected)

    def _sort(self, body: bytes, envelope: Envelope, at_us: int) -> tuple[dict[int, AllocationHour], dict[int, str]]:
        return _sort_rows(body, envelope, at_us // 1_000_000 + _AHEAD_S)

    def _admitted(self, node: str, rows: Mapping[int, AllocationHour]) -> dict[int, str]:
        return {} if self._unaccounted is None else self._unaccounted.rejected(node, rows)

    def _arrived(self, envelope: Envelope, at_us: int) -> None:
        if self._agent_clocks is not None:
            self._agent_clocks.note(envelope.node, envelope.sent_us, at_us)

    def _judged(self, rows: Mapping[int, AllocationHour]) -> dict[int, str]:
        with contextlib.suppress(StoreError):  # the commit that follows fails as well, and reports it
            return self._claims.refused(rows)
        return {}

    def _check_sender(self, caller: Caller, envelope: Envelope, local_uid: LocalUid) -> None:
        """Raise Refusal for a batch whose sender is not the agent of the node that it names."""
        node = envelope.node
        if not self._identity.is_agent(caller, node):
            raise Refusal(FORBIDDEN, f"{sender_of(caller)} may not send hour rows of {node[:64]}")
        try:
            self._check_cluster(envelope)
            if caller.via != "munge" or not self.check_origin:
                return
            addresses = self._site.addresses(node)
        except UnknownSiteError as error:
            raise Refusal(LATER, str(error)) from error
        if not addresses:
            raise Refusal(FORBIDDEN, f"Slurm has no node {node[:64]!r}")
        if not _is_from(caller, addresses, local_uid):
            raise Refusal(FORBIDDEN, _elsewhere(caller.origin, node, addresses))


def _is_from(caller: Caller, addresses: frozenset[str], local_uid: LocalUid) -> bool:
    """Return whether a credential was made on the host that has a node's addresses.

    Each host has loopback addresses, so that such an origin proves nothing: the sender must be a process of this host.
    Where NodeAddr is such an address, all nodes are on this host. Else it must be a process of the agents' user, which
    a proxy that forwards requests of other hosts is not, and the node must be this host.
    """
    if not is_loopback_address(caller.origin):
        return caller.origin in addresses
    uid = local_uid()
    if uid is not None and all(map(is_loopback_address, addresses)):
        return caller.origin in addresses
    if uid is None or uid != caller.uid:
        return False
    return caller.origin in addresses or any(is_own_address(a) for a in addresses if not is_loopback_address(a))


def _elsewhere(origin: str, node: str, addresses: frozenset[str]) -> str:
    words = f"the credential was created on {origin}, but NodeAddr of {node} is {_list(addresses)}: "
    if is_loopback_address(origin):
        words += f"munged of {node} uses a loopback address from /etc/hosts: "
        words += f"start it there with --origin={_first(addresses)} (OPTIONS in /etc/default/munge)"
        return words
    return words + "see munged's --origin, or set check_origin"


def _first(addresses: frozenset[str]) -> str:
    """Return an address that munged can have as origin, the name where there is none."""
    return next((a for a in sorted(addresses) if a[:1].isdigit()), next(iter(addresses)))


def _sort_rows(body: bytes, envelope: Envelope, latest: int) -> tuple[dict[int, AllocationHour], dict[int, str]]:
    """Return the good rows by line, and the reason by line for the others."""
    good: dict[int, AllocationHour] = {}
    rejected: dict[int, str] = {}
    for line, row in parse_hours(body):
        if isinstance(row, ParseError):
            rejected[line] = str(row)
        elif row.node != envelope.node:
            rejected[line] = f"node {row.node} is not the batch's {envelope.node}"
        elif row.run_key.cluster != envelope.cluster:
            rejected[line] = f"cluster {row.run_key.cluster} is not the batch's {envelope.cluster}"
        elif not _FIRST_S <= row.hour_utc <= latest:
            rejected[line] = f"hour {row.hour_utc} is before the year 2000 or in the future: set the node's clock"
        elif row.hour_utc + HOUR_S + _EARLY_S <= row.run_key.start:
            rejected[line] = f"hour {row.hour_utc} is before the start of its run, {row.run_key.start}"
        else:
            good[line] = row
    return good, rejected


def _list(addresses: frozenset[str]) -> str:
    return ", ".join(sorted(addresses))

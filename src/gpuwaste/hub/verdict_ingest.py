"""POST /v1/verdicts: the verdicts of advisors, sent by the agents' and advisors' own user."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self

from prometheus_client import Counter
from prometheus_client.core import Metric

from gpuwaste.advice.verdicts.verdict_batch import parse_verdicts
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ParseError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import FORBIDDEN, LATER, Refusal
from gpuwaste.core.units import DAY_S
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.batch_receiver import BatchReceiver, LocalUid, OpenedBatch
from gpuwaste.hub.inbox_room import InboxRoom
from gpuwaste.jobs.cluster_facts import ClusterFacts, UnknownSiteError
from gpuwaste.jobs.events.envelope import StoredEvent, event_id
from gpuwaste.jobs.events.event_store import VERDICT
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.verdict import ACTIONS, Verdict
from gpuwaste.net.batch import Envelope
from gpuwaste.net.request_signing import Caller, sender_of
from gpuwaste.store.database import Database

_AHEAD_US: Final = DAY_S * 1_000_000  # how far an advisor's clock may be ahead of this host's
_KIND: Final = "job.verdict"
_FIRST_US: Final = 946_684_800_000_000  # 2000-01-01: before it there was no Slurm


class VerdictIngest(BatchReceiver[Verdict], Part):
    """Receives verdicts."""

    path = "/v1/verdicts"
    what = "verdicts"
    sender = "advisor"

    def __init__(
        self,
        store: VerdictStore,
        identity: Identity,
        site: ClusterFacts,
        clock: Clock,
        *,
        inbox: InboxRoom | None = None,
    ) -> None:
        super().__init__(identity, site, clock, inbox)
        self._store = store
        self._received, self._rejected = verdict_counters()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(
            parts.get(VerdictStore),
            parts.get(Identity),
            parts.get(ClusterFacts),
            parts.get(HostPorts).clock,
            inbox=parts.find(InboxRoom),
        )

    def counted(self) -> Iterator[Metric]:
        """Yield what was received."""
        yield from self._received.collect()
        yield from self._rejected.collect()

    def merge(self, db: Database, batches: Sequence[OpenedBatch[Verdict]]) -> Callable[[], None]:
        """Write the verdicts of opened batches, each id once."""
        news = collections.Counter[str]()
        for batch in batches:
            told = [_event(row) for row in batch.rows]
            if batch.rows:
                news.update(self._store.put(db, batch.rows, batch.envelope.node, told, batch.arrival.at_us))
        return lambda: self._count(news, sum(len(batch.rejected) for batch in batches))

    def _count_rejected(self, rejected: int) -> None:
        self._count({}, rejected)

    def _store_rows(self, rows: Sequence[Verdict], envelope: Envelope, rejected: int) -> None:
        new = self._store.add(rows, envelope.node, [_event(row) for row in rows])
        self._count(collections.Counter(new), rejected)

    def _count(self, news: Mapping[str, int], rejected: int) -> None:
        """Note verdicts that were taken, by action, and those that were rejected."""
        for action, count in news.items():
            self._received.labels(action).inc(count)
        self._rejected.inc(rejected)

    def _check_sender(self, caller: Caller, envelope: Envelope, _local_uid: LocalUid) -> None:
        if not self._identity.is_advisor(caller):
            raise Refusal(FORBIDDEN, f"{sender_of(caller)} may not send verdicts: see [hub] agent_user")
        try:
            self._check_cluster(envelope)
        except UnknownSiteError as error:
            raise Refusal(LATER, str(error)) from error

    def _sort(self, body: bytes, envelope: Envelope, at_us: int) -> tuple[dict[int, Verdict], dict[int, str]]:
        good: dict[int, Verdict] = {}
        rejected: dict[int, str] = {}
        latest = at_us + _AHEAD_US
        for line, row in parse_verdicts(body):
            if isinstance(row, ParseError):
                rejected[line] = str(row)
            elif row.cluster != envelope.cluster:
                rejected[line] = f"cluster {row.cluster[:64]!r} is not the batch's {envelope.cluster}"
            elif not _FIRST_US <= row.at_utc_us <= latest:
                rejected[line] = "at_utc_us is before the year 2000 or in the future: set the advisor's clock"
            else:
                good[line] = row
        return good, rejected


def verdict_counters() -> tuple[Counter, Counter]:
    """Return the counters of received and of invalid verdicts."""
    received = Counter(
        "gpuwaste_hub_verdicts", "Verdicts received, by action; each id once.", ["action"], registry=None
    )
    for action in ACTIONS:
        received.labels(action)
    return received, Counter("gpuwaste_hub_rejected_verdicts", "Verdicts received that are invalid.", registry=None)


def _event(row: Verdict) -> StoredEvent:
    """Return the event of a verdict, without data: it is read together with the verdict, which is kept as well."""
    subject = VERDICT + row.id
    return StoredEvent(event_id(_KIND, subject), _KIND, subject, row.at_utc_us // 1_000_000, data="")

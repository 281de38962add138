"""NowReads: the current state of the cluster, read at most every few seconds and shared by all requests.

Judging each held GPU of a large site takes most of a second. So the document is made from the last snapshot; a thread
refreshes it while requests arrive, and does nothing without requests.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Final, Self

from markupsafe import Markup

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.scope import Scope
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.ledger.held_gpus import HeldRun
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.now.node_groups import NodeOrder
from gpuwaste.ledger.now.node_map import node_map
from gpuwaste.ledger.now.now_document import Now, SlurmNodes, now_document, take_now
from gpuwaste.ledger.now.now_types import NowDocument
from gpuwaste.ledger.reports.job_types import Advice
from gpuwaste.ledger.run_advice import RunAdvice
from gpuwaste.store.hub.hub_store import HubStore

FRESH_S: Final = 30.0  # a younger snapshot is not refreshed: agents report every few minutes
NEWS_S: Final = 10.0  # the shortest interval of refreshes for pages with live updates
SHARED_S: Final = 75.0  # rules take it each minute and event sources read it: a minute and the time of a pass
_SHARED_ROWS: Final = 1000  # of a document that is kept for other requests
OLD_S: Final = 120.0  # an older snapshot is not used: the request waits for a new one
_NOT_TAKEN: Final = log_event.warning(
    "now-not-taken: cannot read what the cluster does now: {error}",
    "The store or its disk has an error. GET /v1/now returns the last data, for two minutes.",
)


class NowReads(Part):
    """The shared snapshot. Thread-safe; `worker` refreshes it."""

    def __init__(
        self,
        store: HubStore,
        site: ClusterFacts,
        said: RunAdvice,
        *,
        settings: LedgerSettings,
        clock: Clock,
        importer: Importer,
    ) -> None:
        """Set up the sources; `importer` knows up to when accounting was read."""
        self._store = store
        self._site = site
        self._said = said
        self._settings = settings
        self._clock = clock
        self._importer = importer
        self._lock = threading.Lock()
        self._known: Now | None = None
        self._taken_us = 0
        self._whole: tuple[Now, int, bytes] | None = None
        self._sharing = threading.Lock()
        self._shared: tuple[Now, int, NowDocument] | None = None
        self._drawing = threading.Lock()
        self._drawn: tuple[NowDocument, dict[NodeOrder, Markup]] | None = None
        self.worker = Worker("now", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(
            parts.get(HubStore),
            parts.get(ClusterFacts),
            parts.get(RunAdvice),
            settings=parts.get(Judging).standing,
            clock=parts.get(HostPorts).clock,
            importer=parts.get(Importer),
        )
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next snapshot on. Thread-safe."""
        self._settings = settings
        self._known = None

    def document(self, scope: Scope, limit: int) -> NowDocument:
        """Return the document within the caller's scope, with `limit` idle jobs at most. Raises StoreError.

        For operators, who all get the same document of every node, a short one is made once.
        """
        known = self._current()
        if not scope.everything or limit > _SHARED_ROWS:
            return self._made(known, scope, limit)
        with self._sharing:
            shared = self._shared
            if shared is None or shared[0] is not known or shared[1] != limit:
                shared = self._shared = (known, limit, self._made(known, scope, limit))
            return shared[2]

    def answer(self, scope: Scope, limit: int) -> NowDocument | bytes:
        """Return `document`; for operators, who all get the same one of every node, as JSON that is made once."""
        known = self._current()
        if not scope.everything:
            return self._made(known, scope, limit)
        whole = self._whole
        if whole is None or whole[0] is not known or whole[1] != limit:
            body = json.dumps(self._made(known, scope, limit).to_json(), separators=(",", ":")).encode()
            whole = self._whole = (known, limit, body)
        return whole[2]

    def map(self, document: NowDocument, order: NodeOrder) -> Markup:
        """Return the map of the nodes; for the document of all operators it is drawn once in each order."""
        with self._drawing:
            if self._drawn is None or self._drawn[0] is not document:
                self._drawn = document, {}
            drawn = self._drawn[1]
            if order not in drawn:
                drawn[order] = node_map(document.nodes, order)
            return drawn[order]

    def _made(self, known: Now, scope: Scope, limit: int) -> NowDocument:
        def visible(run: HeldRun) -> bool:
            job = run.job
            return (job.cluster, job.account) in scope.accounts or (bool(scope.user) and job.user == scope.user)

        def advice_of(runs: Sequence[HeldRun]) -> Mapping[int, list[Advice]]:
            said = self._said.advice_of(scope, [run.job for run in runs])
            return dict(zip((run.place for run in runs), said, strict=True))

        return now_document(known, limit, None if scope.everything else visible, advice_of)

    def take(self) -> Now:
        """Take a snapshot. Raises StoreError."""
        now = self._clock.utc_s()
        slurm = SlurmNodes(self._site.nodes_read, self._site.nodes)
        cluster = self._site.known_cluster or None
        with self._store.reader() as db:
            known = take_now(db, cluster, self._settings, now, slurm, self._importer.status.read_until)
        self._known, self._taken_us = known, self._clock.mono_us()
        return known

    def since(self, last_utc: int) -> Now:
        """Return a recent snapshot taken by another caller, of another second than `last_utc`; else take one.

        Raises StoreError.
        """
        known, age_s = self._known, self._age_s()
        if known is not None and known.generated != last_utc and age_s <= SHARED_S:
            age_s = self._clock.utc_us() / 1e6 - known.generated  # the age must be small by the wall clock, too
            if 0 <= age_s <= SHARED_S:
                return known
        return self.take()

    def due_s(self) -> float:
        """Return the seconds until a refresh because of news is allowed; 0: now."""
        return max(0.0, NEWS_S - self._age_s())

    def renew(self) -> None:
        """Refresh because of news, unless another caller just did. Raises StoreError."""
        with self._lock:
            if self._age_s() >= NEWS_S:
                self.take()

    def _current(self) -> Now:
        """Return the last snapshot; take one here if there is none or it is too old."""
        known, age_s = self._known, self._age_s()
        if known is None or age_s > OLD_S:
            with self._lock:
                known = self._known
                return self.take() if known is None or self._age_s() > OLD_S else known
        if age_s > FRESH_S:
            self.worker.wake()
        return known

    def _age_s(self) -> float:
        return (self._clock.mono_us() - self._taken_us) / 1e6

    def _turn(self) -> float | None:
        if self._known is not None and self._age_s() > FRESH_S:
            try:
                with self._lock:
                    self.take()
            except StoreError as error:
                _NOT_TAKEN.log(error=error)
        return None

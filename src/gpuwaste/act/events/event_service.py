"""EventService: the hub's side of events: sources that look now and then, a sender for each outlet, their figures."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from prometheus_client.metrics_core import Metric

from gpuwaste.act.events.inlet_parts import InletParts
from gpuwaste.act.events.outlet_files import load_outlets
from gpuwaste.act.events.outlet_metrics import OutletStanding, families
from gpuwaste.act.events.outlet_sender import OutletSender
from gpuwaste.act.events.sources import EventSource, SourceSnapshot, SourceStores, sources
from gpuwaste.advice.predict.predictions import Predictions
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.now.now import Now
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.net.health import PredictionHealth
from gpuwaste.sim.kept_simulations import DIRECTORY as SIMULATIONS
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = 60.0  # agents report each quarter of an hour, or each minute
_NOT_LOOKED: Final = log_event.warning(
    "events-not-told: cannot see what is news: {error}",
    "The store or its disk refuses. What was not told now is told later.",
)
_LEFT_OUT: Final = log_event.error(
    "outlet-left-out: an outlet gets no events: {error}",
    "Correct the file (`gpuwaste events check`) and restart the hub. No event is lost: they wait in the hub's store.",
)


@dataclass(frozen=True, slots=True)
class SourceViews:
    """Where sources see what the cluster does and what predicts, and how long a GPU is idle before it is told.

    `since` returns what was taken since an earlier look, at a UTC second.
    """

    now: Callable[[], Now]
    since: Callable[[int], Now]
    prediction: Callable[[], PredictionHealth]
    idle_min_s: Callable[[], float]


class EventService(Part):
    """`workers` run it: one looks, one for each outlet hands over. Nothing runs where there is no outlet."""

    def __init__(
        self,
        store: HubStore,
        clock: Clock,
        cluster: Callable[[], str],
        *,
        outlets: Path,
        site: Collection[str],
        views: SourceViews,
        simulations: Path | None = None,
    ) -> None:
        """Read the outlets; one with an error is left out and logged: the hub has more to do than to send events.

        `site` are the kinds that inlets declare, `simulations` the directory of those that were saved.
        """
        self.site = site
        self.store = EventStore(store, clock)
        self._views = views
        files, errors = load_outlets(outlets, site)
        for error in errors:
            _LEFT_OUT.log(error=error)
        self.senders = [OutletSender(file, self.store, cluster, clock) for file in files]
        self._clock = clock
        self._cluster = cluster
        self._held_utc = 0
        self._sources: list[EventSource] = sources(SourceStores(store, self.store, simulations))
        self._looker = Worker("event sources", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        hub = parts.get(Config).hub
        now, predictions, judging = parts.get(NowReads), parts.get(Predictions), parts.get(Judging)
        return cls(
            parts.get(HubStore),
            parts.get(HostPorts).clock,
            parts.get(ClusterFacts).known,
            outlets=Path(hub.outlets_dir),
            site=parts.get(InletParts).kinds,
            views=SourceViews(now.take, now.since, predictions.health, lambda: judging.standing.finding_min_s),
            simulations=Path(hub.state_dir) / SIMULATIONS,
        )

    @property
    def workers(self) -> list[Worker]:
        """The threads; none without outlets."""
        return [self._looker, *(sender.worker for sender in self.senders)] if self.senders else []

    def look(self) -> int:
        """Tell what is news; returns how many events. Raises StoreError."""
        cluster, views = self._cluster(), self._views
        if not cluster:
            return 0
        held = views.since(self._held_utc)
        self._held_utc = held.generated
        seen = SourceSnapshot(held.generated, cluster, held, views.prediction(), views.idle_min_s())
        told = 0
        for source in self._sources:
            told += self.store.tell(source.events(seen))
            source.told()
        return told

    def standings(self) -> list[OutletStanding]:
        """Return how each outlet stands. Raises StoreError."""
        return [OutletStanding(one.file.name, one.state, self.store.behind(one.state.seq)) for one in self.senders]

    def metrics(self) -> Iterator[Metric]:
        """Yield the families."""
        return families(self.standings(), self._clock.utc_us() / 1e6)

    def _turn(self) -> float:
        try:
            self.look()
        except StoreError as error:
            _NOT_LOOKED.log(error=error)
        return EVERY_S

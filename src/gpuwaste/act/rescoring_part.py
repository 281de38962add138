"""RescoringPart: running jobs are predicted again; events and mails report the results."""

from typing import Self

from gpuwaste.act.events.event_service import EventService
from gpuwaste.act.notify.notify_parts import NotifyParts
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.rescore_store import RescoreSettings, RescoreStore
from gpuwaste.advice.rescorer import Rescorer
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Imported
from gpuwaste.store.hub.hub_store import HubStore


class RescoringPart(Part):
    """Runs the rescorer."""

    def __init__(self, rescorer: Rescorer) -> None:
        self.rescorer = rescorer
        self.worker = rescorer.worker

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        events, clock = parts.get(EventService), parts.get(HostPorts).clock
        rescorer = Rescorer(
            RescoreStore(parts.get(HubStore), clock),
            parts.get(Predictions),
            parts.get(ClusterFacts).known,
            clock,
            settings=RescoreSettings.from_config(parts.get(Config)),
            noted=parts.get(NotifyParts).limits.writer,
            tells=lambda: bool(events.senders),
        )
        parts.get(Bus).subscribe(Imported, lambda _: rescorer.worker.wake())
        return cls(rescorer)

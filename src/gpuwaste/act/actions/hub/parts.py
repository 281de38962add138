"""ActionParts: the hub's side of actions: manager, figures, a thread that mails and ends what is overdue."""

from collections.abc import Iterator, Sequence
from typing import Final, Self

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from gpuwaste.act.actions.action_store import WAITING, ActionCount, ActionStore
from gpuwaste.act.actions.hub.action_manager import ActionManager
from gpuwaste.act.actions.hub.mail import ActionMail
from gpuwaste.act.notify.notify_settings import NotifySettings
from gpuwaste.act.notify.parts import address_book, smtp_mailer
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = 5.0
_NOT_TAKEN: Final = log_event.warning(
    "actions-not-taken: cannot read or write actions: {error}",
    "The store or its disk refuses. Actions wait; those that expire meanwhile are not taken.",
)


class ActionParts(Part):
    """`worker` runs it."""

    def __init__(self, store: HubStore, clock: Clock, config: Config) -> None:
        """Raise ConfigError where [notify] cannot be used."""
        self.store = ActionStore(store, clock)
        self.manager = ActionManager(self.store, config.actor.max_per_hour)
        settings = NotifySettings.from_config(config.notify)
        mailer, book = smtp_mailer(config.notify), address_book(config.notify)
        self._mail = ActionMail(self.manager, mailer, book, settings, clock)
        self._trouble = RepeatSuppressor()
        self.worker = Worker("actions", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(HostPorts).clock, parts.get(Config))

    def metrics(self) -> Iterator[Metric]:
        """Yield the families. Raises StoreError."""
        return families(self.store.counts(), self.store.now(), stopped=bool(self.store.stopped()))

    def _turn(self) -> float:
        try:
            self.manager.expire()
            self._mail.send_due()
            self._trouble.over()
        except StoreError as error:
            if self._trouble.news(str(error)):
                _NOT_TAKEN.log(error=error)
        return EVERY_S


def families(counts: Sequence[ActionCount], now: int, *, stopped: bool) -> Iterator[Metric]:
    """Yield the families of what the store counts; `now` is UTC seconds."""
    family = GaugeMetricFamily(
        "gpuwaste_hub_actions", "Actions of the hub's store, by kind and status.", labels=["kind", "status"]
    )
    for status, kind, number, _ in counts:
        family.add_metric([kind, status], number)
    yield family
    waits = [first for status, _, _, first in counts if status in (*WAITING, "sent")]
    yield GaugeMetricFamily(
        "gpuwaste_hub_actions_oldest_seconds",
        "Age of the oldest action that is not ended: for a person, the actor or the mail server.",
        now - min(waits, default=now),
    )
    yield GaugeMetricFamily("gpuwaste_hub_actions_stopped", "1 while actions are stopped.", int(stopped))

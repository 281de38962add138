"""ActionParts: actions in the hub: their manager, metrics, and a thread that sends mail and ends overdue actions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.actions.action_manager import ActionGate, ActionManager
from gpuwaste.act.actions.action_store import WAITING, ActionCount, ActionStore
from gpuwaste.act.actions.action_types import ActionEntry, ActionReport, Outcome
from gpuwaste.act.actions.kinds.notify import SPONSOR, STAFF, USER
from gpuwaste.act.keeps.kept_runs import Keeps
from gpuwaste.act.notify.account_sponsors import AccountCoordinators, SponsorBook
from gpuwaste.act.notify.mail_addresses import AddressBook, AddressError
from gpuwaste.act.notify.mailer import Delivery, Mailer, ServerDownError, make_message
from gpuwaste.act.notify.notice_store import NoticeStatus
from gpuwaste.act.notify.notify_parts import address_book, smtp_mailer, sponsor_book
from gpuwaste.act.notify.notify_settings import NotifySettings
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.text import harmless
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = 5.0
_NOT_TAKEN: Final = log_event.warning(
    "actions-not-taken: cannot read or write actions: {error}",
    "The store or its disk cannot be written. Actions wait; those that expire meanwhile are not taken.",
)
_HUB: Final = "hub"
_PER_TURN: Final = 20
_NO_ADDRESSES: Final = log_event.warning(
    "action-mail-waits: cannot look up mail addresses, mails of rules wait: {error}",
    "Check `[notify] address_file` and `address_command`. A mail is retried until its action expires.",
)
MailEnd = Callable[[ActionEntry], Sequence[str]]
"""Returns the lines at the end of a mail about a run to its owner."""
_OUTCOMES: Final[Mapping[NoticeStatus, Outcome]] = {NoticeStatus.SENT: "confirmed"}


class ActionParts(Part):
    """`worker` runs it."""

    def __init__(
        self,
        store: HubStore,
        clock: Clock,
        config: Config,
        gate: ActionGate = lambda _: "",
        answers: MailEnd = lambda _: (),
        *,
        coordinators: AccountCoordinators | None = None,
    ) -> None:
        """`gate` is asked before an action is sent, `answers` returns the last lines of a mail.

        Raise ConfigError if [notify] cannot be used.
        """
        self.store = ActionStore(store, clock)
        self.manager = ActionManager(self.store, config.actor.max_per_hour, gate)
        settings = NotifySettings.from_config(config.notify)
        mailer, book = smtp_mailer(config.notify), address_book(config.notify)
        sponsors = sponsor_book(config.notify, coordinators or AccountCoordinators())
        self._mail = ActionMail(self.manager, mailer, book, settings, clock, answers, sponsors)
        self._trouble = RepeatSuppressor()
        self.worker = Worker("actions", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        keeps = parts.get(Keeps)
        return cls(
            parts.get(HubStore),
            parts.get(HostPorts).clock,
            parts.get(Config),
            keeps.hindrance,
            keeps.answers(parts.get(Config)),
            coordinators=parts.get(AccountCoordinators),
        )

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics. Raises StoreError."""
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
    """Yield the metrics of the store's counts; `now` is UTC seconds."""
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


class ActionMail:
    """One thread sends. Without a mail server every mail fails at once, with that reason."""

    def __init__(  # noqa: PLR0917 what a mail is made of
        self,
        manager: ActionManager,
        mailer: Mailer | None,
        book: AddressBook,
        settings: NotifySettings,
        clock: Clock,
        answers: MailEnd = lambda _: (),
        sponsors: SponsorBook | None = None,
    ) -> None:
        self._manager = manager
        self._answers = answers
        self._mailer = mailer
        self._book = book
        self._settings = settings
        self._clock = clock
        self._sponsors = sponsors or SponsorBook(AccountCoordinators().coordinators)
        self._trouble = RepeatSuppressor()
        self._kinds = [kind.name for kind in actions().values() if kind.execution is None]

    def send_due(self) -> int:
        """Send what is due now; return how many mails were tried. Raises StoreError."""
        for count in range(_PER_TURN):
            if self._manager.store.stopped():
                return count
            row = self._manager.store.next(self._kinds, fresh=True)
            if row is None or not self._send(row):
                return count
        return _PER_TURN

    def _send(self, row: ActionEntry) -> bool:
        """Send one mail; return false if mail server or addresses are unreachable: it is retried until it expires."""
        if row.status == "sent":
            self._end(row, "failed", "the hub ended while the mail was sent: it may have arrived")
            return True
        if self._mailer is None or self._settings.dry_run:
            why = "[notify] smtp_host is not set" if self._mailer is None else "[notify] dry_run is set"
            self._end(row, "moot", f"no mail is sent: {why}")
            return True
        try:
            to, lacking = self._addresses(row)
        except AddressError as error:  # they may be known later: a warning must not be lost for that
            if self._trouble.news(str(error)):
                _NO_ADDRESSES.log(error=error)
            return False
        self._trouble.over()
        if not to:
            self._end(row, "moot", lacking)
            return True
        if self._manager.report(row, ActionReport(actor=_HUB, status="sent", plan={"to": ", ".join(to)})):
            return True
        return self._deliver(row, to, self._mailer)

    def _deliver(self, row: ActionEntry, to: list[str], mailer: Mailer) -> bool:
        said: list[Delivery] = []
        for address in to:
            try:
                delivery = self._one(row, address, mailer)
            except ServerDownError as error:
                if said:
                    self._end(row, "failed", f"only some mails were sent: {error}")
                else:
                    self._manager.give_back(row, str(error))
                return False
            said.append(delivery)
        worst = next((one for one in said if one.status is not NoticeStatus.SENT), said[0])
        self._end(row, _OUTCOMES.get(worst.status, "failed"), answer=worst.detail)
        return True

    def _one(self, row: ActionEntry, address: str, mailer: Mailer) -> Delivery:
        options, settings = row.options, self._settings
        try:
            message = make_message(
                sender=settings.sender,
                reply_to=settings.reply_to,
                to=address,
                subject=harmless(options["subject"]),
                text="\n".join(harmless(line) for line in (*options["text"].split("\n"), *self._end_of(row))),
                at_utc=self._clock.utc_s(),
                key=f"action {row.id} {address}",
            )
        except ValueError as error:
            return Delivery(NoticeStatus.FAILED, f"no mail can be made: {error}")
        return mailer.send(message, settings.sender, address)

    def _end_of(self, row: ActionEntry) -> Sequence[str]:
        """Return how the owner of a run can answer a rule."""
        to_owner = row.rule and row.run is not None and row.options.get("to", USER) == USER
        return self._answers(row) if to_owner else ()

    def _addresses(self, row: ActionEntry) -> tuple[list[str], str]:
        """Return the addresses, each once, and the reason if there is none. Raises AddressError."""
        to = row.options.get("to", USER)
        if to == STAFF:
            return list(self._settings.staff), "[notify] staff is empty"
        self._book.refresh()
        if to == SPONSOR:
            return self._of_sponsors(row)
        address = self._book.address_of(row.user)
        return [address] if address else [], "no address is known for this user, or they get no mail"

    def _of_sponsors(self, row: ActionEntry) -> tuple[list[str], str]:
        """Return the addresses of the account's sponsors; the job's user gets the mail to the user, and no second."""
        known = self._sponsors.sponsors(row.cluster, row.account) if row.account else []
        others = [user for user in known if user != row.user]
        account = f"account {row.account:.64}" if row.account else "the job's account"
        if not known:
            return (
                [],
                f"the sponsor of {account} is unknown: it has no coordinator, [notify] sponsor_file no line",
            )
        if not others:
            return [], f"the only sponsor of {account} is the job's user"
        own = self._book.address_of(row.user)
        found = dict.fromkeys(self._book.address_of(user) for user in others)
        to = [address for address in found if address and address != own]
        return to, f"no address of their own is known for the sponsors of {account}, or they get no mail"

    def _end(self, row: ActionEntry, status: Outcome, reason: str = "", answer: str = "") -> None:
        self._manager.report(row, ActionReport(actor=_HUB, status=status, reason=reason, answer=answer))

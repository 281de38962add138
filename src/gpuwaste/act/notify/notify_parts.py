"""NotifyParts: notices in the hub: planner, mail server, sender and answers to users, made from [notify]."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self, cast

from prometheus_client import Counter
from prometheus_client.core import Metric

from gpuwaste.act.campaigns.effect_reads import EffectReads
from gpuwaste.act.notify.account_sponsors import AccountCoordinators, SponsorBook
from gpuwaste.act.notify.limit_notices import LimitNotices
from gpuwaste.act.notify.mail_addresses import AddressBook
from gpuwaste.act.notify.mailer import SmtpMailer, Tls
from gpuwaste.act.notify.notice_planner import Planner
from gpuwaste.act.notify.notice_runner import Accounting, NoticeRunner
from gpuwaste.act.notify.notice_service import NoticeService
from gpuwaste.act.notify.notice_store import NoticeStatus, NoticeStore
from gpuwaste.act.notify.notify_settings import NotifySettings
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.hub.hub_store import HubStore


class NotifyParts(Part):
    """The answers of the routes, and the sender if a mail server is configured."""

    def __init__(
        self,
        planner: Planner,
        mailer: SmtpMailer | None,
        clock: Clock,
        accounting: Callable[[], Accounting],
    ) -> None:
        self._sent = notice_counter()
        self.notifier = None if mailer is None else NoticeRunner(planner, mailer, clock, accounting, self._count)
        self.service = NoticeService(planner, self.notifier, clock)
        self.limits = LimitNotices(planner)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub. Raises ConfigError."""
        config, clock, importer = parts.get(Config).notify, parts.get(HostPorts).clock, parts.get(Importer)

        def accounting() -> Accounting:
            return Accounting(importer.status.read_until, bool(importer.status.failures))

        settings, effects = parts.get(Judging).standing, parts.get(EffectReads)
        return cls.made(
            config, parts.get(HubStore), settings, clock, accounting, parts.get(HoldOut), effects.sentences
        )  # fmt: skip

    @classmethod
    def made(  # noqa: PLR0917 the hub's parts that it needs
        cls,
        config: NotifyConfig,
        store: HubStore,
        ledger: LedgerSettings,
        clock: Clock,
        accounting: Callable[[], Accounting],
        hold_out: HoldOut | None = None,
        campaigns: Callable[[], Sequence[str]] = tuple,
    ) -> Self:
        """Return the part around a store. Raises ConfigError."""
        settings = NotifySettings.from_config(config)
        notices, book = NoticeStore(store, clock), address_book(config)
        planner = Planner(store, notices, settings, ledger, book, hold_out or HoldOut(), campaigns)
        return cls(planner, smtp_mailer(config), clock, accounting)

    def _count(self, status: str) -> None:
        self._sent.labels(status).inc()

    def counted(self) -> Iterable[Metric]:
        """Return the counts of mails by outcome."""
        return self._sent.collect()

    def before_start(self) -> None:
        """Give up what was being sent when the hub ended."""
        if self.notifier is not None:
            self.notifier.begin()

    @property
    def workers(self) -> Sequence[Worker]:
        """The sender."""
        return () if self.notifier is None else (self.notifier.worker,)


def notice_counter() -> Counter:
    """Return the counter of mails by outcome."""
    sent = Counter("gpuwaste_hub_notices", "Mails to users and staff, by status.", ["status"], registry=None)
    for status in (NoticeStatus.SENT, NoticeStatus.LATER, NoticeStatus.FAILED, NoticeStatus.UNCLEAR):
        sent.labels(status)
    return sent


def address_book(config: NotifyConfig) -> AddressBook:
    """Return the address book. Raises ConfigError."""
    file = Path(config.address_file) if config.address_file else None
    return AddressBook(config.address, file, config.address_command)


def sponsor_book(config: NotifyConfig, coordinators: AccountCoordinators) -> SponsorBook:
    """Return the book of accounts' sponsors. Raises ConfigError."""
    file = Path(config.sponsor_file) if config.sponsor_file else None
    return SponsorBook(coordinators.coordinators, file, config.sponsor_command)


def smtp_mailer(config: NotifyConfig) -> SmtpMailer | None:
    """Return the mail server, None if none is configured."""
    if not config.smtp_host:
        return None
    return SmtpMailer(
        config.smtp_host,
        config.smtp_port,
        cast("Tls", config.smtp_tls),
        config.smtp_ca,
        config.smtp_user,
        Path(config.smtp_password_file) if config.smtp_password_file else None,
    )

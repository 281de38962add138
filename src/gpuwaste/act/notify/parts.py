"""The parts that send notices, made from [notify]."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gpuwaste.act.notify.addresses import AddressBook
from gpuwaste.act.notify.limit_notices import LimitNotices
from gpuwaste.act.notify.mailer import SmtpMailer, Tls
from gpuwaste.act.notify.notice_store import NoticeStore
from gpuwaste.act.notify.notify_settings import NotifySettings
from gpuwaste.act.notify.planner import Planner
from gpuwaste.act.notify.runner import Accounting, NoticeRunner
from gpuwaste.act.notify.service import NoticeService
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import NotifyConfig
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.store.hub.hub_store import HubStore


@dataclass(frozen=True, slots=True)
class NotifyParts:
    """The answers of the routes, and the sender where a mail server is configured."""

    service: NoticeService
    notifier: NoticeRunner | None
    limits: LimitNotices


def notify_parts(  # noqa: PLR0917 the hub's own parts, in the order of ARCHITECTURE
    config: NotifyConfig,
    store: HubStore,
    ledger: LedgerSettings,
    clock: Clock,
    accounting: Callable[[], Accounting],
    count: Callable[[str], None] = lambda _: None,
) -> NotifyParts:
    """Wire the parts. Raises ConfigError."""
    settings = NotifySettings.from_config(config)
    planner = Planner(store, NoticeStore(store, clock), settings, ledger, address_book(config))
    mailer = smtp_mailer(config)
    notifier = None if mailer is None else NoticeRunner(planner, mailer, clock, accounting, count)
    return NotifyParts(NoticeService(planner, notifier, clock), notifier, LimitNotices(planner))


def address_book(config: NotifyConfig) -> AddressBook:
    """Return where users' addresses are looked up. Raises ConfigError."""
    file = Path(config.address_file) if config.address_file else None
    return AddressBook(config.address, file, config.address_command)


def smtp_mailer(config: NotifyConfig) -> SmtpMailer | None:
    """Return the mail server, None where none is configured."""
    if not config.smtp_host:
        return None
    return SmtpMailer(
        config.smtp_host,
        config.smtp_port,
        cast("Tls", config.smtp_tls),
        config.smtp_ca,
        config.smtp_user,
        Path(config.smtp_password_file) if config.smtp_password_file else None,
        config.smtp_timeout_s,
    )

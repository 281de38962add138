"""A notifier on a real store and a real mail server, with a clock that the test moves."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.unit.ledger.builders import T0, add_rows, hour, job

from gpuwaste.act.notify.notice_runner import Accounting, NoticeRunner
from gpuwaste.act.notify.notice_store import NoticeStore
from gpuwaste.act.notify.notify_parts import NotifyParts
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.mail_server import MailServer, running_mail_server

DAY = 86400
HOUR = 3600


@dataclass
class Rig:
    """What a test looks at; `failed` and `lag_s` play accounting."""

    store: HubStore
    clock: FakeClock
    mail: MailServer
    config: dict[str, Any]
    failed: bool = False
    lag_s: float = 0.0
    parts: NotifyParts = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self, **changes: Any) -> None:
        """Make the parts anew, as a hub does that starts."""
        self.config |= changes
        config = NotifyConfig(**{"smtp_port": self.mail.port, **self.config})
        self.parts = NotifyParts.made(config, self.store, LedgerSettings(), self.clock, self.accounting)
        self.notifier.begin()

    @property
    def notifier(self) -> NoticeRunner:
        """The sender."""
        assert self.parts.notifier is not None
        return self.parts.notifier

    @property
    def now(self) -> int:
        """UTC seconds."""
        return self.clock.utc_s()

    def accounting(self) -> Accounting:
        """Tell how far accounting was read."""
        return Accounting(int(self.now - self.lag_s), self.failed)

    def to_period_end(self, after_s: float = 2 * HOUR) -> None:
        """Move to `after_s` seconds after the next period's end."""
        settings = self.notifier._settings
        end = settings.digest.last_end(self.now)
        while settings.digest.last_end(self.now) == end:
            self.clock.advance(HOUR)
        self.clock.advance(settings.digest.last_end(self.now) + after_s - self.now)

    def job(self, job_id: int, user: str, *, hours: int = 10, busy: bool = False, name: str = "train") -> None:
        """Add a job of one GPU that ends now."""
        start = (self.now // HOUR - hours) * HOUR
        record = job(job_id, user=user, name=name, start=start, end=start + hours * HOUR, elapsed_s=hours * HOUR)
        rows = [
            hour(record, 0, (start - T0) // HOUR + i, {90 if busy else 0: HOUR}, final=i == hours - 1)
            for i in range(hours)
        ]
        with self.store.writing() as db:
            add_rows(db, [record], rows)

    def rows(self, **more: Any) -> dict[str, tuple[str, str]]:
        """Return status and reason of each user in the audit."""
        listed = NoticeStore(self.store, self.clock).listed(0, 2**40, **more)
        return {row["user"]: (row["status"], row["why"]) for row in listed}

    def subjects(self) -> list[tuple[str, str]]:
        """Return to whom mail came, with its subject."""
        return [(mail.to[0], str(mail.message["Subject"])) for mail in self.mail.received]


@contextmanager
def notifying(directory: Path, **config: Any) -> Iterator[Rig]:
    """Run a store and a mail server; the hub's clock stands a few days after T0."""
    with running_mail_server() as mail:
        clock = FakeClock(T0)
        store = HubStore.open(directory / "hub.duckdb", clock)
        own = {
            "smtp_host": "127.0.0.1", "sender": "hpc@example.org", "address": "{user}@example.org", "dry_run": False,
            "zone": "Europe/Berlin",
        }  # fmt: skip
        try:
            yield Rig(store, clock, mail, {**own, **config})
        finally:
            store.close()

"""[notify] as the hub uses it, checked once at the start, and when periods end in the site's own time zone."""

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuwaste.act.notify.mail_addresses import is_address
from gpuwaste.act.notify.notice_decisions import NoticeRules
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.day_hours import Hours, parse_day_hours
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.units import DAY_S, HOUR_S

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TLS: Final = ("none", "starttls", "tls")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Periods end at a time of the day: every day, or on one weekday (0 is Monday). `zone` None is the host's."""

    at: time
    weekday: int | None = None
    zone: tzinfo | None = None

    def last_end(self, at: int) -> int:
        """Return the newest end of a period that is not after `at`."""
        day = datetime.fromtimestamp(at, self.zone).date()
        while (end := self._end_on(day)) is None or end > at:
            day -= timedelta(days=1)
        return end

    def period(self, at: int) -> tuple[int, int]:
        """Return the newest period that has ended by `at`."""
        end = self.last_end(at)
        return self.last_end(end - 1), end

    def periods(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the periods that ended in (start, end], the oldest first."""
        found = []
        period = self.period(end)
        while period[1] > start:
            found.append(period)
            period = self.period(period[0])
        return found[::-1]

    def _end_on(self, day: date) -> int | None:
        if self.weekday is not None and day.weekday() != self.weekday:
            return None
        return int(datetime.combine(day, self.at, self.zone).timestamp())


def read_time(text: str) -> time:
    """Read a time of the day, such as 08:00. Raises ConfigError."""
    try:
        found = time.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None or ":" not in text or found.microsecond:
        raise ConfigError(f"[notify] at {text!r}: expected a time of the day, such as 08:00")
    return found


def read_zone(name: str) -> tzinfo | None:
    """Return a zone by its name, None for the host's. Raises ConfigError."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"[notify] zone {name!r}: unknown time zone on this host") from error


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """The settings of a notifier; times in seconds."""

    digest: Schedule
    weekly: Schedule
    rules: NoticeRules = field(default_factory=NoticeRules)
    quiet_hours: Hours | None = None
    zone: tzinfo | None = None
    settle_s: float = 3600.0
    dry_run: bool = True
    sender: str = ""
    reply_to: str = ""
    staff: tuple[str, ...] = ()
    staff_users: int = 20  # one screen of a mail
    limit_mail: bool = False
    limit_min_s: float = 3600.0
    limit_mails: int = 3  # of a user in 24 hours; one mail lists all jobs due
    text: str = ""
    opt_out_file: Path | None = None

    @classmethod
    def from_config(cls, config: NotifyConfig) -> Self:
        """Check the section. Raises ConfigError."""
        zone = read_zone(config.zone)
        weekday = _one_of("weekday", config.weekday.lower(), WEEKDAYS)
        every = _one_of("every", config.every, ("week", "day"))
        _one_of("smtp_tls", config.smtp_tls, _TLS)
        _check(config)
        at = read_time(config.at)
        weekly = Schedule(at, weekday, zone)
        return cls(
            digest=weekly if every == 0 else Schedule(at, None, zone),
            weekly=weekly,
            rules=NoticeRules(
                min_wasted_s=config.min_wasted_gpu_h * HOUR_S,
                min_wasted_share=config.min_wasted_share,
                max_mails=config.max_mails,
                cooldown_s=config.cooldown_days * DAY_S,
            ),
            quiet_hours=parse_day_hours(config.quiet_hours, "[notify] quiet_hours") if config.quiet_hours else None,
            zone=zone,
            settle_s=config.settle_s,
            dry_run=config.dry_run,
            sender=config.sender,
            reply_to=config.reply_to,
            staff=config.staff,
            limit_mail=config.limit_mail,
            limit_min_s=config.limit_min_h * HOUR_S,
            text=config.text,
            opt_out_file=Path(config.opt_out_file) if config.opt_out_file else None,
        )

    def quiet(self, at: int) -> bool:
        """Return whether nothing is sent at `at` (UTC seconds)."""
        return self.quiet_hours is not None and self.quiet_hours.hold(datetime.fromtimestamp(at, self.zone))


def _check(config: NotifyConfig) -> None:
    if config.min_wasted_share > 1:
        raise ConfigError(f"[notify] min_wasted_share {config.min_wasted_share}: expected a share 0..1")
    if config.limit_mail and not config.smtp_host:
        raise ConfigError("[notify] limit_mail: smtp_host is empty: set the mail server")
    if config.smtp_host and not config.sender:
        raise ConfigError("[notify] sender is empty: set the address that mail is sent from")
    for name, text in (("sender", config.sender), ("reply_to", config.reply_to), *(("staff", a) for a in config.staff)):
        if text and not is_address(text):
            raise ConfigError(f"[notify] {name} {text!r}: expected a plain address, such as hpc@example.org")
    if config.smtp_user and config.smtp_tls == "none":
        raise ConfigError("[notify] smtp_user: the password would be sent in clear text: set smtp_tls")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> int:
    if value not in known:
        raise ConfigError(f"[notify] {name} {value!r}: expected one of {', '.join(known)}")
    return known.index(value)

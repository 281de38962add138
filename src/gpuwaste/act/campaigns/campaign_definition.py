"""Campaign: the tables and keys of a campaign's file, each declared once, with the text that the reference prints."""

# ruff: noqa: RUF009 - a key is declared by a call, and every default is immutable

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cached_property
from typing import Final, Literal, get_args

from gpuwaste.advice.policy.policy_file import NONE, Patterns
from gpuwaste.core.typed_toml import key as _key

Unit = Literal["user", "account"]
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)
SORTS: Final = ("policy", "rule")
DIGEST: Final = "digest"
NO_DATE: Final = date.min
WEEK: Final = 7  # days
_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class CampaignHead:
    """The keys of the file itself."""

    what: tuple[str, ...] = _key(
        (), 'What only a part of the units gets: "policy:NAME", "rule:NAME", "digest"; several are one campaign.'
    )
    unit: Unit = _key("user", "What is assigned as a whole: user, or account (where users of an account talk).")
    start: date = _key(NO_DATE, "First day, a TOML date; a week begins at local midnight of this day of the week.")
    end: date = _key(NO_DATE, "Last day; the campaign has whole weeks, 2 to 52.")
    held_back: float = _key(0.0, "Share of the units that is held back to the end, 0.1 to 0.9.")
    rollout_weeks: int = _key(
        0, "Instead of held_back: each week one more group of units is notified, until all are after so many weeks."
    )
    weeks_before: int = _key(8, "Weeks before the start whose outcomes adjust those of the campaign, 2 to 26.")
    users: Patterns = _key(NONE, "Shell patterns of the users to assign; without them all.")
    accounts: Patterns = _key(NONE, "Shell patterns of the accounts to assign; without them all.")
    reason: str = _key("", "Who changed the file last, and why; the record of the campaign has it.")


@dataclass(frozen=True)
class Campaign:
    """One campaign; `hash` changes with the file, `zone` is the site's time zone, None for the host's."""

    name: str
    file: str
    hash: str
    text: str
    head: CampaignHead
    zone: tzinfo | None = None

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The beginnings of its weeks and its end, UTC seconds."""
        return tuple(map(self._midnight, range(0, self.weeks * WEEK + 1, WEEK)))

    @cached_property
    def before(self) -> tuple[int, ...]:
        """The beginnings of the weeks before it, and its start, UTC seconds."""
        return tuple(map(self._midnight, range(-self.head.weeks_before * WEEK, 1, WEEK)))

    @property
    def weeks(self) -> int:
        """How many weeks it has."""
        return ((self.head.end - self.head.start).days + 1) // WEEK

    @property
    def start(self) -> int:
        """When it starts, UTC seconds."""
        return self.edges[0]

    @property
    def end(self) -> int:
        """When it ends, UTC seconds."""
        return self.edges[-1]

    def concerns(self, user: str, account: str) -> bool:
        """Return whether a user's job in an account is in the campaign at all."""
        head = self.head
        return (not head.users or head.users.match(user)) and (not head.accounts or head.accounts.match(account))

    def unit_of(self, user: str, account: str) -> str:
        """Return the unit of a user's job in an account."""
        return user if self.head.unit == "user" else account

    def of(self, sort: str) -> Iterator[str]:
        """Yield the names of the policies or rules that it is about."""
        for one in self.head.what:
            found, _, name = one.partition(":")
            if found == sort:
                yield name

    def _midnight(self, days: int) -> int:
        return int(datetime.combine(self.head.start + timedelta(days=days), time(), self.zone).timestamp())


def may_share_units(one: CampaignHead, other: CampaignHead) -> bool:
    """Return whether a user could be in both; lists of full names without a common one exclude it."""
    pairs = ((one.users, other.users), (one.accounts, other.accounts))
    return not any(_names(a) and _names(b) and not {*a.texts} & {*b.texts} for a, b in pairs)


def _names(patterns: Patterns) -> bool:
    return bool(patterns) and not any({*text} & {*"*?["} for text in patterns.texts)

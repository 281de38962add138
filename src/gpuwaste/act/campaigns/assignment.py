"""Assignment: who is notified when, by a keyed hash of campaign and unit; no table, so a restored hub assigns the same.

Without the key nobody can compute who is held back. Hub and advisors have the same key, so they agree without asking
each other.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.campaigns.campaign_file import CampaignSet, load_campaigns
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import read_closed
from gpuwaste.core.parts import Parts
from gpuwaste.core.site_files import WatchedFiles
from gpuwaste.core.text import short_cache

MAX_KEY_B: Final = 4096
_LEAST: Final = 16  # characters of a key
HOW_TO_MAKE: Final = "openssl rand -hex 32"
NO_KEY: Final = "[common] campaign_key_file is empty: campaigns need a key"
_SPAN: Final = 2.0**64
_CACHED: Final = 20_000
_REFUSED: Final = log_event.error(
    "campaign-refused: campaign not used, everybody is notified: {error}",
    "`gpuwaste effect --check`, then fix the file. The other campaigns stay in use.",
)


def read_key(path: Path) -> bytes:
    """Return the key of a file that others cannot read. Raises ConfigError."""
    found = read_closed(path, MAX_KEY_B).strip().encode()
    if len(found) < _LEAST:
        raise ConfigError(f"{path}: expected a key of at least {_LEAST} characters: {HOW_TO_MAKE}")
    return found


class Assignment:
    """Assigns the units of campaigns by one key. For any thread."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.fingerprint: Final = self._digest("", "fingerprint").hex()[:16]
        """What tells two keys apart, and nothing else of them."""
        self.place: Final[Callable[[str, str], float]] = short_cache(_CACHED)(self._place)

    def notified_from(self, campaign: Campaign, unit: str) -> int:
        """Return the first week in which a unit is notified, from 0; the number of weeks: never."""
        place, head = self.place(campaign.name, unit), campaign.head
        if head.rollout_weeks:
            return int(place * (head.rollout_weeks + 1))
        return campaign.weeks if place < head.held_back else 0

    def holds_back(self, campaign: Campaign, user: str, account: str, at: int) -> bool:
        """Return whether a user's job in an account is held back at an instant, UTC seconds."""
        if not campaign.start <= at < campaign.end or not campaign.concerns(user, account):
            return False
        week = next(number for number, edge in enumerate(campaign.edges[1:]) if at < edge)
        return week < self.notified_from(campaign, campaign.unit_of(user, account))

    def _place(self, campaign: str, unit: str) -> float:
        """Return a number from 0 up to 1, uniform over units and independent between campaigns."""
        return int.from_bytes(self._digest(campaign, unit)[:8]) / _SPAN

    def _digest(self, campaign: str, unit: str) -> bytes:
        said = f"{campaign}\0{unit}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, said, hashlib.sha256).digest()


class CampaignsInUse(HoldOut):
    """The campaigns of one directory with the site's key; one thread refreshes, any may read.

    Without a key no campaign is in use. A key that can no longer be read stays in use until the end of the process: a
    campaign that ends by an accident of the disk would tell those who were held back.
    """

    def __init__(self, directory: Path, key_file: Path | None) -> None:
        self._files = WatchedFiles(directory, lambda: load_campaigns(directory), CampaignSet((), ()))
        self._key_file = key_file
        self._assignment: Assignment | None = None
        self._reported: set[str] = set()
        self.key_error = ""
        self.refresh()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub or an advisor; the daemon refreshes it on a thread."""
        common = parts.get(Config).common
        return cls(Path(common.campaigns_dir), Path(common.campaign_key_file) if common.campaign_key_file else None)

    @property
    def campaigns(self) -> Sequence[Campaign]:
        """The campaigns in use."""
        return self._files.content.campaigns if self._assignment is not None else ()

    @property
    def assignment(self) -> Assignment | None:
        """The assignment by the site's key, None without a key."""
        return self._assignment

    @property
    def errors(self) -> list[str]:
        """Why campaigns, or all of them, are not in use."""
        found = [str(error) for error in self._files.content.errors]
        return [*found, self.key_error] if self.key_error and self._files.content.campaigns else found

    def refresh(self) -> None:
        """Read files and key again if they have changed; a new error is logged."""
        self._files.refresh()
        if self._files.content.campaigns or self._files.content.errors:
            self._read_key()
        for error in set(self.errors) - self._reported:
            _REFUSED.log(error=error)
        self._reported = set(self.errors)

    def holding_back(self, sort: str, name: str, user: str, account: str, at: int) -> str:
        """Return the campaign that holds back a policy, a rule or the digest from a user's job; "" for none."""
        what = f"{sort}:{name}" if name else sort
        for campaign in self.campaigns:
            if what in campaign.head.what and self._assigned(campaign, user, account, at):
                return campaign.name
        return ""

    def _assigned(self, campaign: Campaign, user: str, account: str, at: int) -> bool:
        return self._assignment is not None and self._assignment.holds_back(campaign, user, account, at)

    def _read_key(self) -> None:
        if self._key_file is None:
            self.key_error = NO_KEY
            return
        try:
            key = read_key(self._key_file)
        except ConfigError as error:
            self.key_error = str(error)
            return
        found = Assignment(key)
        self.key_error = ""
        if self._assignment is None or found.fingerprint != self._assignment.fingerprint:
            self._assignment = found

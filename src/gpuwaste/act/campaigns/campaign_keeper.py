"""CampaignKeeper: campaigns in the hub: reads their files each minute, keeps their record, tells what they measured.

The record shows who stopped or changed a campaign: the owner of the file and the reason in it. A change of what is
assigned ends the figures: weeks that begin after it are left out.
"""

import pwd
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final, Self

from gpuwaste.act.campaigns.assignment import CampaignsInUse
from gpuwaste.act.campaigns.campaign_definition import Campaign, CampaignHead
from gpuwaste.act.campaigns.campaign_file import campaign_from_toml
from gpuwaste.act.campaigns.campaign_store import CampaignStore, KeptCampaign, RecordRow
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ConfigError, GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import WEEK_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.campaign import CampaignNoted
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.store.hub.hub_store import HubStore

NEWS_S: Final = 4 * WEEK_S
"""After the end of a campaign for so long its end and its last week are new."""
_EVERY_S: Final = 60.0
_ASSIGNED_BY: Final = frozenset({"unit", "start", "held_back", "rollout_weeks", "users", "accounts"})
FOUND: Final = "found"
CHANGED: Final = "changed"
REASSIGNED: Final = "changed who is notified"
REMOVED: Final = "removed"
RETURNED: Final = "returned"
NEW_KEY: Final = "key changed"
ENDED: Final = "ended"
ASSIGNS_ANEW: Final = frozenset({REASSIGNED, NEW_KEY})
"""After these the weeks of a campaign are no longer comparable."""
_NOT_RECORDED: Final = log_event.warning(
    "campaigns-not-recorded: cannot record campaigns: {error}",
    "The store or its disk cannot be written. Campaigns go on; the record is written at the next attempt.",
)


class CampaignKeeper(Part):
    """`worker` runs it; any thread may call `campaigns` and read `store`."""

    def __init__(self, in_use: CampaignsInUse, store: HubStore, clock: Clock, cluster: Callable[[], str]) -> None:
        self.in_use = in_use
        self.store = CampaignStore(store)
        self._clock = clock
        self._cluster = cluster
        self.worker = Worker("campaigns", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        clock, cluster = parts.get(HostPorts).clock, parts.get(ClusterFacts).known
        return cls(parts.get(CampaignsInUse), parts.get(HubStore), clock, cluster)

    def step(self) -> None:
        """Read the files once and record what changed. Raises StoreError."""
        self.in_use.refresh()
        assignment, now = self.in_use.assignment, self._clock.utc_s()
        if assignment is None:
            return
        known = self.store.known()
        changed: list[KeptCampaign] = []
        lines: list[RecordRow] = []
        for campaign in self.in_use.campaigns:
            before = known.get(campaign.name)
            found = list(_changes(before, campaign, assignment.fingerprint))
            if found:
                first = now if before is None else before.first_utc
                changed.append(KeptCampaign(campaign.name, campaign.hash, campaign.text, assignment.fingerprint, first))
            for what, said in found:
                lines.append(RecordRow(campaign.name, now, what, campaign.hash, _words(campaign, said)))
        lines += self._gone(known, now, changed)
        if lines:
            self.store.save(changed, lines, [self._event(line) for line in lines], now)

    def _gone(self, known: Mapping[str, KeptCampaign], now: int, changed: list[KeptCampaign]) -> list[RecordRow]:
        """Return the lines on files that are missing or refused, and on campaigns that are over."""
        lines, there = [], {campaign.name: campaign for campaign in self.in_use.campaigns}
        for name, kept in known.items():
            if not kept.gone and name not in there:
                changed.append(KeptCampaign(name, kept.hash, kept.text, kept.key_print, kept.first_utc, now))
                lines.append(RecordRow(name, now, REMOVED, kept.hash, "the file is missing or not in use"))
            elif (campaign := there.get(name)) is not None and self._just_ended(campaign, now):
                lines.append(RecordRow(name, now, ENDED, kept.hash, f"after {campaign.weeks} weeks"))
        return lines

    def _just_ended(self, campaign: Campaign, now: int) -> bool:
        if not campaign.end <= now < campaign.end + NEWS_S:
            return False
        return not any(line.what == ENDED for line in self.store.record(campaign.name))

    def campaigns(self) -> list[tuple[Campaign, KeptCampaign]]:
        """Return every campaign that the hub has seen, also those whose file is gone. Raises StoreError."""
        found = []
        for kept in self.store.known().values():
            try:
                campaign = campaign_from_toml(kept.text.encode(), f"{kept.name}.toml", kept.name)
            except ConfigError:
                continue  # an older version accepted it
            found.append((campaign, kept))
        return found

    def _event(self, line: RecordRow) -> StoredEvent:
        data = CampaignNoted(self._cluster(), line.campaign, line.what, line.words, line.at_utc)
        unique = f"{line.what} {line.at_utc}"
        return tell("campaign.noted", data, line.at_utc, subject=f"campaign/{line.campaign}", unique=unique)

    def _turn(self) -> float:
        try:
            self.step()
        except GpuwasteError as error:
            _NOT_RECORDED.log(error=error)
        return _EVERY_S


def _changes(before: KeptCampaign | None, campaign: Campaign, key_print: str) -> list[tuple[str, str]]:
    """Return what has changed of a campaign, with words for its record."""
    if before is None:
        return [(FOUND, f"{campaign.head.start} to {campaign.head.end}, {campaign.weeks} weeks")]
    found = []
    if before.gone:
        found.append((RETURNED, "the file is in use again"))
    if before.key_print != key_print:
        found.append((NEW_KEY, "all units are assigned anew"))
    if before.hash != campaign.hash:
        keys = _changed_keys(before, campaign)
        found.append((REASSIGNED if _ASSIGNED_BY & set(keys) else CHANGED, ", ".join(keys) or "comments"))
    return found


def _changed_keys(before: KeptCampaign, campaign: Campaign) -> list[str]:
    try:
        old = campaign_from_toml(before.text.encode(), "", before.name).head
    except ConfigError:
        return ["everything"]
    names = [field.name for field in fields(CampaignHead)]
    return [name for name in names if repr(getattr(old, name)) != repr(getattr(campaign.head, name))]


def _words(campaign: Campaign, said: str) -> str:
    """Return what changed, with the owner of the file and the reason that it gives."""
    try:
        owner = pwd.getpwuid(Path(campaign.file).stat().st_uid).pw_name
    except (OSError, KeyError):
        owner = "unknown"
    reason = campaign.head.reason or "none given"
    return f"{said}; file of {owner}; reason: {reason}"

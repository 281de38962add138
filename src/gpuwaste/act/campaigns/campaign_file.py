"""Campaigns from files: a directory of TOML, one campaign per file, reloaded if a file changes.

A campaign's name is its file's. An error names file and key; a bad file does not affect the other campaigns. Of two
campaigns that could touch the same user at one time the later one is not used.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from pathlib import Path
from typing import Any, Final

from gpuwaste.act.campaigns.campaign_definition import (
    DIGEST,
    NO_DATE,
    SORTS,
    UNITS,
    WEEK,
    Campaign,
    CampaignHead,
    Unit,
    may_share_units,
)
from gpuwaste.advice.policy.policy_file import READERS
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.site_files import folder_files, read_each
from gpuwaste.core.text import PLAIN_NAME, words_of
from gpuwaste.core.typed_toml import nearest, parse_toml, read_data, read_table

MAX_FILE_B: Final = 64 * 1024
MAX_CAMPAIGNS: Final = 100
_SHARES: Final = (0.1, 0.9)
_WEEKS: Final = (2, 52)
_BEFORE: Final = (2, 26)
_WHAT: Final = 20
_REASON: Final = 200


@dataclass(frozen=True, slots=True)
class CampaignSet:
    """The usable campaigns, in the order of their names, and the errors of the others."""

    campaigns: Sequence[Campaign]
    errors: Sequence[ConfigError]


def load_campaigns(directory: Path, zone: tzinfo | None = None) -> CampaignSet:
    """Return the campaigns of a directory's `*.toml`; a missing directory has none."""
    try:
        return load_campaign_files(folder_files(directory, "campaigns", "[common] campaigns_dir", MAX_CAMPAIGNS), zone)
    except ConfigError as error:
        return CampaignSet((), [error])


def load_campaign_files(paths: Iterable[Path], zone: tzinfo | None = None) -> CampaignSet:
    """Return the campaigns of these files, each on its own, without those that overlap an earlier one."""
    found, errors = read_each(paths, lambda path: load_campaign(path, zone))
    good: list[Campaign] = []
    for campaign in sorted(found, key=lambda one: (one.head.start, one.name)):
        other = next((one for one in good if _overlap(one, campaign)), None)
        if other is None:
            good.append(campaign)
        else:
            errors.append(
                ConfigError(
                    f"{campaign.file}: overlaps {other.name} ({other.head.start} to {other.head.end}), and a user could"
                    " be in both: change the dates, or list different users in both"
                )
            )
    return CampaignSet(sorted(good, key=lambda one: one.name), errors)


def load_campaign(path: Path, zone: tzinfo | None = None) -> Campaign:
    """Return the campaign of a file. Raises ConfigError."""
    name = path.name.removesuffix(".toml")
    if not PLAIN_NAME.fullmatch(name):
        raise ConfigError(f"{path}: the file's name is the campaign's: letters, digits, . _ and - only, 64 at most")
    return campaign_from_toml(read_data(path, MAX_FILE_B, "a campaign"), str(path), name, zone)


def campaign_from_toml(data: bytes, where: str, name: str, zone: tzinfo | None = None) -> Campaign:
    """Return a campaign of TOML; `where` names it in errors, `name` is the campaign's. Raises ConfigError."""
    readers = {**READERS, date: _day, Unit: _unit}
    head: CampaignHead = read_table(CampaignHead, parse_toml(data, where), f"{where}:", readers)
    _check_what(head, where)
    _check_time(head, where)
    _check_assignment(head, where)
    if len(head.reason) > _REASON or head.reason != words_of(head.reason, _REASON):
        raise ConfigError(f"{where}: reason: expected one line of at most {_REASON} characters")
    return Campaign(name, where, hashlib.sha256(name.encode() + b"\0" + data).hexdigest(), data.decode(), head, zone)


def _check_what(head: CampaignHead, where: str) -> None:
    if not head.what:
        raise ConfigError(f'{where}: what: empty, so nothing would be held back: expected "policy:NAME", "rule:NAME"')
    if len(head.what) > _WHAT or len(set(head.what)) < len(head.what):
        raise ConfigError(f"{where}: what: at most {_WHAT}, each once")
    for one in head.what:
        sort, colon, name = one.partition(":")
        if one == DIGEST or (sort in SORTS and PLAIN_NAME.fullmatch(name)):
            continue
        hint = "" if colon else nearest(one, {DIGEST, *(f"{known}:NAME" for known in SORTS)})
        raise ConfigError(f'{where}: what: {one!r:.80}: expected "policy:NAME", "rule:NAME" or "digest"{hint}')


def _check_time(head: CampaignHead, where: str) -> None:
    for name, day in (("start", head.start), ("end", head.end)):
        if day == NO_DATE:
            raise ConfigError(f"{where}: {name}: missing: write a date without quotes, such as 2027-05-03")
    days = (head.end - head.start).days + 1
    if days % WEEK or not _WEEKS[0] <= days // WEEK <= _WEEKS[1]:
        raise ConfigError(
            f"{where}: end: {head.start} to {head.end} are {days} days: expected {_WEEKS[0]} to {_WEEKS[1]} whole weeks"
        )
    if not _BEFORE[0] <= head.weeks_before <= _BEFORE[1]:
        raise ConfigError(f"{where}: weeks_before: {head.weeks_before}: expected {_BEFORE[0]} to {_BEFORE[1]}")


def _check_assignment(head: CampaignHead, where: str) -> None:
    if bool(head.held_back) == bool(head.rollout_weeks):
        raise ConfigError(f"{where}: set one of held_back (a share) and rollout_weeks")
    least, most = _SHARES
    if head.held_back and not least <= head.held_back <= most:
        why = "nobody would be notified" if head.held_back >= 1 else "too few on one side to compare"
        raise ConfigError(f"{where}: held_back: {head.held_back:g}: {why}: expected {least} to {most}")
    weeks = ((head.end - head.start).days + 1) // WEEK
    if head.rollout_weeks and head.rollout_weeks >= weeks:
        raise ConfigError(f"{where}: rollout_weeks: {head.rollout_weeks}: expected less than the {weeks} weeks of it")


def _overlap(one: Campaign, other: Campaign) -> bool:
    same_time = one.head.start <= other.head.end and other.head.start <= one.head.end
    return same_time and may_share_units(one.head, other.head)


def _day(value: Any, where: str) -> date:
    found: date = READERS[date](value, where)
    if not 2000 <= found.year <= 2200:  # noqa: PLR2004 what every calendar and clock here can hold
        raise ConfigError(f"{where}: {found}: expected a day of the years 2000 to 2200")
    return found


def _unit(value: Any, where: str) -> Unit:
    if value not in UNITS:
        raise ConfigError(f"{where}: {value!r:.80}: expected {' or '.join(UNITS)}")
    unit: Unit = value
    return unit

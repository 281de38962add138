"""`scontrol show assoc_mgr flags=assoc,qos`: limits of associations and QOS, each with what is used of it now.

Slurm prints `LIMIT(USED)`, `N(USED)` where there is no limit. What is used per user of a QOS is listed below it by uid.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from gpuwaste.core.units import MINUTE_S
from gpuwaste.slurm.site.cluster_model import Association, LimitSet, LimitUsage, Qos, UserShare
from gpuwaste.slurm.site.site_fields import fields_of
from gpuwaste.slurm.site.slurm_values import MIB

_RECORD: Final = re.compile(r"^(?:ClusterName|QOS)=", re.MULTILINE)
_USED: Final = re.compile(r"(N|\d{1,18})\((\d{1,18})(?:\.\d+)?\)", re.ASCII)
_NAME: Final = re.compile(r"([^(]{0,256})(?:\((\d{1,10})\))?")
_FACTOR: Final = re.compile(r"[^\s/]*/[^\s/]*/[^\s/]*/([01](?:\.\d{1,9})?)", re.ASCII)
_UID: Final = re.compile(r"^[ \t]+(\d{1,10})[ \t\r]*$", re.MULTILINE | re.ASCII)
_USERS: Final = "User Limits"
_MOST_DIGITS: Final = 18  # of an int64


_Limited = tuple[int | None, int]
"""A limit (None: none) and how much of it is used now."""


def parse_assoc_mgr(text: str) -> tuple[tuple[Association, ...], tuple[Qos, ...]]:
    """Read every record; what cannot be read of one counts as no limit. Never raises."""
    starts = [found.start() for found in _RECORD.finditer(text)]
    found = [_record(text[start:stop]) for start, stop in pairwise([*starts, len(text)])]
    associations = tuple(one for one in found if isinstance(one, Association))
    return associations, tuple(one for one in found if isinstance(one, Qos))


def _record(record: str) -> Association | Qos:
    own, _, users = record.partition(_USERS)
    fields = fields_of(own)
    tres, used = _tres(fields.get("GrpTRES", ""))
    submit, submitted = _limited(fields.get("GrpSubmitJobs", ""))
    limits = LimitSet(
        grp_tres=tres,
        grp_submit_jobs=submit,
        max_tres_per_job=_tres(fields.get("MaxTRESPJ", ""))[0],
        max_tres_per_node=_tres(fields.get("MaxTRESPN", ""))[0],
        max_submit_per_user=_limited(fields.get("MaxSubmitJobs", ""))[0],
        max_wall_s=_minutes(fields.get("MaxWallPJ", "")),
    )
    usage = LimitUsage(used, submitted, {uid: _user(found) for uid, found in _by_uid(users).items()})
    if qos := _name(fields.get("QOS", "")):
        return Qos(qos, limits=limits, used=usage)
    return Association(
        account=fields.get("Account", ""),
        user=_name(fields.get("UserName", "")),
        parent=_name(fields.get("ParentAccount", "")),
        partition=fields.get("Partition", ""),
        limits=limits,
        default=fields.get("DefAssoc") == "Yes",
        fair_share=_factor(fields.get("SharesRaw/Norm/Level/Factor", "")),
        used=usage,
    )


def _user(fields: Mapping[str, str]) -> UserShare:
    tres, used = _tres(fields.get("MaxTRESPU", ""))
    most, submitted = _limited(fields.get("MaxSubmitJobsPU", ""))
    return UserShare(LimitSet(max_tres_per_user=tres, max_submit_per_user=most), used, submitted)


def _by_uid(text: str) -> dict[int, dict[str, str]]:
    heads = list(_UID.finditer(text))
    stops = [*(head.start() for head in heads), len(text)][1:]
    return {int(head[1]): fields_of(text[head.end() : stop]) for head, stop in zip(heads, stops, strict=False)}


def _name(text: str) -> str:
    found = _NAME.match(text)
    return found[1] if found else ""


def _factor(text: str) -> float | None:
    """Read the last of raw shares, normalized shares, level and factor."""
    found = _FACTOR.fullmatch(text)
    return float(found[1]) if found else None


def _limited(text: str) -> _Limited:
    found = _USED.fullmatch(text)
    if found is None:
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None, 0
    return None if found[1] == "N" else int(found[1]), int(found[2])


def _tres(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the TRES that are limited, and what is used of these; a memory is printed in MiB."""
    limits, used = {}, {}
    for name, _, value in (item.rpartition("=") for item in text.split(",")):
        limit, now = _limited(value)
        if name and limit is not None:
            scale = MIB if name == "mem" else 1
            limits[name], used[name] = limit * scale, now * scale
    return limits, used


def _minutes(text: str) -> int | None:
    found = _limited(text)[0]
    return None if found is None else found * MINUTE_S

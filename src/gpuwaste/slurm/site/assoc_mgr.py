"""`scontrol show assoc_mgr flags=assoc,qos`: limits of associations and QOS, each with what is used of it now.

Slurm prints `LIMIT(USED)`, `N(USED)` where there is no limit. What is used per user of a QOS is listed below it by uid.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from gpuwaste.core.units import MINUTE_S

_RECORD: Final = re.compile(r"^(?:ClusterName|QOS)=", re.MULTILINE)
_FIELD: Final = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/]{0,40})=(\S*)")
_USED: Final = re.compile(r"(N|\d{1,18})\((\d{1,18})(?:\.\d+)?\)", re.ASCII)
_NAME: Final = re.compile(r"([^(]{0,256})(?:\((\d{1,10})\))?")
_FACTOR: Final = re.compile(r"[^\s/]*/[^\s/]*/[^\s/]*/([01](?:\.\d{1,9})?)", re.ASCII)
_UID: Final = re.compile(r"^[ \t]+(\d{1,10})[ \t\r]*$", re.MULTILINE | re.ASCII)
_USERS: Final = "User Limits"
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Share:
    """A limit (None: none) and how much of it is used now; memory in bytes."""

    limit: int | None
    used: int = 0

    @property
    def left(self) -> int | None:
        """What may still be used, None without a limit."""
        return None if self.limit is None else max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class LimitSet:
    """The limits of one association (`qos` is "") or of one QOS (`account` and `user` are "").

    TRES by name: cpu, mem (bytes), node, billing, gres/gpu, gres/gpu:TYPE; times are seconds. `user_tres` and the like
    are what one user may have in a QOS, by uid. `fair_share` is the factor of a user's association, 0 to 1.
    """

    account: str = ""
    user: str = ""
    partition: str = ""
    parent: str = ""
    qos: str = ""
    default: bool = False
    grp_tres: dict[str, Share] = field(default_factory=dict)
    submit_jobs: Share = Share(None)
    max_submit_jobs: int | None = None
    max_tres_per_job: dict[str, int] = field(default_factory=dict)
    max_tres_per_node: dict[str, int] = field(default_factory=dict)
    max_wall_s: int | None = None
    user_tres: dict[int, dict[str, Share]] = field(default_factory=dict)
    user_submit_jobs: dict[int, Share] = field(default_factory=dict)
    fair_share: float | None = None


def parse_assoc_mgr(text: str) -> list[LimitSet]:
    """Read every record; what cannot be read of one counts as no limit. Never raises."""
    starts = [found.start() for found in _RECORD.finditer(text)]
    return [_limit_set(text[start:stop]) for start, stop in pairwise([*starts, len(text)])]


def _limit_set(record: str) -> LimitSet:
    own, _, users = record.partition(_USERS)
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(own):
        fields.setdefault(name, value)
    by_uid = _by_uid(users)
    return LimitSet(
        account=fields.get("Account", ""),
        user=_name(fields.get("UserName", "")),
        partition=fields.get("Partition", ""),
        parent=_name(fields.get("ParentAccount", "")),
        qos=_name(fields.get("QOS", "")),
        default=fields.get("DefAssoc") == "Yes",
        grp_tres=_shares(fields.get("GrpTRES", "")),
        submit_jobs=_share(fields.get("GrpSubmitJobs", "")),
        max_submit_jobs=_share(fields.get("MaxSubmitJobs", "")).limit,
        max_tres_per_job=_amounts(fields.get("MaxTRESPJ", "")),
        max_tres_per_node=_amounts(fields.get("MaxTRESPN", "")),
        max_wall_s=_minutes(fields.get("MaxWallPJ", "")),
        user_tres={uid: _shares(found.get("MaxTRESPU", "")) for uid, found in by_uid.items()},
        user_submit_jobs={uid: _share(found.get("MaxSubmitJobsPU", "")) for uid, found in by_uid.items()},
        fair_share=_factor(fields.get("SharesRaw/Norm/Level/Factor", "")),
    )


def _by_uid(text: str) -> dict[int, dict[str, str]]:
    heads = list(_UID.finditer(text))
    stops = [*(head.start() for head in heads), len(text)][1:]
    return {
        int(head[1]): dict(_FIELD.findall(text[head.end() : stop])) for head, stop in zip(heads, stops, strict=False)
    }


def _name(text: str) -> str:
    found = _NAME.match(text)
    return found[1] if found else ""


def _factor(text: str) -> float | None:
    """Read the last of raw shares, normalized shares, level and factor."""
    found = _FACTOR.fullmatch(text)
    return float(found[1]) if found else None


def _share(text: str) -> Share:
    found = _USED.fullmatch(text)
    if found is None:
        return Share(int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None)  # noqa: PLR2004 int64
    return Share(None if found[1] == "N" else int(found[1]), int(found[2]))


def _shares(text: str) -> dict[str, Share]:
    """Return the TRES that are limited; a memory is printed in MiB."""
    found = {}
    for name, _, value in (item.rpartition("=") for item in text.split(",")):
        share = _share(value)
        if name and share.limit is not None:
            scale = _MIB if name == "mem" else 1
            found[name] = Share(share.limit * scale, share.used * scale)
    return found


def _amounts(text: str) -> dict[str, int]:
    return {name: share.limit for name, share in _shares(text).items() if share.limit is not None}


def _minutes(text: str) -> int | None:
    found = _share(text).limit
    return None if found is None else found * MINUTE_S

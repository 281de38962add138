"""QOS and associations: limits, usage, administrators and coordinators, from sacctmgr, sshare and slurmctld itself.

slurmdbd keeps coordinators by account, for all its clusters at once, and sacctmgr also prints those of the parent
accounts, whatever the cluster of the parent. The associations show which cluster is meant.

Slurm prints `LIMIT(USED)`, `N(USED)` where there is no limit. The usage per user of a QOS is listed below it by uid.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.scope import ClusterAccount
from gpuwaste.core.units import MINUTE_S
from gpuwaste.slurm.accounting.tres_amounts import tres_amounts
from gpuwaste.slurm.site import slurm_values as values
from gpuwaste.slurm.site.cluster_model import Association, LimitSet, LimitUsage, Qos, UserShare
from gpuwaste.slurm.site.site_fields import fields_of
from gpuwaste.slurm.site.slurm_values import MIB

Row = Mapping[str, str]
CLUSTERS: Final = ("show", "cluster", "format=cluster")
ADMIN_LEVELS: Final = ("show", "user", "format=user,adminlevel")
COORDINATORS: Final = ("show", "account", "withcoord", "format=account,coord")
PLACES: Final = ("show", "assoc", "format=cluster,account,parentname,user")
_LIMITS: Final = ("GrpTRES", "GrpJobs", "GrpSubmit", "GrpWall", "MaxTRES", "MaxTRESPerNode")
QOS: Final = (
    *("Name", "Priority", "Preempt", "PreemptMode", "Flags", "UsageFactor"),
    *(*_LIMITS, "MaxTRESPU", "MaxJobsPU", "MaxSubmitPU", "MaxWall"),
)
ASSOCIATION: Final = (
    *("Account", "User", "ParentName", "Partition", "Share", "Priority"),
    *(*_LIMITS, "MaxJobs", "MaxSubmit", "MaxWall", "DefaultQOS", "QOS"),
)
USAGE: Final = ("Account", "User", "Partition", "RawUsage")
SSHARE: Final = ("sshare", "--all", "--noheader", "--parsable2", "--format", ",".join(USAGE))
EVENT: Final = ("NodeName", "TimeStart", "TimeEnd", "State")
_PARENT: Final = "parent"
_RECORD: Final = re.compile(r"^(?:ClusterName|QOS)=", re.MULTILINE)
_USED: Final = re.compile(r"(N|\d{1,18})\((\d{1,18})(?:\.\d+)?\)", re.ASCII)
_NAME: Final = re.compile(r"([^(]{0,256})(?:\((\d{1,10})\))?")
_FACTOR: Final = re.compile(r"[^\s/]*/[^\s/]*/[^\s/]*/([01](?:\.\d{1,9})?)", re.ASCII)
_UID: Final = re.compile(r"^[ \t]+(\d{1,10})[ \t\r]*$", re.MULTILINE | re.ASCII)
_USERS: Final = "User Limits"
_MOST_DIGITS: Final = 18  # of an int64

_Limited = tuple[int | None, int]
"""A limit (None: no limit) and its current usage."""


def parse_table(text: str, columns: tuple[str, ...], what: str) -> tuple[Row, ...]:
    """Read `--parsable2 --noheader` of these columns; `what` names the command in errors. Raises ParseError."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("|")]  # sshare indents accounts
        if len(cells) != len(columns):
            raise ParseError(
                f"{what}, line {number}: {len(cells)} columns where {len(columns)} were requested: {line[:80]!r}"
            )
        rows.append(dict(zip(columns, cells, strict=True)))
    return tuple(rows)


def parse_clusters(text: str) -> tuple[str, ...]:
    """Return the names of the clusters. Raises ParseError."""
    return tuple(name for (name,) in _rows(text, CLUSTERS))


def parse_admin_levels(text: str) -> dict[str, str]:
    """Return user -> level (None, Operator or Administrator, as printed). Raises ParseError."""
    return {user: level for user, level in _rows(text, ADMIN_LEVELS) if user}


def parse_coordinators(text: str) -> dict[str, frozenset[str]]:
    """Return account -> its coordinators, an empty set for accounts without one. Raises ParseError."""
    found: dict[str, frozenset[str]] = {}
    for account, users in _rows(text, COORDINATORS):
        found[account] = found.get(account, frozenset()) | frozenset(filter(None, users.split(",")))
    return found


@dataclass(frozen=True, slots=True)
class AccountPlace:
    """An association: an account in a cluster below `parent`, or with `user` a user in it."""

    cluster: str
    account: str
    parent: str
    user: str


def parse_places(text: str) -> list[AccountPlace]:
    """Return the associations. Raises ParseError."""
    return [AccountPlace(*row) for row in _rows(text, PLACES)]


def _rows(text: str, words: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    columns = tuple(words[-1].removeprefix("format=").split(","))
    return (tuple(row.values()) for row in parse_table(text, columns, f"sacctmgr {' '.join(words[:-1])}"))


def qos_of(rows: Iterable[Row]) -> tuple[Qos, ...]:
    """Return the QOS. Raises ParseError."""
    return tuple(_qos(row) for row in rows)


def associations_of(rows: Iterable[Row], usage: Iterable[Row] = ()) -> tuple[Association, ...]:
    """Return the associations, with the usage that sshare knows of each. Raises ParseError."""
    used = {(row["Account"], row["User"], row["Partition"]): row["RawUsage"] for row in usage}
    return tuple(_association(row, used.get((row["Account"], row["User"], row["Partition"]), "")) for row in rows)


def _qos(row: Row) -> Qos:
    what = f"QOS {row['Name']}"
    try:
        return Qos(
            name=row["Name"],
            priority=values.whole(row["Priority"] or "0", "Priority"),
            limits=_limits(row, max_jobs=row["MaxJobsPU"], max_submit=row["MaxSubmitPU"]),
            preempts=values.names(row["Preempt"]),
            preempt_mode=values.preempt_mode(row["PreemptMode"]),
            usage_factor=values.factor(row["UsageFactor"] or "1", "UsageFactor"),
            flags=values.names(row["Flags"]),
        )
    except ParseError as error:
        raise ParseError(f"{what}: {error}") from error


def _association(row: Row, used: str) -> Association:
    account, user = row["Account"], row["User"]
    shares = row["Share"].strip().lower()
    try:
        return Association(
            account=account,
            user=user,
            parent=account if user else row["ParentName"],
            partition=row["Partition"],
            shares=None if shares == _PARENT else values.whole(shares or "1", "Share"),
            limits=_limits(row, max_jobs=row["MaxJobs"], max_submit=row["MaxSubmit"]),
            default_qos=row["DefaultQOS"],
            qos=values.names(row["QOS"]),
            priority=values.whole(row["Priority"] or "0", "Priority"),
            usage=float(values.whole(used or "0", "RawUsage")),
        )
    except ParseError as error:
        raise ParseError(f"association {account} {user}: {error}") from error


def _limits(row: Row, *, max_jobs: str, max_submit: str) -> LimitSet:
    return LimitSet(
        grp_tres=tres_amounts(row["GrpTRES"]),
        grp_jobs=values.limit(row["GrpJobs"], "GrpJobs"),
        grp_submit_jobs=values.limit(row["GrpSubmit"], "GrpSubmit"),
        grp_wall_s=values.seconds(row["GrpWall"]),
        max_tres_per_job=tres_amounts(row["MaxTRES"]),
        max_tres_per_node=tres_amounts(row["MaxTRESPerNode"]),
        max_tres_per_user=tres_amounts(row.get("MaxTRESPU", "")),
        max_jobs_per_user=values.limit(max_jobs, "MaxJobs"),
        max_submit_per_user=values.limit(max_submit, "MaxSubmit"),
        max_wall_s=values.seconds(row["MaxWall"]),
    )


def coordinated(
    coordinators: Mapping[str, frozenset[str]], places: Iterable[AccountPlace]
) -> dict[ClusterAccount, frozenset[str]]:
    """Return the coordinators of each account of each cluster; `coordinators` are as sacctmgr prints them.

    A coordinator of the parent account in some clusters inherits the account, only in these clusters. Anybody else
    coordinates it in the clusters where they are a user of the account, or if there are none, wherever it exists.
    """
    parents: dict[str, dict[str, str]] = {}
    members: dict[tuple[str, str], set[str]] = {}
    for place in places:
        if place.user:
            members.setdefault((place.account, place.user), set()).add(place.cluster)
        else:
            parents.setdefault(place.account, {})[place.cluster] = place.parent
    found: dict[ClusterAccount, set[str]] = {}
    for account, users in coordinators.items():
        above = parents.get(account, {})
        for user in users:
            inherited = {cluster for cluster, parent in above.items() if user in coordinators.get(parent, ())}
            for cluster in (inherited or members.get((account, user)) or above.keys()) & above.keys():
                found.setdefault(ClusterAccount(cluster, account), set()).add(user)
    return {account: frozenset(users) for account, users in found.items()}


def parse_assoc_mgr(text: str) -> tuple[tuple[Association, ...], tuple[Qos, ...]]:
    """Read every record; a value that cannot be read counts as no limit. Never raises."""
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
    """Return the TRES that are limited, and the usage of these; memory is printed in MiB."""
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

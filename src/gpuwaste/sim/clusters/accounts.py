"""QOS and associations from sacctmgr's tables, and the usage of associations from sshare's."""

from collections.abc import Iterable

from gpuwaste.core.errors import ParseError
from gpuwaste.sim.cluster import Association, Limits, Qos
from gpuwaste.sim.clusters import values
from gpuwaste.slurm.site.site_tables import Row

_PARENT = "parent"


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


def _limits(row: Row, *, max_jobs: str, max_submit: str) -> Limits:
    return Limits(
        grp_tres=values.tres(row["GrpTRES"]),
        grp_jobs=values.limit(row["GrpJobs"], "GrpJobs"),
        grp_submit_jobs=values.limit(row["GrpSubmit"], "GrpSubmit"),
        grp_wall_s=values.seconds(row["GrpWall"]),
        max_tres_per_job=values.tres(row["MaxTRES"]),
        max_tres_per_node=values.tres(row["MaxTRESPerNode"]),
        max_tres_per_user=values.tres(row.get("MaxTRESPU", "")),
        max_jobs_per_user=values.limit(max_jobs, "MaxJobs"),
        max_submit_per_user=values.limit(max_submit, "MaxSubmit"),
        max_wall_s=values.seconds(row["MaxWall"]),
    )

"""What a whole site is made of, as Slurm prints it: `scontrol show`, `sacctmgr show` and `sshare`, by columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.site.cluster_config import SlurmConfig

Row = Mapping[str, str]
SHOWN: Final = (("node", "NodeName"), ("partition", "PartitionName"), ("reservation", "ReservationName"))
"""What scontrol shows, in the order of SiteTables' fields, and the key that begins a record."""
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


@dataclass(frozen=True, slots=True)
class SiteTables:
    """The rows of each table by column. `events` are what happened to nodes, empty where nobody asked for it.

    `qos`, `associations` and `usage` are empty for a site without slurmdbd.
    """

    config: SlurmConfig
    nodes: tuple[Row, ...] = ()
    partitions: tuple[Row, ...] = ()
    reservations: tuple[Row, ...] = ()
    qos: tuple[Row, ...] = ()
    associations: tuple[Row, ...] = ()
    usage: tuple[Row, ...] = ()
    events: tuple[Row, ...] = ()


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

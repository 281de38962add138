"""Who may use a partition, how many nodes of it one job may have, and how its resources are weighed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.site.cluster_config import records
from gpuwaste.slurm.site.tres_weights import parse_weights

_MAX_DIGITS: Final = 10
_EVERYBODY: Final = frozenset({"", "ALL"})


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """The rules of one partition; None and an empty set of `allow_` name no limit.

    `billing` is TRESBillingWeights as tres_weights.py has them, None where they cannot be read.
    """

    name: str
    allow_accounts: frozenset[str] = frozenset()
    deny_accounts: frozenset[str] = frozenset()
    allow_qos: frozenset[str] = frozenset()
    deny_qos: frozenset[str] = frozenset()
    allow_groups: frozenset[str] = frozenset()
    qos: str = ""
    max_nodes: int | None = None
    billing: Mapping[str, float] | None = field(default_factory=dict)


def parse_rules(text: str) -> dict[str, PartitionRules]:
    """Read `scontrol show partition` as partition -> its rules."""
    return {fields["PartitionName"]: _rules(fields) for fields in records(text, "PartitionName")}


def _rules(fields: Mapping[str, str]) -> PartitionRules:
    def names(key: str) -> frozenset[str]:
        value = fields.get(key, "")
        return frozenset() if value in _EVERYBODY else frozenset(value.split(","))

    qos, most = fields.get("QoS", ""), fields.get("MaxNodes", "")
    return PartitionRules(
        name=fields["PartitionName"],
        allow_accounts=names("AllowAccounts"),
        deny_accounts=names("DenyAccounts"),
        allow_qos=names("AllowQos"),
        deny_qos=names("DenyQos"),
        allow_groups=names("AllowGroups"),
        qos="" if qos == "N/A" else qos,
        max_nodes=int(most) if most.isascii() and most.isdigit() and len(most) <= _MAX_DIGITS else None,
        billing=_weights(fields.get("TRESBillingWeights", "")),
    )


def _weights(text: str) -> dict[str, float] | None:
    try:
        return parse_weights(text)
    except ParseError:
        return None

"""Who may use a partition, how many nodes of it one job may have, and what its resources are billed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import parse_size_b
from gpuwaste.slurm.cluster_config import records

_EVERYBODY: Final = frozenset({"", "ALL"})
_NO_NUMBER: Final = frozenset({"", "UNLIMITED", "0"})
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """The rules of one partition; None and an empty set of `allow_` name no limit.

    `billing` is TRESBillingWeights by TRES in lower case (cpu, mem, gres/gpu): the weight of one, of a byte for mem.
    """

    name: str
    allow_accounts: frozenset[str] = frozenset()
    deny_accounts: frozenset[str] = frozenset()
    allow_qos: frozenset[str] = frozenset()
    deny_qos: frozenset[str] = frozenset()
    allow_groups: frozenset[str] = frozenset()
    qos: str = ""
    max_nodes: int | None = None
    billing: Mapping[str, float] = field(default_factory=dict)


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
        max_nodes=int(most) if most.isascii() and most.isdigit() and most not in _NO_NUMBER else None,
        billing=_weights(fields.get("TRESBillingWeights", "")),
    )


def _weights(text: str) -> dict[str, float]:
    """Return the weights that can be read: `Mem=0.25G` is 0.25 for each GiB."""
    found = {}
    for name, equals, value in (item.partition("=") for item in text.split(",")):
        try:
            number = value.rstrip("KMGTPkmgtp")
            unit_b = parse_size_b(f"1{value[len(number) :] or 'M'}")
            weight = float(number)
        except (ValueError, ParseError):
            continue
        if equals and 0 <= weight < float("inf"):
            found[name.lower()] = weight / unit_b if name.lower() == "mem" else weight
    return found


def billing(weights: Mapping[str, float], tres: Mapping[str, int], *, largest: bool = False) -> float:
    """Return the billing TRES of an allocation; without weights its CPUs. `largest` is PriorityFlags=MAX_TRES."""
    if not weights:
        return float(tres.get("cpu", 0))
    parts = [weight * tres.get(name, 0) for name, weight in weights.items()]
    return max(parts) if largest else sum(parts)

"""The site of tests/fixtures/slurm/site: what Slurm 22.05 printed of a cluster with several kinds of nodes."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from gpuwaste.slurm.site import associations
from gpuwaste.slurm.site.cluster_model import ClusterModel
from gpuwaste.slurm.site.live_site import live_model
from gpuwaste.slurm.site.site_fields import parse_config, parse_nodes, parse_partitions, records

SITE = Path(__file__).parents[3] / "fixtures" / "slurm" / "site"


def printed(name: str) -> str:
    """Return what a command printed."""
    return (SITE / f"{name}.txt").read_text()


def model(changed: Mapping[str, str] = MappingProxyType({}), *, events: bool = False) -> ClusterModel:
    """Return the model as CommandClient reads it; `changed` are other texts, by the names of their files."""

    def text(name: str) -> str:
        return changed.get(name) or printed(name)

    usage = associations.parse_table(text("usage"), associations.USAGE, "sshare")
    return live_model(
        parse_config(text("config")),
        parse_nodes(text("node")),
        parse_partitions(text("partition")),
        reservations=records(text("reservation"), "ReservationName"),
        qos=associations.qos_of(associations.parse_table(text("qos"), associations.QOS, "qos")),
        associations=associations.associations_of(
            associations.parse_table(text("assoc"), associations.ASSOCIATION, "assoc"), usage
        ),
        events=associations.parse_table(text("event"), associations.EVENT, "event") if events else (),
    )

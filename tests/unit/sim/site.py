"""The site of tests/fixtures/slurm/site: what Slurm 22.05 printed of a cluster with several kinds of nodes."""

from pathlib import Path

from gpuwaste.slurm.site import site_tables
from gpuwaste.slurm.site.cluster_config import parse_config, records
from gpuwaste.slurm.site.site_tables import SiteTables, parse_table

SITE = Path(__file__).parents[2] / "fixtures" / "slurm" / "site"


def printed(name: str) -> str:
    """Return what a command printed."""
    return (SITE / f"{name}.txt").read_text()


def tables(*, events: bool = False) -> SiteTables:
    """Return the tables as CommandClient reads them."""
    nodes, partitions, reservations = (tuple(records(printed(what), key)) for what, key in site_tables.SHOWN)
    return SiteTables(
        parse_config(printed("config")),
        nodes,
        partitions,
        reservations,
        qos=parse_table(printed("qos"), site_tables.QOS, "qos"),
        associations=parse_table(printed("assoc"), site_tables.ASSOCIATION, "assoc"),
        usage=parse_table(printed("usage"), site_tables.USAGE, "sshare"),
        events=parse_table(printed("event"), site_tables.EVENT, "event") if events else (),
    )

"""The cluster that runs now: what scontrol, sacctmgr and sshare say of it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.sim.cluster import NEVER, ClusterModel, Node, Outage, Reservation
from gpuwaste.sim.clusters import accounts, hardware, settings, values
from gpuwaste.sim.clusters.checked import checked
from gpuwaste.sim.clusters.described import DescribedCluster
from gpuwaste.sim.clusters.values import Fields
from gpuwaste.slurm.accounting.tres import parse_tres
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.formats.times import parse_time_s
from gpuwaste.slurm.site.node_state import is_usable
from gpuwaste.slurm.site.site_tables import Row, SiteTables

SOURCE: Final = "the live cluster"


def live_machine(client: SlurmClient, since: int | None = None) -> ClusterModel:
    """Ask Slurm for the whole of it. `since` (UTC seconds): with the outages of nodes that slurmdbd knows from then on.

    What is not asked for or not modelled is in docs/how-to/simulate.md. Raises SlurmError, ParseError, ConfigError.
    """
    return model_of(client.site_tables(since))


def model_of(tables: SiteTables) -> ClusterModel:
    """Return the model of these tables. Raises ParseError, ConfigError."""
    decisive = settings.decisive(tables.config.settings)
    nodes = hardware.sorted_nodes(_node(row) for row in tables.nodes)
    cpus = {node.name: node.cpus for node in nodes}
    order = {node.name: index for index, node in enumerate(nodes)}
    partitions = []
    for row in tables.partitions:
        fields = _lower(row)
        if "oversubscribe" not in fields:
            raise ParseError(f"partition {row['PartitionName']}: its record is cut off before OverSubscribe=")
        partitions.append(hardware.partition_of(fields, _known(fields.get("nodes", ""), order), decisive))
    outages = tuple(_outages(tables.events, order))
    going_on = {outage.node for outage in outages if outage.end == NEVER}
    model = ClusterModel(
        name=tables.config.cluster_name,
        # A node whose outage is known from its start on is not down before.
        nodes=tuple(replace(node, down=False) if node.name in going_on else node for node in nodes),
        # A partition all of whose nodes are hidden (powered off in a cloud) has no place to run a job.
        partitions=tuple(each for each in partitions if each.nodes),
        qos=accounts.qos_of(tables.qos),
        associations=accounts.associations_of(tables.associations, tables.usage),
        reservations=tuple(_reservations(tables.reservations, order, cpus)),
        outages=outages,
        settings=decisive,
    )
    return checked(DescribedCluster(model, SOURCE))


def _lower(row: Row) -> dict[str, str]:
    return {key.lower(): value for key, value in row.items()}


def _node(row: Row) -> Node:
    fields = _lower(row)
    if "gres" not in fields or "realmemory" not in fields or "state" not in fields:
        raise ParseError(f"node {row['NodeName']}: its record is cut off before Gres=, RealMemory= or State=")
    try:
        return hardware.node_of(row["NodeName"], fields)
    except ParseError as error:
        raise ParseError(f"node {row['NodeName']}: {error}") from error


def _known(text: str, order: Mapping[str, int]) -> list[str]:
    """Return the nodes of a hostlist that are shown, each once, in the order of the model."""
    return sorted({name for name in expand(text) if name in order}, key=order.__getitem__)


def _reservations(rows: tuple[Row, ...], order: Mapping[str, int], cpus: Mapping[str, int]) -> Iterator[Reservation]:
    for row in rows:
        fields = _lower(row)
        nodes = _known(fields.get("nodes", ""), order)
        start, end = parse_time_s(fields.get("starttime", "")), parse_time_s(fields.get("endtime", ""))
        if start is None or end is None or not nodes or _of_some_cores(fields, sum(cpus[name] for name in nodes)):
            continue
        users, groups = _allowed(fields.get("users", "")), _allowed(fields.get("accounts", ""))
        yield Reservation(row["ReservationName"], tuple(nodes), start, max(end, start + 1), users, groups)


def _of_some_cores(fields: Fields, cpus: int) -> bool:
    """Tell whether a reservation leaves some CPUs of its nodes to everybody."""
    reserved = parse_tres(fields.get("tres", "")).get("cpu", "")
    return bool(reserved) and values.whole(reserved, "cpu") < cpus


def _allowed(text: str) -> frozenset[str]:
    """Return who may use a reservation; "all but these" is not modelled, so that nobody may."""
    return frozenset(name for name in values.names(text) if not name.startswith("-"))


def _outages(rows: tuple[Row, ...], order: Mapping[str, int]) -> Iterator[Outage]:
    for row in rows:
        start, end = parse_time_s(row["TimeStart"]), parse_time_s(row["TimeEnd"])
        end = NEVER if end is None else end
        if start is not None and end > start and row["NodeName"] in order and not is_usable(row["State"]):
            yield Outage(row["NodeName"], start, end)

"""The running cluster as one model, from the output of scontrol, sacctmgr and sshare."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from gpuwaste.slurm.accounting.tres_amounts import parse_tres
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.formats.slurm_times import parse_time_s
from gpuwaste.slurm.site import slurm_settings as settings
from gpuwaste.slurm.site import slurm_values as values
from gpuwaste.slurm.site.associations import Row
from gpuwaste.slurm.site.cluster_model import (
    NEVER,
    Association,
    ClusterModel,
    Node,
    Outage,
    Partition,
    Qos,
    Reservation,
    SlurmConfig,
)
from gpuwaste.slurm.site.model_checks import DescribedModel, checked
from gpuwaste.slurm.site.node_states import is_usable
from gpuwaste.slurm.site.site_fields import scheduled, sorted_nodes
from gpuwaste.slurm.site.slurm_values import Fields

SOURCE: Final = "the live cluster"


def live_model(
    config: SlurmConfig,
    nodes: Iterable[Node] = (),
    partitions: Iterable[Partition] = (),
    *,
    reservations: Iterable[Fields] = (),
    qos: Iterable[Qos] = (),
    associations: Iterable[Association] = (),
    events: Iterable[Row] = (),
) -> ClusterModel:
    """Return the model: `reservations` as scontrol shows them, `events` of nodes as sacctmgr does.

    docs/how-to/simulate.md lists what is not read or not modelled. Raises ParseError, ConfigError.
    """
    decisive = settings.decisive(config.settings)
    known = sorted_nodes(node.scheduled() for node in nodes)
    cpus = {node.name: node.cpus for node in known}
    order = {node.name: index for index, node in enumerate(known)}
    parts = [scheduled(each, _known(each.nodes, order), SlurmConfig(decisive)) for each in partitions]
    outages = tuple(_outages(events, order))
    going_on = {outage.node for outage in outages if outage.end == NEVER}
    model = ClusterModel(
        name=config.cluster_name,
        # A node whose outage is known from its start on is not down before.
        nodes=tuple(replace(node, state="") if node.name in going_on else node for node in known),
        # A partition whose nodes are all hidden (powered off in a cloud) cannot run a job.
        partitions=tuple(each for each in parts if each.nodes),
        qos=tuple(qos),
        associations=tuple(associations),
        reservations=tuple(_reservations(reservations, order, cpus)),
        outages=outages,
        settings=decisive,
    )
    return checked(DescribedModel(model, SOURCE))


def _known(names: Iterable[str], order: Mapping[str, int]) -> list[str]:
    """Return the nodes that are shown, each once, in the order of the model."""
    return sorted({name for name in names if name in order}, key=order.__getitem__)


def _reservations(rows: Iterable[Fields], order: Mapping[str, int], cpus: Mapping[str, int]) -> Iterator[Reservation]:
    for fields in rows:
        nodes = _known(expand(fields.get("nodes", "")), order)
        start, end = parse_time_s(fields.get("starttime", "")), parse_time_s(fields.get("endtime", ""))
        if start is None or end is None or not nodes or _of_some_cores(fields, sum(cpus[name] for name in nodes)):
            continue
        users, groups = _allowed(fields.get("users", "")), _allowed(fields.get("accounts", ""))
        yield Reservation(fields["reservationname"], tuple(nodes), start, max(end, start + 1), users, groups)


def _of_some_cores(fields: Fields, cpus: int) -> bool:
    """Return whether a reservation leaves some CPUs of its nodes to everybody."""
    reserved = parse_tres(fields.get("tres", "")).get("cpu", "")
    return bool(reserved) and values.whole(reserved, "cpu") < cpus


def _allowed(text: str) -> frozenset[str]:
    """Return who may use a reservation; "all but these" is not modelled: nobody may then."""
    return frozenset(name for name in values.names(text) if not name.startswith("-"))


def _outages(rows: Iterable[Row], order: Mapping[str, int]) -> Iterator[Outage]:
    for row in rows:
        start, end = parse_time_s(row["TimeStart"]), parse_time_s(row["TimeEnd"])
        end = NEVER if end is None else end
        if start is not None and end > start and row["NodeName"] in order and not is_usable(row["State"]):
            yield Outage(row["NodeName"], start, end)

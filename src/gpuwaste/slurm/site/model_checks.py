"""Checks of a cluster model before it is used: one rule each; errors name the place that breaks it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.text import words_of
from gpuwaste.core.units import DAY_S
from gpuwaste.slurm.site.cluster_model import Association, ClusterModel, LimitSet, Node, Partition
from gpuwaste.slurm.site.slurm_values import MOST

MAX_NODES: Final = 200_000
MAX_NAMES: Final = 4_000_000  # names of nodes in all partitions and reservations
MAX_OUTAGES: Final = 1_000_000
_LONGEST_NAME: Final = 255
_RESERVED: Final = frozenset('[],|"')
_LONGEST_S: Final = 999_999 * DAY_S  # of any duration that Slurm writes
_FIRST: Final = -(1 << 40)
_LAST: Final = 1 << 40  # the year 36812: beyond every trace
Kind = Literal["nodes", "partitions", "qos", "associations", "reservations", "outages", "failures", "settings"]
Place = tuple[Kind, int]
_Fault = tuple[Kind, int, str]


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """A model that is not checked yet.

    `source` names the file or the program; `places` has the line of each part, by its kind and its index there.
    """

    model: ClusterModel
    source: str
    places: Mapping[Place, str] = field(default_factory=dict)

    def place(self, kind: Kind, index: int = 0) -> str:
        """Return where a part is described, or the source where nothing more exact is known."""
        return self.places.get((kind, index), self.source)


@contextmanager
def located(place: str) -> Iterator[None]:
    """Name the place of a value that cannot be read: ParseError becomes ConfigError."""
    try:
        yield
    except ParseError as error:
        raise ConfigError(f"{place}: {error}") from error


def checked(found: DescribedModel) -> ClusterModel:
    """Return the model. Raises ConfigError for the first rule that is broken, with file and line."""
    for rule in _RULES:
        for kind, index, fault in rule(found.model):
            raise ConfigError(f"{found.place(kind, index)}: {fault}")
    return found.model


def _sizes(model: ClusterModel) -> Iterator[_Fault]:
    if not model.nodes:
        yield "nodes", 0, "no nodes: a machine needs at least one"
    if not model.partitions:
        yield "partitions", 0, "no partitions: a machine needs at least one"
    if len(model.nodes) > MAX_NODES:
        yield "nodes", 0, f"{len(model.nodes)} nodes: more than {MAX_NODES}"
    if len(model.outages) > MAX_OUTAGES:
        yield "outages", 0, f"{len(model.outages)} outages: more than {MAX_OUTAGES}"
    lists = [each.nodes for each in model.partitions] + [each.nodes for each in model.reservations]
    if sum(map(len, lists)) > MAX_NAMES:
        yield "partitions", 0, f"more than {MAX_NAMES} names of nodes in partitions and reservations"


def _names(model: ClusterModel) -> Iterator[_Fault]:
    yield from _unique("nodes", "node", [each.name for each in model.nodes])
    yield from _unique("partitions", "partition", [each.name for each in model.partitions])
    yield from _unique("qos", "QOS", [each.name for each in model.qos])
    yield from _unique("reservations", "reservation", [each.name for each in model.reservations])
    rows = [(each.account, each.user, each.partition) for each in model.associations]
    for index, (account, user, partition) in enumerate(rows):
        for name in filter(None, (account or " ", user, partition)):
            if fault := _bad_name(name):
                yield "associations", index, f"association {fault}"
    shown = [" ".join(filter(None, row)) for row in rows]
    for index in _repeated(rows):
        yield "associations", index, f"association {words_of(shown[index], 80)}: described twice"


def _unique(kind: Kind, what: str, names: Sequence[str]) -> Iterator[_Fault]:
    for index, name in enumerate(names):
        if fault := _bad_name(name):
            yield kind, index, f"{what} {fault}"
    for index in _repeated(names):
        yield kind, index, f"{what} {names[index]}: described twice"


def _bad_name(name: str) -> str:
    if not name.strip():
        return "without a name"
    if len(name) > _LONGEST_NAME or not name.isprintable() or " " in name or not _RESERVED.isdisjoint(name):
        return f"{words_of(ascii(name), 60)}: not a name that Slurm accepts"
    return ""


def _repeated(names: Sequence[Any]) -> Iterator[int]:
    seen: set[Any] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield index
        seen.add(name)


def _nodes(model: ClusterModel) -> Iterator[_Fault]:
    for index, node in enumerate(model.nodes):
        if fault := _bad_node(node):
            yield "nodes", index, f"node {node.name}: {fault}"


def _bad_node(node: Node) -> str:
    if not 1 <= node.cpus <= MOST:
        return f"{node.cpus} CPUs: a node has 1 or more"
    if not 0 <= node.memory_b <= MOST:
        return f"{node.memory_b} bytes of memory: expected 0 or more"
    for kind, count in node.gpus.items():
        if not 1 <= count <= MOST:
            return f"{count} GPUs{f' of type {words_of(kind, 40)}' if kind else ''}: expected 1 or more"
    if not 0 <= node.weight <= MOST:
        return f"weight {node.weight}: expected 0 or more"
    for word in (*filter(None, node.gpus), *node.features):
        if fault := _bad_name(word):
            return f"GPU type or feature {fault}"
    return ""


def _partitions(model: ClusterModel) -> Iterator[_Fault]:
    known = {node.name for node in model.nodes}
    defaults = 0
    for index, each in enumerate(model.partitions):
        defaults += each.default
        if fault := _bad_partition(each):
            yield "partitions", index, f"partition {each.name}: {fault}"
        if defaults > 1 and each.default:
            yield "partitions", index, f"partition {each.name}: a second default partition"
        yield from _unknown_nodes("partitions", index, f"partition {each.name}", each.nodes, known)


def _bad_partition(each: Partition) -> str:
    for name, value in (("MaxTime", each.max_time_s), ("DefaultTime", each.default_time_s)):
        if value is not None and not 1 <= value <= _LONGEST_S:
            return f"{name} of {value} s: no job can run; expected more than 0"
    if each.max_nodes is not None and each.max_nodes < each.min_nodes:
        return f"MaxNodes {each.max_nodes} is less than MinNodes {each.min_nodes}: no job can run"
    if each.min_nodes < 1:
        return f"MinNodes {each.min_nodes}: expected 1 or more"
    if min(each.priority_tier, each.priority_job_factor) < 0:
        return "a negative priority"
    for name, weight in (each.billing_weights or {}).items():
        if not 0 <= weight < MOST:
            return f"billing weight of {words_of(name, 40)}: {weight}: expected 0 or more"
    return ""


def _unknown_nodes(kind: Kind, index: int, what: str, nodes: Sequence[str], known: set[str]) -> Iterator[_Fault]:
    missing = [name for name in nodes if name not in known]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield kind, index, f"{what}: no node {words_of(missing[0], 80)}{more} is described"
    if not nodes:
        yield kind, index, f"{what}: no nodes"
    for place in _repeated(nodes):
        yield kind, index, f"{what}: node {nodes[place]} twice"


def _qos(model: ClusterModel) -> Iterator[_Fault]:
    known = {each.name for each in model.qos}
    for index, each in enumerate(model.qos):
        if fault := _bad_limits(each.limits):
            yield "qos", index, f"QOS {each.name}: {fault}"
        if not 0 <= each.usage_factor < MOST:
            yield "qos", index, f"QOS {each.name}: usage factor {each.usage_factor}: expected 0 or more"
        for name in sorted(each.preempts - known):
            yield "qos", index, f"QOS {each.name}: preempts {words_of(name, 80)}, which is not described"
    if known:
        for index, partition in enumerate(model.partitions):
            if partition.qos and partition.qos not in known:
                yield (
                    "partitions",
                    index,
                    f"partition {partition.name}: no QOS {words_of(partition.qos, 80)} is described",
                )


def _bad_limits(limits: LimitSet) -> str:
    for amounts in (limits.grp_tres, limits.max_tres_per_job, limits.max_tres_per_node, limits.max_tres_per_user):
        for name, amount in amounts.items():
            if not 0 <= amount <= MOST:
                return f"a limit of {amount} {words_of(name, 40)}: expected 0 or more"
    counts = (limits.grp_jobs, limits.grp_submit_jobs, limits.max_jobs_per_user, limits.max_submit_per_user)
    bounds = ((counts, MOST), ((limits.grp_wall_s, limits.max_wall_s), _LONGEST_S))
    bad = next((one for some, most in bounds for one in some if one is not None and not 0 <= one <= most), None)
    return "" if bad is None else f"a limit of {bad}: expected 0 or more"


def _associations(model: ClusterModel) -> Iterator[_Fault]:
    parents = {each.account: each.parent for each in model.associations if not each.user}
    for index, each in enumerate(model.associations):
        what = f"association {' '.join(filter(None, (each.account, each.user)))}"
        if fault := _bad_association(each):
            yield "associations", index, f"{what}: {fault}"
        if each.user and each.account not in parents:
            yield "associations", index, f"{what}: account {each.account} is not described"
        if not each.user and each.parent and each.parent not in parents:
            yield "associations", index, f"{what}: parent {words_of(each.parent, 80)} is not described"
    rooted = {""}
    for index, each in enumerate(model.associations):
        path: list[str] = []
        name = each.account
        while name not in rooted and len(path) <= len(parents):
            path.append(name)
            name = parents.get(name, "")
        if name not in rooted:
            yield "associations", index, f"account {each.account}: its parents form a cycle"
        rooted.update(path)


def _bad_association(each: Association) -> str:
    if each.shares is not None and not 0 <= each.shares <= MOST:
        return f"{each.shares} shares: expected 0 or more"
    if not 0 <= each.usage < MOST:
        return f"usage {each.usage}: expected 0 or more"
    return _bad_limits(each.limits)


def _intervals(model: ClusterModel) -> Iterator[_Fault]:
    known = {node.name for node in model.nodes}
    for index, each in enumerate(model.reservations):
        what = f"reservation {each.name}"
        yield from _bad_interval("reservations", index, what, each.start, each.end)
        yield from _unknown_nodes("reservations", index, what, each.nodes, known)
    for index, outage in enumerate(model.outages):
        what = f"outage of {words_of(outage.node, 80)}"
        yield from _bad_interval("outages", index, what, outage.start, outage.end)
        yield from _unknown_nodes("outages", index, what, (outage.node,), known)
    rates = model.failures
    if rates is not None and not (0 < rates.mtbf_h < MOST and 0 < rates.repair_h < MOST):
        yield "failures", 0, f"mtbf_h {rates.mtbf_h} and repair_h {rates.repair_h}: expected hours of more than 0"


def _bad_interval(kind: Kind, index: int, what: str, start: int, end: int) -> Iterator[_Fault]:
    if end <= start:
        yield kind, index, f"{what}: ends at {end}, before or at its start {start}"
    if not _FIRST <= start <= end <= _LAST:
        yield kind, index, f"{what}: from {start} to {end}: not times of a trace"


_RULES: Final[tuple[Callable[[ClusterModel], Iterator[_Fault]], ...]] = (
    *(_sizes, _names, _nodes, _partitions, _qos, _associations, _intervals),
)

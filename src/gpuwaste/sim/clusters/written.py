"""A model as the TOML that formats/toml.py reads back equal; defaults are left out, equal nodes are one table."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from gpuwaste.core.typed_toml import toml_value
from gpuwaste.core.units import format_duration
from gpuwaste.sim.cluster import Association, ClusterModel, Limits, Node, Outage, Partition, Qos, Reservation
from gpuwaste.sim.clusters.table_values import gpus_text
from gpuwaste.sim.clusters.tables import ALL, parent_of
from gpuwaste.sim.clusters.values import size_text, tres_text
from gpuwaste.slurm.formats.hostlist import MAX_NAMES, compressed
from gpuwaste.slurm.site.tres_weights import weights_text

_LAST_DATE: Final = 253_402_300_800  # the year 10000
Pairs = Iterable[tuple[str, str]]


def to_toml(model: ClusterModel) -> str:
    """Return the model as text. It must have been checked."""
    whole = tuple(node.name for node in model.nodes)
    lines = [f"name = {toml_value(model.name)}"]
    tables: list[tuple[str, Pairs]] = [("[[nodes]]", pairs) for pairs in _nodes(model.nodes)]
    tables += [("[[partitions]]", _partition(each, whole)) for each in model.partitions]
    tables += [("[[qos]]", _qos(each)) for each in model.qos]
    tables += [("[[associations]]", _association(each)) for each in model.associations]
    tables += [("[[reservations]]", _reservation(each, whole)) for each in model.reservations]
    tables += [("[[outages]]", _outage(each)) for each in model.outages]
    if model.failures is not None:
        rates = model.failures
        tables.append(("[failures]", [("mtbf_h", repr(rates.mtbf_h)), ("repair_h", repr(rates.repair_h))]))
    if model.settings:
        tables.append(("[settings]", [(_key(name), toml_value(value)) for name, value in model.settings.items()]))
    for header, pairs in tables:
        lines += ["", header, *(f"{name} = {value}" for name, value in pairs)]
    return "\n".join(lines) + "\n"


def _nodes(nodes: Iterable[Node]) -> Iterator[Pairs]:
    for _, group in groupby(nodes, lambda node: replace(node, name="")):
        alike = list(group)
        yield _node(alike)


def _node(alike: list[Node]) -> Iterator[tuple[str, str]]:
    one = alike[0]
    yield "names", _hosts([node.name for node in alike])
    yield "cpus", str(one.cpus)
    yield "memory", toml_value(size_text(one.memory_b))
    if one.gpus:
        yield "gpus", toml_value(gpus_text(one.gpus))
    yield from _lists(("features", one.features))
    yield from _numbers(("weight", one.weight, 1))
    yield from _flags(("down", one.down, False))


def _partition(each: Partition, whole: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield "name", toml_value(each.name)
    yield "nodes", toml_value(ALL[0]) if each.nodes == whole else _hosts(each.nodes)
    yield from _flags(("default", each.default, False), ("up", each.up, True))
    yield from _durations(("max_time", each.max_time_s), ("default_time", each.default_time_s))
    yield from _numbers(
        ("min_nodes", each.min_nodes, 1),
        ("max_nodes", each.max_nodes, None),
        ("priority_tier", each.priority_tier, 1),
        ("priority_job_factor", each.priority_job_factor, 1),
    )
    yield from _flags(("whole_nodes", each.whole_nodes, False))
    yield from _texts(("preempt_mode", each.preempt_mode or ""), ("qos", each.qos))
    yield from _lists(
        ("allow_accounts", each.allow_accounts),
        ("deny_accounts", each.deny_accounts),
        ("allow_qos", each.allow_qos),
        ("deny_qos", each.deny_qos),
    )
    yield from _texts(("billing_weights", weights_text(each.billing_weights)))


def _qos(each: Qos) -> Iterator[tuple[str, str]]:
    yield "name", toml_value(each.name)
    yield from _numbers(("priority", each.priority, 0))
    yield from _limits(each.limits)
    yield from _lists(("preempts", each.preempts))
    yield from _texts(("preempt_mode", each.preempt_mode or ""))
    yield from _numbers(("usage_factor", each.usage_factor, 1.0))
    yield from _lists(("flags", each.flags))


def _association(each: Association) -> Iterator[tuple[str, str]]:
    yield "account", toml_value(each.account)
    yield from _texts(("user", each.user))
    if each.parent != parent_of(each.account, each.user):
        yield "parent", toml_value(each.parent)
    yield from _texts(("partition", each.partition))
    if each.shares is None:
        yield "shares", toml_value("parent")
    else:
        yield from _numbers(("shares", each.shares, 1))
    yield from _limits(each.limits)
    yield from _texts(("default_qos", each.default_qos))
    yield from _lists(("qos", each.qos))
    yield from _numbers(("priority", each.priority, 0), ("usage", each.usage, 0.0))


def _limits(limits: Limits) -> Iterator[tuple[str, str]]:
    yield from _texts(
        ("grp_tres", tres_text(limits.grp_tres)),
        ("max_tres_per_job", tres_text(limits.max_tres_per_job)),
        ("max_tres_per_node", tres_text(limits.max_tres_per_node)),
        ("max_tres_per_user", tres_text(limits.max_tres_per_user)),
    )
    yield from _numbers(
        ("grp_jobs", limits.grp_jobs, None),
        ("grp_submit_jobs", limits.grp_submit_jobs, None),
        ("max_jobs_per_user", limits.max_jobs_per_user, None),
        ("max_submit_per_user", limits.max_submit_per_user, None),
    )
    yield from _durations(("grp_wall", limits.grp_wall_s), ("max_wall", limits.max_wall_s))


def _reservation(each: Reservation, whole: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield "name", toml_value(each.name)
    yield "nodes", toml_value(ALL[0]) if each.nodes == whole else _hosts(each.nodes)
    yield from (("start", _instant(each.start)), ("end", _instant(each.end)))
    yield from _lists(("users", each.users), ("accounts", each.accounts))


def _outage(each: Outage) -> Iterator[tuple[str, str]]:
    yield from (("node", toml_value(each.node)), ("start", _instant(each.start)), ("end", _instant(each.end)))


def _key(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else toml_value(name)


def _hosts(names: Iterable[str]) -> str:
    found = list(names)
    parts = [compressed(found[first : first + MAX_NAMES]) for first in range(0, len(found), MAX_NAMES)]
    return toml_value(parts[0]) if len(parts) == 1 else f"[{', '.join(map(toml_value, parts))}]"


def _instant(seconds: int) -> str:
    if not 0 <= seconds < _LAST_DATE:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _texts(*pairs: tuple[str, str]) -> Iterator[tuple[str, str]]:
    yield from ((name, toml_value(value)) for name, value in pairs if value)


def _lists(*pairs: tuple[str, frozenset[str]]) -> Iterator[tuple[str, str]]:
    yield from ((name, f"[{', '.join(map(toml_value, sorted(value)))}]") for name, value in pairs if value)


def _durations(*pairs: tuple[str, int | None]) -> Iterator[tuple[str, str]]:
    yield from ((name, toml_value(format_duration(value))) for name, value in pairs if value is not None)


def _numbers(*rows: tuple[str, float | None, float | None]) -> Iterator[tuple[str, str]]:
    yield from ((name, repr(value)) for name, value, default in rows if value != default)


def _flags(*rows: tuple[str, bool, bool]) -> Iterator[tuple[str, str]]:
    yield from ((name, "true" if value else "false") for name, value, default in rows if value != default)

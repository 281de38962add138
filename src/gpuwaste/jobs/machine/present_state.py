"""Outages and reservations from what slurmctld has now, for when slurmdbd does not answer, or there is none."""

from collections.abc import Iterable
from dataclasses import replace

from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes


def outages_now(stored: Iterable[NodeOutage], nodes: Iterable[Node], now: int) -> list[NodeOutage]:
    """Return the outages as of `now`: one that is over ends, a node that is down or drained has one.

    Of a state that changes without a time between, the first one stays.
    """
    states = {node.name: node.state for node in nodes if node.down}
    found = [
        replace(one, end=max(now, one.start + 1)) if one.end is None and one.node not in states else one
        for one in stored
    ]
    known = {one.node for one in found if one.end is None}
    return found + [NodeOutage(name, now, None, state) for name, state in states.items() if name not in known]


def reservations_now(stored: Iterable[ReservedNodes], shown: Iterable[ReservedNodes], now: int) -> list[ReservedNodes]:
    """Return the reservations as of `now`: one that was deleted ends, one that was changed ends and begins.

    One that was changed or deleted before its start is replaced or removed.
    """
    present = {one.name: one for one in shown if one.end > now}
    found = []
    for one in stored:
        new = present.get(one.name)
        if one.end <= now:
            found.append(one)
        elif new is not None and _is_unchanged(one, new, now):
            found.append(replace(one, end=new.end))
            del present[one.name]
        elif one.start < now:
            found.append(replace(one, end=now))
            if new is not None:
                present[one.name] = replace(new, start=max(new.start, now))
    return found + list(present.values())


def _is_unchanged(old: ReservedNodes, new: ReservedNodes, now: int) -> bool:
    """Return whether only the end can differ: of one that has begun, the printed start is that before any change."""
    same_start = new.start == old.start or max(new.start, old.start) <= now
    return same_start and (new.nodes, new.flags) == (old.nodes, old.flags)

"""A cluster for the board: nodes, partitions and reservations as arrays, the scheduler's settings, preemption."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from gpuwaste.core.errors import ConfigError, NoDataError
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Flags, Ints
from gpuwaste.slurm.site.cluster_model import ClusterModel

_END_WINDOW_S: Final = 30  # select/cons_tres and cons_res, 22.05
_DIGITS: Final = re.compile(r"[0-9]{1,9}")
_TYPES: Final = {"": "", "preempt/none": "", "none": "", "(null)": ""} | {
    name: name for name in ("preempt/qos", "preempt/partition_prio")
}
_REQUEUE: Final = "requeue"
_CANCEL: Final = "cancel"


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """Nodes that are up, by weight, then in the model's order; those that are down for good are left out.

    `full` [m, FIRST_TYPE + T] are idle nodes, `in_partition` [P, K] and `reserved` [R, K] which classes of nodes
    belong where, `nodes_of` [P, m] which nodes. `events` [e, 3] are as for play().
    """

    names: tuple[str, ...]
    gpu_types: tuple[str, ...]
    full: Ints
    in_partition: Flags
    reserved: Flags
    reservations: Ints
    nodes_of: Flags
    events: Ints


def layout(model: ClusterModel) -> NodeLayout:
    """Lay out a cluster. Raises NoDataError for one without partitions or without a node that is up."""
    up = sorted((node for node in model.nodes if not node.down), key=lambda node: node.weight)
    if not up or not model.partitions:
        raise NoDataError(f"cluster {model.name}: no {'partition' if up else 'node that is up'}: nothing can run there")
    numbers = {node.name: k for k, node in enumerate(up)}
    places = {node.name: k for k, node in enumerate(model.nodes)}
    types = tuple(sorted({name for node in up for name in node.gpus}))
    full = np.zeros((len(up), b.FIRST_TYPE + len(types)), np.int64)
    for row, node in zip(full, up, strict=True):
        row[b.FREE_CPUS], row[b.FREE_MEMORY], row[b.FREE_GPUS] = node.cpus, node.memory_b, node.gpu_count
        row[b.FIRST_TYPE :] = [node.gpus.get(name, 0) for name in types]
    nodes_of = _members([each.nodes for each in model.partitions], numbers)
    held = _members([each.nodes for each in model.reservations], numbers)
    alike = np.concatenate([full, nodes_of.T, held.T], axis=1)
    _, first, classes = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    full[:, b.CLASS], full[:, b.HOLDING] = classes.reshape(-1), -1
    full[:, b.WEIGHT], full[:, b.PLACE] = [node.weight for node in up], [places[node.name] for node in up]
    bounds = np.array([(each.start, each.end) for each in model.reservations], np.int64).reshape(-1, 2)
    events = [(int(time), -1, 0) for time in bounds.ravel()]
    for outage in model.outages:
        if outage.node in numbers and outage.end > outage.start:
            events += [(outage.start, numbers[outage.node], 1), (outage.end, numbers[outage.node], -1)]
    return NodeLayout(
        names=tuple(node.name for node in up),
        gpu_types=types,
        full=full,
        in_partition=nodes_of[:, first],
        reserved=held[:, first],
        reservations=bounds,
        nodes_of=nodes_of,
        events=np.array(sorted(events), np.int64).reshape(-1, 3),
    )


def _members(groups: Sequence[Sequence[str]], numbers: dict[str, int]) -> Flags:
    found = np.zeros((len(groups), len(numbers)), np.bool_)
    for row, names in zip(found, groups, strict=True):
        row[[numbers[name] for name in names if name in numbers]] = True
    return found


class _Number(NamedTuple):
    """A number of SchedulerParameters: its column, its unit, the default and the bounds in slurm.conf(5)."""

    column: int
    unit: int
    default: int
    least: int
    most: int


NUMBERS: Final = {
    "bf_interval": _Number(b.INTERVAL, 1, 30, 1, 10800),
    "bf_window": _Number(b.WINDOW, 60, 1440, 1, 43200),
    "bf_resolution": _Number(b.RESOLUTION, 1, 60, 1, 3600),
    "bf_max_job_test": _Number(b.MAX_TESTS, 1, 500, 1, 1_000_000),
    "bf_max_job_user": _Number(b.MAX_OF_USER, 1, 0, 0, 1_000_000),
    "bf_max_job_start": _Number(b.MAX_STARTS, 1, 0, 0, 10_000),
    "default_queue_depth": _Number(b.DEPTH, 1, 100, 1, 1_000_000),
    "sched_interval": _Number(b.FULL_INTERVAL, 1, 60, 1, 86400),
    "batch_sched_delay": _Number(b.DELAY, 1, 3, 0, 86400),
}


def lowered(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings by lower-case names, as slurm.conf takes them in any case."""
    return {name.lower(): text.strip() for name, text in settings.items()}


def parameters(settings: Mapping[str, str]) -> dict[str, str]:
    """Return SchedulerParameters by name; a flag has an empty text."""
    words = lowered(settings).get("schedulerparameters", "").split(",")
    pairs = (word.strip().partition("=") for word in words)
    return {name.strip().lower(): text.strip() for name, _, text in pairs if name.strip()}


def scheduler_settings(settings: Mapping[str, str]) -> Ints:
    """Return the settings of board.py. Raises ConfigError, which names the parameter, its value and its bounds."""
    given, found = parameters(settings), np.zeros(b.SETTINGS, np.int64)
    for name, number in NUMBERS.items():
        text = given.get(name)
        value = number.default if text is None else int(text) if _DIGITS.fullmatch(text) else -1
        if not number.least <= value <= number.most:
            raise ConfigError(
                f"SchedulerParameters: {name}={(text or '')[:40]!r}: expected a whole number from {number.least} to"
                f" {number.most}; correct it in slurm.conf or the machine file"
            )
        found[number.column] = value * number.unit
    every = lowered(settings)
    found[b.END_WINDOW] = _END_WINDOW_S
    found[b.DEFER] = "defer" in given or "defer_batch" in given
    found[b.BACKFILLS] = every.get("schedulertype", "sched/backfill").lower() != "sched/builtin"
    found[b.REQUEUES] = every.get("jobrequeue", "1").lower() not in {"0", "no"}
    return found


def preemption(model: ClusterModel, kinds: Ints) -> tuple[Flags, Ints]:
    """Return which kind may preempt which [G, G], and for each as a victim [G, 3]: its rank, whether it is requeued, 0.

    `kinds` [G, 2] are partition and QOS by their places in the model, QOS -1 for none. Raises ConfigError for another
    PreemptType.
    """
    settings = lowered(model.settings)
    text = settings.get("preempttype", "").lower()
    if text not in _TYPES:
        raise ConfigError(
            f"PreemptType={text[:40]!r}: expected preempt/none, preempt/partition_prio or preempt/qos;"
            " correct it in slurm.conf or the machine file"
        )
    words = {word.strip() for word in settings.get("preemptmode", "off").lower().split(",")}
    general = next((mode for mode in (_CANCEL, _REQUEUE) if mode in words), "off")
    by_qos, modes, ranks = _TYPES[text] == "preempt/qos", [], []
    for partition, qos in kinds.tolist():
        part = model.partitions[partition]
        own = (model.qos[qos].preempt_mode if qos >= 0 else None) if by_qos else part.preempt_mode
        modes.append(general if own is None else own)
        ranks.append((model.qos[qos].priority if qos >= 0 else 0) if by_qos else part.priority_tier)
    found = np.zeros((len(kinds), len(kinds)), np.bool_)
    for first, (partition, qos) in enumerate(kinds.tolist()):
        for second, (other, victim) in enumerate(kinds.tolist()):
            if not _TYPES[text] or modes[second] == "off":
                continue
            if by_qos:
                may = qos >= 0 and victim >= 0 and model.qos[victim].name in model.qos[qos].preempts
            else:
                may = model.partitions[partition].priority_tier > model.partitions[other].priority_tier
            found[first, second] = may
    victims = np.array([ranks, [mode == _REQUEUE for mode in modes], [0] * len(kinds)], np.int64).T.copy()
    return found, victims.reshape(len(kinds), 3)

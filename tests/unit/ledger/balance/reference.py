"""The balance of a small machine, second by second, as its definition reads: slow, and no code of the ledger's balance.

Times are whole seconds, spans are [start, end), memory is in bytes. `second` classifies all nodes in one second,
`sums` and `blocked` add up the seconds of a window.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from tests.unit.ledger.balance.happened import Amount, Case, Node, Run
from tests.unit.ledger.balance.reference_rooms import (
    free_at,
    has_kept,
    kept_class,
    kept_runs,
    less,
    node_at,
    runs_on,
    starts,
    state_class,
    waits,
)

HOUR: Final = 3600


# Step 2: what is left against the jobs for which nothing is kept


@dataclass
class Usable:
    """A node that takes jobs, in one second: what is kept by class, and what is left (`rest2` and the like)."""

    node: Node
    left: Amount
    kept: Counter[str] = field(default_factory=Counter)
    cause: str = "free"
    """The class of what is left."""
    counted: int = 0
    """The GPUs of it that the demand covers."""


@dataclass
class Moment:
    """All nodes that take jobs in one second, in the order of their names, and the jobs that want what is left."""

    case: Case
    t: int
    nodes: list[Usable]
    demand: list[Run]


def without_kept(case: Case, node: Node, t: int) -> Usable:
    """Return what is left of a node when the GPUs are kept."""
    found = Usable(node, free_at(case, node, t))
    for run in kept_runs(case, node.name, t):
        held = run.held[node.name]
        found.kept[kept_class(case, run, t)] += min(held.gpus, found.left.gpus)
        found.left = less(found.left, held)
    return found


def meets(node: Node, constraint: str | None) -> bool:
    """Whether the node has the features; it may have those of a constraint that cannot be read."""
    if not constraint:
        return True
    words = constraint.replace("|", "&").split("&")
    return (any if "|" in constraint else all)(word in node.features for word in words)


def concerns(run: Run, node: Node) -> bool:
    """Whether the node could ever run it, whatever type of GPU it asks for."""
    fits = run.share.gpus <= node.gpus and run.share.cpus <= node.cpus and run.share.memory <= node.memory
    return fits and meets(node, run.constraint) and bool(set(run.partitions) & set(node.partitions))


def obstacles(run: Run, on: Usable) -> set[str]:
    """Return what keeps it from the node now."""
    found = {
        "type": bool(run.gpu_type) and run.gpu_type not in on.node.gpu_type.split(","),
        "gpus": run.share.gpus > on.left.gpus,
        "memory": run.share.memory > on.left.memory,
        "cpus": run.share.cpus > on.left.cpus,
    }
    return {word for word, is_there in found.items() if is_there}


def enough_nodes(now: Moment, run: Run, but: set[str]) -> bool:
    """Whether it would fit on as many nodes as it asks for, were it not for the obstacles in `but`."""
    return sum(concerns(run, on.node) and obstacles(run, on) <= but for on in now.nodes) >= run.nodes


def fits_now(now: Moment, run: Run, on: Usable) -> bool:
    """Whether it could start now with a part of it here."""
    return not obstacles(run, on) and enough_nodes(now, run, set())


def starts_on(now: Moment, on: Usable) -> list[Run]:
    """Return the runs with GPUs that start on a node as far as the window knows, the first one first."""
    found = [run for run in now.case.runs if on.node.name in run.gpu_nodes and starts(now.case, run)]
    return sorted(found, key=lambda run: (run.start, run.job_id))


def claimer(now: Moment, on: Usable) -> Run | None:
    """Return the next run with GPUs to start on a node, if it waits already."""
    after = [run for run in starts_on(now, on) if run.start is not None and run.start > now.t]
    return after[0] if after and waits(now.case, after[0], now.t) else None


def claim_s(now: Moment, on: Usable, run: Run) -> int:
    """Return for how long the node is kept for its claimer: since it waits, or since the run with GPUs before it."""
    assert run.start is not None
    before = [one.start for one in starts_on(now, on) if one.start is not None and one.start < run.start]
    return run.start - max([run.waits_from, *before])


def is_planned(now: Moment, run: Run, on: Usable) -> bool:
    """Whether it fits, but the node is kept for a larger job, which it would have delayed."""
    other = claimer(now, on)
    if other is None or other.gpus <= run.gpus or run.is_limited:
        return False
    return fits_now(now, run, on) and (run.limit_s is None or run.limit_s >= claim_s(now, on, other))


def is_limit(now: Moment, run: Run, on: Usable) -> bool:
    """Whether it fits, but a limit keeps it."""
    return run.is_limited and fits_now(now, run, on)


def lacks_only(now: Moment, run: Run, on: Usable, what: str) -> bool:
    """Whether one thing keeps it from this node, and from the others that it needs at most this one thing."""
    return not run.is_limited and obstacles(run, on) == {what} and enough_nodes(now, run, {what})


def is_few(now: Moment, run: Run, on: Usable) -> bool:
    """Whether too few GPUs are free here, or on too few nodes."""
    found = obstacles(run, on)
    too_few_nodes = not found and not enough_nodes(now, run, set())
    return not run.is_limited and (found == {"gpus"} or too_few_nodes)


def is_other_type(_now: Moment, run: Run, on: Usable) -> bool:
    """Whether only the type of GPU keeps it away."""
    return not run.is_limited and obstacles(run, on) == {"type"}


CAUSES: Final[dict[str, Callable[[Moment, Run, Usable], bool]]] = {
    "free_planned": is_planned,
    "free_limit": is_limit,
    "free_memory": lambda now, run, on: lacks_only(now, run, on, "memory"),
    "free_cpus": lambda now, run, on: lacks_only(now, run, on, "cpus"),
    "free_few_gpus": is_few,
    "free_other_type": is_other_type,
}
"""The first that holds for any job of the demand is the cause."""


def free_class(now: Moment, on: Usable) -> str:
    """Return why what is left of a node is free."""
    concerned = [run for run in now.demand if concerns(run, on.node)]
    readable = [run for run in concerned if run.constraint is not None]
    for name, holds in CAUSES.items():
        if any(holds(now, run, on) for run in readable):
            return name
    return "free_unknown" if concerned else "free"


# Step 3: never more than the waiting jobs request


def bound(now: Moment) -> None:
    """Count of each kind of GPUs only as many as the demand requests: first what has a cause, by name of the node."""
    for kind in {(on.node.label, on.node.gpu_type) for on in now.nodes}:
        mine = [run for run in now.demand if set(run.partitions) & set(kind[0].split(","))]
        limited = sum(run.gpus for run in mine if run.is_limited)
        unlimited = sum(run.gpus for run in mine if not run.is_limited)
        nodes = [on for on in now.nodes if (on.node.label, on.node.gpu_type) == kind]
        limited = count(nodes, ("free_limit",), limited)
        causes = ("free_planned", "free_memory", "free_cpus", "free_few_gpus", "free_other_type")
        unlimited = count(nodes, causes, unlimited)
        count(nodes, ("free_unknown",), limited + unlimited)


def count(nodes: list[Usable], causes: tuple[str, ...], most: int) -> int:
    """Count GPUs of these causes in their order up to a number, and return what is left of it."""
    for cause in causes:
        for on in nodes:
            if on.cause == cause:
                on.counted = min(on.left.gpus, most)
                most -= on.counted
    return most


def moment(case: Case, t: int) -> Moment:
    """Return the nodes that take jobs in a second, each with its cause and how much of it counts."""
    there = [node for name in case.names if (node := node_at(case, name, t)) and not state_class(case, name, t)]
    demand = [run for run in case.runs if waits(case, run, t) and not has_kept(case, run, t)]
    now = Moment(case, t, [without_kept(case, node, t) for node in there], demand)
    for on in now.nodes:
        on.cause = free_class(now, on)
    bound(now)
    return now


# All GPUs of a second, who keeps them, and sums


@dataclass(frozen=True)
class Second:
    """The GPUs of one node in one second by class, and who keeps free ones from a job that waits."""

    node: Node
    gpus: dict[str, int]
    blocker: Run | None = None
    estimated: int = 0
    """GPUs of runs of which it is not known what they hold here; never more than are allocated."""
    over: int = 0
    """GPUs that runs hold beyond those of the node."""


def blocker(now: Moment, on: Usable) -> Run | None:
    """Return the run that takes most beyond its share of the GPUs; None where no run takes more than its share."""

    def excess(run: Run) -> Fraction:
        held = run.held[on.node.name]
        memory, cpus = (held.memory, on.node.memory), (held.cpus, on.node.cpus)
        return Fraction(*(memory if on.cause == "free_memory" else cpus)) - Fraction(held.gpus, on.node.gpus)

    taking = [run for run in runs_on(now.case, on.node.name, now.t) if excess(run) > 0]
    return min(taking, key=lambda run: (-excess(run), run.key), default=None)


def doubts(case: Case, node: Node, t: int) -> tuple[int, int]:
    """Return the GPUs that are estimated, and those beyond the node."""
    runs = runs_on(case, node.name, t)
    held = sum(run.held[node.name].gpus for run in runs)
    estimated = sum(run.held[node.name].gpus for run in runs if run.is_estimated)
    return min(estimated, held, node.gpus), max(0, held - node.gpus)


def of_usable(now: Moment, on: Usable) -> Second:
    """Return the classes of a node that takes jobs."""
    found = Counter({"allocated": on.node.gpus - on.left.gpus - on.kept.total()}) + on.kept
    found[on.cause] += on.counted
    found["free"] += on.left.gpus - on.counted
    is_blocked = on.cause in ("free_memory", "free_cpus") and on.counted
    return Second(on.node, dict(+found), blocker(now, on) if is_blocked else None, *doubts(now.case, on.node, now.t))


def of_unusable(case: Case, node: Node, t: int) -> Second:
    """Return the classes of a node that takes no jobs."""
    rest = free_at(case, node, t).gpus
    word = state_class(case, node.name, t)
    assert word is not None
    return Second(node, dict(+Counter({"allocated": node.gpus - rest, word: rest})), None, *doubts(case, node, t))


def second(case: Case, t: int) -> dict[str, Second]:
    """Return each node that is there in a second, by its name."""
    now = moment(case, t)
    found = {on.node.name: of_usable(now, on) for on in now.nodes}
    others = (node_at(case, name, t) for name in case.names if name not in found)
    return found | {node.name: of_unusable(case, node, t) for node in others if node}


def seconds(case: Case) -> Iterator[tuple[int, Second]]:
    """Yield each second of each node in the window."""
    for t in range(case.start, case.end):
        for found in second(case, t).values():
            yield t, found


def sums(rows: Iterable[tuple[int, Second]]) -> Counter[tuple[int, str, str, str]]:
    """Return GPU-seconds by hour (its start), partition label, GPU type and class."""
    total: Counter[tuple[int, str, str, str]] = Counter()
    for t, found in rows:
        for word, gpus in found.gpus.items():
            total[t - t % HOUR, found.node.label, found.node.gpu_type, word] += gpus
    return total


def doubtful(rows: Iterable[tuple[int, Second]]) -> tuple[Counter[tuple[int, str, str]], Counter[tuple[int, str, str]]]:
    """Return GPU-seconds that are estimated, and those beyond nodes, by hour, partition label and GPU type."""
    estimated: Counter[tuple[int, str, str]] = Counter()
    over: Counter[tuple[int, str, str]] = Counter()
    for t, found in rows:
        place = t - t % HOUR, found.node.label, found.node.gpu_type
        estimated[place] += found.estimated
        over[place] += found.over
    return +estimated, +over


def blocked(rows: Iterable[tuple[int, Second]]) -> Counter[tuple[int, str, tuple[int, int], str]]:
    """Return the GPU-seconds that each run kept free: by hour, cause, run (job id and start) and node."""
    total: Counter[tuple[int, str, tuple[int, int], str]] = Counter()
    for t, found in rows:
        for cause in ("free_memory", "free_cpus"):
            if found.blocker is not None and cause in found.gpus:
                total[t - t % HOUR, cause, found.blocker.key, found.node.name] += found.gpus[cause]
    return total

"""The balance of a small machine, second by second, as its definition reads: slow, and no code of the ledger's balance.

Times are whole seconds, spans are [start, end), memory is in bytes. `second` classifies one node in one second,
`sums` and `blocked` add up a window.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tests.unit.ledger.balance.happened import ENDLESS, Amount, Case, Node, Reservation, Run

HOUR = 3600
CYCLE_S = 60
"""A job that starts within this time was only waiting for the next pass of the scheduler."""
DOWN_WORDS = ("DOWN", "FAIL", "ERROR", "NOT_RESPONDING", "*")
DRAIN_WORD = "DRAIN"


@dataclass(frozen=True)
class Second:
    """The GPUs of one node in one second by class, and who keeps free ones from a job that waits."""

    node: Node
    gpus: dict[str, int]
    blocker: int | None = None


def node_at(case: Case, name: str, t: int) -> Node | None:
    """Return what the node was."""
    return next((node for node in case.nodes if node.name == name and node.start <= t < node.end), None)


def states_at(case: Case, name: str, t: int) -> list[str]:
    """Return the states of the node's outages."""
    rows = (outage for outage in case.outages if outage.node == name)
    return [row.state for row in rows if row.start <= t < (ENDLESS if row.end is None else row.end)]


def reservations_at(case: Case, name: str, t: int) -> list[Reservation]:
    """Return the reservations that have the node."""
    return [one for one in case.reservations if name in one.nodes and one.start <= t < one.end]


def is_unknown(case: Case, name: str, t: int) -> bool:
    """Whether nothing is known of the node's state."""
    return any(node == name and start <= t < end for node, start, end in case.unknown)


def runs_on(case: Case, name: str, t: int) -> list[Run]:
    """Return the runs that hold something on the node."""
    return [run for run in case.runs if run.holds(name, t)]


def free_at(case: Case, node: Node, t: int) -> Amount:
    """Return what runs leave of the node, never less than nothing."""
    held = [run.held[node.name] for run in runs_on(case, node.name, t)]
    return Amount(
        max(0, node.gpus - sum(amount.gpus for amount in held)),
        max(0, node.cpus - sum(amount.cpus for amount in held)),
        max(0, node.memory - sum(amount.memory for amount in held)),
    )


def state_class(case: Case, name: str, t: int) -> str | None:
    """Return the class of the rest of a node that takes no job, None for one that does."""
    states = states_at(case, name, t)
    if any(word in state for state in states for word in DOWN_WORDS):
        return "down"
    if any(DRAIN_WORD in state for state in states):
        return "drained"
    if states:
        return "down"  # slurmdbd has an event of a node only while it is not up
    reserved = reservations_at(case, name, t)
    if any("MAINT" in one.flags for one in reserved):
        return "maintenance"
    if reserved:
        return "reserved"
    return "not_known" if is_unknown(case, name, t) else None


def leaves_at(case: Case, run: Run) -> int:
    """Return when it stops waiting."""
    return next((t for t in (run.start, run.end) if t is not None), case.end)


def waits(case: Case, run: Run, t: int) -> bool:
    """Whether it waits for GPUs outside of reservations."""
    asks = run.gpus >= 1 and not run.reservation and not run.is_held
    return asks and run.waits_from <= t < leaves_at(case, run)


def concerns(run: Run, node: Node) -> bool:
    """Whether the node could ever run it, whatever type of GPU it asks for."""
    fits = run.share.gpus <= node.gpus and run.share.cpus <= node.cpus and run.share.memory <= node.memory
    allowed = run.constraint is None or not run.constraint or run.constraint in node.features
    return fits and allowed and bool(set(run.partitions) & set(node.partitions))


def obstacles(case: Case, run: Run, node: Node, t: int) -> set[str]:
    """Return what keeps it from the node now."""
    free, need = free_at(case, node, t), run.share
    found = {
        "type": run.gpu_type not in ("", node.gpu_type),
        "gpus": need.gpus > free.gpus,
        "memory": need.memory > free.memory,
        "cpus": need.cpus > free.cpus,
    }
    return {word for word, is_there in found.items() if is_there}


def usable(case: Case, t: int) -> Iterator[Node]:
    """Yield the nodes that take jobs."""
    for name in case.names:
        node = node_at(case, name, t)
        if node is not None and state_class(case, name, t) is None:
            yield node


def enough_nodes(case: Case, run: Run, t: int, but: set[str]) -> bool:
    """Whether it would fit on as many nodes as it asks for, were it not for the obstacles in `but`."""
    fitting = [n for n in usable(case, t) if concerns(run, n) and obstacles(case, run, n, t) <= but]
    return len(fitting) >= run.nodes


def fits_now(case: Case, run: Run, node: Node, t: int) -> bool:
    """Whether it could start now with a part of it here."""
    return not obstacles(case, run, node, t) and enough_nodes(case, run, t, set())


def is_cycle(case: Case, run: Run, node: Node, t: int) -> bool:
    """Whether it fits and starts at once: the scheduler had not looked yet."""
    soon = run.start is not None and run.start - t <= CYCLE_S
    return fits_now(case, run, node, t) and not run.is_limited and soon


def next_on(case: Case, node: Node, t: int) -> Run | None:
    """Return the next run with GPUs that starts on the node; of several at once the lowest job id."""
    coming = [r for r in case.runs if r.gpus >= 1 and node.name in r.held and r.start is not None and r.start > t]
    return min(coming, key=lambda run: (run.start, run.job_id), default=None)


def claim_length(case: Case, node: Node, claimer: Run) -> int:
    """Return for how long the node was kept for the claimer: since it waits, or since the run with GPUs before it."""
    start = claimer.start
    assert start is not None
    others = (r.start for r in case.runs if r is not claimer and r.gpus >= 1 and node.name in r.held)
    return start - max([claimer.waits_from, *(other for other in others if other is not None and other < start)])


def is_planned(case: Case, run: Run, node: Node, t: int) -> bool:
    """Whether it fits, but the node is kept for a larger job, which it would have delayed."""
    claimer = next_on(case, node, t)
    if claimer is None or claimer.waits_from > t or claimer.gpus <= run.gpus:
        return False
    long = run.limit_s is None or run.limit_s >= claim_length(case, node, claimer)
    return fits_now(case, run, node, t) and not run.is_limited and long


def is_limit(case: Case, run: Run, node: Node, t: int) -> bool:
    """Whether it fits, but a limit keeps it."""
    return fits_now(case, run, node, t) and run.is_limited


def lacks_only(case: Case, run: Run, node: Node, t: int, what: str) -> bool:
    """Whether one thing keeps it from this node, and from the others that it needs at most this one thing."""
    only = obstacles(case, run, node, t) == {what}
    return only and not run.is_limited and enough_nodes(case, run, t, {what})


def is_few(case: Case, run: Run, node: Node, t: int) -> bool:
    """Whether too few GPUs are free here, or on too few nodes."""
    found = obstacles(case, run, node, t)
    too_few_nodes = not found and not enough_nodes(case, run, t, set())
    return (found == {"gpus"} or too_few_nodes) and not run.is_limited


def is_other_type(case: Case, run: Run, node: Node, t: int) -> bool:
    """Whether only the type of GPU keeps it away."""
    return obstacles(case, run, node, t) == {"type"} and not run.is_limited


CAUSES = {
    "free_cycle": is_cycle,
    "free_planned": is_planned,
    "free_limit": is_limit,
    "free_memory": lambda case, run, node, t: lacks_only(case, run, node, t, "memory"),
    "free_cpus": lambda case, run, node, t: lacks_only(case, run, node, t, "cpus"),
    "free_few_gpus": is_few,
    "free_other_type": is_other_type,
}
"""The first that holds for any job that waits is the cause."""
CLASSES = ("allocated", "down", "drained", "maintenance", "reserved", *CAUSES, "free_unknown", "free", "not_known")


def free_class(case: Case, node: Node, t: int) -> str:
    """Return why GPUs of a node that takes jobs are free."""
    concerned = [run for run in case.runs if waits(case, run, t) and concerns(run, node)]
    readable = [run for run in concerned if run.is_readable]
    for name, holds in CAUSES.items():
        if any(holds(case, run, node, t) for run in readable):
            return name
    return "free_unknown" if concerned else "free"


def blocker(case: Case, node: Node, t: int, cause: str) -> int | None:
    """Return the run that takes most beyond its share of the GPUs; None where no run takes more than its share."""

    def excess(run: Run) -> Fraction:
        held = run.held[node.name]
        much = Fraction(held.memory, node.memory) if cause == "free_memory" else Fraction(held.cpus, node.cpus)
        return much - Fraction(held.gpus, node.gpus)

    taking = [run for run in runs_on(case, node.name, t) if excess(run) > 0]
    worst = min(taking, key=lambda run: (-excess(run), run.job_id), default=None)
    return worst.job_id if worst else None


def second(case: Case, name: str, t: int) -> Second | None:
    """Return the classes of a node's GPUs in one second; None for a node that is not there."""
    node = node_at(case, name, t)
    if node is None:
        return None
    rest = free_at(case, node, t).gpus
    found = {"allocated": node.gpus - rest}
    who = None
    if rest:
        cause = state_class(case, name, t) or free_class(case, node, t)
        found[cause] = rest
        who = blocker(case, node, t, cause) if cause in ("free_memory", "free_cpus") else None
    return Second(node, {word: gpus for word, gpus in found.items() if gpus}, who)


def seconds(case: Case) -> Iterator[tuple[int, Second]]:
    """Yield each second of each node in the window."""
    for t in range(case.start, case.end):
        for name in case.names:
            found = second(case, name, t)
            if found:
                yield t, found


def sums(case: Case) -> Counter[tuple[int, str, str, str]]:
    """Return GPU-seconds by hour (its start), partition label, GPU type and class."""
    total: Counter[tuple[int, str, str, str]] = Counter()
    for t, found in seconds(case):
        for word, gpus in found.gpus.items():
            total[t - t % HOUR, found.node.label, found.node.gpu_type, word] += gpus
    return total


def blocked(case: Case) -> Counter[tuple[int, str]]:
    """Return the GPU-seconds that each run kept free, by its job id and cause."""
    total: Counter[tuple[int, str]] = Counter()
    for _, found in seconds(case):
        for cause in ("free_memory", "free_cpus"):
            if found.blocker is not None and cause in found.gpus:
                total[found.blocker, cause] += found.gpus[cause]
    return total

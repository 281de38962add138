"""Step 1 of the reference: what each node is in a second, which jobs wait, and which GPUs are kept for one that starts.

Times are whole seconds, spans are [start, end), memory is in bytes.
"""

from functools import lru_cache
from typing import Final

from tests.unit.ledger.balance.happened import ENDLESS, Amount, Case, Node, Reservation, Run

CYCLE_S: Final = 60
"""A job that has room and starts within this time waits for the next pass of the scheduler."""
DOWN_WORDS: Final = ("DOWN", "FAIL", "ERROR", "NOT_RESPONDING", "*")
DRAIN_WORD: Final = "DRAIN"


# What each node is, and what runs hold there


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


def runs_on(case: Case, name: str, t: int) -> list[Run]:
    """Return the runs that hold something on the node."""
    return [run for run in case.runs if run.holds(name, t)]


def state_word(state: str) -> str:
    """Return the class of an outage; slurmdbd has an event of a node only while it is not up."""
    is_drained = DRAIN_WORD in state and not any(word in state for word in DOWN_WORDS)
    return "drained" if is_drained else "down"


def reservation_word(one: Reservation) -> str:
    """Return the class of a reservation."""
    return "maintenance" if "MAINT" in one.flags else "reserved"


def state_class(case: Case, name: str, t: int) -> str | None:
    """Return the class of the rest of a node that takes no job, None for one that is usable."""
    found = {state_word(state) for state in states_at(case, name, t)}
    found |= {reservation_word(one) for one in reservations_at(case, name, t)}
    if t < case.states_from and not runs_on(case, name, t):
        found.add("not_known")
    return next((word for word in ("down", "drained", "maintenance", "reserved", "not_known") if word in found), None)


def less(one: Amount, other: Amount) -> Amount:
    """Return what is left of an amount, never less than nothing."""
    return Amount(max(0, one.gpus - other.gpus), max(0, one.cpus - other.cpus), max(0, one.memory - other.memory))


def free_at(case: Case, node: Node, t: int) -> Amount:
    """Return what runs leave of the node."""
    left = Amount(node.gpus, node.cpus, node.memory)
    for run in runs_on(case, node.name, t):
        left = less(left, run.held[node.name])
    return left


# Jobs that wait, and step 1: GPUs kept for the run that takes them


def starts(case: Case, run: Run) -> bool:
    """Whether it starts as far as the window knows."""
    return run.start is not None and run.start < case.end


def leaves_at(case: Case, run: Run) -> int:
    """Return when it stops waiting."""
    return min(case.end, *(t for t in (run.start, run.end, ENDLESS) if t is not None))


def waits(case: Case, run: Run, t: int) -> bool:
    """Whether it waits for GPUs outside of reservations."""
    asks = run.gpus >= 1 and not run.reservation and not run.is_held
    return asks and run.waits_from <= t < leaves_at(case, run)


def has_room(case: Case, run: Run, name: str, t: int) -> bool:
    """Whether what it then holds on a node is free there."""
    node, needs = node_at(case, name, t), run.held[name]
    if node is None or state_class(case, name, t):
        return False
    free = free_at(case, node, t)
    return free.gpus >= needs.gpus and free.cpus >= needs.cpus and free.memory >= needs.memory


@lru_cache(maxsize=1000)
def room_from(case: Case, run: Run, name: str) -> int:
    """Return the first second of the unbroken room on a node until its start; the start where there is none."""
    assert run.start is not None
    first = run.start
    while first > run.waits_from and has_room(case, run, name, first - 1):
        first -= 1
    return first


def has_kept(case: Case, run: Run, t: int) -> bool:
    """Whether GPUs are kept for it anywhere."""
    return starts(case, run) and any(room_from(case, run, name) <= t for name in run.gpu_nodes)


def kept_class(case: Case, run: Run, t: int) -> str:
    """Return why what is kept for it is free."""
    assert run.start is not None
    if any(room_from(case, run, name) > t for name in run.gpu_nodes):
        return "free_planned"
    if run.is_limited:
        return "free_limit"
    return "free_cycle" if run.start - t <= CYCLE_S else "free_unknown"


def kept_runs(case: Case, name: str, t: int) -> list[Run]:
    """Return the runs for which GPUs of a node are kept, the first to start first."""
    waiting = (run for run in case.runs if waits(case, run, t) and starts(case, run))
    found = [run for run in waiting if name in run.gpu_nodes and room_from(case, run, name) <= t]
    return sorted(found, key=lambda run: (run.start, run.job_id))

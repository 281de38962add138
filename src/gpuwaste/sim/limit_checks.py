"""Limits of QOS and associations: which job may start now, compiled.

The order and the precedence are those of slurm/limit_order.py. Not modelled: submit limits (a trace holds what was
accepted), minutes of TRES, limits per account, and that Slurm counts a node that two jobs of a group share once.
"""

from typing import Final

from gpuwaste.sim.assoc_limits import (
    COUNTS,
    GROUP,
    GRP_JOBS,
    GRP_WALL,
    KINDS,
    MAX_WALL,
    NODE,
    PER_JOB,
    PER_NODE,
    PER_USER,
    TRES_CODES,
    Floats,
    LimitTable,
    LimitUse,
)
from gpuwaste.sim.compiled import in_place
from gpuwaste.slurm.site import limit_order

MAY_START: Final = 0
_holds: Final = in_place(limit_order.holds)


@in_place
def counts_hold(
    limits: Floats, stronger: tuple[Floats, Floats], jobs: tuple[float, float], wall: float, limit_s: int, safe: bool
) -> int:
    """Return 1 and the place of the first count limit [4] that holds a job back, 0 for none.

    What one of `stronger` limits is not checked again. `jobs` are those of the group and those that MAX_JOBS counts.
    """
    for k in range(COUNTS):
        if not _holds(limits[k], stronger[0][k], stronger[1][k]):
            continue
        if k == GRP_WALL:
            minutes = wall // 60.0
            held = minutes >= limits[k] // 60.0 or (safe and minutes * 60.0 + limit_s > limits[k])
        elif k == MAX_WALL:
            held = limit_s > limits[k]
        else:
            held = jobs[0 if k == GRP_JOBS else 1] >= limits[k]
        if held:
            return 1 + k
    return 0


@in_place
def tres_hold(limits: Floats, stronger: tuple[Floats, Floats], used: Floats, amounts: Floats, nodes: float) -> int:
    """Return the column of the first TRES limit that a job of these amounts would exceed, -1 for none.

    With `nodes` it is a limit of each node, of which the job has that many.
    """
    for k in range(len(amounts)):
        if amounts[k] == 0.0 or not _holds(limits[k], stronger[0][k], stronger[1][k]):
            continue
        if (amounts[k] // nodes if nodes > 0.0 else amounts[k] + used[k]) > limits[k]:
            return k
    return -1


@in_place
def held_by(
    table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, amounts: Floats, limit_s: int
) -> int:
    """Return what holds a job back now: MAY_START, or a code that reason() names.

    `qos` as from qos_order(), `assoc` the node of its association (-1: none), `amounts` [TRES], `limit_s` seconds.
    With use of an empty cluster: what would hold it back for ever.
    """
    return held_at(table, use, qos, assoc, user, amounts, limit_s)[0]


@in_place
def held_at(
    table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, amounts: Floats, limit_s: int
) -> tuple[int, int]:
    """Return held_by(), and the QOS or the association whose limit it is, by their place (-1: nothing holds it)."""
    if not table.any_limit:
        return MAY_START, -1
    found, place = counts_of(table, use, qos, assoc, user, limit_s)
    return (found, place) if found != MAY_START else tres_of(table, use, qos, assoc, user, amounts)


@in_place
def counts_of(
    table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, limit_s: int
) -> tuple[int, int]:
    """Return code and place of the first limit of jobs or walls that holds a job back, MAY_START for none."""
    none = table.qos_counts[-1]
    first, second = table.qos_counts[qos[0]], table.qos_counts[qos[1]]
    user = min(user, use.user_jobs.shape[1] - 1)
    for turn in range(2):
        one = qos[turn]
        jobs, stronger = (use.qos_jobs[one], use.user_jobs[one, user]), (none if turn == 0 else first, none)
        limits = first if turn == 0 else second
        found = counts_hold(limits, stronger, jobs, use.qos_wall[one], limit_s, table.safe)
        if found > 0:
            return found, one
    k = assoc
    while k >= 0:
        jobs, wall = (use.assoc_jobs[k], use.assoc_jobs[k]), use.assoc_wall[k]
        limits = table.assoc_counts[k] if k == assoc else table.above_counts[k]
        found = counts_hold(limits, (first, second), jobs, wall, limit_s, table.safe)
        if found > 0:
            return found + COUNTS, k
        k = table.parent[k]
    return MAY_START, -1


@in_place
def tres_of(
    table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, amounts: Floats
) -> tuple[int, int]:
    """Return code and place of the first limit of TRES that holds a job back, MAY_START for none."""
    width, nothing = len(amounts), use.qos_tres[-1]
    nodes = max(1.0, amounts[NODE])
    user = min(user, use.user_jobs.shape[1] - 1)
    for turn in range(2):
        one = qos[turn]
        for kind in range(KINDS):
            none = table.qos_tres[-1, kind]
            stronger = (none if turn == 0 else table.qos_tres[qos[0], kind], none)
            used = use.qos_tres[one] if kind == GROUP else use.user_tres[one, user] if kind == PER_USER else nothing
            by_node = nodes if kind == PER_NODE else 0.0
            column = tres_hold(table.qos_tres[one, kind], stronger, used, amounts, by_node)
            if column >= 0:
                return TRES_CODES + kind * width + column, one
    k = assoc
    while k >= 0:
        for kind in range(PER_USER if k == assoc else PER_JOB):
            stronger = (table.qos_tres[qos[0], kind], table.qos_tres[qos[1], kind])
            used = use.assoc_tres[k] if kind == GROUP else nothing
            by_node = nodes if kind == PER_NODE else 0.0
            column = tres_hold(table.assoc_tres[k, kind], stronger, used, amounts, by_node)
            if column >= 0:
                return TRES_CODES + (KINDS + kind) * width + column, k
        k = table.parent[k]
    return MAY_START, -1


@in_place
def count_job(
    table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, user: int, amounts: Floats, sign: int
) -> None:
    """Add a job that starts (sign 1) to what is used, or take off one that ended (-1)."""
    if not table.any_limit:
        return
    user = min(user, use.user_jobs.shape[1] - 1)
    for one in qos:
        if one >= 0:
            use.qos_jobs[one] += sign
            use.user_jobs[one, user] += sign
            for k in range(len(amounts)):
                use.qos_tres[one, k] += sign * amounts[k]
                use.user_tres[one, user, k] += sign * amounts[k]
    while assoc >= 0:
        use.assoc_jobs[assoc] += sign
        for k in range(len(amounts)):
            use.assoc_tres[assoc, k] += sign * amounts[k]
        assoc = table.parent[assoc]


@in_place
def charge_wall(table: LimitTable, use: LimitUse, qos: tuple[int, int], assoc: int, seconds: float) -> None:
    """Add to what GrpWall counts: usage.decayed() of a running job times the UsageFactor of its QOS, each period."""
    for one in qos:
        if one >= 0:
            use.qos_wall[one] += seconds
    while assoc >= 0:
        use.assoc_wall[assoc] += seconds
        assoc = table.parent[assoc]

"""Jobs that a limit holds back leave the queue until a job ends that the limit counts: compiled.

A holder is what holds a job back: an array's throttle, a QOS, a QOS for one user, an association. Jobs that one holder
holds and that count equally wait in one list by priority: while the first of them is held, so are the others. The end
of a job wakes the lists of its holders: their first jobs are checked again in the next pass, in the order of priority,
and one that may start wakes the next of its list. So a pass costs the same however many jobs are held.
"""

from typing import Final, NamedTuple

import numpy as np

from gpuwaste.plan.start_time.scheduler_queue import Floats, Ints, QueueLimits
from gpuwaste.sim.assoc_limits import COUNTS, KINDS, MAX_JOBS, PER_USER, TRES_CODES, LimitTable, LimitUse, no_use
from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.limit_checks import MAY_START, count_job, held_at

# Columns of `owner`.
STRONGER: Final = 0
WEAKER: Final = 1
ASSOC: Final = 2
USER: Final = 3
THROTTLE: Final = 4

# Columns of `lists`: the list's amounts, its first and last job, whether its first job is awake, the holder's next one.
ALIKE: Final = 0
HEAD: Final = 1
TAIL: Final = 2
AWAKE: Final = 3
NEXT: Final = 4
_COLUMNS: Final = 5

# Places of `sizes`.
LISTS: Final = 0
WOKEN: Final = 1


class HeldBack(NamedTuple):
    """Which jobs are held by which holder.

    `ran` [t] counts running tasks of arrays, `begun` [users] starts, `after` [n] is the next
    job of a list, `first` [holders] the first list, `woken` [lists, 2] jobs with their list, the first one last.
    """

    table: LimitTable
    use: LimitUse
    throttles: Ints
    ran: Ints
    begun: Ints
    first: Ints
    lists: Ints
    after: Ints
    woken: Ints
    sizes: Ints


def use_of(limits: QueueLimits, owner: Ints, tres: Floats, users: int) -> tuple[LimitUse, Ints]:
    """Return the usage of limits by running jobs [n], for users numbered below `users`, and tasks by throttle."""
    use, ran = no_use(limits.table, users), np.zeros(len(limits.throttles), np.int64)
    count_all(limits.table, use, ran, owner, tres)
    return use, ran


@compiled
def count_all(table: LimitTable, use: LimitUse, ran: Ints, owner: Ints, tres: Floats) -> None:
    """Add jobs [n] to the usage."""
    for job in range(len(owner)):
        count_one(table, use, ran, owner[job], tres[job], 1)


@in_place
def count_one(table: LimitTable, use: LimitUse, ran: Ints, owner: Ints, tres: Floats, sign: int) -> None:
    """Add a job that starts (1), or subtract one that ends (-1)."""
    count_job(table, use, (owner[STRONGER], owner[WEAKER]), owner[ASSOC], owner[USER], tres, sign)
    if owner[THROTTLE] >= 0:
        ran[owner[THROTTLE]] += sign


@compiled
def never_allowed(table: LimitTable, use: LimitUse, owner: Ints, tres: Floats, limit: Ints) -> Ints:
    """Return 1 for each job [n] that a limit would hold back on an empty cluster too."""
    found = np.zeros(len(owner), np.int64)
    for job in range(len(owner)):
        one = owner[job]
        code = held_at(table, use, (one[STRONGER], one[WEAKER]), one[ASSOC], one[USER], tres[job], limit[job])[0]
        found[job] = code != MAY_START
    return found


@compiled
def new_held_back(table: LimitTable, use: LimitUse, throttles: Ints, ran: Ints, owner: Ints, groups: int) -> HeldBack:
    """Return it with no job held. `owner` [n, 5]; `groups` is the number of distinct owners and amounts."""
    users = 1
    for job in range(len(owner)):
        users = max(users, owner[job, USER] + 1)
    limited = table.any_limit or len(throttles) > 0
    qos, depth = len(table.qos_counts), 5
    for k in range(len(table.parent)):
        above, steps = table.parent[k], 6
        while above >= 0:
            above, steps = table.parent[above], steps + 1
        depth = max(depth, steps)
    holders = len(throttles) + qos + qos * users + len(table.parent) if limited else 0
    rows = groups * depth if limited else 0
    return HeldBack(
        table,
        use,
        throttles,
        ran,
        np.zeros(users, np.int64),
        np.full(holders, -1, np.int64),
        np.empty((rows, _COLUMNS), np.int64),
        np.full(len(owner) if limited else 0, -1, np.int64),
        np.empty((rows, 2), np.int64),
        np.zeros(2, np.int64),
    )


@in_place
def holder_of(held: HeldBack, owner: Ints, tres: Floats) -> int:
    """Return the number of the holder that holds a job back now, -1 for none."""
    throttle, user = owner[THROTTLE], owner[USER]
    if throttle >= 0 and held.ran[throttle] >= held.throttles[throttle]:
        return int(throttle)
    qos = (owner[STRONGER], owner[WEAKER])
    code, place = held_at(held.table, held.use, qos, owner[ASSOC], user, tres, 0)
    if code == MAY_START:
        return -1
    by_user = code - 1 == MAX_JOBS
    of_qos = code <= COUNTS
    if code >= TRES_CODES:
        kind = (code - TRES_CODES) // len(tres)
        by_user, of_qos = kind == PER_USER, kind < KINDS
    number = len(held.throttles)
    count = len(held.table.qos_counts)
    if not of_qos:
        return int(number + count + count * len(held.begun) + place)
    return int(number + count + place * len(held.begun) + user if by_user else number + place)


@in_place
def hold(held: HeldBack, job: int, alike: int, holder: int) -> int:
    """Put a job into its holder's list; return the list."""
    place = held.first[holder]
    while place >= 0 and held.lists[place, ALIKE] != alike:
        place = held.lists[place, NEXT]
    if place < 0:
        place = held.sizes[LISTS]
        held.sizes[LISTS] += 1
        row = held.lists[place]
        row[ALIKE], row[HEAD], row[TAIL], row[AWAKE], row[NEXT] = alike, -1, -1, 0, held.first[holder]
        held.first[holder] = place
    row = held.lists[place]
    if row[HEAD] < 0:
        row[HEAD] = row[TAIL] = job
        held.after[job] = -1
    elif job < row[HEAD]:
        held.after[job], row[HEAD] = row[HEAD], job
    elif job > row[TAIL]:
        held.after[row[TAIL]], held.after[job], row[TAIL] = job, -1, job
    else:
        before = row[HEAD]
        while held.after[before] < job:
            before = held.after[before]
        held.after[job], held.after[before] = held.after[before], job
    return int(place)


@in_place
def wake(held: HeldBack, place: int) -> None:
    """Wake the first job of a list, so that the next pass checks it by priority."""
    row = held.lists[place]
    job = row[HEAD]
    if job < 0 or row[AWAKE]:
        return
    row[AWAKE], row[HEAD] = 1, held.after[job]
    at = held.sizes[WOKEN]
    held.sizes[WOKEN] += 1
    while at > 0 and held.woken[at - 1, 0] < job:
        held.woken[at, 0], held.woken[at, 1] = held.woken[at - 1, 0], held.woken[at - 1, 1]
        at -= 1
    held.woken[at, 0], held.woken[at, 1] = job, place


@in_place
def _wake_all(held: HeldBack, holder: int) -> None:
    place = held.first[holder]
    while place >= 0:
        wake(held, place)
        place = held.lists[place, NEXT]


@in_place
def wake_for(held: HeldBack, owner: Ints) -> None:
    """Wake the lists of all holders that count a job which has ended."""
    number, count, user = len(held.throttles), len(held.table.qos_counts), owner[USER]
    if owner[THROTTLE] >= 0:
        _wake_all(held, owner[THROTTLE])
    for column in range(ASSOC):
        if owner[column] >= 0:
            _wake_all(held, number + owner[column])
            _wake_all(held, number + count + owner[column] * len(held.begun) + user)
    assoc = owner[ASSOC]
    while assoc >= 0:
        _wake_all(held, number + count + count * len(held.begun) + assoc)
        assoc = held.table.parent[assoc]


@in_place
def take_woken(held: HeldBack) -> int:
    """Take the first woken job; return the list that it was in."""
    held.sizes[WOKEN] -= 1
    place = held.woken[held.sizes[WOKEN], 1]
    held.lists[place, AWAKE] = 0
    return int(place)

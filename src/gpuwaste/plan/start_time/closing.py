"""When pools are closed to a job by Slurm's reservations: compiled."""

from typing import Final

from gpuwaste.plan.start_time.queue import Ints
from gpuwaste.sim.compiled import in_place

NEVER: Final = 1 << 60
POOLS: Final = 0
FROM: Final = 1
UNTIL: Final = 2
NUMBER: Final = 3


@in_place
def open_from(closed: Ints, pool: int, reservation: int, time: int, limit: int) -> int:
    """Return the first instant from `time` on at which a job of that limit may start in a pool, NEVER for none.

    A job that asks for a reservation has to start and to end within it, and is kept out by others.
    """
    for own in range(len(closed)):
        if reservation >= 0 and closed[own, NUMBER] == reservation:
            time = max(time, closed[own, FROM])
    moved = True
    while moved:
        moved = False
        for k in range(len(closed)):
            shut = (closed[k, POOLS] >> pool) & 1 and time < closed[k, UNTIL] and time + limit > closed[k, FROM]
            if shut and closed[k, FROM] < closed[k, UNTIL] and (reservation < 0 or closed[k, NUMBER] != reservation):
                time, moved = closed[k, UNTIL], True
    for own in range(len(closed)):
        if reservation >= 0 and closed[own, NUMBER] == reservation and time + limit > closed[own, UNTIL]:
            return NEVER
    return int(time)

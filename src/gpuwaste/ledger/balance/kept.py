"""GPUs that stay free for the run that takes them: since when, and why.

On each of its nodes a run that waited has had room for an unbroken time until it started. In this time what it then
takes is free for it: while other nodes of it have no room yet it is a start reserved for a larger job, later the
scheduler's cycle or a limit.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from gpuwaste.ledger.balance.timeline import KeptForRun, NodeStretch
from gpuwaste.ledger.balance.types import CYCLE_S, BalanceClass, Holding, WaitingRun

Timelines = Mapping[str, Sequence[NodeStretch]]


def kept_for(run: WaitingRun, holdings: Sequence[Holding], timelines: Timelines) -> Iterator[KeptForRun]:
    """Yield what is kept on the nodes of a run, given what it holds there after its start."""
    since = {held.node: _room_since(run, held, timelines.get(held.node, ())) for held in holdings}
    found = [at for at in since.values() if at is not None]
    on_all = max(found, default=run.leave) if len(found) == len(holdings) else run.leave
    for held in holdings:
        begin = since[held.node]
        if begin is not None:
            yield from _parts(run, held, begin, on_all)


def _parts(run: WaitingRun, held: Holding, begin: int, on_all: int) -> Iterator[KeptForRun]:
    """Yield the time with room on this node in parts of one class; each until the start, or until the next one."""
    soon = run.leave if run.limited else max(on_all, run.leave - CYCLE_S)
    waits = BalanceClass.FREE_LIMIT if run.limited else BalanceClass.FREE_UNKNOWN
    parts = (
        (begin, on_all, BalanceClass.FREE_PLANNED),
        (on_all, soon, waits),
        (soon, run.leave, BalanceClass.FREE_CYCLE),
    )
    for since, until, of in parts:
        if since < until:
            yield KeptForRun(since, until, run.leave, held, of)


def _room_since(run: WaitingRun, held: Holding, stretches: Sequence[NodeStretch]) -> int | None:
    """Return since when the node has had room without a break until the run starts; None where it had none."""
    place = bisect_left(stretches, run.leave, key=attrgetter("end"))
    since, until = None, run.leave
    while place >= 0 and place < len(stretches) and until > run.eligible:
        stretch = stretches[place]
        if not stretch.start < until <= stretch.end or stretch.closed is not None or not _has_room(stretch, held):
            break
        since = until = max(stretch.start, run.eligible)
        place -= 1
    return since


def _has_room(stretch: NodeStretch, held: Holding) -> bool:
    free = stretch.free
    return free.gpus >= held.gpus and free.cpus >= held.cpus and free.memory_b >= held.memory_b

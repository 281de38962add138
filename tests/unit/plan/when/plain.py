"""The forward simulation once more, plainly: each pass looks at each job, at each limit and at each node.

Job by job it is what plan/start_time/forward.py does; it keeps no verdict from one job or pass to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwaste.plan.start_time.scheduler_queue import Ints

NEVER = 1 << 60


@dataclass
class Job:
    """One job; `limits` are what counts it, and for how much, `free_of` those that do not hold it."""

    asks: tuple[int, ...]
    nodes: int
    pools: tuple[int, ...]
    limit: int
    run: int
    begin: int = 0
    reservation: int = -1
    limits: dict[str, int] = field(default_factory=dict)
    free_of: tuple[str, ...] = ()
    on: list[int] = field(default_factory=list)
    start: int = -1
    believed: int = 0


class Plain:
    """A machine: nodes in pools, times closed (pools, from, until, number), the most of each limit."""

    def __init__(
        self,
        capacity: Sequence[Sequence[int]],
        pool: Sequence[int],
        closed: Sequence[tuple[tuple[int, ...], int, int, int]],
        most: dict[str, int],
    ) -> None:
        self.capacity, self.pool, self.closed, self.most = capacity, list(pool), closed, most
        self.free = [list(row) for row in capacity]
        self.used = dict.fromkeys(most, 0)
        self.running: list[tuple[int, int, Job]] = []
        self.shadow: dict[int, tuple[int, list[int]]] = {}
        pools = range(max(pool) + 1)
        rows = {p: [row for row, own in zip(capacity, pool, strict=True) if own == p] for p in pools}
        largest = {p: [max(column) for column in zip(*rows[p], strict=True)] for p in pools}
        self.scarcest = {p: min((amount, r) for r, amount in enumerate(largest[p]) if amount)[1] for p in pools}
        self.levels = {p: min(largest[p][self.scarcest[p]], 64) + 1 if len(rows[p]) > 4 else 1 for p in pools}
        self.lists: dict[tuple[int, int], list[int]] = {}
        for node in reversed(range(len(pool))):
            self.lists.setdefault(self.level(node), []).insert(0, node)

    def level(self, node: int) -> tuple[int, int]:
        """Return the list of a node."""
        p = self.pool[node]
        return p, min(max(self.free[node][self.scarcest[p]], 0), self.levels[p] - 1)

    def change(self, node: int, asks: Sequence[int], sign: int) -> None:
        """Take amounts (-1), or give them back."""
        before = self.level(node)
        self.free[node] = [one + sign * amount for one, amount in zip(self.free[node], asks, strict=True)]
        after = self.level(node)
        assert all(0 <= one <= most for one, most in zip(self.free[node], self.capacity[node], strict=True))
        if after != before:
            self.lists[before].remove(node)
            self.lists.setdefault(after, []).insert(0, node)

    def order(self, p: int, asks: Sequence[int]) -> list[int]:
        """Return the nodes of a pool in the order in which a job tries them."""
        first = min(asks[self.scarcest[p]], self.levels[p] - 1)
        return [node for level in range(first, self.levels[p]) for node in self.lists.get((p, level), [])]

    def open_from(self, p: int, job: Job, time: int) -> int:
        """Return when a job may start in a pool."""
        own = [one for one in self.closed if one[3] == job.reservation >= 0]
        time = max([time, *(one[1] for one in own)])
        moved = True
        while moved:
            moved = False
            for pools, begin, end, number in self.closed:
                kept_out = job.reservation < 0 or number != job.reservation
                if p in pools and time < end and time + job.limit > begin and begin < end and kept_out:
                    time, moved = end, True
        return NEVER if any(time + job.limit > one[2] for one in own) else time

    def held(self, job: Job) -> bool:
        """Say whether a limit holds a job."""
        return any(
            amount and name not in job.free_of and self.used[name] + amount > self.most[name]
            for name, amount in job.limits.items()
        )

    def fit(self, p: int, job: Job, now: int) -> list[int]:
        """Return the nodes that a job gets in a pool now, none where it does not fit."""
        found = []
        for node in self.order(p, job.asks):
            room = enough(self.free[node], job.asks)
            shadow, extra = self.shadow.get(node, (NEVER, []))
            if room and (now + job.limit <= shadow or enough(extra, job.asks)):
                found.append(node)
        return found[: job.nodes] if len(found) >= job.nodes and self.open_from(p, job, now) == now else []

    def begin(self, job: Job, on: list[int], now: int) -> None:
        """Start a job."""
        job.on, job.start, job.believed = on, now, now + job.limit
        for node in on:
            self.change(node, job.asks, -1)
            shadow, extra = self.shadow.get(node, (NEVER, []))
            if job.believed > shadow:
                self.shadow[node] = (shadow, [a - b for a, b in zip(extra, job.asks, strict=True)])
        for name, amount in job.limits.items():
            self.used[name] += amount
            assert not amount or name in job.free_of or self.used[name] <= self.most[name]

    def reserve(self, job: Job, pools: Sequence[int], now: int, ids: dict[int, int]) -> int:  # noqa: C901 in one place
        """Reserve nodes in the pool where a job is believed to start first; returns it, -1 for none."""
        found: list[tuple[int, int, list[int]]] = []
        ends = sorted(((one.believed, ids[id(one)], one) for _, _, one in self.running), key=lambda one: one[:2])
        for p in pools:
            free = {node: list(self.free[node]) for node in range(len(self.pool)) if self.pool[node] == p}
            nodes = [node for node in self.order(p, job.asks) if enough(free[node], job.asks)][: job.nodes]
            time = -1
            for believed, _, one in ends:
                if len(nodes) == job.nodes:
                    break
                time = believed
                for node in reversed(one.on):
                    if node not in free:
                        continue
                    before = enough(free[node], job.asks)
                    free[node] = [a + b for a, b in zip(free[node], one.asks, strict=True)]
                    if not before and enough(free[node], job.asks) and len(nodes) < job.nodes:
                        nodes.append(node)
            if len(nodes) == job.nodes:
                found.append((self.open_from(p, job, max(time, now)), p, nodes))
        found = [one for one in found if one[0] < NEVER]
        if not found:
            return -1
        time, p, nodes = min(found, key=lambda one: one[0])
        for node in nodes:
            extra = list(self.free[node])
            for believed, _, one in ends:
                if node in one.on and believed <= time:
                    extra = [a + b for a, b in zip(extra, one.asks, strict=True)]
            self.shadow[node] = (time, [a - b for a, b in zip(extra, job.asks, strict=True)])
        return p

    def play(self, running: Sequence[Job], waiting: Sequence[Job], *, backfills: bool) -> list[int]:  # noqa: C901 in one place
        """Return the starts of those that wait, -1 for never."""
        ids = {id(one): n for n, one in enumerate([*waiting, *running])}
        for one in running:
            for node in one.on:
                self.change(node, one.asks, -1)
            for name, amount in one.limits.items():
                self.used[name] += amount
            one.believed = one.limit
            self.running.append((one.run, ids[id(one)], one))
        times = sorted({one.begin for one in waiting} | {t for _, a, b, _ in self.closed for t in (a, b)})
        now, every = 0, set(self.pool)
        while True:
            for end in [one for one in self.running if one[0] <= now]:
                self.running.remove(end)
                for node in end[2].on:
                    self.change(node, end[2].asks, 1)
                for name, amount in end[2].limits.items():
                    self.used[name] -= amount
            self.shadow = {}
            usable, unreserved = set(every), set(every)
            for one in waiting:
                if one.start >= 0 or one.begin > now or self.held(one):
                    continue
                fits = (self.fit(p, one, now) for p in one.pools if p in usable)
                on = next((nodes for nodes in fits if nodes), [])
                if on:
                    self.begin(one, on, now)
                    self.running.append((now + one.run, ids[id(one)], one))
                    continue
                p = self.reserve(one, [p for p in one.pools if p in unreserved], now, ids)
                unreserved -= {p}
                if not backfills:
                    usable -= {p}
            following = [one[0] for one in self.running] + [time for time in times if time > now]
            if not following:
                return [one.start for one in waiting]
            now = min(following)


def enough(room: Sequence[int] | Ints, asks: Sequence[int]) -> bool:
    """Say whether there is room."""
    return all(one >= amount for one, amount in zip(room, asks, strict=True))

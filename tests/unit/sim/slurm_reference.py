"""Slurm's main loop and backfill as written down in docs/explanation/slurm-model.md, second by second and slowly.

Nothing is kept but which job runs on which nodes: what is free, when it will be and what is reserved is found anew for
each question, from objects, so that no structure is shared with the compiled model.
"""

from dataclasses import dataclass, field

from tests.unit.sim.limits_reference import Asked, plainly_held

from gpuwaste.slurm.site.cluster_model import ClusterModel, LimitSet, Node, Partition, Reservation


@dataclass
class Job:
    """A job; amounts are those of each node, `gpu_type` None is any."""

    submit: int
    run: int
    limit: int
    partition: str
    nodes: int = 1
    cpus: int = 1
    memory: int = 0
    gpus: int = 0
    gpu_type: str | None = None
    believed: int = 0
    user: str = "u"
    qos: str = ""
    priority: int = 0
    start: int = -1
    ran: int = 0
    state: str = "future"
    on: dict[str, tuple[int, int, dict[str, int]]] = field(default_factory=dict)


Taken = tuple[int, int, set[str]]
"""When a job has reserved nodes, and which."""


@dataclass
class Settings:
    """Of SchedulerParameters; seconds."""

    interval: int = 30
    window: int = 86400
    resolution: int = 60
    max_tests: int = 500
    max_of_user: int = 0
    max_starts: int = 0
    depth: int = 100
    full_interval: int = 60
    delay: int = 3
    defer: bool = False


class Slurm:
    """One play of some jobs."""

    def __init__(self, model: ClusterModel, jobs: list[Job], settings: Settings) -> None:
        self.model, self.jobs, self.settings = model, jobs, settings
        self.nodes = sorted((node for node in model.nodes if not node.down), key=lambda node: node.weight)
        self.parts = {part.name: part for part in model.partitions}
        self.now = 0
        self.changes = self.seen = 0
        self.asked = False
        self.returned: list[Job] = []

    def play(self, until: int) -> None:
        """Play second by second."""
        origin = self.jobs[0].submit
        last_pass, last_cycle = origin - self.settings.delay, origin - self.settings.interval
        for self.now in range(origin, until):
            at_once = False
            for job in self.running():
                if job.start + job.run == self.now:
                    job.state, job.ran = "ended", job.run
                    self._gone(job, ask=self.settings.defer)
                    at_once = not self.settings.defer
            self._events()
            for job in self.jobs:
                if job.submit == self.now:
                    job.state = "waiting"
                    self._changed(ask=True)
            full = (self.now - origin) % self.settings.full_interval == 0
            due = full or (self.asked and self.now >= last_pass + self.settings.delay)
            if due:
                last_pass, self.asked = self.now, False
            if due or at_once:
                self._pass(len(self.jobs) if full else self.settings.depth)
            if self.changes != self.seen and self.now >= last_cycle + self.settings.interval:
                last_cycle, self.seen = self.now, self.changes
                self._cycle()

    def running(self) -> list[Job]:
        return [job for job in self.jobs if job.state == "running"]

    def queue(self) -> list[Job]:
        """Return the waiting jobs by tier, priority and submission."""
        order = [(-self.parts[job.partition].priority_tier, -job.priority, k) for k, job in enumerate(self.jobs)]
        waiting = [k for k, job in enumerate(self.jobs) if job.state == "waiting"]
        return [self.jobs[k] for k in sorted(waiting, key=lambda k: order[k])]

    def _changed(self, *, ask: bool = False) -> None:
        self.changes += 1
        self.asked = self.asked or ask

    def _gone(self, job: Job, *, ask: bool) -> None:
        job.on = {}
        self._changed(ask=ask)

    def _send_away(self, job: Job, *, requeues: bool) -> None:
        job.ran = self.now - job.start
        job.state = "ended"
        self._gone(job, ask=True)
        if requeues:
            self.returned.append(job)

    def _back(self) -> None:
        for job in self.returned:
            job.state = "waiting"
            self._changed()
        self.returned = []

    def _events(self) -> None:
        for outage in self.model.outages:
            if outage.start == self.now:
                for job in self.running():
                    if outage.node in job.on:
                        self._send_away(job, requeues=True)
                self._back()
            if self.now in {outage.start, outage.end}:
                self._changed(ask=True)
        for reservation in self.model.reservations:
            if self.now in {reservation.start, reservation.end}:
                self._changed(ask=True)

    def _is_down(self, node: Node) -> bool:
        return any(one.node == node.name and one.start <= self.now < one.end for one in self.model.outages)

    def _held(self, job: Job) -> bool:
        """Say whether a limit of a QOS or an association holds a job back."""
        limits = {(one.account, one.user): one.limits for one in self.model.associations}
        chain = [limits.get(("root", job.user), LimitSet()), limits.get(("root", ""), LimitSet())]
        return plainly_held(self.model, chain, self._asked(job), [self._asked(one) for one in self.running()])

    def _asked(self, job: Job) -> Asked:
        """Return a job as limits look at it."""
        names = [qos.name for qos in self.model.qos]
        own, of_part = (names.index(name) if name in names else -1 for name in (job.qos, self.parts[job.partition].qos))
        amounts = {"cpu": job.cpus, "mem": job.memory, "gres/gpu": job.gpus, "node": 1}
        if job.gpu_type is not None:
            amounts[f"gres/gpu:{job.gpu_type}"] = job.gpus
        user = sorted({one.user for one in self.jobs}).index(job.user)
        return Asked(user, own, of_part, {name: count * job.nodes for name, count in amounts.items()}, job.limit)

    def _expected(self, job: Job) -> int:
        end = job.start + job.believed
        return end if end > self.now else max(job.start + job.limit, self.now + 1)

    def _fits(self, node: Node, job: Job, others: list[Job]) -> bool:
        """Say whether a node has room for a job beside some others."""
        held = [one.on[node.name] for one in others if node.name in one.on]
        part: Partition = self.parts[job.partition]
        if node.name not in part.nodes or self._is_down(node) or (part.whole_nodes and held):
            return False
        if node.cpus - sum(cpus for cpus, _, _ in held) < job.cpus:
            return False
        if node.memory_b - sum(memory for _, memory, _ in held) < job.memory:
            return False
        free = {name: count - sum(gpus.get(name, 0) for _, _, gpus in held) for name, count in node.gpus.items()}
        return (sum(free.values()) if job.gpu_type is None else free.get(job.gpu_type, 0)) >= job.gpus

    def _reserved(self, node: Node, job: Job, begin: int) -> bool:
        """Say whether one of Slurm's reservations keeps a job off a node that begins then."""

        def against(one: Reservation) -> bool:
            overlaps = one.start < begin + job.believed and one.end > begin
            return overlaps and node.name in one.nodes and job.user not in one.users

        return any(against(one) for one in self.model.reservations)

    def _best(self, usable: list[Node], job: Job, others: list[Job]) -> list[Node]:
        """Choose nodes as cons_tres: sets of neighbours of one weight, the tightest that is large enough first."""

        def cpus(nodes: list[Node]) -> int:
            found = 0
            for node in nodes:
                free = node.cpus - sum(one.on[node.name][0] for one in others if node.name in one.on)
                found += min(free, job.cpus) if job.gpus and 1 in {job.nodes, job.cpus} else free
            return found

        places = {node.name: k for k, node in enumerate(self.model.nodes)}
        sets: list[list[Node]] = []
        for node in sorted(usable, key=lambda node: places[node.name]):
            last = sets[-1][-1] if sets else None
            if last and last.weight == node.weight and places[last.name] + 1 == places[node.name]:
                sets[-1].append(node)
            else:
                sets.append([node])
        found: list[Node] = []
        while len(found) < job.nodes:
            wanted = job.nodes - len(found)
            weight = min(nodes[0].weight for nodes in sets)
            lightest = [nodes for nodes in sets if nodes[0].weight == weight]
            large = [nodes for nodes in lightest if len(nodes) >= wanted]
            next_set = min(large, key=cpus) if large else max(lightest, key=cpus)
            sets.remove(next_set)
            if wanted == 1:
                found.append(min(next_set, key=lambda node: cpus([node])))
            else:
                found += next_set[:wanted]
        return found

    def _start(self, job: Job, nodes: list[Node]) -> None:
        for node in nodes:
            held = [one.on[node.name] for one in self.running() if node.name in one.on]
            free = {name: count - sum(gpus.get(name, 0) for _, _, gpus in held) for name, count in node.gpus.items()}
            if self.parts[job.partition].whole_nodes:
                job.on[node.name] = (node.cpus, node.memory_b, free)
                continue
            left, given = job.gpus, {}
            for name in sorted(free):
                if job.gpu_type in {None, name}:
                    given[name] = min(left, free[name])
                    left -= given[name]
            job.on[node.name] = (job.cpus, job.memory, given)
        job.state, job.start = "running", self.now
        self._changed()

    def _try(self, job: Job, shut: set[str]) -> bool:
        """Start a job on nodes that are not shut, with preemption where nothing else helps."""
        usable = [node for node in self.nodes if node.name not in shut and not self._reserved(node, job, self.now)]
        running = self.running()
        nodes = [node for node in usable if self._fits(node, job, running)]
        if len(nodes) >= job.nodes:
            self._start(job, self._best(nodes, job, running))
            return True
        victims = sorted(
            (one for one in running if self._may_preempt(job, one)),
            key=lambda one: (self._rank(one), -one.start, -self.jobs.index(one)),
        )
        for count in range(1, len(victims) + 1):
            left = [one for one in running if one not in victims[:count]]
            nodes = [node for node in usable if self._fits(node, job, left)]
            if len(nodes) >= job.nodes:
                chosen = nodes[: job.nodes]
                for one in victims[:count]:
                    if any(node.name in one.on for node in chosen):
                        self._send_away(one, requeues=self._requeues(one))
                self._start(job, chosen)
                return True
        return False

    def _by_qos(self) -> bool:
        return self.model.settings.get("PreemptType") == "preempt/qos"

    def _may_preempt(self, job: Job, victim: Job) -> bool:
        if "PreemptType" not in self.model.settings:
            return False
        if self._by_qos():
            own = next((qos for qos in self.model.qos if qos.name == job.qos), None)
            return own is not None and victim.qos in own.preempts
        return self.parts[job.partition].priority_tier > self.parts[victim.partition].priority_tier

    def _rank(self, job: Job) -> int:
        if self._by_qos():
            return next((qos.priority for qos in self.model.qos if qos.name == job.qos), 0)
        return self.parts[job.partition].priority_tier

    def _requeues(self, _job: Job) -> bool:
        return "REQUEUE" in self.model.settings["PreemptMode"]

    def _pass(self, depth: int) -> None:
        failed: set[str] = set()
        shut: set[str] = set()
        for job in self.queue()[:depth]:
            if job.partition not in failed and not self._held(job) and not self._try(job, shut):
                failed.add(job.partition)
                shut |= set(self.parts[job.partition].nodes)
        self._back()

    def _cycle(self) -> None:
        taken: list[Taken] = []
        tests = started = 0
        of_user: dict[str, int] = {}
        for job in self.queue():
            if tests == self.settings.max_tests:
                break
            of_user[job.user] = of_user.get(job.user, 0) + 1
            if 0 < self.settings.max_of_user < of_user[job.user]:
                continue
            tests += 1
            if self._held(job):
                continue
            shut = {node.name for node in self.nodes if _is_taken(taken, node, self.now, self.now + job.believed)}
            sent_away = self.asked
            before = [one for one in self.jobs if one.state == "running"]
            if self._try(job, shut):
                started += 1
                gone = any(one.state != "running" for one in before)
                if gone or started == self.settings.max_starts:
                    break
                continue
            assert self.asked == sent_away
            self._reserve(job, taken)
        self._back()

    def _reserve(self, job: Job, taken: list[Taken]) -> None:
        """Reserve nodes: those that are not taken from now on, or from an instant on at which some stop being taken."""
        step, tested = self.settings.resolution, self.now
        while tested <= self.now + self.settings.window:
            usable = self._untaken(job, taken, tested)
            free = self._free_at(usable, job)
            start = None if free is None else max(free, tested)
            following = self._opens_next(job, taken, tested)
            if following is not None and (start is None or start > following):
                tested = following
                continue
            if start is None or free is None or start > self.now + self.settings.window:
                return
            left = [one for one in self.running() if self._expected(one) > free]
            nodes = self._best([node for node in usable if self._fits(node, job, left)], job, left)
            first, last = start // step * step, (start + job.believed) // step * step
            names = {node.name for node in nodes}
            if start > tested and any(begin < last and end > first and names & others for begin, end, others in taken):
                tested = start
                continue
            taken.append((first, max(last, first + step), names))
            return

    def _untaken(self, job: Job, taken: list[Taken], tested: int) -> list[Node]:
        return [
            node
            for node in self.nodes
            if node.name in self.parts[job.partition].nodes
            and not self._is_down(node)
            and not self._reserved(node, job, tested)
            and not _is_taken(taken, node, tested, tested + job.believed)
        ]

    def _free_at(self, usable: list[Node], job: Job) -> int | None:
        """Take running jobs away by their ends, a window at once, until the job fits; windows double from 30 s on.

        A window is over after a job on usable nodes if the next job of the cluster ends beyond it.
        """
        names, running = {node.name for node in usable}, self.running()
        if sum(self._fits(node, job, running) for node in usable) >= job.nodes:
            return self.now
        ends = sorted((self._expected(one), self.jobs.index(one), bool(names & set(one.on))) for one in running)
        window, place, first = 30, 0, None
        while True:
            gone = None
            while place < len(ends):
                end, _, overlaps = ends[place]
                place += 1
                if not overlaps:
                    continue
                first, gone = first or end - end % 30 + 30, end
                if place < len(ends) and ends[place][0] > first + window:
                    break
            if gone is None:
                return None
            left = [one for one in running if self._expected(one) > gone]
            if sum(self._fits(node, job, left) for node in usable) >= job.nodes:
                return gone
            while place < len(ends) and first is not None and ends[place][0] > first + window:
                window *= 2

    def _opens_next(self, job: Job, taken: list[Taken], after: int) -> int | None:
        """Return the next instant at which a node of the partition stops being taken or reserved."""
        found = []
        for node in self.nodes:
            if node.name not in self.parts[job.partition].nodes or self._is_down(node):
                continue
            held = [(begin, end) for begin, end, names in taken if node.name in names]
            held += [
                (one.start, one.end)
                for one in self.model.reservations
                if node.name in one.nodes and job.user not in one.users
            ]
            found += [end for _, end in held if end > after and not any(x <= end < y for x, y in held)]
        return min(found, default=None)


def _is_taken(taken: list[Taken], node: Node, begin: int, end: int) -> bool:
    """Say whether a node is reserved for another job; one that begins as this one ends counts."""
    return any(first <= end and last > begin and node.name in names for first, last, names in taken)

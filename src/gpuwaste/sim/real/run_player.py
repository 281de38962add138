"""One run: jobs are submitted at the instants of the trace, nodes fail as in the model, and the end is awaited."""

import heapq
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from gpuwaste.core.errors import SlurmError
from gpuwaste.core.job_states import QUEUED
from gpuwaste.core.units import MINUTE_S
from gpuwaste.sim.real.daemons import VirtualCluster
from gpuwaste.sim.real.instants import ControllerInstant, read_log
from gpuwaste.sim.real.real_jobs import (
    NEVER_STARTED,
    PENDING,
    REFUSED,
    Ended,
    ReplayedOutcome,
    TraceSubmission,
    read_ended,
)
from gpuwaste.slurm.clients.command import check, last_line
from gpuwaste.slurm.site.cluster_model import NEVER, ClusterModel

Progress = Callable[[int, int, int], None]
"""Called with jobs submitted, jobs ended and jobs of the trace."""
Keep = Callable[[list[ReplayedOutcome]], None]

_LEAD_S: Final = 2.0  # real seconds before the first submission
_TICK_S: Final = 0.5  # real seconds between two checks for ended jobs
_KEPT_EVERY_S: Final = 10.0
_STALLED_S: Final = 1800  # of the played clock without a running job: backfill has run many times
_STALLED_REAL_S: Final = 15.0
_TRIES: Final = 3
_AGAIN: Final = ("Unable to contact", "Socket timed out", "temporarily unable", "Connection refused")
_HOPELESS: Final = frozenset({"PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit"})
_REASON: Final = re.compile(r"[\w ,:()/.-]{1,100}")


class Player:
    """Plays jobs on a cluster that is up; `outcomes` may be called at any time."""

    def __init__(self, cluster: VirtualCluster, jobs: Sequence[TraceSubmission]) -> None:
        self._cluster, self._jobs, self._clock = cluster, jobs, cluster.clock
        self._first = jobs[0].submit
        earliest = math.ceil(self._clock.now() + _LEAD_S * self._clock.speed)
        # Instants keep their place in the minute: backfill rounds them down to bf_resolution.
        self._origin = earliest + (self._first - earliest) % MINUTE_S
        self._ids: dict[int, int] = {}  # Slurm's id -> place among the jobs
        self._ended: dict[int, Ended] = {}
        self._why: dict[int, tuple[str, str]] = {}  # place -> state and Slurm's words
        self._next = self._read = 0
        self._kept_at = time.monotonic()
        self._events = node_events(cluster.model, self._first)
        self._active_at = (time.monotonic(), self._clock.now())

    def play(self, progress: Progress, keep: Keep) -> None:
        """Submit all jobs and return when each has ended or cannot start. Raises SlurmError where slurmctld fails."""
        self._reserve()
        while self._next < len(self._jobs):
            submit = self._jobs[self._next].submit
            if self._events and self._events[0][0] <= submit:
                due, act = self._events[0][0], self._node_state
            else:
                due, act = submit, self._submit
            if self._clock.wait(self._played(due), _TICK_S):
                act()
            else:
                self._look(progress, keep)
        while self._goes_on():
            if self._events and self._clock.now() >= self._played(self._events[0][0]):
                self._node_state()
            else:
                time.sleep(_TICK_S)
                self._look(progress, keep)

    def read_ended(self) -> None:
        """Read which jobs ended since the last time."""
        if self._cluster.jobcomp.exists():
            with self._cluster.jobcomp.open("rb") as file:
                file.seek(self._read)
                found, whole = read_ended(file.read())
            self._read += whole
            self._ended.update((each.slurm_id, each) for each in found if each.slurm_id in self._ids)

    def instants(self) -> list[ControllerInstant]:
        """Return the events of slurmctld so far, on the trace's clock."""
        return read_log(self._cluster.log, self._ids, self._first - self._origin)

    def outcomes(self) -> list[ReplayedOutcome]:
        """Return the outcome of each job as far as it is known, in the order of the trace."""
        slurm_ids = {place: slurm_id for slurm_id, place in self._ids.items()}
        return [self._outcome(place, job, slurm_ids.get(place)) for place, job in enumerate(self._jobs)]

    def _outcome(self, place: int, job: TraceSubmission, slurm_id: int | None) -> ReplayedOutcome:
        ended = None if slurm_id is None else self._ended.get(slurm_id)
        if ended is None:
            state, why = self._why.get(place, (PENDING, ""))
            return ReplayedOutcome(job.job_id, job.submit, Ended(slurm_id, state), why)
        started = ended.start if ended.nodes else None
        times = (ended.submitted, started, ended.end)
        submitted, start, end = (None if at is None else at - self._origin + self._first for at in times)
        return ReplayedOutcome(job.job_id, job.submit, replace(ended, submitted=submitted, start=start, end=end))

    def _played(self, instant: int) -> int:
        return self._origin + instant - self._first

    def _submit(self) -> None:
        place, job = self._next, self._jobs[self._next]
        argv = ["sbatch", "--parsable", "-o", "/dev/null", *job.options, f"--wrap=exec sleep {job.sleep_s}"]
        for attempt in range(_TRIES):
            done = self._cluster.run(argv, played=True)
            words = last_line(done.stderr)
            if done.code == 0 or attempt == _TRIES - 1 or not any(text in words for text in _AGAIN):
                break
            self._cluster.require_alive()
        found = done.stdout.decode("ascii", "replace").split(";")[0].strip()
        if done.code == 0 and found.isdecimal():
            self._ids[int(found)] = place
        else:
            self._why[place] = (REFUSED, words.removeprefix("sbatch: error: ")[:200])
        self._next += 1

    def _look(self, progress: Progress, keep: Keep) -> None:
        """Read which jobs ended since the last call; save them now and then."""
        self._cluster.require_alive()
        self.read_ended()
        progress(self._next, len(self._ended), len(self._jobs))
        if time.monotonic() - self._kept_at > _KEPT_EVERY_S:
            keep(self.outcomes())
            self._kept_at = time.monotonic()

    def _goes_on(self) -> bool:
        """Return whether a job may still end: false once all that are left wait and nothing has run for long."""
        queue = {number: found for number, found in self._queue().items() if number in self._ids}
        if not queue and len(self._ended) == len(self._ids):
            return False
        waiting = all(state in QUEUED for state, _ in queue.values())
        hopeless = bool(queue) and waiting and all(reason in _HOPELESS for _, reason in queue.values())
        if self._events or (queue and not waiting) or self._reserved_later():
            self._active_at = (time.monotonic(), self._clock.now())
        real, played = self._active_at
        stalled = time.monotonic() - real > _STALLED_REAL_S and self._clock.now() - played > _STALLED_S
        if not (hopeless or stalled):
            return True
        for slurm_id, (_, reason) in queue.items():
            self._ended.pop(slurm_id, None)  # it ended once and was requeued
            self._why[self._ids[slurm_id]] = (NEVER_STARTED, reason)
        return False

    def _reserved_later(self) -> bool:
        return any(self._played(each.end) > self._clock.now() for each in self._cluster.model.reservations)

    def _queue(self) -> dict[int, tuple[str, str]]:
        done = self._cluster.run(["squeue", "-h", "-a", "-o", "%i|%T|%r"])
        check(["squeue"], done)
        found = {}
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            number, state, reason = [*line.split("|", 2), "", ""][:3]
            if number.isdecimal():
                found[int(number)] = (state, reason if _REASON.fullmatch(reason) else "")
        return found

    def _reserve(self) -> None:
        for number, each in enumerate(self._cluster.model.reservations):
            start = max(self._played(each.start), math.ceil(self._clock.now()) + 1)
            if self._played(each.end) <= start:
                continue
            words = [f"StartTime={_time(start)}", f"EndTime={_time(self._played(each.end))}"]
            argv = ["scontrol", "create", "reservation", f"ReservationName=r{number}", "Users=root", *words]
            done = self._cluster.run([*argv, f"Nodes={','.join(each.nodes)}", "Flags=MAINT,IGNORE_JOBS"], played=True)
            check(["scontrol", "create", "reservation", each.name], done)

    def _node_state(self) -> None:
        _, state, node = heapq.heappop(self._events)
        argv = ["scontrol", "update", f"NodeName={node}", f"State={state}", "Reason=outage of the model"]
        done = self._cluster.run(argv, played=True)
        if done.code:
            raise SlurmError(f"scontrol update NodeName={node} State={state}: {last_line(done.stderr)}")


def node_events(model: ClusterModel, first: int) -> list[tuple[int, str, str]]:
    """Return when nodes change their state from `first` on, as a heap of (instant, state, node).

    A node whose outages follow or overlap one another returns after the last of them.
    """
    down: dict[str, list[list[int]]] = {}
    for each in sorted(model.outages, key=lambda outage: outage.start):
        known = down.setdefault(each.node, [])
        if known and each.start <= known[-1][1]:
            known[-1][1] = max(known[-1][1], each.end)
        else:
            known.append([each.start, each.end])
    found = []
    for node, intervals in down.items():
        for start, end in intervals:
            if end > first:
                found.append((max(start, first), "DOWN", node))
                found += [(end, "RESUME", node)] if end < NEVER else []
    heapq.heapify(found)
    return found


def _time(instant: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(instant))

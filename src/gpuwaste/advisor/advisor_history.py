"""The job history that advice rests on: read before the first answer, then event by event; how far it is known."""

from collections import deque
from dataclasses import dataclass
from typing import Final, Self

from gpuwaste.advisor.boot import MAX_ENDED, SAVED, booted, saved
from gpuwaste.advisor.counters import Counters
from gpuwaste.advisor.slurm_facts import AdvisorPorts
from gpuwaste.advisor.users import Users
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.history.follow import Follower
from gpuwaste.jobs.history.requests import request_of
from gpuwaste.jobs.history.state import HistoryState
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.slurm.submit.request import JobRequest

_HISTORY: Final = log_event.info("history-loaded: job history up to event {seq}, {names} job names")
STALE: Final = log_event.warning(
    "history-stale: cannot fetch job history from the hub: {error}",
    "The hub does not answer; advice ends after `stale_s`. Check `hub_url`, the firewall and the hub's log.",
)
NOT_SAVED: Final = log_event.warning(
    "history-not-saved: cannot save the job history: {error}",
    "Check the disk and the permissions of `[advisor] state_dir`. A restart fetches more from the hub.",
)
MAX_JOBS: Final = 20_000
Item = HistoryEvent | int  # an event, or the instant (steady clock, us) up to which all before it is known


class Pending:
    """Events between the feed's thread and the loop; `take` on the loop's thread."""

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self._held = False

    def __len__(self) -> int:
        return len(self.items)

    def take(self) -> Item | None:
        """Return the next item, None where there is none or they are held."""
        return None if self._held or not self.items else self.items.popleft()

    def hold(self, *, held: bool) -> None:
        """Keep back, or give out again, what there is; on the loop's thread."""
        self._held = held


@dataclass(frozen=True, slots=True)
class Saving:
    """The history is on the disk: what belongs to it is to be saved, while nothing changes it."""


class KnownJobs:
    """Requests of jobs that have not ended, by job id: a modification says only what changes. On the loop's thread."""

    def __init__(self, most: int = MAX_JOBS) -> None:
        self._most = most
        self._requests: dict[int, JobRequest] = {}

    def note(self, event: HistoryEvent) -> None:
        """Take an event of the history."""
        job = event.job
        if job is None:
            return
        if event.kind == "ended":
            self._requests.pop(job.job_id, None)
        elif event.kind != "ledger" and job.job_id not in self._requests:
            while len(self._requests) >= self._most:
                del self._requests[next(iter(self._requests))]
            self._requests[job.job_id] = request_of(job)

    def get(self, job_id: int) -> JobRequest | None:
        """Return what a job asked for at its submission, None where that is not known."""
        return self._requests.get(job_id)


class Freshness(Part):
    """How far the history is known: on the steady clock, so that a step of the wall clock ages nothing."""

    def __init__(self, clock: Clock, stale_s: float) -> None:
        self._clock = clock
        self.stale_s = stale_s
        self._current_us: int | None = None

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        return cls(parts.get(AdvisorPorts).clock, parts.get(Config).advisor.stale_s)

    @property
    def reloads(self) -> Reloads:
        """From which age on the history is too old."""
        return {("advisor.stale_s",): lambda c: setattr(self, "stale_s", c.advisor.stale_s)}

    def current(self, mono_us: int) -> None:
        """Note that everything up to an instant of the steady clock is known."""
        if self._current_us is None or mono_us > self._current_us:
            self._current_us = mono_us

    def age_us(self) -> int | None:
        """Return how old the newest knowledge is, None where there is none."""
        return None if self._current_us is None else max(0, self._clock.mono_us() - self._current_us)

    def as_of(self) -> int:
        """Return the UTC second up to which the history is known, 0 for none."""
        age = self.age_us()
        return 0 if age is None else (self._clock.utc_us() - age) // 1_000_000

    @property
    def stale(self) -> bool:
        """Whether the history is too old to speak of."""
        age = self.age_us()
        return age is None or age > self.stale_s * 1e6


class AdvisorHistory(Part):
    """What is known; `follower` is replaced, and `learn` called, on the loop's thread."""

    def __init__(self, parts: Parts) -> None:
        """Read the history."""
        ports = parts.get(AdvisorPorts)
        self._pending, self._jobs = parts.get(Pending), parts.get(KnownJobs)
        self._users, self._freshness = parts.get(Users), parts.get(Freshness)
        self._counters, self._bus = parts.get(Counters), parts.get(Bus)
        self._saved = ports.state_dir / SAVED
        self._started = False
        self.follower = _read(ports)

    def learn(self) -> bool:
        """Take in one event; false where nothing is left."""
        item = self._pending.take()
        if item is None:
            return False
        if isinstance(item, int):
            self._freshness.current(item)
            return bool(self._pending)
        try:
            self.follower.apply((item,))
            self._jobs.note(item)
            if item.job is not None:
                self._users.ahead(item.job.user)
        except Exception as error:  # noqa: BLE001 an event that breaks us must not end the loop
            self._counters.troubles["event"] += 1
            self.follower.seq = max(self.follower.seq, item.seq)
            BUG.log(error, what=f"history event of {item.run_key}")
        return True

    def before_start(self) -> None:
        """Save at the end what is learned from here on."""
        self._started = True

    def close(self) -> None:
        """Save what was learned, and have that saved which belongs to it. Raises nothing."""
        if not self._started:
            return
        try:
            self.follower.save(self._saved, still=True)
            self._bus.publish(Saving())
        except GpuwasteError as error:
            NOT_SAVED.log(error=error)


def _read(ports: AdvisorPorts) -> Follower:
    """Return the history from the hub; where it is not reached what was saved here, else none: all is stale."""
    try:
        follower = booted(ports.hub, ports.state_dir, ports.cluster)
    except Exception as error:  # noqa: BLE001 whatever the hub says, an advisor with an old history beats none
        if isinstance(error, GpuwasteError):
            STALE.log(error=error)
        else:
            BUG.log(error, what="job history of the hub")
        empty = Follower(HistoryState(), ports.cluster, max_ended=MAX_ENDED)
        follower = saved(ports.state_dir, ports.cluster) or empty
    _HISTORY.log(seq=follower.seq, names=len(follower.recall))
    return follower

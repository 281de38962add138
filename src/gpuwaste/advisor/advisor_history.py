"""AdvisorHistory: the job history that advice uses: loaded before the first answer, then updated event by event.

It is loaded from the local copy, from the hub's snapshot, or from the hub's stream.
"""

import shutil
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.uid_lookup import Users
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, ParseError, StoreError, WireError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.underuse import UnderUse
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.job_event import HistoryEvent, event_from_json
from gpuwaste.net.hub_client import HubClient
from gpuwaste.slurm.submit.job_request import JobRequest, request_of

SAVED: Final = "history"
FAR_BEHIND: Final = 20_000  # events; with more the hub's snapshot is faster
PAGE: Final = 10_000  # before the first request
MAX_ENDED: Final = 50_000  # ended runs whose repeated events are recognized
_FETCHED: Final = "history.fetched"
_UNUSABLE: Final = log_event.info("saved-history-unusable: saved job history not used: {error}")
_NO_SNAPSHOT: Final = log_event.info("no-history-snapshot: no snapshot of job history, reading every event: {error}")
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
Item = HistoryEvent | int  # an event, or the instant (steady clock, us) up to which everything is known


def saved_history(state_dir: Path, cluster: str) -> Follower | None:
    """Return the locally saved history, None where there is none of this version and cluster."""
    directory = state_dir / SAVED
    if not directory.exists():
        return None
    try:
        return load_history(directory, cluster)
    except (ParseError, StoreError) as error:
        _UNUSABLE.log(error=error)
        return None


def load_history(directory: Path, cluster: str) -> Follower:
    """Read a directory that Follower.save wrote. Raises ParseError, StoreError."""
    return Follower.load(directory, cluster, HistoryState.load, max_ended=MAX_ENDED)


def boot_history(hub: HubClient, state_dir: Path, cluster: str) -> Follower:
    """Return the hub's history, nearly up to now. Raises GpuwasteError where the hub cannot be reached."""
    follower = saved_history(state_dir, cluster)
    if follower is None or _far_behind(hub, follower):
        follower = _fetched(hub, state_dir, cluster) or Follower(HistoryState(), cluster, max_ended=MAX_ENDED)
    return _up_to_now(hub, follower)


def boot_history_by(hub: HubClient, state_dir: Path, cluster: str, under_use: UnderUse) -> Follower:
    """Return the history with the use of GPUs counted by a rule, ignoring the local copy. Raises GpuwasteError."""
    empty = HistoryState(under_use=under_use)
    follower = _fetched(hub, state_dir, cluster) or Follower(empty, cluster, max_ended=MAX_ENDED)
    if follower.state.under_use != under_use:
        raise WireError("the hub's snapshot of the job history uses another under-use rule than its events")
    return _up_to_now(hub, follower)


def _up_to_now(hub: HubClient, follower: Follower) -> Follower:
    for events in history_pages(hub, follower):
        follower.apply(events)
    return follower


def history_pages(hub: HubClient, follower: Follower, page: int = PAGE) -> Iterator[list[HistoryEvent]]:
    """Yield what the follower does not know yet; each page has to be applied before the next one is requested."""
    while events := hub.history(follower.seq, page, event_from_json):
        before = follower.seq
        yield events
        if len(events) < page:
            return
        if follower.seq <= before:
            raise WireError(f"the hub's history does not continue after event {before}: is this the hub? See hub_url")


def _far_behind(hub: HubClient, follower: Follower) -> bool:
    """Return whether a snapshot is faster than the events to read, or the hub's store is behind the follower."""
    if not hub.history(follower.seq + FAR_BEHIND, 1, event_from_json):
        return follower.seq > 0 and not hub.history(follower.seq - 1, 1, event_from_json)
    return True


def _fetched(hub: HubClient, state_dir: Path, cluster: str) -> Follower | None:
    """Return the hub's snapshot, None where it has no suitable one: then the stream is read from its beginning."""
    directory = state_dir / _FETCHED
    try:
        hub.get_snapshot(directory)
        return load_history(directory, cluster)
    except GpuwasteError as error:
        _NO_SNAPSHOT.log(error=error)
        return None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


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
        """Hold the items back, or release them; on the loop's thread."""
        self._held = held


@dataclass(frozen=True, slots=True)
class Saving:
    """The history is on disk: subscribers save what belongs to it, while nothing changes it."""


class KnownJobs:
    """Requests of jobs that have not ended, by job id: a modification has only the changes. On the loop's thread."""

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
        """Return a job's request at its submission, None where that is unknown."""
        return self._requests.get(job_id)


class Freshness(Part):
    """How current the history is: on the steady clock, so that a step of the wall clock does not age it."""

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
        """The age from which the history is too old."""
        return {("advisor.stale_s",): lambda c: setattr(self, "stale_s", c.advisor.stale_s)}

    def current(self, mono_us: int) -> None:
        """Record that everything up to an instant of the steady clock is known."""
        if self._current_us is None or mono_us > self._current_us:
            self._current_us = mono_us

    def age_us(self) -> int | None:
        """Return the age of the newest information, None where there is none."""
        return None if self._current_us is None else max(0, self._clock.mono_us() - self._current_us)

    def as_of(self) -> int:
        """Return the UTC second up to which the history is known, 0 for none."""
        age = self.age_us()
        return 0 if age is None else (self._clock.utc_us() - age) // 1_000_000

    @property
    def stale(self) -> bool:
        """Whether the history is too old to be used."""
        age = self.age_us()
        return age is None or age > self.stale_s * 1e6


class AdvisorHistory(Part):
    """The history; `follower` is replaced, and `learn` called, on the loop's thread."""

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
        """Apply one event; false where none is left."""
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
        except Exception as error:  # noqa: BLE001 an event that raises must not end the loop
            self._counters.troubles["event"] += 1
            self.follower.seq = max(self.follower.seq, item.seq)
            BUG.log(error, what=f"history event of {item.run_key}")
        return True

    def before_start(self) -> None:
        """Enable saving at the end, since events are learned from now on."""
        self._started = True

    def close(self) -> None:
        """Save what was learned, and have subscribers save what belongs to it. Raises nothing."""
        if not self._started:
            return
        try:
            self.follower.save(self._saved, still=True)
            self._bus.publish(Saving())
        except GpuwasteError as error:
            NOT_SAVED.log(error=error)


def _read(ports: AdvisorPorts) -> Follower:
    """Return the history from the hub; if it cannot be reached the local copy, else an empty one: all is stale."""
    try:
        follower = boot_history(ports.hub, ports.state_dir, ports.cluster)
    except Exception as error:  # noqa: BLE001 whatever the hub answers, an advisor with an old history is better than none
        if isinstance(error, GpuwasteError):
            STALE.log(error=error)
        else:
            BUG.log(error, what="job history of the hub")
        empty = Follower(HistoryState(), ports.cluster, max_ended=MAX_ENDED)
        follower = saved_history(ports.state_dir, ports.cluster) or empty
    _HISTORY.log(seq=follower.seq, names=len(follower.recall))
    return follower

"""AdvisorHistory: the job history that advice rests on, read before the first answer and then event by event."""

from collections import deque
from collections.abc import Callable
from typing import Final, Self

from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.boot import MAX_ENDED, SAVED, booted, saved
from gpuwaste.advisor.counters import Counters
from gpuwaste.advisor.freshness import Freshness
from gpuwaste.advisor.known_jobs import KnownJobs
from gpuwaste.advisor.users import Users
from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.history.follow import Follower
from gpuwaste.jobs.history.state import HistoryState
from gpuwaste.jobs.job_event import HistoryEvent

_HISTORY: Final = log_event.info("history-loaded: job history up to event {seq}, {names} job names")
STALE: Final = log_event.warning(
    "history-stale: cannot fetch job history from the hub: {error}",
    "The hub does not answer; advice ends after `stale_s`. Check `hub_url`, the firewall and the hub's log.",
)
NOT_SAVED: Final = log_event.warning(
    "history-not-saved: cannot save the job history: {error}",
    "Check the disk and the permissions of `[advisor] state_dir`. A restart fetches more from the hub.",
)
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


class AdvisorHistory(Part):
    """What is known; `follower` is replaced, and `learn` called, on the loop's thread."""

    def __init__(
        self,
        follower: Follower,
        pending: Pending,
        jobs: KnownJobs,
        *,
        ahead: Callable[[str], None],
        freshness: Freshness,
        counters: Counters,
        ports: AdvisorPorts,
    ) -> None:
        """`ahead` gets users who may submit soon."""
        self.follower = follower
        self._pending, self._jobs, self._ahead = pending, jobs, ahead
        self._freshness = freshness
        self._counters = counters
        self._saved = ports.state_dir / SAVED
        self._started = False

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor, once the history is read."""
        ports = parts.get(AdvisorPorts)
        return cls(
            _read(ports),
            parts.get(Pending),
            parts.get(KnownJobs),
            ahead=parts.get(Users).ahead,
            freshness=parts.get(Freshness),
            counters=parts.get(Counters),
            ports=ports,
        )

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
                self._ahead(item.job.user)
        except Exception as error:  # noqa: BLE001 an event that breaks us must not end the loop
            self._counters.troubles["event"] += 1
            self.follower.seq = max(self.follower.seq, item.seq)
            BUG.log(error, what=f"history event of {item.run_key}")
        return True

    def before_start(self) -> None:
        """Save at the end what is learned from here on."""
        self._started = True

    def close(self) -> None:
        """Save what was learned. Raises nothing."""
        if not self._started:
            return
        try:
            self.follower.save(self._saved, still=True)
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

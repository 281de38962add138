"""What has changed for a waiting job between two checks: its expected start, and why."""

from dataclasses import dataclass
from typing import Final

from gpuwaste.core.fields import Interval

LEAST_S: Final = 300
SHARE: Final = 0.1  # of the remaining wait: minutes matter in an hour, not in a week
_LIMITS: Final = ("QOS", "Assoc", "MaxMem", "MaxCpu", "JobArrayTaskLimit", "PartitionTimeLimit", "PartitionNodeLimit")
_NODES: Final = ("ReqNodeNotAvail", "Reserv", "PartitionDown", "PartitionInactive", "NodeDown", "BadConstraints")


@dataclass(frozen=True, slots=True)
class StartForecast:
    """One check: `start` is the middle of the expectation, or Slurm's own start; `before` counts jobs ahead of it."""

    at: int
    state: str
    reason: str = ""
    start: int | None = None
    interval: Interval | None = None
    before: int | None = None


def moved(old: StartForecast, new: StartForecast) -> str:
    """Return a text of what changed and why, "" for a change too small to report."""
    later_s = None if old.start is None or new.start is None else new.start - old.start
    far = later_s is not None and abs(later_s) >= max(LEAST_S, SHARE * max(0, (new.start or 0) - new.at))
    news = (old.start is None) != (new.start is None)
    if not far and not news and _kind(old.reason) == _kind(new.reason):
        return ""
    if news:
        return "start is known now" if old.start is None else f"start is no longer known: {why(old, new)}"
    if not far:
        return f"now {reason_words(new.reason)}"
    return f"{'later' if (later_s or 0) > 0 else 'earlier'}: {why(old, new)}"


def why(old: StartForecast, new: StartForecast) -> str:
    """Return the likeliest cause: another reason of Slurm's, jobs that moved ahead of it, else running jobs."""
    if _kind(old.reason) != _kind(new.reason) and new.reason:
        return reason_words(new.reason)
    ahead = 0 if old.before is None or new.before is None else new.before - old.before
    if ahead > 0:
        return f"{ahead} more {'job' if ahead == 1 else 'jobs'} ahead of it"
    if (new.start or 0) > (old.start or 0):
        return "running jobs take longer than expected"
    if ahead < 0:
        return f"{-ahead} {'job' if ahead == -1 else 'jobs'} ahead of it started or left the queue"
    return "running jobs ended sooner than expected"


def reason_words(reason: str) -> str:
    """Return Slurm's reason in plain words, with Slurm's name of it."""
    kind = _kind(reason)
    words = {
        "limit": "waits for a limit of QOS, account or partition",
        "nodes": "waits for nodes that are down or reserved",
        "Resources": "waits for free nodes",
        "Priority": "waits for jobs of higher priority",
        "Dependency": "waits for another job",
    }
    return f"{words[kind]} ({reason})" if kind in words else f"waits ({reason or 'no reason yet'})"


def _kind(reason: str) -> str:
    if reason.startswith(_LIMITS):
        return "limit"
    return "nodes" if reason.startswith(_NODES) else reason

"""Where the history comes from at the start: what was saved here, the hub's snapshot, or its stream."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError, ParseError, StoreError, WireError
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.follow import Follower
from gpuwaste.jobs.history.state import HistoryState
from gpuwaste.jobs.job_event import HistoryEvent, event_from_json
from gpuwaste.net.hub_client import HubClient

SAVED: Final = "history"
FAR_BEHIND: Final = 20_000  # events; the hub's snapshot is quicker from there on
PAGE: Final = 10_000  # before anybody asks
MAX_ENDED: Final = 50_000  # ended runs of which a repeat is known
_FETCHED: Final = "history.fetched"
_UNUSABLE: Final = log_event.info("saved-history-unusable: saved job history not used: {error}")
_NO_SNAPSHOT: Final = log_event.info("no-history-snapshot: no snapshot of job history, reading every event: {error}")


def saved(state_dir: Path, cluster: str) -> Follower | None:
    """Return the history that was saved here, None where there is none of this version and cluster."""
    directory = state_dir / SAVED
    if not directory.exists():
        return None
    try:
        return load(directory, cluster)
    except (ParseError, StoreError) as error:
        _UNUSABLE.log(error=error)
        return None


def load(directory: Path, cluster: str) -> Follower:
    """Read a directory that Follower.save wrote. Raises ParseError, StoreError."""
    return Follower.load(directory, cluster, HistoryState.load, max_ended=MAX_ENDED)


def booted(hub: HubClient, state_dir: Path, cluster: str) -> Follower:
    """Return the history as the hub knows it, nearly up to now. Raises GpuwasteError where the hub is not reached."""
    follower = saved(state_dir, cluster)
    if follower is None or _far_behind(hub, follower):
        follower = _fetched(hub, state_dir, cluster) or Follower(HistoryState(), cluster, max_ended=MAX_ENDED)
    return _up_to_now(hub, follower)


def booted_by(hub: HubClient, state_dir: Path, cluster: str, under_use: UnderUse) -> Follower:
    """Return the history with the use of GPUs counted by a rule, whatever was saved here. Raises GpuwasteError."""
    empty = HistoryState(under_use=under_use)
    follower = _fetched(hub, state_dir, cluster) or Follower(empty, cluster, max_ended=MAX_ENDED)
    if follower.state.under_use != under_use:
        raise WireError("the hub's snapshot of the history is counted by another under-use rule than its events")
    return _up_to_now(hub, follower)


def _up_to_now(hub: HubClient, follower: Follower) -> Follower:
    for events in pages(hub, follower):
        follower.apply(events)
    return follower


def pages(hub: HubClient, follower: Follower, page: int = PAGE) -> Iterator[list[HistoryEvent]]:
    """Yield what the follower does not know yet; each page has to be applied before the next one is asked for."""
    while events := hub.history(follower.seq, page, event_from_json):
        before = follower.seq
        yield events
        if len(events) < page:
            return
        if follower.seq <= before:
            raise WireError(f"the hub's history does not continue after event {before}: is this the hub? See hub_url")


def _far_behind(hub: HubClient, follower: Follower) -> bool:
    """Tell whether there is more to read than a snapshot takes, or a store that knows less than we do."""
    if not hub.history(follower.seq + FAR_BEHIND, 1, event_from_json):
        return follower.seq > 0 and not hub.history(follower.seq - 1, 1, event_from_json)
    return True


def _fetched(hub: HubClient, state_dir: Path, cluster: str) -> Follower | None:
    """Return the hub's snapshot, None where it has none for us: then the stream is read from its beginning."""
    directory = state_dir / _FETCHED
    try:
        hub.get_snapshot(directory)
        return load(directory, cluster)
    except GpuwasteError as error:
        _NO_SNAPSHOT.log(error=error)
        return None
    finally:
        shutil.rmtree(directory, ignore_errors=True)

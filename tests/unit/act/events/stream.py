"""A stream with events of runs and events that carry their data, for the tests of this room."""

from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.events.kinds.node import NodeHeard
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, record


def node_silent(node: str = "gpu1", heard: int = HOUR) -> StoredEvent:
    """Return an event of a node."""
    data = NodeHeard("gw", node, heard, 600.0)
    return tell("node.silent", data, heard + 600, subject=f"node/{node}", unique=str(heard))


def open_stream(jobs: int = 0) -> tuple[HubStore, EventStore, FakeClock]:
    """Return a store with `jobs` runs that have started and ended: two events each."""
    clock = FakeClock(HOUR + 7200)
    store = HubStore.open(":memory:", clock)
    upsert_jobs(store, [record(number, f"user{number % 3}") for number in range(1, jobs + 1)])
    return store, EventStore(store, clock), clock

"""The machine by time: what is written when it changes, and what is read of a window."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from gpuwaste.jobs.machine import machine_reads, machine_store
from gpuwaste.jobs.machine.types import ALWAYS, POOL, HeldAmount, MachineKnown, MachineNode, RunOnNodes
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import StandingClock

GIB = 1 << 30
FAR = 1 << 40


@pytest.fixture
def store() -> Iterator[HubStore]:
    with closing(HubStore.open(":memory:", StandingClock(1000))) as opened:
        yield opened


@pytest.fixture
def db(store: HubStore) -> Iterator[Database]:
    with store.reader() as cursor:
        yield cursor


def node(name: str, gpus: int = 4, *, state: str = "", partitions: tuple[str, ...] = ("gpu",)) -> Node:
    return Node(name, 16, 64 * GIB, {"a100": gpus}, frozenset({"ib"}), state=state, partitions=partitions)


def row(name: str, since: int, until: int | None, gpus: int = 4) -> MachineNode:
    return MachineNode(name, since, until, gpus, "a100", 16, 64 * GIB, "gpu", "ib")


def test_a_changed_node_ends_and_begins(db: Database) -> None:
    """An equal answer writes nothing; a node with fewer GPUs, a new one and one that is gone have rows by time."""
    assert machine_store.write_nodes(db, "gw", [node("a"), node("b")], 100)
    assert not machine_store.write_nodes(db, "gw", [node("b", state="DOWN"), node("a")], 200)
    assert not machine_store.write_nodes(db, "gw", [], 250)
    later = [node("a", 2), node("c"), node("planned", state="FUTURE+CLOUD")]
    assert machine_store.write_nodes(db, "gw", later, 300)
    everything = [row("a", 100, 300), row("a", 300, None, 2), row("b", 100, 300), row("c", 300, None)]
    assert machine_reads.machine_nodes(db, "gw", 0, FAR) == everything
    assert machine_reads.machine_nodes(db, "gw", 100, 300) == [row("a", 100, 300), row("b", 100, 300)]
    assert machine_reads.machine_nodes(db, "gw", 0, 100) == []
    assumed = machine_reads.machine_nodes(db, "gw", 0, 100, assume_first=True)
    assert assumed == [row("a", ALWAYS, 300), row("b", ALWAYS, 300)]
    assert machine_reads.machine_nodes(db, "other", 0, FAR) == []


def test_an_answer_replaces_the_outages_of_its_window(db: Database) -> None:
    """An outage that ended gets its end, one that slurmdbd does not have is removed, an older one is kept."""
    old, going_on, guessed = (
        NodeOutage("a", 10, 20, "DOWN"),
        NodeOutage("b", 90, None, "DRAIN"),
        NodeOutage("c", 95, None, "x"),
    )
    assert machine_store.replace_outages(db, "gw", [old, going_on, guessed], 0)
    assert not machine_store.replace_outages(db, "gw", [going_on, guessed], 50)
    ended = NodeOutage("b", 90, 160, "DRAIN")
    assert machine_store.replace_outages(db, "gw", [ended], 50)
    assert machine_reads.outages(db, "gw", 0, FAR) == [old, ended]
    assert machine_reads.outages(db, "gw", 20, 90) == []
    for since, until in ((70, 100), (50, 200), (190, 300)):
        machine_store.set_complete(db, "machine_events", "gw", since, until)
    assert machine_reads.machine_known(db, "gw") == MachineKnown(events=50, events_until=300)


def test_an_answer_replaces_the_reservations_of_its_window(db: Database) -> None:
    """A reservation that was changed and then deleted has both parts with their true ends."""
    whole = ReservedNodes("fan", 100, 900, "a", "MAINT")
    assert machine_store.replace_reservations(db, "gw", [whole], 0)
    assert not machine_store.replace_reservations(db, "gw", [whole], 50)
    parts = [ReservedNodes("fan", 100, 200, "a", "MAINT"), ReservedNodes("fan", 200, 300, "a,b", "MAINT")]
    assert machine_store.replace_reservations(db, "gw", parts, 50)
    assert machine_reads.reservations(db, "gw", 0, FAR) == parts
    assert machine_reads.reservations(db, "gw", 300, FAR) == []


def running(job_id: int, **nodes: GresOnNode) -> RunningJob:
    return RunningJob(
        job_id, str(job_id), "n", "u", 1, "a", "gpu", "q", "RUNNING", 100, 100, None, 0, "a,b", len(nodes), nodes
    )  # fmt: skip


def run(job_id: int, nodes: str, gpus: int, gib: int = 0) -> JobRecord:
    return JobRecord(
        "gw", job_id, 100, user="u", start=100, end=200, nodes=nodes, gpus=gpus, cpus=5, state="COMPLETED",
        alloc_tres=f"cpu=5,mem={gib}G",
    )  # fmt: skip


def test_amounts_are_those_that_slurmctld_printed(store: HubStore, db: Database) -> None:
    """Uneven amounts are kept by node, even ones once; without them they are spread, and the run says so."""
    one, two = GresOnNode(gpus=1, cpus=1, memory_b=GIB), GresOnNode(gpus=2, cpus=4, memory_b=2 * GIB)
    upsert_jobs(
        store, [run(1, "a,b", gpus=3, gib=3), run(2, "a,b", gpus=2), run(3, "a,b", gpus=3, gib=3), run(4, "c", gpus=1)]
    )
    rows = [
        *machine_store.held_rows(running(1, a=one, b=two)),
        *machine_store.held_rows(running(2, a=one, b=one)),
        *machine_store.held_rows(running(4, c=one)),
        *machine_store.held_rows(running(5, a=one, b=GresOnNode(gpus=1))),
    ]
    assert [(each["job_id"], each["node"]) for each in rows] == [(1, "a"), (1, "b"), (2, "")]
    machine_store.add_held(db, "gw", rows)
    machine_store.add_held(db, "gw", machine_store.held_rows(running(1, a=two, b=one)))
    held = {each.job_id: each for each in machine_reads.held_runs(db, "gw", 150, 160)}
    assert held[1] == RunOnNodes(
        1, 100, 100, 200, exact=True, amounts=(HeldAmount("a", 1, 1, GIB), HeldAmount("b", 2, 4, 2 * GIB))
    )
    assert held[2].amounts == (HeldAmount("a", 1, 1, GIB), HeldAmount("b", 1, 1, GIB))
    spread = (HeldAmount("a", 2, 3, 3 * GIB // 2), HeldAmount("b", 1, 2, 3 * GIB // 2))
    assert (held[3].exact, held[3].amounts) == (False, spread)
    assert (held[4].exact, held[4].amounts) == (True, (HeldAmount("c", 1, 5, 0),))
    assert list(machine_reads.held_runs(db, "gw", 200, 300)) == []


def test_a_run_without_readable_nodes_is_on_all_nodes(store: HubStore, db: Database) -> None:
    """The run is there with all that it held; nothing is known of where it was."""
    upsert_jobs(store, [run(1, "gpu[1-", gpus=3)])
    (held,) = machine_reads.held_runs(db, "gw", 0, FAR)
    assert held.amounts == (HeldAmount(POOL, 3, 5, 0),)

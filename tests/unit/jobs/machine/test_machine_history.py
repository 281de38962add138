"""The hub's part that records the machine: from slurmdbd, without it, and what running jobs hold."""

import logging
from dataclasses import replace

import pytest
from tests.unit.jobs.machine.test_machine_store import FAR, GIB, node, running

from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.machine import machine_reads
from gpuwaste.jobs.machine.machine_history import PAST_EVERY_S, MachineHistory
from gpuwaste.jobs.machine.present_state import outages_now, reservations_now
from gpuwaste.jobs.machine.types import HeldAmount, MachineKnown
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm

NOW, DAY = 1_700_000_000, 86400


class Bench:
    """A hub's part on a store in memory."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOW)
        self.slurm = FakeSlurm(node_list=[node("a"), node("b", state="DOWN*")])
        self.store = HubStore.open(":memory:", self.clock)
        site = ClusterFacts(self.slurm, self.clock, resolve=lambda _: frozenset())
        self.part = MachineHistory(self.store, self.slurm, site, self.clock)

    def later(self) -> int:
        """Let the part read again; return when."""
        self.clock.advance(PAST_EVERY_S + 1)
        self.part.step()
        return self.clock.utc_s()

    def outages(self) -> list[NodeOutage]:
        with self.store.reader() as db:
            return machine_reads.outages(db, "gw", 0, FAR)

    def reservations(self) -> list[ReservedNodes]:
        with self.store.reader() as db:
            return machine_reads.reservations(db, "gw", 0, FAR)

    def known(self) -> MachineKnown:
        with self.store.reader() as db:
            return machine_reads.machine_known(db, "gw")


def test_slurmdbd_s_past_is_read_from_the_first_run_on() -> None:
    """At first a day; from the first run on once runs are stored; an outage that ends is stored with its end."""
    bench = Bench()
    old, new = NodeOutage("a", NOW - 9 * DAY, NOW - 8 * DAY, "DRAIN"), NodeOutage("b", NOW - 60, None, "DOWN")
    part = ReservedNodes("some", NOW, NOW + 60, "a", cpus=4)
    bench.slurm.outage_list, bench.slurm.reservation_list = [old, new], [part, replace(part, name="all", cpus=16)]
    bench.part.step()
    assert (bench.outages(), bench.known().events) == ([new], NOW - DAY)
    assert [one.name for one in bench.reservations()] == ["all"]
    upsert_jobs(bench.store, [JobRecord("gw", 1, NOW - 10 * DAY, user="u", start=NOW - 10 * DAY, state="RUNNING")])
    ended = replace(new, end=NOW + 100)
    bench.slurm.outage_list = [old, ended]
    at = bench.later()
    assert bench.outages() == [old, ended]
    assert bench.known() == MachineKnown(NOW, NOW - 10 * DAY, at, NOW - 10 * DAY, at)
    with bench.store.reader() as db:
        assert [one.node for one in machine_reads.machine_nodes(db, "gw", NOW, FAR)] == ["a", "b"]


def test_without_slurmdbd_states_are_recorded_as_the_hub_sees_them(caplog: pytest.LogCaptureFixture) -> None:
    """One line in the log; a state has the times of two reads; when slurmdbd is back, its times count."""
    bench = Bench()
    bench.slurm.no_slurmdbd = "sacctmgr: no slurmdbd"
    bench.slurm.reservation_list = [ReservedNodes("fan", NOW - 5, NOW + DAY, "a", "MAINT")]
    with caplog.at_level(logging.WARNING):
        bench.part.step()
        assert bench.outages() == [NodeOutage("b", NOW, None, "DOWN*")]
        bench.slurm.node_list, bench.slurm.reservation_list = [node("a"), node("b")], []
        at = bench.later()
    assert bench.outages() == [NodeOutage("b", NOW, at, "DOWN*")]
    assert bench.reservations() == [ReservedNodes("fan", NOW - 5, at, "a", "MAINT")]
    assert (bench.known().events, bench.known().events_until) == (NOW, None)
    assert sorted(getattr(line, "event", "") for line in caplog.records) == ["machine-unread"] * 2
    bench.slurm.no_slurmdbd, bench.slurm.outage_list = "", [NodeOutage("b", NOW - 99, NOW + 9, "DOWN")]
    bench.later()
    assert bench.outages() == [NodeOutage("b", NOW - 99, NOW + 9, "DOWN")]


def test_a_hub_without_slurm_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is stored, and a few lines say why, once."""
    bench = Bench()
    bench.slurm.failure = "slurmctld is down"
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            bench.part.worker.turn()
            bench.clock.advance(PAST_EVERY_S + 1)
    assert bench.known() == MachineKnown()
    assert [getattr(line, "event", "") for line in caplog.records].count("machine-unread") == 1


def test_what_running_jobs_hold_is_stored_once() -> None:
    """By the next turn; a pending job has nothing, and the same job seen again writes nothing."""
    bench = Bench()
    job = running(1, a=GresOnNode(gpus=1, cpus=1, memory_b=GIB), b=GresOnNode(gpus=2, cpus=1, memory_b=GIB))
    for _ in range(2):
        bench.part.see([job, replace(job, job_id=2, state="PENDING"), replace(job, job_id=3, state="COMPLETING")])
        bench.later()
    record = JobRecord("gw", 1, 100, user="u", start=100, nodes="a,b", gpus=3, state="RUNNING")
    upsert_jobs(bench.store, [record])
    with bench.store.reader() as db:
        (held,) = machine_reads.held_runs(db, "gw", 0, FAR)
    assert (held.exact, held.amounts) == (True, (HeldAmount("a", 1, 1, GIB), HeldAmount("b", 2, 1, GIB)))


def test_a_reservation_that_changes_has_a_row_for_each_time() -> None:
    """Another end moves the end; other nodes split it; deleted before its start it was never there."""
    first = ReservedNodes("r", 100, 900, "a")
    assert reservations_now([first], [replace(first, end=800)], 200) == [replace(first, end=800)]
    split = [replace(first, end=200), ReservedNodes("r", 200, 900, "b")]
    assert reservations_now([first], [replace(first, nodes="b")], 200) == split
    assert reservations_now(split, [replace(first, nodes="b")], 300) == split
    assert reservations_now([first], [replace(first, start=500)], 50) == [replace(first, start=500)]
    assert reservations_now([first], [], 50) == []
    again = replace(first, start=1000, end=1900)
    assert reservations_now([first], [again], 950) == [first, again]


def test_an_outage_stays_the_same_while_the_state_changes() -> None:
    """DOWN and then DRAIN without a usable time between is one outage; a node that is gone is not down."""
    down = NodeOutage("a", 100, None, "DOWN")
    assert outages_now([down], [node("a", state="IDLE+DRAIN")], 200) == [down]
    assert outages_now([down], [], 200) == [replace(down, end=200)]

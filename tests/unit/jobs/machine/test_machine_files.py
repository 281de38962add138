"""The machine of a store without a hub: from files that describe it, or from the runs alone."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.unit.jobs.machine.test_machine_store import FAR

from gpuwaste.core.errors import GpuwasteError, ParseError, UsageError
from gpuwaste.jobs.machine import machine_reads
from gpuwaste.jobs.machine.inferred_machine import infer_nodes
from gpuwaste.jobs.machine.machine_files import bring_machine
from gpuwaste.jobs.machine.types import ALWAYS, MachineKnown, MachineNode
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import NEVER
from gpuwaste.slurm.site.machine_events import NodeOutage, ReservedNodes
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import StandingClock

GIB = 1 << 30
CONF = """\
ClusterName=gw
NodeName=gpu[1-2] CPUs=16 RealMemory=64000 Gres=gpu:a100:4 Feature=nvlink,ib
NodeName=cpu1 CPUs=8 RealMemory=1000
PartitionName=long Nodes=gpu2
PartitionName=gpu Nodes=ALL
"""


def run(job_id: int, start: int, end: int | None, nodes: str, gpus: int = 1, *, kind: str = "a100") -> JobRecord:
    return JobRecord(
        "gw", job_id, start, user="u", start=start, end=end, nodes=nodes, gpus=gpus, gpu_type=kind, cpus=gpus,
        partition=f"p{job_id % 2}", alloc_tres=f"cpu={gpus},mem={gpus}G", state="COMPLETED" if end else "RUNNING",
    )  # fmt: skip


@pytest.fixture
def store() -> Iterator[HubStore]:
    with closing(HubStore.open(":memory:", StandingClock(1000))) as opened:
        upsert_jobs(opened, [
            run(1, 100, 200, "gpu1", 2), run(2, 150, 300, "gpu[1-2]", 3), run(3, 200, 250, "gpu1", 2),
            run(4, 400, None, "gpu2", 4, kind="h100"), run(5, 500, 600, "gpu[9"),
        ])  # fmt: skip
        yield opened


@pytest.fixture
def db(store: HubStore) -> Iterator[Database]:
    with store.reader() as cursor:
        yield cursor


def test_runs_show_the_least_that_a_node_has(db: Database) -> None:
    """The most held at one time, from the first run on; one that ends as another starts is not counted with it."""
    assert infer_nodes(db, "gw")
    assert machine_reads.machine_nodes(db, "gw", 0, FAR) == [
        MachineNode("gpu1", 100, None, 4, "a100", 4, 2 * GIB + 3 * GIB // 2, "p0,p1", ""),
        MachineNode("gpu2", 150, None, 4, "a100,h100", 4, 4 * GIB, "p0", ""),
    ]
    assert machine_reads.machine_known(db, "gw") == MachineKnown(nodes=100, inferred=True)
    assert infer_nodes(db, "gw")
    assert len(machine_reads.machine_nodes(db, "gw", 0, FAR)) == 2
    assert not infer_nodes(db, "other")


def test_a_slurm_conf_is_the_machine_of_all_times(db: Database, tmp_path: Path) -> None:
    """It replaces what runs showed, and is not replaced by that."""
    infer_nodes(db, "gw")
    (tmp_path / "slurm.conf").write_text(CONF)
    assert bring_machine(db, tmp_path) == ()
    assert not infer_nodes(db, "gw")
    cpu, one, two = machine_reads.machine_nodes(db, "gw", 0, FAR)
    assert one == MachineNode("gpu1", ALWAYS, None, 4, "a100", 16, 64000 << 20, "gpu", "ib,nvlink")
    assert (two.partitions, cpu.gpus, cpu.gpu_type) == ("gpu,long", 0, "")
    assert machine_reads.machine_known(db, "gw") == MachineKnown(nodes=ALWAYS)


def test_printed_events_and_reservations_are_those_of_all_times(db: Database, tmp_path: Path) -> None:
    """In the zone of the host that printed them; a row that cannot be read is a note."""
    events = tmp_path / "events.txt"
    events.write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\nother|x|2026-11-30T10:00:00|Unknown|DOWN||\n"
        "gw|gpu1|2026-11-30T10:00:00|Unknown|DOWN|fan|root\ngw|gpu1|soon|Unknown|DOWN|fan|root\n"
    )
    (note,) = bring_machine(db, events, ZoneInfo("Europe/Oslo"))
    assert note.startswith("1 rows of events.txt could not be read. The first: line 4:")
    assert machine_reads.outages(db, "gw", 0, FAR) == [NodeOutage("gpu1", 1796029200, None, "DOWN")]
    shown = tmp_path / "shown.txt"
    shown.write_text("ReservationName=a StartTime=500 EndTime=600\n   Nodes=gpu1 Flags=MAINT\n")
    assert bring_machine(db, shown) == ()
    assert machine_reads.reservations(db, "gw", 0, FAR) == [ReservedNodes("a", 500, 600, "gpu1", "MAINT")]
    known = machine_reads.machine_known(db, "gw")
    assert (known.events, known.events_until, known.reservations, known.nodes) == (ALWAYS, NEVER, ALWAYS, None)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", GpuwasteError),
        ("\0\0", GpuwasteError),
        ("NodeName|TimeStart|State\n", ParseError),
        ("Name|TimeStart|TimeEnd\n", ParseError),
    ],
)
def test_a_file_that_is_none_of_these_names_itself(db: Database, tmp_path: Path, text: str, error: type) -> None:
    """One line with its path; nothing is stored."""
    (tmp_path / "odd").write_text(text)
    with pytest.raises(error, match="odd"):
        bring_machine(db, tmp_path / "odd")
    assert machine_reads.machine_known(db, "gw") == MachineKnown()


def test_a_machine_of_another_cluster_needs_jobs_of_one_cluster(store: HubStore, db: Database, tmp_path: Path) -> None:
    """With several clusters a file must name one of them."""
    (tmp_path / "slurm.conf").write_text(CONF.replace("ClusterName=gw", "ClusterName=x"))
    bring_machine(db, tmp_path)
    assert len(machine_reads.machine_nodes(db, "gw", 0, FAR)) == 3
    upsert_jobs(store, [JobRecord("two", 1, 100, user="u", start=100, state="RUNNING")])
    with pytest.raises(UsageError, match="names no cluster of the jobs, which are of gw, two"):
        bring_machine(db, tmp_path)

"""The balance of a cluster as a hub counts it: accounting is read with Slurm's own commands into a store."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.unit.ledger.balance.happened import Case

from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.machine import machine_store
from gpuwaste.jobs.machine.machine_history import MachineHistory
from gpuwaste.jobs.machine.types import MachineNode
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.balance.balance import balance
from gpuwaste.ledger.balance.reads import inputs_of
from gpuwaste.ledger.balance.types import BalanceSums
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.cluster import LoopbackCluster

CLUSTER = "gw"


def read_balance(cluster: LoopbackCluster, case: Case) -> BalanceSums:
    """Return the balance of a case's time by what sacct and sacctmgr print; the nodes are those of the case."""
    with _store(cluster, case) as store, store.reader() as db:
        return balance(inputs_of(db, CLUSTER, case.start, case.end))


def by_class(sums: BalanceSums, start: int, end: int) -> Counter[str]:
    """Return the GPU-seconds of each class in full hours, with all causes of free GPUs in "free"."""
    found: Counter[str] = Counter()
    for place, gpu_s in sums.seconds.items():
        if start <= place.hour < end:
            found["free" if place.of.value.startswith("free") else place.of.value] += gpu_s
    return found


@contextmanager
def _store(cluster: LoopbackCluster, case: Case) -> Iterator[HubStore]:
    """Open a store with all that a hub reads at the end of the case."""
    client, clock = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"]), FakeClock(case.end)
    runs = list(client.accounting(case.start, case.end))
    assert all(isinstance(run, JobRecord) for run in runs)
    with closing(HubStore.open(":memory:", clock)) as store:
        upsert_jobs(store, [run for run in runs if isinstance(run, JobRecord)])
        MachineHistory(store, client, ClusterFacts(client, clock, resolve=lambda _: frozenset()), clock).step()
        with store.writing() as db:
            machine_store.clear_nodes(db, CLUSTER)
            machine_store.add_nodes(db, CLUSTER, _nodes(case))
            machine_store.set_mark(db, "machine", CLUSTER, 1)
        yield store


def _nodes(case: Case) -> Iterator[MachineNode]:
    for node in case.nodes:
        amounts = node.gpus, node.gpu_type, node.cpus, node.memory
        features = ",".join(sorted(node.features))
        yield MachineNode(node.name, node.start, node.end, *amounts, node.label, features)

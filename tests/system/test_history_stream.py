"""The history stream on a real cluster: what sacct tells of jobs that wait, and what a follower makes of it."""

from pathlib import Path

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.history.from_store import read_table
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.importers.accounting import ImportSettings
from gpuwaste.jobs.importers.accounting_importer import Importer, QuarantinedRows
from gpuwaste.jobs.run_store import history_events
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = pytest.mark.cluster


def test_submissions_starts_and_ends_are_told(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """Jobs that wait are told as submitted, once; held ones when they start; each ends, and nothing stays open."""
    cluster.reset()
    node = next(name for name in sorted(cluster.nodes) if name.endswith("gpu1"))
    slurm = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    clock = SystemClock()
    store = HubStore.open(tmp_path / "hub.duckdb", clock)
    importer = Importer(
        store,
        slurm,
        ClusterFacts(slurm, clock),
        quarantined=QuarantinedRows(),
        clock=clock,
        settings=ImportSettings(1, 60, 1),
        bus=Bus(),
    )
    whole = {"user": "alice", "exclusive": True, "nodelist": node}
    first = cluster.sbatch("sleep 120", **whole)  # type: ignore[arg-type]  # sbatch's options are of several types

    def started() -> bool:
        return [row["State"] for row in cluster.sacct("-j", str(first))] == ["RUNNING"]

    # slurmdbd is told of the submission first: an import before the start would tell of a job that waits.
    wait_until(started, 60, "accounting to tell the start")
    second = cluster.sbatch("exit 3", **whole)  # type: ignore[arg-type]
    held = cluster.sbatch("true", hold=True, **whole)  # type: ignore[arg-type]
    array = cluster.sbatch("true", array="0-1", **whole)  # type: ignore[arg-type]
    jobs = {first, second, held, array}

    def told() -> dict[int, list[str]]:
        importer.step()
        found: dict[int, list[str]] = {}
        for event in history_events(store, 0, 10_000):
            found.setdefault(event.run_key.job_id, []).append(event.kind)
        return {job: kinds for job, kinds in found.items() if job >= first}

    wait_until(lambda: {second, array} <= told().keys(), 60, "accounting to tell the jobs that wait")
    assert told() == {first: ["started"], second: ["submitted"], array: ["submitted"]}
    follower = Follower(HistoryState(), slurm.cluster_name())
    follower.apply(history_events(store, 0, 10_000))
    cluster.run(["scontrol", "release", str(held)])
    cluster.run(["scancel", str(first)])
    ends = len(jobs) + 1  # two tasks of the array
    wait_until(lambda: sum("ended" in kinds for kinds in told().values()) == ends, 120, "accounting to tell the ends")
    assert told()[second] == ["submitted", "started", "ended"]
    assert told()[first] == ["started", "ended"]
    assert all(kinds.count("submitted") <= 1 for kinds in told().values())
    follower.apply(history_events(store, follower.seq, 10_000))
    assert not follower._open
    assert follower.counts["lost"] == 0
    with store.reader() as db:
        table = read_table(db, slurm.cluster_name()).table
    outcomes = dict(zip(table.job_id.tolist(), table.outcome.tolist(), strict=True))
    assert (outcomes[first], outcomes[second], outcomes[held]) == (Outcome.CANCELLED, Outcome.FAILED, Outcome.COMPLETED)
    store.close()

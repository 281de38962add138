"""The cluster-wide map: agents' questions become as few questions to slurmctld as can be."""

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import encode
from tests.integration.hub.rig import Rig

from gpuwaste.core.typed import decode
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import AGENT_UID

if TYPE_CHECKING:
    from concurrent.futures import Future

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.gpu_assignments import TELL_AGAIN_S, GpuAssignments
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.fake_slurm import FakeSlurm


def running(job_id: int, start: int | None = 1000, restarts: int = 0, **nodes: GresOnNode) -> RunningJob:
    """Return a job of slurmctld's memory."""
    return RunningJob(
        job_id=job_id, printed_id=str(job_id), name="n", user="alice", uid=1001, account="proj1", partition="gpu",
        qos="normal", state="RUNNING", submit=900, start=start, end=None, restarts=restarts, node_list="gpu[1-2]",
        n_nodes=2, nodes=nodes,
    )  # fmt: skip


TWO_NODES = running(7, gpu1=GresOnNode(positions=(0, 3), gpus=2), gpu2=GresOnNode(positions=(1,), gpus=1, shards=2))


class Bench:
    """A map without its thread: `step` asks the next question."""

    def __init__(self, *jobs: RunningJob) -> None:
        self.clock = FakeClock()
        self.slurm = FakeSlurm(running=list(jobs))
        self.store = HubStore.open(":memory:", self.clock)
        self.map = GpuAssignments(self.slurm, self.store, ClusterFacts(self.slurm, self.clock), self.clock)

    def ask(self, node: str, job: int) -> Any:
        """Ask and let the question be answered, where it needs one."""
        return self.settle(self.map.ask(node, job))

    def settle(self, future: "Future[Any]") -> Any:
        """Step until the future is done."""
        for _ in range(5):
            if future.done():
                break
            self.map.step()
        return decode(encode(future.result(0)))


def test_a_job_on_many_nodes_costs_one_question() -> None:
    """Two nodes ask for the same job: slurmctld is asked once, and each gets all nodes' positions."""
    bench = Bench(TWO_NODES)
    first, second = bench.map.ask("gpu1", 7), bench.map.ask("gpu2", 7)
    bench.map.step()
    expected = {
        "job_id": 7, "start": 1000, "restarts": 0, "state": "RUNNING", "suspended": False,
        "nodes": {"gpu1": {"positions": [0, 3], "shards": 0}, "gpu2": {"positions": [1], "shards": 2}},
    }  # fmt: skip
    assert first.result(0) == second.result(0)
    assert bench.ask("gpu1", 7) == [expected]
    assert (dict(bench.map.questions), dict(bench.slurm.rpcs)) == ({"job": 1}, {"scontrol": 1})


def test_many_unknown_jobs_are_asked_for_together() -> None:
    """Six unknown jobs at once become one question for all jobs."""
    bench = Bench(*(running(j, gpu1=GresOnNode(positions=(0,))) for j in range(1, 7)))
    futures = [bench.map.ask("gpu1", j) for j in range(1, 7)]
    bench.map.step()
    assert [f.result(0)[0].job_id for f in futures] == [1, 2, 3, 4, 5, 6]
    assert dict(bench.map.questions) == {"jobs": 1}


def test_a_requeued_job_is_asked_for_anew() -> None:
    """A node that asks again later gets the new run's start, not the one remembered."""
    bench = Bench(running(7, 1000, gpu1=GresOnNode(positions=(0,))))
    assert bench.ask("gpu1", 7)[0]["start"] == 1000
    bench.slurm.running = [running(7, 5000, 1, gpu1=GresOnNode(positions=(2,)))]
    bench.clock.advance(TELL_AGAIN_S + 1)
    found = bench.ask("gpu1", 7)[0]
    assert (found["start"], found["restarts"], found["nodes"]["gpu1"]["positions"]) == (5000, 1, [2])


def test_accounting_makes_the_map_forget() -> None:
    """A run that accounting has ended is forgotten at once, so that its id's next run is asked for."""
    bench = Bench(running(7, 1000, gpu1=GresOnNode(positions=(0,))))
    bench.ask("gpu1", 7)
    bench.map.learn([JobRecord("gw", 7, 900, start=1000, end=2000, state="REQUEUED")])
    bench.slurm.running = [running(7, 3000, 1, gpu1=GresOnNode(positions=(1,)))]
    assert bench.ask("gpu1", 7)[0]["start"] == 3000


def test_a_job_that_waits_is_not_remembered() -> None:
    """A pending job has no run yet: the answer is empty, and the next question goes to slurmctld again."""
    bench = Bench(running(7, None))
    assert bench.ask("gpu1", 7) == []
    bench.slurm.running = [TWO_NODES]
    assert bench.ask("gpu1", 7)[0]["start"] == 1000


def test_an_ended_job_is_answered_from_accounting() -> None:
    """Slurmctld has forgotten the job: its start and its nodes come from accounting, without positions."""
    bench = Bench()
    upsert_jobs(bench.store, [JobRecord("gw", 7, 900, start=1000, end=2000, state="COMPLETED", nodes="gpu[1-2]")])
    found = bench.ask("gpu2", 7)[0]
    assert (found["start"], found["state"], sorted(found["nodes"])) == (1000, "COMPLETED", ["gpu1", "gpu2"])
    assert found["nodes"]["gpu1"]["positions"] == []


def test_a_running_job_that_slurmctld_does_not_list_is_not_said_to_hold_nothing() -> None:
    """A record that was set aside, since its job's name imitates one: the agent is left to ask slurmctld itself."""
    bench = Bench()
    upsert_jobs(bench.store, [JobRecord("gw", 7, 900, start=1000, state="RUNNING", nodes="gpu[1-2]", gpus=2)])
    assert bench.ask("gpu2", 7)[0]["nodes"] == {}


def test_a_record_that_nobody_asked_for_is_not_believed() -> None:
    """A comment that imitates the record of a job to come: when that job has begun, slurmctld is asked for it."""
    forged = running(99, 500, gpu1=GresOnNode(positions=(0, 1, 2, 3)))
    bench = Bench(*(running(j, gpu1=GresOnNode(positions=(0,))) for j in range(1, 8)), forged)
    waiting = [bench.map.ask("gpu1", job) for job in range(1, 8)]
    bench.map.step()
    assert all(future.done() for future in waiting)
    bench.slurm.running = [running(99, 1000, gpu1=GresOnNode(positions=(3,)))]
    (found,) = bench.ask("gpu1", 99)
    assert (found["start"], found["nodes"]["gpu1"]["positions"]) == (1000, [3])
    assert bench.map.questions == {"jobs": 1, "job": 1}


def test_an_unknown_job_is_not_asked_for_again_at_once() -> None:
    """An id that nobody knows costs one question in ten seconds, however often it is asked."""
    bench = Bench()
    assert [bench.ask("gpu1", 9) for _ in range(5)] == [[], [], [], [], []]
    assert bench.map.questions["job"] == 1


def test_a_node_may_ask_for_all_that_it_holds() -> None:
    """Without a job the first question loads the cluster; later ones cost nothing."""
    bench = Bench(TWO_NODES, running(8, gpu2=GresOnNode(positions=(0,))))
    assert [j["job_id"] for j in bench.settle(bench.map.ask_node("gpu1"))] == [7]
    assert [j["job_id"] for j in bench.settle(bench.map.ask_node("gpu2"))] == [7, 8]
    assert dict(bench.map.questions) == {"jobs": 1}


def test_slurm_down_is_told_to_all_who_wait() -> None:
    """Where slurmctld does not answer nobody is left waiting."""
    bench = Bench()
    bench.slurm.failure = "Unable to contact slurm controller"
    futures = [bench.map.ask("gpu1", 7), bench.map.ask("gpu1", 8), bench.map.ask_node("gpu1")]
    bench.map.step()
    for future in futures:
        with pytest.raises(GpuwasteError, match="Unable to contact"):
            future.result(0)


def test_agents_ask_over_http(hub: Rig) -> None:
    """The agents' user gets the map; a controller that is down gives 503."""
    hub.slurm.running = [TWO_NODES]
    answer = hub.get(AGENT_UID, "/v1/map?node=gpu1&job=7").json
    assert answer["jobs"][0]["nodes"]["gpu1"]["positions"] == [0, 3]
    assert [j["job_id"] for j in hub.get(AGENT_UID, "/v1/map?node=gpu2").json["jobs"]] == [7]
    hub.slurm.failure = "Unable to contact slurm controller"
    assert hub.get(AGENT_UID, "/v1/map?node=gpu1&job=8").status == 503

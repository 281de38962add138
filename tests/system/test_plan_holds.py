"""What holds a job back on a real slurmctld delays it in the expectation too: a limit, a throttle, a reservation."""

import time

import pytest
from tests.conftest import ClusterFactory

from gpuwaste.plan.live_queue import LiveQueue, live_queue
from gpuwaste.plan.start_time.run_times import PastRuns
from gpuwaste.plan.start_time.start_expectation import StartExpectation, expect
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
CONF = "AccountingStorageEnforce=associations,limits,qos\nSchedulerParameters=bf_interval=1\n"
SCRIPT = "#!/bin/bash\n#SBATCH --gres=gpu:1 --mem=10M --output=/dev/null\nsleep 600\n"


class Site:
    """A cluster and what the hub would expect of its queue."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.cluster = cluster
        self.client = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])

    def live(self) -> LiveQueue:
        """Return the queue as it is now."""
        client = self.client
        now = int(time.time())
        return live_queue(client.jobs(), client.nodes(), "gpu", PastRuns(), now, client.site())

    def job(self, number: int) -> RunningJob:
        """Return a job that waits."""
        return next(
            one for one in self.client.jobs() if number in {one.job_id, one.array_job_id} and one.state == "PENDING"
        )

    def wait_reason(self, number: int, word: str) -> None:
        """Wait until slurmctld says why a job waits."""
        wait_until(lambda: word in self.job(number).reason, 60, word, lambda: self.job(number).reason)

    def expected(self, number: int) -> tuple[int, StartExpectation]:
        """Return now, and what is expected of a job that waits."""
        live, job = self.live(), self.job(number)
        found = live.without(job.job_id)
        assert found is not None, live.ids
        rest, place = found
        (one,) = expect(rest.queue, [rest.candidate(rest.asked_like(job), place=place, job=job)], 20)
        assert one is not None
        return live.queue.now, one


@pytest.fixture
def site(make_cluster: ClusterFactory) -> Site:
    """Start a cluster with a QOS in which a user may run one job."""
    cluster = make_cluster(Variant(slurm_conf=CONF))
    for words in (
        ("add", "qos", "one", "MaxJobsPerUser=1"),
        ("modify", "user", "alice", "set", "qos=normal,one"),
    ):
        cluster.run(["sacctmgr", "-i", *words])
    return Site(cluster)


def test_a_limit_a_throttle_and_a_reservation_delay_the_expected_start(site: Site) -> None:
    """GPUs are free, and the jobs wait: for the user's job of that QOS, a task of the array, the maintenance."""
    cluster = site.cluster
    first = cluster.sbatch(SCRIPT, "alice", qos="one", time="20")
    cluster.wait_job(first, "RUNNING")
    second = cluster.sbatch(SCRIPT, "alice", qos="one", time="20")
    site.wait_reason(second, "QOSMaxJobsPerUserLimit")
    now, held = site.expected(second)
    assert now < held.p50 <= now + 20 * 60
    live = site.live()
    free = JobRequest(user="bob", submit=now, account="proj1", qos="normal", gpus=1, cpus=1, nodes=1, time_limit_s=60)
    (at_once,) = expect(live.queue, [live.candidate(free)], 20)
    assert at_once is not None
    assert at_once.p90 == live.queue.now

    array = cluster.sbatch(SCRIPT, "bob", array="0-3%1", time="10")
    site.wait_reason(array, "JobArrayTaskLimit")
    now, task = site.expected(array)
    assert now < task.p50 <= now + 10 * 60
    cluster.cancel_jobs()

    begin = int(time.time()) + 240
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(begin))
    cluster.run([
        "scontrol", "create", "reservation", "ReservationName=work", f"StartTime={start}", "Duration=10", "Users=bob",
        "Nodes=ALL", "Flags=MAINT",
    ])  # fmt: skip
    late = cluster.sbatch(SCRIPT, "alice", time="20")
    inside = cluster.sbatch(SCRIPT, "bob", time="5", reservation="work")
    site.wait_reason(inside, "Reservation")
    now, after = site.expected(late)
    assert abs(after.p50 - (begin + 600)) <= 60
    now, within = site.expected(inside)
    assert abs(within.p50 - begin) <= 60
    short = JobRequest(user="alice", submit=now, account="proj1", gpus=1, cpus=1, nodes=1, time_limit_s=60)
    live = site.live()
    (soon,) = expect(live.queue, [live.candidate(short)], 20)
    assert soon is not None
    assert soon.p90 == live.queue.now

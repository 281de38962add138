"""What any SlurmClient answers: the fake of the tests, commands, slurmrestd and pyslurm of a real cluster alike."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pytest

from gpuwaste.agent.step_daemons import BATCH_STEP, scan_steps
from gpuwaste.core.errors import SlurmError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.pyslurm_client import Pyslurm, PyslurmClient
from gpuwaste.slurm.clients.pyslurm_probe import probe_pyslurm
from gpuwaste.slurm.clients.rest_client import RestClient
from gpuwaste.slurm.clients.rest_http import RestServer
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import DevicePosition, GresOnNode
from gpuwaste.slurm.site.cluster_model import Node, Partition
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.core

_T = TypeVar("_T")
EVIL = (
    "x\nJobId={other} JobName=train\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n   JobState=RUNNING\n"
    "   NodeList=gpu1\n     Nodes=gpu1 CPU_IDs=0 Mem=1 GRES=gpu:a100:4(IDX:0-3)\n   MinCPUsNode=1\n"
)


@dataclass(frozen=True)
class Subject:
    """A client of a cluster on which `job_id` runs for alice with two GPUs of gpu1."""

    client: CommandClient | FakeSlurm | PyslurmClient | RestClient
    job_id: int
    minors: tuple[int, ...]


def _fake() -> Subject:
    start = int(time.time()) - 5
    job = RunningJob(
        job_id=7,
        printed_id="7",
        name="train",
        user="alice",
        uid=1001,
        account="proj1",
        partition="gpu",
        qos="normal",
        state="RUNNING",
        submit=start,
        start=start,
        end=start + 600,
        restarts=0,
        node_list="gpu1",
        n_nodes=1,
        nodes={"gpu1": GresOnNode((0, 1), 2, ("a100",), cpus=1, memory_b=1 << 30)},
        time_limit_s=600,
        tres="cpu=1,gres/gpu=2",
        req_tres="cpu=1,gres/gpu=2",
    )
    record = JobRecord(
        "gw", 7, start, user="alice", start=start, gpus=2, gpu_type="a100", state="RUNNING", nodes="gpu1"
    )
    fake = FakeSlurm(
        running=[job],
        partition_list=[Partition("gpu", ("gpu1", "gpu2")), Partition("whole", ("gpu1", "gpu2"), whole_nodes=True)],
        node_list=[Node("gpu1", gpus={"a100": 4})],
        records=[record],
        levels={"alice": "None", "gpuwaste": "Operator"},
        account_coordinators={"proj1": frozenset({"carol"})},
        devices={"gpu1": [DevicePosition(i, (f"/dev/nvidia{i}",), "a100", minor=i) for i in range(4)]},
    )
    return Subject(fake, 7, (0, 1, 2, 3))


def _real(cluster: LoopbackCluster) -> Subject:
    cluster.reset()
    client = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    job_id = cluster.sbatch("sleep 120", user="alice", gres="gpu:2", nodelist="gpu1", job_name="train")
    cluster.wait_job(job_id, "RUNNING")
    return Subject(client, job_id, cluster.nodes["gpu1"].minors)


def _rest(cluster: LoopbackCluster, folder: Path) -> Subject:
    subject = _real(cluster)
    assert isinstance(subject.client, CommandClient)
    token = folder / "token"
    token.touch(0o600)
    token.write_text(cluster.jwt_token("gpuwaste"))
    return replace(subject, client=RestClient(subject.client, RestServer(cluster.slurmrestd_url, str(token))))


@pytest.fixture(params=["fake", *(pytest.param(name, marks=pytest.mark.cluster) for name in ("real", "rest"))])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    if request.param == "fake":
        return _fake()
    cluster = request.getfixturevalue("cluster")
    return _real(cluster) if request.param == "real" else _rest(cluster, tmp_path)


def test_the_queue_to_slurmdbd_becomes_empty(subject: Subject) -> None:
    """Slurmctld hands over what it has for slurmdbd; how much is left is a number."""
    until = time.monotonic() + patient(30)
    while (left := subject.client.accounting_backlog()) and time.monotonic() < until:
        time.sleep(0.5)
    assert left == 0


def test_a_client_keeps_its_contract(subject: Subject) -> None:
    """One running job, seen from every side that a client has."""
    for check in (_jobs, _request, _site, _node, _accounting, _people, _past):
        check(subject)


def _jobs(subject: Subject) -> None:
    (job,) = subject.client.job(subject.job_id)
    assert (job.user, job.name, job.state, job.partition) == ("alice", "train", "RUNNING", "gpu")
    held = job.nodes["gpu1"]
    assert (held.positions, held.gpus, held.types, held.cpus) == ((0, 1), 2, ("a100",), 1)
    assert held.memory_b
    assert job.start is not None
    assert abs(job.start - time.time()) < 600
    assert job in subject.client.jobs()
    assert subject.client.job(99_999_999) == []


def _request(subject: Subject) -> None:
    (request,) = subject.client.request(subject.job_id)
    assert (request.user, request.name, request.partition, request.gpus) == ("alice", "train", "gpu", 2)
    assert (request.cpus, request.time_limit_s, request.interactive, request.is_array) == (1, 600, False, False)
    assert subject.client.request(99_999_999) == []


def _site(subject: Subject) -> None:
    assert subject.client.cluster_name() == subject.client.config().cluster_name
    whole = {partition.name: partition.whole_nodes for partition in subject.client.partitions()}
    assert (whole["gpu"], whole["whole"]) == (False, True)
    assert {node.name: node.gpu_count for node in subject.client.nodes()}["gpu1"] == 4


def _node(subject: Subject) -> None:
    assert not isinstance(subject.client, PyslurmClient)
    before = subject.client.rpcs.total()
    devices = subject.client.device_list("gpu1")
    assert [device.position for device in devices] == [0, 1, 2, 3]
    assert tuple(device.minor for device in devices) == subject.minors
    assert subject.client.rpcs.total() == before, "a node's own facts cost no RPC"


def _accounting(subject: Subject) -> None:
    (job,) = subject.client.job(subject.job_id)
    (run,) = _until(lambda: _accounted(subject))
    assert (run.start, run.gpus, run.gpu_type, run.user) == (job.start, 2, "a100", "alice")
    assert run.end is None
    assert not run.interactive


def _accounted(subject: Subject) -> list[JobRecord]:
    """Return the run once accounting has its start; slurmdbd is told a little later than slurmctld knows."""
    now = int(time.time())
    rows = subject.client.accounting(now - 3600, now + 60)
    runs = [row for row in rows if isinstance(row, JobRecord) and row.job_id == subject.job_id]
    return runs if runs and runs[0].start else []


def _people(subject: Subject) -> None:
    assert subject.client.admin_levels()["gpuwaste"] == "Operator"
    assert subject.client.coordinators()["proj1"] == {"carol"}
    places = subject.client.account_places(["proj1"])
    assert [(p.account, p.parent) for p in places if not p.user] == [("proj1", "root")]
    assert {p.cluster for p in places} == {subject.client.cluster_name()}


def _past(subject: Subject) -> None:
    since = int(time.time()) - 3600
    assert not subject.client.outages(since).bad
    assert (subject.client.reservations(since).bad, subject.client.reservations().bad) == (0, 0)


def _until(ask: Callable[[], _T]) -> _T:
    """Ask until the answer is not empty, 10 s at most: a job is RUNNING before its step and its accounting are."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("no answer after 10 s")


@pytest.mark.cluster
def test_a_name_that_imitates_a_job_changes_nobody_s_devices(cluster: LoopbackCluster) -> None:
    """On a real cluster: bob's job carries a record of alice's in its name, and both are told right."""
    subject = _real(cluster)
    name = EVIL.format(other=subject.job_id)
    other = cluster.sbatch("sleep 120", user="bob", gres="gpu:1", nodelist="gpu2", job_name=name)
    cluster.wait_job(other, "RUNNING")
    found = {job.job_id: job for job in subject.client.jobs()}
    assert (found[subject.job_id].user, sorted(found[subject.job_id].nodes)) == ("alice", ["gpu1"])
    assert (found[other].user, sorted(found[other].nodes)) == ("bob", ["gpu2"])
    assert found[other].name == name
    assert found[other].nodes["gpu2"].positions == (0,)


@pytest.mark.cluster
def test_the_sockets_of_a_running_job_are_found(cluster: LoopbackCluster) -> None:
    """Several slurmd share this host; each node's steps are its own."""
    subject = _real(cluster)
    _until(lambda: scan_steps(cluster.nodes["gpu1"].spool_dir, "gpu1"))
    steps = {name: scan_steps(node.spool_dir, name) for name, node in cluster.nodes.items()}
    assert {(step.job_id, step.step_id) for step in steps["gpu1"]} == {(subject.job_id, BATCH_STEP)}
    assert not steps["gpu2"]


@pytest.mark.cluster
def test_pyslurm_keeps_the_contract(cluster: LoopbackCluster) -> None:
    """In a process of its own: Slurm's library reads one slurm.conf, and ends the process where it cannot be used."""
    environment = {**os.environ, "SLURM_CONF": cluster.env()["SLURM_CONF"]}
    try:
        probe_pyslurm(environment)
    except SlurmError as error:
        pytest.skip(f"no pyslurm of this Slurm's release here: {error}")
    subject = _real(cluster)
    argv = [sys.executable, "-m", __name__, str(subject.job_id), *map(str, subject.minors)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=patient(120), check=False)
    assert done.returncode == 0, done.stderr


def _main(job_id: str, *minors: str) -> None:
    """Check pyslurm against the cluster of SLURM_CONF."""
    conf = os.environ["SLURM_CONF"]
    client = PyslurmClient(CommandClient(slurm_conf=conf), Pyslurm(conf))
    subject = Subject(client, int(job_id), tuple(map(int, minors)))
    for check in (_jobs, _request, _site, _accounting, _people):
        check(subject)


if __name__ == "__main__":
    _main(*sys.argv[1:])

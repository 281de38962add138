"""The loopback cluster: what starts, what jobs see, and that nothing stays behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from tests.conftest import ClusterFactory

from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import ClusterError, LoopbackCluster, Variant
from gpuwaste.testing.cluster_cli import main
from gpuwaste.testing.cluster_process import marked, wait_until
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.cluster

SHOW = "srun bash -c 'echo $SLURMD_NODENAME ${GPUWASTE_SIM_MINORS-none}'"
OWNER = """
import sys, time
from gpuwaste.testing.cluster import LoopbackCluster
cluster = LoopbackCluster(sys.argv[1], remove=True)
cluster.start()
cluster.sbatch("sleep 600", gres="gpu:1")
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def idle(cluster: LoopbackCluster) -> Iterator[LoopbackCluster]:
    """Give the shared cluster without jobs, and clear it again."""
    cluster.reset()
    yield cluster
    cluster.reset()


def _expected_minors(cluster: LoopbackCluster, node: str, positions: list[int]) -> list[int]:
    return [cluster.nodes[node].minors[position] for position in positions]


@pytest.mark.parametrize(("node", "options"), [("gpu1", {"gres": "gpu:1"}), ("gpu2", {}), ("cpu1", {"p": "cpu"})])
def test_a_job_runs_on_each_node(cluster: LoopbackCluster, node: str, options: dict[str, str]) -> None:
    """A batch job completes on each node and accounting has it there."""
    job = cluster.sbatch("srun true", user="dave", w=node, **options)
    assert cluster.wait_job(job) == ["COMPLETED"]
    assert [row["NodeList"] for row in cluster.wait_accounted(job)] == [node]


def test_a_job_that_fails_is_told_with_what_it_wrote(cluster: LoopbackCluster) -> None:
    """Who waits for a job to run learns from the error why it did not."""
    job = cluster.sbatch("echo no such data; exit 3", user="alice")
    cluster.wait_job(job)
    with pytest.raises(ClusterError, match=r"ended as \['FAILED'\].*its output: 'no such data\\n'"):
        cluster.wait_job(job, "RUNNING")


def test_a_credential_carries_the_address_of_its_node(cluster: LoopbackCluster) -> None:
    """Credentials made on the nodes decode at the hub with each node's own address, the one that Slurm knows too."""
    for node in cluster.nodes.values():
        credential = cluster.run(["munge", "-n", "-S", str(node.munge_socket)], "gpuwaste").stdout
        decoded = cluster.run(["unmunge", "-S", str(cluster.munge_socket)], stdin=credential).stdout
        assert f"({node.address})" in decoded
        assert "gpuwaste (" in decoded
        assert f"NodeAddr={node.address} " in cluster.run(["scontrol", "show", "node", node.name]).stdout


def test_a_job_on_two_nodes_sees_the_devices_of_each(idle: LoopbackCluster) -> None:
    """While another job shifts the positions on one node only, each node's tasks learn their own device minors."""
    other = idle.sbatch("sleep 60", user="bob", w="gpu1", gres="gpu:1")
    idle.wait_job(other, "RUNNING")
    job = idle.sbatch(SHOW, N=2, gres="gpu:1", ntasks_per_node=1)
    idle.wait_job(job, "COMPLETED")
    first, second = _expected_minors(idle, "gpu1", [1]), _expected_minors(idle, "gpu2", [0])
    assert sorted(idle.job_output(job).split("\n")[:2]) == [f"gpu1 {first[0]}", f"gpu2 {second[0]}"]
    assert idle.job_minors("gpu1", job) == first
    assert idle.job_minors("gpu2", job) == second


def test_array_tasks_and_het_components_see_their_own_devices(idle: LoopbackCluster) -> None:
    """Three array tasks hold three positions, a het job's components theirs; a component without GPUs sees none."""
    array = idle.sbatch(f"{SHOW}; sleep 5", array="0-2", gres="gpu:1", w="gpu1")
    het_script = f"#!/bin/bash\n#SBATCH -p cpu -n1\n#SBATCH hetjob\n#SBATCH -w gpu2 --gres=gpu:2\n{SHOW}\n"
    het = idle.sbatch(f"{het_script}srun --het-group=1 bash -c 'echo $SLURMD_NODENAME $GPUWASTE_SIM_MINORS'")
    idle.wait_job(array, "RUNNING")
    tasks = [int(task["JobId"]) for task in idle.show_job(array)]
    assert sorted(minor for task in tasks for minor in idle.job_minors("gpu1", task) or []) == sorted(
        _expected_minors(idle, "gpu1", [0, 1, 2])
    )
    idle.wait_job(het, "COMPLETED")
    assert idle.job_output(het).splitlines() == [
        "cpu1 none",
        "gpu2 " + ",".join(map(str, _expected_minors(idle, "gpu2", [0, 1]))),
    ]


def test_salloc_s_steps_see_their_devices_and_the_node_s_variables(idle: LoopbackCluster) -> None:
    """An interactive allocation's step has the device minors and what `set_node_env` set on its node."""
    idle.set_node_env("gpu2", GPUWASTE_TEST_WORD="a b")
    step = "echo $GPUWASTE_SIM_MINORS $GPUWASTE_TEST_WORD"
    done = idle.run(["salloc", "-Q", "-w", "gpu2", "--gres=gpu:1", "srun", "bash", "-c", step], "carol")
    assert done.stdout.split("\n")[0] == f"{_expected_minors(idle, 'gpu2', [0])[0]} a b"


def test_suspension_and_daemon_restarts_keep_a_job(idle: LoopbackCluster) -> None:
    """A job survives suspension and restarts of slurmd and slurmctld."""
    job = idle.sbatch("sleep 600", gres="gpu:1", w="gpu1")
    idle.wait_job(job, "RUNNING")
    idle.run(["scontrol", "suspend", str(job)])
    idle.wait_job(job, "SUSPENDED")
    idle.run(["scontrol", "resume", str(job)])
    idle.restart_slurmd("gpu1")
    idle.restart_slurmctld()
    assert idle.wait_job(job, "RUNNING") == ["RUNNING"]


def test_slurmrestd_answers_a_user_s_token(cluster: LoopbackCluster) -> None:
    """slurmrestd, which runs as neither root nor SlurmUser, takes a token made with the cluster's key."""
    headers = {"X-SLURM-USER-NAME": "alice", "X-SLURM-USER-TOKEN": cluster.jwt_token("alice")}
    newest = cluster.slurmrestd_versions()[-1]
    url = f"{cluster.slurmrestd_url}/slurm/{newest}/nodes"
    with urlopen(Request(url, headers=headers), timeout=patient(20)) as answer:  # noqa: S310 a loopback address of our own
        reply = json.load(answer)
    assert {node["name"] for node in reply["nodes"]} == {"gpu1", "gpu2", "cpu1"}


def test_our_programs_run_with_the_capabilities_they_are_given(cluster: LoopbackCluster) -> None:
    """A spawned program is the agent's user with just the named capability, and has its node's environment."""
    script = 'id -un; grep CapEff /proc/self/status; echo "$GPUWASTE_RUN_DIR"; sleep 600'
    process = cluster.spawn(["bash", "-c", script], caps=["sys_ptrace"], node="gpu1", name="probe")
    log = cluster.directory / "log" / "probe.out"
    process.wait_for(lambda: len(log.read_text().split("\n")) > 3)
    assert log.read_text().splitlines() == [
        "gpuwaste",
        f"CapEff:\t{1 << 19:016x}",
        str(cluster.run_dir("gpu1")),
    ]
    process.stop()
    assert process.returncode == -signal.SIGTERM


def test_private_data_hides_jobs_and_a_second_cluster_leaves_nothing(
    cluster: LoopbackCluster, make_cluster: ClusterFactory, tmp_path: Path
) -> None:
    """Beside the shared cluster, one with PrivateData shows a job to its owner and the operator; then it is gone.

    Its prolog and epilog are scripts of the caller's choice, which see the run directory of their node.
    """
    for name in ("prolog", "epilog"):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho "$SLURM_JOB_GPUS" >"$GPUWASTE_RUN_DIR/$SLURM_JOB_ID.{name}"\n')
        script.chmod(0o755)
    scripts = {name: (str(tmp_path / name),) for name in ("prolog", "epilog")}
    private = make_cluster(Variant(private_data=True, seed=1, prolog=scripts["prolog"], epilog=scripts["epilog"]))
    job = private.sbatch("true", user="alice", gres="gpu:2", w="gpu2")
    private.wait_accounted(job)
    private.wait_nodes_idle()
    assert [(private.run_dir("gpu2") / f"{job}.{name}").read_text() for name in scripts] == ["0,1\n", "0,1\n"]
    rows = {user: len(private.sacct("-j", str(job), user=user)) for user in ("alice", "bob", "carol", "gpuwaste")}
    assert rows == {"alice": 1, "bob": 0, "carol": 1, "gpuwaste": 1}  # carol coordinates alice's account
    assert not {node.address for node in private.nodes.values()} & {node.address for node in cluster.nodes.values()}
    left = private.sbatch("setsid sleep 600 & sleep 600", user="bob")
    private.wait_job(left, "RUNNING")
    private.stop()
    assert marked(private.layout.cluster_id, private.directory) == []
    assert str(private.directory) not in Path("/proc/self/mounts").read_text()
    assert set(cluster.node_states().values()) <= {"idle", "mixed"}


def test_constrained_devices_shards_and_requeue(make_cluster: ClusterFactory) -> None:
    """With ConstrainDevices a job opens its own devices alone; shards name their GPU; no cgroup stays behind.

    A job that a more urgent partition preempts is requeued and runs again under its id.
    """
    order = {"cgpu1": (3, 1, 0, 2)}
    options = Variant(shards=4, preempt=True, node_prefix="c", gres_order=order, cred_expire_s=5)
    cluster = make_cluster(replace(options, constrain_devices=True))
    job = cluster.sbatch(f"for i in 0 1 2 3; do head -c1 {cluster.directory}/dev/nvidia$i 2>&1; done", gres="gpu:2")
    cluster.wait_job(job)
    answers = cluster.job_output(job).splitlines()
    assert [minor for minor, answer in enumerate(answers) if "No such device" in answer] == [1, 3]
    assert sum("Operation not permitted" in answer for answer in answers) == 2
    shared = cluster.sbatch(f"{SHOW}; sleep 600", gres="shard:3")
    cluster.wait_job(shared, "RUNNING")
    assert cluster.job_minors("cgpu1", shared) == [3]
    cluster.cancel_jobs()
    patient = cluster.sbatch("sleep 600", exclusive=True, w="cgpu1")
    cluster.wait_job(patient, "RUNNING")
    urgent = cluster.sbatch("true", user="bob", p="urgent", gres="gpu:1", w="cgpu1")
    cluster.wait_job(urgent, "COMPLETED")
    cluster.wait_job(patient, "RUNNING")
    assert cluster.show_job(patient)[0]["Restarts"] == "1"
    assert cluster_host.cgroups_of(list(cluster.nodes))
    cluster.stop()
    assert cluster_host.cgroups_of(list(cluster.nodes)) == []


def test_a_start_that_fails_half_way_leaves_nothing(make_cluster: ClusterFactory) -> None:
    """With a wrong slurm.conf slurmctld's own words are in the error, and what had started is ended."""
    cluster = make_cluster(Variant(slurm_conf="PreemptMode=NONSENSE"), start=False)
    with pytest.raises(ClusterError, match="NONSENSE"):
        cluster.start()
    assert marked(cluster.layout.cluster_id, cluster.directory) == []


def test_a_killed_owner_s_cluster_is_reaped(make_cluster: ClusterFactory) -> None:
    """After SIGKILL of the process that started it, a cluster with a running job and its directory go away."""
    directory = make_cluster(start=False).directory
    env = {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", OWNER, str(directory)], stdout=subprocess.PIPE, env=env) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == b"up\n"
        cluster_id = LoopbackCluster.attach(directory).layout.cluster_id
        assert len(marked(cluster_id)) > 10
        owner.kill()
    wait_until(lambda: not directory.exists(), 30, "the reaper to remove the directory")
    assert marked(cluster_id, directory) == []


def test_up_status_and_down_from_the_shell(make_cluster: ClusterFactory, capsys: pytest.CaptureFixture[str]) -> None:
    """`tools/cluster up` leaves a cluster running, refuses a second there; `down` ends it; it starts again."""
    directory = make_cluster(start=False).directory
    where = ["--dir", str(directory)]
    assert main(["up", *where, "--variant", "gres_order=gpu1:3-1-0-2"]) == 0
    cluster = LoopbackCluster.attach(directory)
    try:
        assert capsys.readouterr().out == f"export SLURM_CONF={cluster.layout.slurm_conf}\n"
        assert main(["up", *where]) == 1
        assert "is in use" in capsys.readouterr().err
        assert main(["status", *where]) == 0
        assert "minors (3, 1, 0, 2)" in capsys.readouterr().out
        job = cluster.sbatch("sleep 600", gres="gpu:1")
        cluster.wait_job(job, "RUNNING")
    finally:
        assert main(["down", *where]) == 0
    assert marked(cluster.layout.cluster_id, cluster.directory) == []
    assert main(["status", *where]) == 1
    with LoopbackCluster(directory) as again:
        assert again.wait_accounted(job)[0]["State"].startswith("CANCELLED")


def test_a_directory_that_cannot_be_used_is_refused(make_cluster: ClusterFactory) -> None:
    """A path too long for sockets, a relative one and a folder with other things are each one clear error."""
    directory = make_cluster(start=False).directory
    (directory / "thesis.txt").touch()
    for path, words in ((directory, "not empty"), (directory / ("x" * 60), "at most 60"), (Path("here"), "absolute")):
        with pytest.raises(ClusterError, match=words):
            LoopbackCluster(path).start()


def test_an_ordinary_user_is_told_in_one_line(cluster: LoopbackCluster) -> None:
    """Without root `tools/cluster up` says what it needs and exits with 1."""
    argv = [sys.executable, "-m", "gpuwaste.testing.cluster_cli", "up", "--dir", str(cluster.directory / "bob")]
    path = ":".join(path for path in sys.path if path)
    process = cluster.spawn(argv, user="bob", env={"PYTHONPATH": path}, name="up-by-bob")
    assert process.wait() == 1
    assert process.logs[0].read_text() == f"tools/cluster: {cluster_host.missing(uid=1)}\n"


def test_a_backup_controller_takes_over(make_cluster: ClusterFactory) -> None:
    """The second slurmctld takes the jobs of one that was killed; the first one, started again, gets them back."""
    cluster = make_cluster(Variant(backup=True))
    assert cluster.controllers_up() == {"primary", "backup"}
    before = cluster.sbatch("true", hold=True, job_name="before")
    cluster.wait_saved("before")
    cluster.processes["slurmctld"].kill()
    held = ["sbatch", "--parsable", "--hold"]  # sbatch itself waits until one controller is in charge
    during = int(cluster.run(held, "alice", stdin="#!/bin/sh\ntrue\n", timeout_s=120).stdout)
    assert cluster.controllers_up() == {"backup"}
    assert cluster.job_states(before) == cluster.job_states(during) == ["PENDING"]
    saved = cluster.directory / "state" / "node_state"  # without it slurmctld of 26.05 does not start again
    wait_until(saved.exists, 60, f"the backup to save {saved}")
    cluster.restart_slurmctld()
    assert cluster.controllers_up() == {"primary", "backup"}
    assert cluster.job_states(before) == cluster.job_states(during) == ["PENDING"]

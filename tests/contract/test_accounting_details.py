"""Details and steps of real jobs, through sacct, slurmrestd, and the files that sacct writes."""

import base64
import gzip
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.jobs.importers.file_source import sacct_file
from gpuwaste.jobs.importers.history_source import ImportSource, Notes, parser_of
from gpuwaste.slurm.accounting.accounted_use import AccountedUse
from gpuwaste.slurm.accounting.job_record import AccountedRun
from gpuwaste.slurm.accounting.jobstats_comment import PREFIX
from gpuwaste.slurm.accounting.sacct_rows import ADMIN_COMMENT
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.rest_client import RestClient
from gpuwaste.slurm.clients.rest_http import RestServer
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = pytest.mark.cluster
STEPS = """
srun -n2 --job-name=$'a|b\\nc' sleep 1
srun -n1 bash -c 'exit 3'
exit 0
"""
WRITES = "dd if=/dev/zero of=$(mktemp) bs=1M count=8 conv=fsync 2>/dev/null"


@pytest.fixture(scope="module")
def bound(cluster: LoopbackCluster) -> Iterator[int]:
    """Run a job with steps that is bound to a feature and a reservation; return its id."""
    cluster.reset()
    control = ["scontrol", "update", "nodename=gpu1", "features=fast,nvlink"]
    cluster.run(control)
    name = "reservationname=course"
    cluster.run(
        ["scontrol", "create", "reservation", name, "nodes=gpu1", "users=alice", "starttime=now", "duration=60"]
    )
    made = time.time()
    # slurmdbd gives a job the reservation that began in an earlier second than the job.
    wait_until(lambda: time.time() >= made + 2, 30, "the reservation to be two seconds old", poll_s=0.2)
    job = cluster.sbatch(WRITES + STEPS, output="/dev/null", constraint="nvlink|fast", reservation="course", n=2)
    cluster.wait_accounted(job)
    yield job
    cluster.run(["scontrol", "delete", name])
    cluster.run([*control[:-1], "activefeatures=", "availablefeatures="])


def through_sacct(cluster: LoopbackCluster, job: int) -> AccountedRun:
    now = int(time.time())
    rows = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"]).accounting(now - 3600, now + 60)
    (run,) = [row for row in rows if isinstance(row, AccountedRun) and row.job_id == job]
    return run


def through_rest(cluster: LoopbackCluster, job: int, folder: Path) -> AccountedRun:
    token = folder / "token"
    token.touch(0o600)
    token.write_text(f"SLURM_JWT={cluster.jwt_token('gpuwaste')}\n")
    commands = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    client = RestClient(commands, RestServer(cluster.slurmrestd_url, str(token)))
    now = int(time.time())
    (run,) = [
        row for row in client.accounting(now - 3600, now + 60) if isinstance(row, AccountedRun) and row.job_id == job
    ]
    return run


def from_file(source: ImportSource, job: int) -> AccountedRun:
    parse = parser_of(source.kind)
    rows = [row for page in source.pages(None) for row in parse(page.data, source.context, Notes())]
    (run,) = [row for row in rows if isinstance(row, AccountedRun) and row.job_id == job]
    return run


def listed(cluster: LoopbackCluster, job: int) -> bool:
    """Tell whether accounting lists the job: slurmdbd learns a moment later since when it is eligible."""
    try:
        through_sacct(cluster, job)
    except ValueError:
        return False
    return True


def reserved(cluster: LoopbackCluster, job: int) -> bool:
    """Tell whether accounting knows the job's reservation, of which slurmctld tells slurmdbd on its own."""
    return listed(cluster, job) and bool(through_sacct(cluster, job).details.reservation)


def test_a_job_that_backfill_started_says_so(cluster: LoopbackCluster) -> None:
    """It passed a job that waits for all nodes, which the main scheduler does not allow."""
    cluster.reset()
    nodes = [name for name in cluster.nodes if name.startswith("gpu")]
    holder = cluster.sbatch("sleep 300", exclusive=True, nodelist=nodes[0], time=30)
    cluster.wait_job(holder, "RUNNING")
    waiting = cluster.sbatch("true", exclusive=True, N=len(nodes), time=30)
    small = cluster.sbatch("true", "bob", n=1, time=1, nodelist=nodes[1], mem="10M")
    cluster.wait_accounted(small)
    wait_until(lambda: listed(cluster, small), 30, "accounting to list the job")
    assert cluster.job_states(waiting) == ["PENDING"]
    assert "SchedBackfill" in (through_sacct(cluster, small).details.flags or "")
    cluster.cancel_jobs()


def test_a_summary_of_jobstats_is_read_from_every_source(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """The text is kept as it is: sacct, slurmrestd, and sacct's JSON in a file give the same use of the GPU."""
    cluster.reset()
    gpu = {"gpu_utilization": {"0": 0}, "gpu_used_memory": {"0": 0}, "gpu_total_memory": {"0": 80 << 30}}
    data = json.dumps({"nodes": {"gpu1": gpu}, "total_time": 1, "gpus": 1}).encode()
    text = PREFIX + base64.b64encode(gzip.compress(data)).decode()
    job = cluster.sbatch("sleep 300", gres="gpu:1", n=1, output="/dev/null")
    cluster.wait_job(job, "RUNNING")
    cluster.run(["scontrol", "update", f"jobid={job}", f"admincomment={text}"])
    cluster.cancel_jobs()
    cluster.wait_accounted(job)
    found = AccountedUse("jobstats", "gpu1", "0", 0.0, 0.0, 0, 80 << 30)
    wait_until(
        lambda: listed(cluster, job) and found in through_sacct(cluster, job).uses, 30, "accounting to have the comment"
    )
    assert found in through_rest(cluster, job, tmp_path).uses
    file = tmp_path / "j.json"
    with file.open("wb") as out:
        subprocess.run(["sacct", "-a", "-D", "-S", "now-1hour", "--json"], env=cluster.env(), stdout=out, check=True)
    assert found in from_file(sacct_file(file, "gw", zone="UTC"), job).uses


def test_details_and_steps_of_a_real_job(cluster: LoopbackCluster, bound: int, tmp_path: Path) -> None:
    """Feature, reservation, priority, what started it, disk, and each step with its state, tasks and exit code."""
    wait_until(lambda: reserved(cluster, bound), 30, "accounting to know the reservation")
    run = through_sacct(cluster, bound)
    details = run.details
    assert (details.constraints, details.reservation, details.n_steps) == ("nvlink|fast", "course", 2)
    assert (details.flags or "").split(",")[0] in {"SchedSubmit", "SchedMain", "SchedBackfill"}
    assert details.eligible == run.submit
    assert (details.priority or 0) > 0
    assert details.reason is not None
    steps = {step.step: step for step in run.steps}
    assert set(steps) == {"batch", "0", "1"}
    assert (steps["0"].name, steps["0"].tasks, steps["0"].state) == ("a|b\nc", 2, "COMPLETED")
    assert (steps["1"].name, steps["1"].state, steps["1"].exit_code) == ("bash", "FAILED", 3)
    assert run.start is not None
    assert run.start <= (steps["0"].start or 0) <= (steps["1"].start or 0) <= (run.end or 0)
    told = through_rest(cluster, bound, tmp_path)
    assert (told.details.constraints, told.details.n_steps) == ("nvlink|fast", 2)
    assert [step.step for step in told.steps] == [step.step for step in run.steps]


def test_files_of_sacct_tell_the_same(cluster: LoopbackCluster, bound: int, tmp_path: Path) -> None:
    """With -P, where the constraint's | is the separator and a step's name has a newline, and as JSON."""
    wait_until(lambda: reserved(cluster, bound), 30, "accounting to know the reservation")
    run = through_sacct(cluster, bound)
    commands = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    columns = [name for name in commands.accounting_columns() if name != ADMIN_COMMENT]
    columns.remove("Constraints")
    columns.insert(columns.index("ReqTRES"), "Constraints")
    text, found = tmp_path / "p.txt", tmp_path / "j.json"
    env = {**cluster.env(), "TZ": "UTC"}
    for file, options in ((text, ["-P", "--noconvert", f"--format={','.join(columns)}"]), (found, ["--json"])):
        with file.open("wb") as out:
            subprocess.run(["sacct", "-a", "-D", "-S", "now-1hour", *options], env=env, stdout=out, check=True)
    told = from_file(sacct_file(text, "gw", zone="UTC"), bound)
    assert (told.details, told.steps) == (run.details, run.steps)
    in_json = from_file(sacct_file(found, "gw", zone="UTC"), bound)
    assert (in_json.details.constraints, in_json.details.disk_write_b) == ("nvlink|fast", run.details.disk_write_b)
    assert [(step.step, step.tasks, step.max_rss_b) for step in in_json.steps] == [
        (step.step, step.tasks, step.max_rss_b) for step in run.steps
    ]

"""Files that a real sacct writes, as text and as JSON, hold the same runs as accounting itself."""

import subprocess
import time
from dataclasses import fields
from pathlib import Path

import pytest

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.importers.file_source import sacct_file
from gpuwaste.jobs.importers.history_source import ImportSource, Notes, parser_of
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.rest_differences import allowed, fields_of

pytestmark = pytest.mark.cluster
NAMES = ("lr=1|bs=2", "two\nlines|and|more", "\ufeffbom", "||", "caf\udce9", "plain")
FIELDS = (
    "JobIDRaw,JobID,Cluster,User,Group,Account,Partition,QOS,State,Submit,Start,End,ElapsedRaw,Suspended,TimelimitRaw,"
    "NNodes,AllocCPUS,ReqMem,ReqTRES,AllocTRES,NodeList,MaxRSS,TotalCPU"
)
PLAIN = {field.name for field in fields(JobRecord)}  # without details, of which these columns have none
MiB = 2**20
Runs = dict[RunKey, JobRecord]


@pytest.fixture(scope="module")
def jobs(cluster: LoopbackCluster) -> dict[int, str]:
    """Run a short job of each odd name, one of them with --mem-per-cpu; return id -> name."""
    cluster.reset()
    ids = {cluster.sbatch("true", job_name=name, gres="gpu:1", comment="a|b"): name for name in NAMES}
    per_cpu = cluster.sbatch("true", job_name="per cpu", n=3, mem_per_cpu="100M", partition="cpu")
    ids[per_cpu] = "per cpu"
    for job in ids:
        cluster.wait_accounted(job)
    # sacct leaves a job out of a window until slurmctld has told slurmdbd since when it is eligible
    wait_until(lambda: len(accounting(cluster, ids)) == len(ids), 30, "accounting to list all jobs of the hour")
    return ids


def accounting(cluster: LoopbackCluster, jobs: dict[int, str]) -> Runs:
    now = int(time.time())
    rows = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"]).accounting(now - 3600, now + 60)
    return {row.run_key: row for row in rows if isinstance(row, JobRecord) and row.job_id in jobs}


def written(cluster: LoopbackCluster, file: Path, *options: str) -> Path:
    """Let the cluster's sacct write a file, its dates in UTC."""
    env = {**cluster.env(), "TZ": "UTC"}
    with file.open("wb") as out:
        subprocess.run(["sacct", "-a", "-D", "-S", "now-1hour", *options], env=env, stdout=out, check=True)
    return file


def read(source: ImportSource, jobs: dict[int, str]) -> Runs:
    """Return the runs of a file of which nothing was set aside."""
    parse, notes = parser_of(source.kind), Notes()
    rows = [row for page in source.pages(None) for row in parse(page.data, source.context, notes)]
    assert [row for row in rows if isinstance(row, BadRow)] == []
    return {row.run_key: row for row in rows if isinstance(row, JobRecord) and row.job_id in jobs}


@pytest.mark.parametrize(
    "columns",
    [
        f"{FIELDS},JobName,SubmitLine,ExitCode",  # what our documentation asks for
        f"{FIELDS},ExitCode,JobName,SubmitLine",  # the submit line last
        FIELDS.replace("User,", "JobName,User,") + ",ExitCode",  # the name in the middle
        f"{FIELDS},ExitCode,JobName",  # the name last
    ],
)
def test_a_file_of_sacct_p_holds_what_accounting_holds(
    cluster: LoopbackCluster, jobs: dict[int, str], tmp_path: Path, columns: str
) -> None:
    """Names with |, newlines, a BOM and bytes that are no UTF-8 cost no run and no field, wherever their column is."""
    file = written(cluster, tmp_path / "a.txt", "-P", "--noconvert", f"--format={columns}")
    told, seen = read(sacct_file(file, "", zone="UTC"), jobs), accounting(cluster, jobs)
    assert set(told) == set(seen)
    assert len(told) == len(jobs)
    absent = {name for name, column in (("name", "JobName"), ("submit_line", "SubmitLine")) if column not in columns}
    for key, run in told.items():
        told_of = fields_of(run)
        same = {name: told_of[name] for name in PLAIN - absent - {"restarts", "interactive"}}
        assert same == {name: fields_of(seen[key])[name] for name in same}


def test_a_file_of_sacct_json_holds_what_accounting_holds(
    cluster: LoopbackCluster, jobs: dict[int, str], tmp_path: Path
) -> None:
    """But for what the JSON of a release cannot tell."""
    file = written(cluster, tmp_path / "a.json", "--json")
    told, seen = read(sacct_file(file, "", zone="UTC"), jobs), accounting(cluster, jobs)
    assert set(told) == set(seen)
    for key, run in told.items():
        assert fields_of(run) == fields_of(seen[key]) | allowed(seen[key], run)


def test_the_request_of_mem_per_cpu_is_its_total(
    cluster: LoopbackCluster, jobs: dict[int, str], tmp_path: Path
) -> None:
    """Three processors with 100 MiB each are 300 MiB, however this release prints ReqMem."""
    (run,) = (run for run in accounting(cluster, jobs).values() if jobs[run.job_id] == "per cpu")
    assert run.cpus is not None
    assert run.mem_req_b == run.cpus * 100 * MiB
    columns = "JobIDRaw,Submit,Start,End,State,ReqMem,NNodes,AllocCPUS,Cluster"
    file = written(cluster, tmp_path / "a.txt", "-P", f"--format={columns}")
    (told,) = (run for run in read(sacct_file(file, "", zone="UTC"), jobs).values() if jobs[run.job_id] == "per cpu")
    assert told.mem_req_b == run.mem_req_b


def test_the_widths_of_sacct_without_p_are_named(
    cluster: LoopbackCluster, jobs: dict[int, str], tmp_path: Path
) -> None:
    """What people write first is refused with what to write instead."""
    file = written(cluster, tmp_path / "a.txt", "--format=JobID,JobName,Submit,State")
    assert jobs
    with pytest.raises(UsageError, match=r"padded with spaces.*sacct -P"):
        sacct_file(file, "", zone="UTC")

"""Our reader of sacct against slurm2sql, another one: the same text, drawn at random, gives the same values.

Where the two differ on purpose, DIFFERENCES says where and why, and a test shows it.
"""

import logging
import random
import sqlite3
import time
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
import slurm2sql

from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.requested import each_b
from gpuwaste.slurm.accounting.sacct_file import columns_of
from gpuwaste.slurm.accounting.sacct_rows import parse_sacct
from gpuwaste.slurm.formats.slurm_times import parse_cpu_s

CASES = 700
DELIMITER = ";|;"  # the one that slurm2sql asks sacct for
ZONE = "Europe/Helsinki"
COLUMNS = [*(name for name in slurm2sql.COLUMNS if not name.startswith("_")), *slurm2sql.COLUMNS_EXTRA]
STATES = ("COMPLETED", "FAILED", "CANCELLED by 1001", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "RUNNING", "PENDING")
DIFFERENCES = {
    "ReqMem": "without a unit it is MiB here, as Slurm counts memory, and bytes there; n, c and the mark of"
    " --mem-per-cpu end the reading there; from 2 PiB on it is unknown here, since it is a mark that was rounded",
    "MaxRSS": "here the largest of a run's steps, there one of each row",
    "State": "here without ` by UID`",
    "Start": "here, of the two instants of the hour that is repeated in autumn, the one that Elapsed tells",
}


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the process be in the zone: slurm2sql reads times in that of its host."""
    with monkeypatch.context() as context:
        context.setenv("TZ", ZONE)
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="module")
def rng() -> random.Random:
    """Return a generator whose seed is printed."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"cases drawn from seed {seed}")  # noqa: T201 - pytest shows it when a test fails
    return random.Random(seed)


def duration(rng: random.Random) -> tuple[str, int]:
    """Return a duration as Slurm prints it, and its seconds."""
    seconds = rng.choice([rng.randrange(1, 60), rng.randrange(1, 86400), rng.randrange(1, 40 * 86400)])
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return (f"{days}-{clock}" if days else clock), seconds


def size(rng: random.Random) -> str:
    """Return an amount of memory as Slurm prints it, below the 2 PiB from which it stands for a mark."""
    return f"{rng.choice([rng.randrange(1, 2000), round(rng.uniform(0.01, 900), 2)])}{rng.choice('KMGT')}"


def drawn(rng: random.Random, job: int) -> dict[str, str]:
    """Return a job's row as sacct prints it in the zone."""
    there = ZoneInfo(ZONE)
    start = rng.randrange(1_546_300_800, 1_764_500_000)
    elapsed, seconds = duration(rng)
    if any(local(at, there)[1] for at in (start - 600, start, start + seconds)):
        start -= 3 * 86400  # an ambiguous hour is in DIFFERENCES
    state = rng.choice(STATES)
    started = state != "PENDING"
    cpus, nodes, gpus = rng.randrange(1, 512), rng.randrange(1, 64), rng.randrange(0, 9)
    gres = f",gres/gpu={gpus},gres/gpu:{rng.choice(['a100', 'h100', '2080ti'])}={gpus}" if gpus else ""
    memory = size(rng)
    ids = rng.choice([f"{job}", f"{job}_{rng.randrange(1, 9999)}"])
    limit = rng.choice([duration(rng)[0], "UNLIMITED", "Partition_Limit"])
    return {
        "JobID": ids, "JobIDRaw": str(job), "User": "alice",
        "JobName": rng.choice(["train", "a b", "x|y", "é;;", "=,="]),
        "Group": "staff", "Account": "proj1", "Partition": "gpu", "State": state,
        "Timelimit": limit, "Elapsed": elapsed,
        "Submit": local(start - 600, there)[0], "Start": local(start, there)[0] if started else "Unknown",
        "End": local(start + seconds, there)[0] if started and state != "RUNNING" else "Unknown",
        "ExitCode": f"{rng.randrange(0, 256)}:{rng.choice([0, 0, 0, 9, 15, 11])}", "NodeList": f"n[1-{nodes}]",
        "ReqNodes": str(nodes), "NNodes": str(nodes), "AllocNodes": str(nodes), "NCPUS": str(cpus),
        "ReqCPUS": str(cpus), "AllocCPUS": str(cpus), "ReqMem": memory,
        "MaxRSS": f"{rng.randrange(0, 10**6)}{rng.choice(['', 'K', 'M'])}",
        "ReqTRES": f"billing=1,cpu={cpus},mem={memory},node={nodes}{gres}",
        "AllocTRES": f"billing=1,cpu={cpus},mem={memory},node={nodes}{gres}" if started else "",
        "SubmitLine": "sbatch x",
    }  # fmt: skip


def local(at: int, there: ZoneInfo) -> tuple[str, bool]:
    """Return an instant as sacct prints it in a zone, and whether that means two instants."""
    stamp = datetime.fromtimestamp(at, there)
    return stamp.strftime("%Y-%m-%dT%H:%M:%S"), stamp.replace(fold=0).utcoffset() != stamp.replace(fold=1).utcoffset()


def lines_of(rows: list[dict[str, str]]) -> list[str]:
    return [DELIMITER.join(COLUMNS), *(DELIMITER.join(row.get(name, "") for name in COLUMNS) for row in rows)]


def read_there(rows: list[dict[str, str]]) -> dict[int, dict[str, object]]:
    """Return slurm2sql's rows by raw id."""
    with sqlite3.connect(":memory:") as database:
        database.row_factory = sqlite3.Row
        assert slurm2sql.slurm2sql(database, raw_sacct=lines_of(rows)) == 0
        return {row["JobIDRawonly"]: dict(row) for row in database.execute("SELECT * FROM slurm")}


def read_here(rows: list[dict[str, str]]) -> dict[int, JobRecord]:
    """Return our runs by raw id."""
    lines = [f"{line}\n".encode() for line in lines_of(rows)[1:]]
    found = list(parse_sacct(lines, "gw", columns_of(COLUMNS), DELIMITER.encode(), ZoneInfo(ZONE)))
    jobs = [job for job in found if isinstance(job, JobRecord)]
    assert len(jobs) == len(found)
    return {job.job_id: job for job in jobs}


@pytest.mark.usefixtures("zone")
def test_rows_drawn_at_random_are_read_alike(rng: random.Random) -> None:
    """Times, lengths, limits, exit codes, memory, CPUs, nodes, GPUs, their type, array ids, of every row."""
    logging.getLogger("slurm2sql").setLevel(logging.ERROR)
    rows = [drawn(rng, 1000 + at) for at in range(CASES)]
    there, here = read_there(rows), read_here(rows)
    assert set(here) == set(there)
    assert len(here) >= 500
    for job_id, job in here.items():
        row = there[job_id]
        same = {
            "Submit": job.submit, "Start": job.start, "End": job.end, "Timelimit": job.time_limit_s,
            "ExitCode": job.exit_code, "ExitSignal": job.exit_signal, "NNodes": job.n_nodes, "NCPUS": job.cpus,
            "ArrayTaskID": job.array_task_id, "JobName": job.name, "User": job.user, "NodeList": job.nodes,
        }  # fmt: skip
        assert {name: row[name] for name in same} == same, row
        assert str(row["State"]).split()[0] == job.state
        if job.start is not None:
            assert row["Elapsed"] == job.elapsed_s
            assert (row["NGpus"] or 0, row["GpuType"] or "") == (job.gpus, job.gpu_type)
        assert job.mem_req_b == pytest.approx(row["ReqMem"], abs=1)


def test_processor_times_drawn_at_random_are_read_alike(rng: random.Random) -> None:
    """MM:SS.mmm, HH:MM:SS and D-HH:MM:SS."""
    for _ in range(CASES):
        text, seconds = duration(rng)
        if rng.random() < 0.3:
            text = f"{rng.randrange(60):02d}:{rng.randrange(60):02d}.{rng.randrange(1000):03d}"
            assert parse_cpu_s(text) == pytest.approx(slurm2sql.slurmtime(text))
        else:
            assert parse_cpu_s(text) == slurm2sql.slurmtime(text) == seconds


def test_memory_drawn_at_random_is_read_alike(rng: random.Random) -> None:
    """Amounts with a unit, for each node and processor too, below what stands for a mark."""
    for _ in range(CASES):
        text = size(rng)
        suffix = rng.choice(["", "n", "c"])
        amount, per = each_b(text + suffix)
        assert amount == pytest.approx(slurm2sql.slurmmem(text + suffix), abs=1)
        assert per == suffix


def test_each_difference_on_purpose_is_one() -> None:
    """Both readings of each entry, so that the list stays true."""
    assert (each_b("4000")[0], slurm2sql.slurmmem("4000")) == (4000 * 2**20, 4000.0), DIFFERENCES["ReqMem"]
    assert each_b("2147486448Mn") == (2800 * 2**20, "c"), DIFFERENCES["ReqMem"]
    assert slurm2sql.slurmmem("2147486448Mn") == 2147486448 * 2**20, DIFFERENCES["ReqMem"]
    assert each_b("2.00Pn") == (0, "n"), DIFFERENCES["ReqMem"]
    with pytest.raises(ValueError, match="could not convert"):
        slurm2sql.float_bytes("4Gn")
    assert slurm2sql.nullstr("CANCELLED by 1001") == "CANCELLED by 1001", DIFFERENCES["State"]

"""`gpuwaste simulate run --engine slurmctld`: a trace on Slurm's own daemons, its results, what it leaves."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.sim.real.engine import EngineStudy, play_ensemble
from gpuwaste.sim.real.faster_clock import NEEDED, require_programs
from gpuwaste.sim.real.real_jobs import ReplayedOutcome, read_csv
from gpuwaste.sim.real.reaper import MARKER
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Outage, Partition, Reservation
from gpuwaste.testing import cluster_host
from gpuwaste.testing.patience import patient

pytestmark = [pytest.mark.cluster, pytest.mark.sockets]
GIB = 1 << 30
SPEED = 50
T0 = 1_000_000
MODEL = ClusterModel(
    "small",
    (
        Node("f1", 4, 8 * GIB),
        Node("g1", 4, 8 * GIB, {"a100": 2}),
        Node("g2", 4, 8 * GIB, {"v100": 2}),
        Node("m1", 4, 8 * GIB),
        Node("o1", 4, 8 * GIB),
    ),
    (
        Partition("fifo", ("f1",), whole_nodes=True, default=True),
        Partition("gpu", ("g1", "g2")),
        Partition("kept", ("m1",)),
        Partition("weak", ("o1",)),
    ),
    reservations=(Reservation("maintenance", ("m1",), T0, T0 + 400),),
    outages=(Outage("o1", T0 + 100, T0 + 200),),
    settings={"SelectTypeParameters": "CR_CPU"},
)


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    """Skip where Slurm, as the other clusters need it, or faketime is missing."""
    reason = cluster_host.missing()
    if reason:
        pytest.skip(reason)


def job(
    number: int, submit: int, run: int, partition: str, *, tres: str = "cpu=1,node=1", limit: int = 600
) -> JobRecord:
    """Return a job of the trace; its limit is in whole minutes."""
    return JobRecord(
        cluster="c",
        job_id=number,
        user="u",
        submit=T0 + submit,
        start=T0 + submit,
        end=T0 + submit + run,
        elapsed_s=run,
        state="COMPLETED",
        time_limit_s=limit,
        partition=partition,
        req_tres=tres,
    )


JOBS = [
    *(job(number, number, 60 + 20 * number, "fifo") for number in range(1, 5)),
    job(11, 10, 100, "gpu", tres="cpu=1,node=1,gres/gpu=2,gres/gpu:a100=2"),
    job(12, 10, 100, "gpu", tres="cpu=1,node=1,gres/gpu=2,gres/gpu:v100=2"),
    job(13, 20, 60, "gpu", tres="cpu=1,node=1,gres/gpu=1,gres/gpu:a100=1"),
    job(14, 21, 60, "gpu", tres="cpu=1,node=1,gres/gpu=4"),
    job(21, 0, 500, "kept", limit=60),
    job(31, 5, 300, "weak"),
]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, ReplayedOutcome], Any, Path]:
    """Play all jobs once; returns outcomes by id, the document and the directory."""
    directory = tmp_path_factory.mktemp("runs")
    document = play_ensemble(EngineStudy(table_of(JOBS), "the test's jobs", MODEL, 1, SPEED, directory))
    return {each.job_id: each for each in read_csv(directory / "run-001.csv")}, document, directory


def instants(found: ReplayedOutcome) -> tuple[int, int]:
    """Return start and end of a job that has both."""
    assert found.ended.start is not None, found
    assert found.ended.end is not None, found
    return found.ended.start - T0, found.ended.end - T0


def test_jobs_that_hold_the_node_whole_start_in_order(played: tuple[dict[int, ReplayedOutcome], Any, Path]) -> None:
    """Each of four jobs that take the whole node starts after the one before it ended, within some cycles."""
    found, _, _ = played
    before = 0
    for number in range(1, 5):
        start, end = instants(found[number])
        assert before <= start <= before + 90
        assert 60 + 20 * number <= end - start <= 60 + 20 * number + 60
        assert (found[number].ended.state, found[number].ended.nodes) == ("COMPLETED", "f1")
        before = end


def test_gpus_are_placed_by_type(played: tuple[dict[int, ReplayedOutcome], Any, Path]) -> None:
    """Jobs get the node with their type; one more waits until its GPUs are free; one that no node can run is said."""
    found, _, _ = played
    assert (found[11].ended.nodes, found[12].ended.nodes, found[13].ended.nodes) == ("g1", "g2", "g1")
    assert instants(found[13])[0] >= instants(found[11])[1]
    assert (found[14].ended.state, found[14].ended.start) in {("REFUSED", None), ("NEVER_STARTED", None)}
    assert found[14].why


def test_a_job_over_its_limit_is_ended_by_slurmctld(played: tuple[dict[int, ReplayedOutcome], Any, Path]) -> None:
    """A limit of a minute is a TIMEOUT after a minute, and maintenance of its node holds it up until then."""
    start, end = instants(played[0][21])
    assert played[0][21].ended.state == "TIMEOUT"
    assert start >= 400
    assert 60 <= end - start <= 180


def test_a_node_that_fails_requeues_its_job(played: tuple[dict[int, ReplayedOutcome], Any, Path]) -> None:
    """The job that ran on the node starts again when the node is back, and runs whole."""
    start, end = instants(played[0][31])
    assert start >= 200
    assert end - start >= 300
    assert played[0][31].ended.state == "COMPLETED"


def test_the_document_counts_every_job(played: tuple[dict[int, ReplayedOutcome], Any, Path]) -> None:
    """States add up to the jobs, and the written document is the returned one."""
    _, document, directory = played
    assert sum(document.runs[0].states.values()) == document.jobs == len(JOBS)
    assert document.runs[0].complete
    assert json.loads((directory / "ensemble.json").read_bytes())["inputs_sha256"] == document.inputs_sha256


def processes_in(directory: Path) -> list[str]:
    """Return the commands of live processes of engines whose private directory is below this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                values = (entry / "environ").read_bytes().split(b"\0")
                if any(each.startswith(f"HOME={directory}/".encode()) for each in values):
                    found.append((entry / "cmdline").read_text())
            except OSError:
                continue
    return found


def started(tmp_path: Path) -> "subprocess.Popen[bytes]":
    """Start the command on a log of many jobs and wait until the first ended in slurmctld's record."""
    rows = [f"{n} {n * 5} 0 30 1 -1 -1 1 600 -1 1 7 1 -1 1 1 -1 -1" for n in range(1, 200)]
    (tmp_path / "log.swf").write_text("; Version: 2.2\n; MaxProcs: 2\n" + "\n".join(rows) + "\n")
    (tmp_path / "t").mkdir(exist_ok=True)
    words = [
        "simulate",
        "run",
        "--swf",
        str(tmp_path / "log.swf"),
        "--engine",
        "slurmctld",
        "--speed",
        str(SPEED),
        "--first",
        "30",
    ]
    argv = [sys.executable, "-m", "gpuwaste.cli", *words, "-o", str(tmp_path / "runs"), "--json"]
    env = {**os.environ, "TMPDIR": str(tmp_path / "t"), MARKER: "none"}
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in (tmp_path / "t").glob("*/jobcomp.txt")):
        assert process.poll() is None, process.stderr.read() if process.stderr else b""
        assert time.monotonic() < deadline, "no job ended"
        time.sleep(0.1)
    return process


def test_an_interruption_leaves_results_and_no_process(tmp_path: Path) -> None:
    """After SIGINT the jobs that ended can be read, nothing runs, and the same command plays the run whole."""
    process = started(tmp_path)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=patient(60))
    assert process.returncode == 130
    assert b"interrupted: runs so far are in" in said
    rows = list(csv.DictReader((tmp_path / "runs" / "run-001.csv").open()))
    states = {row["state"] for row in rows}
    assert len(rows) == 30
    assert states == {"COMPLETED", "NOT_ENDED"}
    assert json.loads((tmp_path / "runs" / "ensemble.json").read_bytes())["runs"][0]["complete"] is False
    assert (processes_in(tmp_path / "t"), list((tmp_path / "t").glob("*"))) == ([], [])

    again = started(tmp_path)
    out, said = again.communicate(timeout=patient(120))
    assert again.returncode == 0, said
    run = json.loads(out)["runs"][0]
    assert (run["complete"], run["states"]) == (True, {"COMPLETED": 30})
    assert processes_in(tmp_path / "t") == []


def test_a_kill_leaves_no_process(tmp_path: Path) -> None:
    """After SIGKILL of the command slurmctld, the nodes and their jobs end, and the private directory goes."""
    process = started(tmp_path)
    assert processes_in(tmp_path / "t")
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while processes_in(tmp_path / "t") or any((tmp_path / "t").iterdir()):
        assert time.monotonic() < deadline, processes_in(tmp_path / "t")
        time.sleep(0.1)


def test_what_is_missing_is_named() -> None:
    """Each program that is not installed is in the one line that refuses the engine."""
    require_programs()
    with pytest.raises(Exception, match="not installed on this host: slurmctld, faketime: install Slurm"):
        require_programs(lambda name: None if name in {"slurmctld", "faketime"} else f"/usr/bin/{name}")
    assert "munged" in NEEDED

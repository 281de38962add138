"""The host collector on made-up cgroup trees, and on real processes named slurmstepd."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors.host import HostUseCollector
from gpuwaste.agent.readings import HostUse
from gpuwaste.testing.cluster_process import wait_until

pytestmark = pytest.mark.sockets


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def use_of(root: Path, proc: Path, node: str = "gpu1") -> dict[int, HostUse]:
    return HostUseCollector(root, proc, proc, node).use()


@pytest.fixture
def no_processes(tmp_path: Path) -> Path:
    proc = tmp_path / "proc"
    proc.mkdir()
    return proc


def test_version_2_is_read_by_job_folder(tmp_path: Path, no_processes: Path) -> None:
    """CPU, anonymous and shared memory and the pids of all steps count; slurmstepd itself does not."""
    job = tmp_path / "system.slice" / "gpu1_slurmstepd.scope" / "job_42"
    write(
        job,
        cpu__stat="usage_usec 2500000\nuser_usec 1\n",
        memory__stat="anon 1000\nfile 9999\nshmem 24\n",
        cgroup__events="populated 1\nfrozen 0\n",
        cgroup__procs="",
    )
    write(job / "step_0" / "user" / "task_0", cgroup__procs="11\n12\n")
    write(job / "step_0" / "slurm", cgroup__procs="10\n")
    write(tmp_path / "system.slice" / "gpu2_slurmstepd.scope" / "job_43", cgroup__procs="13\n")
    assert use_of(tmp_path, no_processes) == {42: HostUse(2.5, 1024, frozenset({11, 12}))}


def test_version_1_is_joined_over_its_controllers(tmp_path: Path, no_processes: Path) -> None:
    """The node's own tree is read, each figure from its controller; a frozen job is suspended."""
    place = Path("slurm_gpu1") / "uid_1000" / "job_7"
    write(tmp_path / "cpuacct" / place, cpuacct__usage="3000000000\n", cgroup__procs="5\n")
    write(tmp_path / "cpuacct" / place / "step_batch" / "task_0", cgroup__procs="6\n")
    write(tmp_path / "memory" / place, memory__stat="total_rss 100\ntotal_shmem 5\n")
    write(tmp_path / "freezer" / place, freezer__state="FROZEN\n")
    write(tmp_path / "cpuacct" / "slurm_gpu2" / "uid_1000" / "job_8", cpuacct__usage="1\n")
    assert use_of(tmp_path, no_processes) == {7: HostUse(3.0, 105, frozenset({5, 6}), suspended=True)}


def test_a_missing_controller_is_unknown_not_zero(tmp_path: Path, no_processes: Path) -> None:
    """With the devices controller alone, CPU and memory are None."""
    write(tmp_path / "devices" / "slurm" / "uid_0" / "job_9", cgroup__procs="5\n")
    assert use_of(tmp_path, no_processes) == {9: HostUse(None, None, frozenset({5}))}


STEP = """
import socket, subprocess, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[2])
listener.listen()
subprocess.Popen(["/bin/sh", "-c", sys.argv[1]])
time.sleep(600)
"""


@pytest.fixture
def stepd(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Collect processes, to be ended with their children."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def start_step(spool: Path, script: str, name: str) -> subprocess.Popen[bytes]:
    """Start what slurmstepd is here: a process that listens on a socket of that name, and runs a task."""
    return subprocess.Popen([sys.executable, "-c", STEP, script, str(spool / name)], start_new_session=True)


def fake_process(proc: Path, pid: int, cgroup: str, **env: str) -> None:
    """Make a process in a /proc of our own; its name, command line and environment are its user's."""
    stat = f"{pid} (slurmstepd) S 1 " + " ".join(map(str, range(2, 45)))
    write(proc / str(pid), stat=stat, comm="slurmstepd\n", cmdline="slurmstepd: [4711.batch]\0")
    write(proc / str(pid), cgroup=f"0::{cgroup}\n", environ="\0".join(f"{key}={value}" for key, value in env.items()))


@pytest.mark.parametrize("forged", ["4711", "9" * 5000, "²", "-1"])
def test_version_2_by_sluid_takes_the_job_from_its_slurmstepd(
    tmp_path: Path, no_processes: Path, stepd: list[subprocess.Popen[bytes]], forged: str
) -> None:
    """A folder named by SLUID is the job whose socket's listener is in it, whatever environments and names claim."""
    scope, sluid = tmp_path / "system.slice" / "gpu1_slurmstepd.scope", "s1A2B3C4D5E6F7"
    write(scope / sluid, cpu__stat="usage_usec 2500000\n", memory__stat="anon 1000\n", cgroup__procs="77\n")
    write(scope / "sFORGED", cpu__stat="usage_usec 1\n", memory__stat="anon 1\n", cgroup__procs="78\n")
    write(scope / "system", cgroup__procs="79\n")
    spool = tmp_path / "spool"
    spool.mkdir()
    stepd.append(start_step(spool, "exec sleep 600", "gpu1_5.4294967291"))
    below = f"/system.slice/{scope.name}"
    fake_process(no_processes, stepd[0].pid, f"{below}/{sluid}/step_batch/slurm")
    for pid, folder in ((77, sluid), (78, "sFORGED")):
        forgery = {"SLURM_JOB_ID": forged, "SLURMD_NODENAME": "gpu1"}
        fake_process(no_processes, pid, f"{below}/{folder}/step_batch/user/task_0", **forgery)
    host = HostUseCollector(tmp_path, no_processes, spool, "gpu1")
    wait_until(lambda: bool(host.use()), 60, "the step to listen")
    assert host.use() == {5: HostUse(2.5, 1000, frozenset({77}))}


def test_a_process_with_the_number_of_a_dead_slurmstepd_is_none(
    tmp_path: Path, no_processes: Path, stepd: list[subprocess.Popen[bytes]]
) -> None:
    """A socket's process is the one that began when it was first seen, not a later one of its number."""
    spool = tmp_path / "spool"
    spool.mkdir()
    stepd.append(start_step(spool, "exec sleep 600", "gpu1_5.0"))
    fake_process(no_processes, stepd[0].pid, "/")
    host = HostUseCollector(tmp_path / "none", no_processes, spool, "gpu1")
    wait_until(lambda: 5 in host.use(), 60, "the step to listen")
    os.killpg(stepd[0].pid, 9)
    stepd[0].wait()
    later = f"{stepd[0].pid} (slurmstepd) S 1 " + " ".join(map(str, range(900, 943)))
    write(no_processes / str(stepd[0].pid), stat=later)
    assert host.use() == {}


def on_real_processes(spool: Path) -> HostUseCollector:
    return HostUseCollector(spool / "none", Path("/proc"), spool, "gpu1")


def test_without_cgroups_a_job_is_what_its_slurmstepd_started(
    tmp_path: Path, stepd: list[subprocess.Popen[bytes]]
) -> None:
    """Descendants count, another node's do not; a job whose processes are all stopped is suspended."""
    stepd.append(start_step(tmp_path, "sleep 600 & sleep 600 & wait", "gpu1_5.4294967291"))
    stepd.append(start_step(tmp_path, "exec sleep 600", "gpu1_5.0"))
    stepd.append(start_step(tmp_path, "sleep 600", "gpu2_6.0"))
    stepd.append(start_step(tmp_path, "kill -STOP $$", "gpu1_8.0"))
    (tmp_path / "gpu1_9.0").write_text("no socket")
    host = on_real_processes(tmp_path)
    wait_until(lambda: len(host.use().get(5, HostUse()).pids) == 4, 60, "the steps to run")
    wait_until(lambda: host.use().get(8, HostUse()).suspended, 60, "the job to stop")
    found = host.use()
    assert set(found) == {5, 8}
    assert not found[5].suspended
    assert (found[5].mem_b or 0) > 0
    assert found[5].cpu_s is not None


def test_time_of_processes_that_ended_still_counts(tmp_path: Path, stepd: list[subprocess.Popen[bytes]]) -> None:
    """CPU seconds of children that have ended stay in the job's counter, which never goes back."""
    stepd.append(start_step(tmp_path, "i=0; (while [ $i -lt 400000 ]; do i=$((i+1)); done); sleep 600", "gpu1_5.0"))
    host = on_real_processes(tmp_path)
    seen: list[float] = []

    def busy_and_over() -> bool:
        use = host.use().get(5)
        if use and use.cpu_s is not None:
            seen.append(use.cpu_s)
        return bool(seen) and seen[-1] > 0 and len(seen) > 1 and seen[-1] == seen[-2]

    wait_until(busy_and_over, 30, "the loop to end")
    assert seen == sorted(seen)


def test_a_stepd_that_died_leaves_a_socket_without_a_job(tmp_path: Path, stepd: list[subprocess.Popen[bytes]]) -> None:
    """A socket on which nobody listens is no job, and an unreadable spool directory is this collector's failure."""
    step = start_step(tmp_path, "exec sleep 600", "gpu1_5.0")
    host = on_real_processes(tmp_path)
    wait_until(lambda: 5 in host.use(), 60, "the step to run")
    os.killpg(step.pid, 9)
    step.wait()
    assert on_real_processes(tmp_path).use() == {}
    with pytest.raises(CollectorError, match="nowhere"):
        on_real_processes(tmp_path / "nowhere").use()

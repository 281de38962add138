"""The prolog's health gate: it holds a job back only when told to, by a fresh file that names one of its GPUs."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.testing.cluster_process import wait_until

GATE = Path(__file__).parents[2] / "plugins" / "prolog.d" / "gpuwaste-health.sh"
PATIENCE_S = 20.0
LOST = "GPU-b 1 2 lost 1700000000 gpu_lost"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Make the agent's run directory, closed to others."""
    path = tmp_path / "run"
    path.mkdir(mode=0o755)
    path.chmod(0o755)
    return path


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """Return a folder, first on PATH, with a scontrol and a logger that write down what they were told."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("scontrol", "logger"):
        (folder / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{tmp_path}/{name}.told\n')
        (folder / name).chmod(0o755)
    return folder


def write_health(run_dir: Path, *rows: str, age_s: int = 0, head: str = "gpuwaste-health 1 {now}") -> None:
    """Write the agent's file as it would have been `age_s` ago."""
    lines = [head.format(now=int(time.time()) - age_s), "GPU-a 0 0,1 ok 0 -", *rows]
    (run_dir / "health").write_text("".join(f"{line}\n" for line in lines))
    (run_dir / "health").chmod(0o644)


class Gate:
    """Runs the script as slurmd does; says what came of it."""

    def __init__(self, tmp_path: Path, run_dir: Path, commands: Path) -> None:
        self.tmp_path, self.run_dir, self.commands = tmp_path, run_dir, commands
        self.conf = tmp_path / "health-gate.conf"
        self.jobs = tmp_path / "jobs"
        self.jobs.mkdir()
        self.jobs.chmod(0o755)

    def run(self, mode: str | None = "requeue", **env: str) -> int:
        """Return the exit status; nothing may be printed."""
        if mode is not None:
            self.conf.write_text(f"# settings\nmode = {mode}\nstale_s=120\n")
        values = {
            "PATH": f"{self.commands}:{os.environ['PATH']}",
            "GPUWASTE_RUN_DIR": str(self.run_dir),
            "GPUWASTE_JOBS_DIR": str(self.jobs),
            "GPUWASTE_USER": "nobody",
            "GPUWASTE_HEALTH_CONF": str(self.conf),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_GPUS": "2",
            "SLURMD_NODENAME": "gpu1",
            **env,
        }
        done = subprocess.run(
            [GATE], env=values, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False
        )
        assert done.stdout == b""
        return done.returncode

    def told(self, name: str) -> str:
        """Return what a command was told, "" where it was not called."""
        path = self.tmp_path / f"{name}.told"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def gate(tmp_path: Path, run_dir: Path, commands: Path) -> Gate:
    write_health(run_dir, LOST)
    return Gate(tmp_path, run_dir, commands)


def test_off_is_what_a_fresh_install_does(gate: Gate) -> None:
    """Without settings a lost GPU holds nothing back and nothing is said."""
    assert gate.run(None) == 0
    assert gate.run("off") == 0
    assert (gate.told("logger"), gate.told("scontrol")) == ("", "")


def test_suggest_says_the_command_and_lets_the_job_go(gate: Gate) -> None:
    """The line is in syslog and in the node's file; scontrol is not called."""
    assert gate.run("suggest") == 0
    line = (gate.jobs / "health-gate").read_text()
    assert 'scontrol update nodename=gpu1 state=drain reason="gpuwaste: GPU 1 GPU-b gpu_lost"' in line
    assert line.strip() in gate.told("logger")
    assert gate.told("scontrol") == ""


def test_drain_calls_scontrol_and_lets_the_job_go(gate: Gate) -> None:
    """The node is drained with a reason, in the background."""
    assert gate.run("drain") == 0
    wait_until(lambda: gate.told("scontrol") != "", PATIENCE_S, "scontrol to be called")
    assert gate.told("scontrol") == "update nodename=gpu1 state=drain reason=gpuwaste: GPU 1 GPU-b gpu_lost\n"


def test_requeue_fails_the_prolog(gate: Gate) -> None:
    """Exit status 1 is what makes Slurm drain the node and requeue the job; the cause is in syslog."""
    assert gate.run("requeue") == 1
    assert "held back" in gate.told("logger")


@pytest.mark.parametrize("gpus", ["0", "1", "0,1", "3", "12", "22", "", "0-1"])
def test_a_sick_gpu_of_another_job_does_not_count(gate: Gate, gpus: str) -> None:
    """Only the positions that this job got."""
    assert gate.run(SLURM_JOB_GPUS=gpus) == 0


@pytest.mark.parametrize("gpus", ["2", "0,2", "1-3", "0,1-2"])
def test_a_sick_gpu_among_the_jobs_own_counts(gate: Gate, gpus: str) -> None:
    """As a list or as ranges, as Slurm writes them."""
    assert gate.run(SLURM_JOB_GPUS=gpus) == 1


def test_an_xid_counts_as_a_loss_does(gate: Gate) -> None:
    """The state xid holds back, a MIG parent's by any of its positions."""
    write_health(gate.run_dir, "GPU-b 1 5,2,6 xid 1700000000 xid_79")
    assert gate.run() == 1


@pytest.mark.parametrize(
    "head",
    [
        "",
        "gpuwaste-health 2 {now}",
        "gpuwaste-health 1",
        "gpuwaste-health 1 soon",
        "garbage",
        "\x00\x01\x02",
        "# {now} 1",
    ],
)
def test_a_file_of_another_form_holds_nothing_back(gate: Gate, head: str) -> None:
    """Another version, no time, or no such file at all."""
    write_health(gate.run_dir, LOST, head=head)
    assert gate.run() == 0


@pytest.mark.parametrize(
    "row",
    [
        "GPU-b 1 2 lost",
        "GPU-b 1 2 dying 1700000000 x",
        "GPU;id 1 2 lost 1700000000 gpu_lost",
        "GPU-b 1 2 lost 1700000000 $(id)",
        "GPU-b 1 - lost 1700000000 gpu_lost",
        "GPU-b 1 x2 lost 1700000000 gpu_lost",
        "\x00" * 5000,
    ],
)
def test_a_garbled_line_holds_nothing_back(gate: Gate, row: str) -> None:
    """Each line is taken whole or not at all."""
    write_health(gate.run_dir, row)
    assert gate.run() == 0


@pytest.mark.parametrize("age_s", [121, 100_000, -120])
def test_an_old_file_holds_nothing_back(gate: Gate, age_s: int) -> None:
    """Nor one from the future: the agent is gone, hangs, or the clock was set."""
    write_health(gate.run_dir, LOST, age_s=age_s)
    assert gate.run() == 0


def test_without_agent_or_file_nothing_is_held_back(gate: Gate) -> None:
    """No file, then no directory."""
    (gate.run_dir / "health").unlink()
    assert gate.run() == 0
    gate.run_dir.rename(gate.tmp_path / "gone")
    assert gate.run() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the owner of a file is changed")
@pytest.mark.parametrize("what", ["link", "owner", "mode", "directory"])
def test_a_file_that_others_could_have_written_is_not_believed(gate: Gate, what: str) -> None:
    """A user must not be able to drain nodes."""
    file = gate.run_dir / "health"
    if what == "link":
        file.rename(gate.tmp_path / "elsewhere")
        file.symlink_to(gate.tmp_path / "elsewhere")
    elif what == "owner":
        os.chown(file, 12345, 12345)
    elif what == "mode":
        file.chmod(0o666)
    else:
        gate.run_dir.chmod(0o777)
    assert gate.run() == 0


@pytest.mark.parametrize("env", [{"SLURM_JOB_GPUS": "2;id"}, {"SLURM_JOB_ID": "x"}, {"SLURMD_NODENAME": "a b"}])
def test_values_that_slurm_never_sets_hold_nothing_back(gate: Gate, env: dict[str, str]) -> None:
    """They would reach a command line."""
    assert gate.run(**env) == 0


def test_an_unknown_mode_is_off_and_said(gate: Gate) -> None:
    """A slip in the settings must not hold a job back, and must not stay unnoticed."""
    assert gate.run("drian") == 0
    assert "off, suggest, drain or requeue" in gate.told("logger")
    assert gate.told("scontrol") == ""


@pytest.fixture
def hung(tmp_path: Path, commands: Path) -> Iterator[Path]:
    """Let every command that reads the disk hang, as on a dead NFS server."""
    never = tmp_path / "never"
    os.mkfifo(never)
    for name in ("ls", "dd", "id"):
        (commands / name).write_text(f"#!/bin/sh\nread line <{never}\n")
        (commands / name).chmod(0o755)
    yield never
    for name in ("ls", "dd", "id"):  # what is called from now on does not hang
        (commands / name).write_text("#!/bin/sh\nexit 1\n")
    for _ in range(20):  # let go whoever waits still, or is about to
        with contextlib.suppress(OSError):
            os.close(os.open(never, os.O_WRONLY | os.O_NONBLOCK))
        time.sleep(0.01)


def test_a_hung_disk_does_not_hold_the_job(gate: Gate, hung: Path) -> None:
    """The check is left behind, and the script returns with 0 though the file names the job's GPU."""
    assert hung.exists()
    assert gate.run() == 0


def test_a_hung_scontrol_does_not_hold_the_job(gate: Gate, commands: Path, tmp_path: Path) -> None:
    """Where slurmctld does not answer the script returns all the same."""
    (commands / "scontrol").write_text(f"#!/bin/sh\ntouch {tmp_path}/called\nexec sleep 5\n")
    assert gate.run("drain") == 0
    wait_until((tmp_path / "called").exists, PATIENCE_S, "scontrol to be called")

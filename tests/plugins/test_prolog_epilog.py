"""The prolog and epilog scripts: one file, written whole; never an error, never a delay."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {kind: ROOT / "plugins" / f"{kind}.d" / "gpuwaste.sh" for kind in ("prolog", "epilog")}
SUFFIX = {"prolog": "start", "epilog": "end"}
PATIENCE_S = 10.0
both = pytest.mark.parametrize("kind", ["prolog", "epilog"])


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Make the directory of root as tmpfiles.d does."""
    path = tmp_path / "jobs"
    path.mkdir()
    path.chmod(0o755)
    return path


def play(kind: str, jobs: Path, **env: str) -> None:
    """Run a script as slurmd does, in a process group that is killed when it returns; it must succeed, silently."""
    values = {"PATH": os.environ["PATH"], "GPUWASTE_JOBS_DIR": str(jobs), **env}
    values.setdefault("SLURM_JOB_ID", "7")
    process = subprocess.Popen(
        [SCRIPTS[kind]], env=values, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0
    )
    output, _ = process.communicate(timeout=PATIENCE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    assert (process.returncode, output) == (0, b"")


def wait_for(path: Path) -> str:
    """Return the file's text once it is there."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)
    return path.read_text()


def writers() -> list[int]:
    """Return the scripts' processes that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word in {os.fsencode(path) for path in SCRIPTS.values()} for word in words):
                found.append(int(entry.name))
    return found


def settle() -> None:
    """Wait until no writer runs any more."""
    deadline = time.monotonic() + PATIENCE_S
    while writers():
        assert time.monotonic() < deadline, "a writer does not end"
        time.sleep(0.01)


@both
def test_one_file_is_written_whole(jobs: Path, kind: str) -> None:
    """It appears by rename, readable by the agent, though slurmd kills the process group at once."""
    play(kind, jobs, SLURM_JOB_GPUS="0,2", SLURM_JOB_RESTART_COUNT="3", SLURM_JOB_START_TIME="1800000000")
    file = jobs / f"7.{SUFFIX[kind]}"
    fields = dict(line.split("=") for line in wait_for(file).splitlines())
    assert (fields["job"], fields["restarts"]) == ("7", "3")
    if kind == "prolog":
        assert (fields["gpus"], fields["start"], fields["shards"]) == ("0,2", "1800000000", "")
    settle()
    assert [path.name for path in jobs.iterdir()] == [file.name]
    assert file.stat().st_mode & 0o777 == 0o644


@both
def test_hostile_values_are_left_out(jobs: Path, kind: str) -> None:
    """Newlines, commands and the like reach no line of the file; what is harmless beside them does."""
    evil = "0\ngpus=1\n$(touch /tmp/owned)`id`"
    play(kind, jobs, SLURM_JOB_GPUS=evil, SLURM_JOB_RESTART_COUNT="0;x", SLURM_JOB_START_TIME="5", IFS="7")
    text = wait_for(jobs / f"7.{SUFFIX[kind]}")
    assert "restarts=\n" in text
    assert "owned" not in text
    assert text.count("gpus=") == (1 if kind == "prolog" else 0)


@both
@pytest.mark.parametrize("job", ["", "-1", "7/../../x", "7\n8", "99999999999", "a", "$(id)"])
def test_a_job_id_that_is_no_number_writes_nothing(jobs: Path, kind: str, job: str) -> None:
    """No file, and no error."""
    play(kind, jobs, SLURM_JOB_ID=job)
    settle()
    assert not list(jobs.iterdir())


@both
def test_without_a_directory_nothing_happens(tmp_path: Path, kind: str) -> None:
    """A node on which the agent is not installed."""
    play(kind, tmp_path / "none")
    settle()
    assert not list(tmp_path.iterdir())


@both
@pytest.mark.parametrize("which", ["directory", "above"])
def test_a_link_is_not_followed(tmp_path: Path, jobs: Path, kind: str, which: str) -> None:
    """A directory whose name has a symbolic link in it is refused: it may lead anywhere."""
    link = tmp_path / "link"
    link.symlink_to(jobs if which == "directory" else tmp_path)
    play(kind, link if which == "directory" else link / "jobs")
    settle()
    assert not list(jobs.iterdir())


@both
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_directory_that_others_may_write_is_refused(jobs: Path, kind: str, mode: int) -> None:
    """Anybody could plant a link there."""
    jobs.chmod(mode)
    play(kind, jobs)
    settle()
    assert not list(jobs.iterdir())


@both
def test_a_link_in_the_files_place_is_replaced(tmp_path: Path, jobs: Path, kind: str) -> None:
    """The new file takes the place of a link to a file or to a directory; what it led to stays as it was."""
    target = tmp_path / "target"
    target.mkdir()
    file = jobs / f"7.{SUFFIX[kind]}"
    file.symlink_to(target)
    play(kind, jobs)
    deadline = time.monotonic() + PATIENCE_S
    while file.is_symlink():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not list(target.iterdir())


@both
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the owner of a directory is changed")
def test_a_strangers_directory_is_refused(jobs: Path, kind: str) -> None:
    """Not root's, or in a directory that is not: its owner could put another one in its place."""
    for path in (jobs, jobs.parent):
        os.chown(path, 12345, 12345)
        play(kind, jobs)
        settle()
        assert not list(jobs.iterdir())
        os.chown(path, 0, 0)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of one page, full."""
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts a tmpfs")
    path = tmp_path / "tiny"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=755", "none", path], check=False)
    if mounted.returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        with (path / "ballast").open("wb") as file:
            file.write(b"x" * 4096)
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@both
def test_a_full_disk_leaves_nothing_half(tiny: Path, kind: str) -> None:
    """No file rather than a torn one, and no error."""
    play(kind, tiny)
    settle()
    assert [path.name for path in tiny.iterdir()] == ["ballast"]


@both
def test_a_hung_file_system_does_not_hold_the_job(tmp_path: Path, jobs: Path, kind: str) -> None:
    """Every command of the writer hangs for ever, as on a dead NFS server: the script returns all the same."""
    commands = tmp_path / "bin"
    commands.mkdir()
    os.mkfifo(tmp_path / "never")
    for name in ("ls", "mv", "id"):
        (commands / name).write_text(f"#!/bin/sh\nread line <{tmp_path / 'never'}\n")
        (commands / name).chmod(0o755)
    setsid = shutil.which("setsid")
    assert setsid is not None
    (commands / "setsid").symlink_to(setsid)
    play(kind, jobs, PATH=str(commands))
    assert writers(), "the writer hangs, apart"
    deadline = time.monotonic() + PATIENCE_S
    while writers():  # each of its commands hangs anew: let it go
        assert time.monotonic() < deadline, "a writer does not end"
        with contextlib.suppress(OSError):
            os.close(os.open(tmp_path / "never", os.O_WRONLY | os.O_NONBLOCK))
        time.sleep(0.01)


@both
def test_without_setsid_it_still_returns(tmp_path: Path, jobs: Path, kind: str) -> None:
    """A node without util-linux: the file may be lost with the process group, the job is not delayed."""
    play(kind, jobs, PATH=str(tmp_path))
    settle()


def test_the_epilog_removes_what_old_runs_left(jobs: Path) -> None:
    """Pairs go ten minutes after the end, torn files after a day; a start without end, or newer than it, stays."""
    ages = {
        "1.start": 2000, "1.end": 1000, "2.start": 200_000, "3.end": 90_000, ".4.start.99": 90_000, "5.end": 60,
        "6.end": 5000, "6.start": 400, "health-gate": 90_000,
    }  # fmt: skip
    for name, age_s in ages.items():
        (jobs / name).write_text("x")
        os.utime(jobs / name, (time.time() - age_s,) * 2)
    play("prolog", jobs, SLURM_JOB_ID="9")
    wait_for(jobs / "9.start")
    play("epilog", jobs, SLURM_JOB_ID="9")
    wait_for(jobs / "9.end")
    settle()
    left = {path.name for path in jobs.iterdir()}
    assert left == {"2.start", "5.end", "6.start", "health-gate", "9.start", "9.end"}

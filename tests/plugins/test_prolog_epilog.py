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
def run_dir(tmp_path: Path) -> Path:
    """Make a run directory as the agent's tmpfiles.d does."""
    (tmp_path / "run" / "jobs").mkdir(parents=True)
    for path in (tmp_path / "run", tmp_path / "run" / "jobs"):
        path.chmod(0o755)
    return tmp_path / "run"


def play(kind: str, run_dir: Path, **env: str) -> None:
    """Run a script as slurmd does, in a process group that is killed when it returns; it must succeed, silently."""
    values = {"PATH": os.environ["PATH"], "GPUWASTE_RUN_DIR": str(run_dir), "GPUWASTE_USER": "nobody", **env}
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
def test_one_file_is_written_whole(run_dir: Path, kind: str) -> None:
    """It appears by rename, readable by the agent, though slurmd kills the process group at once."""
    play(kind, run_dir, SLURM_JOB_GPUS="0,2", SLURM_JOB_RESTART_COUNT="3", SLURM_JOB_START_TIME="1800000000")
    file = run_dir / "jobs" / f"7.{SUFFIX[kind]}"
    fields = dict(line.split("=") for line in wait_for(file).splitlines())
    assert (fields["job"], fields["restarts"]) == ("7", "3")
    if kind == "prolog":
        assert (fields["gpus"], fields["start"], fields["shards"]) == ("0,2", "1800000000", "")
    settle()
    assert [path.name for path in (run_dir / "jobs").iterdir()] == [file.name]
    assert file.stat().st_mode & 0o777 == 0o644


@both
def test_hostile_values_are_left_out(run_dir: Path, kind: str) -> None:
    """Newlines, commands and the like reach no line of the file; what is harmless beside them does."""
    evil = "0\ngpus=1\n$(touch /tmp/owned)`id`"
    play(kind, run_dir, SLURM_JOB_GPUS=evil, SLURM_JOB_RESTART_COUNT="0;x", SLURM_JOB_START_TIME="5", IFS="7")
    text = wait_for(run_dir / "jobs" / f"7.{SUFFIX[kind]}")
    assert "restarts=\n" in text
    assert "owned" not in text
    assert text.count("gpus=") == (1 if kind == "prolog" else 0)


@both
@pytest.mark.parametrize("job", ["", "-1", "7/../../x", "7\n8", "99999999999", "a", "$(id)"])
def test_a_job_id_that_is_no_number_writes_nothing(run_dir: Path, kind: str, job: str) -> None:
    """No file, and no error."""
    play(kind, run_dir, SLURM_JOB_ID=job)
    settle()
    assert not list((run_dir / "jobs").iterdir())


@both
def test_without_a_directory_nothing_happens(tmp_path: Path, kind: str) -> None:
    """A node on which the agent is not installed."""
    play(kind, tmp_path / "none")
    settle()
    assert not list(tmp_path.iterdir())


@both
@pytest.mark.parametrize("which", ["run", "jobs"])
def test_a_link_is_not_followed(tmp_path: Path, run_dir: Path, kind: str, which: str) -> None:
    """A directory that is a symbolic link is refused: it may lead anywhere."""
    link = tmp_path / "link"
    if which == "run":
        link.symlink_to(run_dir)
    else:
        link.mkdir()
        (link / "jobs").symlink_to(run_dir / "jobs")
    play(kind, link)
    settle()
    assert not list((run_dir / "jobs").iterdir())


@both
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_directory_that_others_may_write_is_refused(run_dir: Path, kind: str, mode: int) -> None:
    """Anybody could plant a link there."""
    (run_dir / "jobs").chmod(mode)
    play(kind, run_dir)
    settle()
    assert not list((run_dir / "jobs").iterdir())


@both
def test_a_link_in_the_files_place_is_replaced(tmp_path: Path, run_dir: Path, kind: str) -> None:
    """The new file takes the place of a link to a file or to a directory; what it led to stays as it was."""
    target = tmp_path / "target"
    target.mkdir()
    file = run_dir / "jobs" / f"7.{SUFFIX[kind]}"
    file.symlink_to(target)
    play(kind, run_dir)
    deadline = time.monotonic() + PATIENCE_S
    while file.is_symlink():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not list(target.iterdir())


@both
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the owner of a directory is changed")
def test_a_strangers_directory_is_refused(run_dir: Path, kind: str) -> None:
    """Neither root's nor the agent's."""
    os.chown(run_dir / "jobs", 12345, 12345)
    play(kind, run_dir)
    settle()
    assert not list((run_dir / "jobs").iterdir())


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
        (path / "jobs").mkdir()
        (path / "jobs").chmod(0o755)
        with (path / "jobs" / "ballast").open("wb") as file:
            file.write(b"x" * 4096)
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@both
def test_a_full_disk_leaves_nothing_half(tiny: Path, kind: str) -> None:
    """No file rather than a torn one, and no error."""
    play(kind, tiny)
    settle()
    assert [path.name for path in (tiny / "jobs").iterdir()] == ["ballast"]


@both
def test_a_hung_file_system_does_not_hold_the_job(tmp_path: Path, run_dir: Path, kind: str) -> None:
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
    play(kind, run_dir, PATH=str(commands))
    assert writers(), "the writer hangs, apart"
    deadline = time.monotonic() + PATIENCE_S
    while writers():  # each of its commands hangs anew: let it go
        assert time.monotonic() < deadline, "a writer does not end"
        with contextlib.suppress(OSError):
            os.close(os.open(tmp_path / "never", os.O_WRONLY | os.O_NONBLOCK))
        time.sleep(0.01)


@both
def test_without_setsid_it_still_returns(tmp_path: Path, run_dir: Path, kind: str) -> None:
    """A node without util-linux: the file may be lost with the process group, the job is not delayed."""
    play(kind, run_dir, PATH=str(tmp_path))
    settle()

"""`gpuwaste look`: of Slurm's commands, a file and an earlier look; nothing is written but in its folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.cli.test_analyze import sacct_text
from tests.integration.jobs.importers.test_quick_import import js1

from gpuwaste.cli.main import main

SACCT = """\
import sys, pathlib, datetime
words = dict(word.partition("=")[::2] for word in sys.argv[1:])
names = "JobIDRaw JobID User Account Partition State Submit Start End ElapsedRaw NNodes AllocTRES ExitCode".split()
if "--helpformat" in words:
    sys.exit(print(*names))
start, end = (
    int(datetime.datetime.fromisoformat(words[f"--{name}time"] + "+00:00").timestamp()) for name in ("start", "end")
)
with open(pathlib.Path(__file__).with_name("log"), "a") as log:
    print(start, end, file=log)
values = end, end, "alice", "proj", "gpu", "COMPLETED", end - 90, end - 60, end - 10, 50, 1, "gres/gpu=2", "0:0"
row = dict(zip(names, map(str, values)))
print(words["--delimiter"].join(row.get(name, "") for name in words["--format"].split(",")))
"""
"""A sacct with one job in each window, which ends in it."""


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a host on which of Slurm only sacct answers."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "home").mkdir()
    script = tmp_path / "bin" / "sacct"
    script.write_text(f"#!{sys.executable}\n{SACCT}", encoding="utf-8")
    script.chmod(0o755)
    for name in ("scontrol", "sacctmgr"):
        other = tmp_path / "bin" / name
        other.write_text("#!/bin/sh\necho 'access denied' >&2; exit 1\n", encoding="utf-8")
        other.chmod(0o755)
    return {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "HOME": f"{tmp_path}/home",
        "TMPDIR": f"{tmp_path}/home",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def look(place: Path, env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a directory."""
    command = [sys.executable, "-m", "gpuwaste.cli", "look", *words]
    return subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, timeout=120, check=False)


def test_slurms_commands_are_read_into_the_folder_and_nothing_else_is_written(
    tmp_path: Path, slurm: dict[str, str]
) -> None:
    """Text and pages say how many jobs there are; a second look asks only for what came since, a third for nothing."""
    place = tmp_path / "here"
    place.mkdir()
    done = look(place, slurm, "-o", "look", "-S", "now-3days")
    assert done.returncode == 0, done.stderr
    assert "Jobs of one user only, alice: 4." in done.stdout
    assert "Nodes and partitions cannot be read: " in done.stdout
    assert "access denied" in done.stdout
    folder = place / "look"
    assert (folder / "look.txt").read_text() in done.stdout.replace("\x1b", "")
    assert "alice" in (folder / "pages" / "states.html").read_text()
    assert {path.name for path in place.iterdir()} == {"look"}
    assert list((tmp_path / "home").iterdir()) == []
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gpuwaste-look", "accounting", "look.txt", "machine", "pages",
    ]  # fmt: skip
    windows = (tmp_path / "bin" / "log").read_text().splitlines()
    assert len(windows) == 4
    assert look(place, slurm, "-o", "look", "-S", "now-3days").returncode == 0
    later = (tmp_path / "bin" / "log").read_text().splitlines()[4:]
    assert [line.split()[0] for line in later] == [windows[0].split()[1]]
    again = look(place, slurm | {"PATH": "/nowhere"}, "--from", "look")
    assert again.returncode == 0, again.stderr
    assert "alice: 5." in again.stdout


def test_a_host_without_slurm_is_told_what_to_do(tmp_path: Path, slurm: dict[str, str]) -> None:
    """Without sacct there is one line, which names the other way."""
    done = look(tmp_path, slurm | {"PATH": "/nowhere"}, "-o", "look")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("; on a host without Slurm, read a file: gpuwaste look --from FILE\n")


def test_a_file_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a file of sacct the text has the views, whose jobs they are, and that use is unknown."""
    file = tmp_path / "jobs.txt"
    file.write_text(sacct_text(28) + "junk\n", encoding="utf-8")
    assert main(["look", "--from", str(file), "-o", str(tmp_path / "out"), "--time-zone", "UTC"]) == 0
    out = capsys.readouterr().out
    assert out.index("\nThe balance of the machine\n") < out.index("\nWaits\n")
    assert out.index("\nWaits\n") < out.index("\nEnd states by user and account\n")
    assert out.endswith(f"{tmp_path}/out/pages/index.html\n")
    text = " ".join(out.split())
    assert "84 jobs of 3 users in 1 account, 84 of them with GPUs." in text
    assert "1 row of jobs.txt could not be read" in text
    assert "Accounting records no use of GPUs" in text
    assert "Jobs held 84.0 GPU-hours. Accounting does not record how much of that was idle." in text


def test_without_its_extra_there_is_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where jinja2 is not installed the last line names the extra, and the text is there."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    file = tmp_path / "jobs.txt"
    file.write_text(sacct_text(2), encoding="utf-8")
    assert main(["look", "--from", str(file), "-o", str(tmp_path / "out"), "--time-zone", "UTC"]) == 0
    assert capsys.readouterr().out.endswith("install gpuwaste[look]\n")
    assert "Waits" in (tmp_path / "out" / "look.txt").read_text()


def test_jobstats_summaries_are_requests_against_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One job at 60 %, one that used one GPU of two, one that nothing is known of; the end counts what is left."""
    file = tmp_path / "jobs.txt"
    rows = ["JobIDRaw|User|Account|Partition|State|Submit|Start|End|NNodes|AllocTRES|NodeList|AdminComment|ExitCode"]
    means: tuple[dict[str, float], ...] = ({"0": 60.5}, {"0": 40.5, "1": 0}, {})
    for job, utilization in enumerate(means, 1):
        comment = js1({"n1": {"gpu_utilization": utilization}}, 3600) if utilization else ""
        times, tres = "1700000000|1700000000|1700003600", f"gres/gpu={len(utilization) or 1}"
        rows.append(f"{job}|user{job}|proj|gpu|COMPLETED|{times}|1|cpu=1,{tres},node=1|n1|{comment}|0:0")
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert main(["look", "--from", str(file), "-o", str(tmp_path / "out"), "--time-zone", "UTC"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for sentence in (
        "Accounting has the utilization of 3.0 GPU-hours (75 %) that jobs held (jobstats): 34 % on average.",
        "1 GPU of jobs had 0 % at every reading: 1.0 GPU-hours.",
        "1 job with several GPUs used one of them; the others were allocated for 1.0 GPU-hours.",
        "Of 1.0 GPU-hours no utilization is known, and of 3.0 GPU-hours only the mean",
        "cluster: nodes are those on which jobs ran",
        "GPU-hours of the machine, ",
    ):
        assert sentence in text


def test_jobs_of_one_user_have_no_balance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Others' jobs may be hidden: their GPUs would count as free."""
    file = tmp_path / "jobs.txt"
    row = "1|alice|proj|gpu|COMPLETED|1700000000|1700000000|1700003600|1|cpu=1,gres/gpu=1,node=1|n1|0:0\n"
    header = "JobIDRaw|User|Account|Partition|State|Submit|Start|End|NNodes|AllocTRES|NodeList|ExitCode\n"
    file.write_text(header + row, encoding="utf-8")
    assert main(["look", "--from", str(file), "-o", str(tmp_path / "out"), "--time-zone", "UTC"]) == 0
    text = capsys.readouterr().out
    assert "needs the jobs of all users: it is left out" in " ".join(text.split())
    assert "\nThe balance of the machine" not in text
    assert not (tmp_path / "out" / "pages" / "balance.html").exists()

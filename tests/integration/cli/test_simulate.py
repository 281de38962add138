"""`gpuwaste simulate`: logs end to end, sizes of the machine, and the logs that say too little."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.cli.main import main

HEAD = "; Version: 2.2\n; MaxProcs: 4\n"
# job, submit, wait, run, processors, -, -, processors asked for, limit: a wide one waits behind a narrow one
ROWS = [(1, 0, 0, 100, 3, 100), (2, 10, 90, 50, 4, 50), (3, 20, 0, 60, 1, 80), (4, 30, 120, 60, 1, 200)]


def swf(path: Path, rows: Sequence[tuple[int, ...]], head: str = HEAD) -> Path:
    """Write a log."""
    lines = [f"{j} {s} {w} {r} {p} -1 -1 {p} {limit} -1 1 7 1 -1 1 1 -1 -1" for j, s, w, r, p, limit in rows]
    path.write_text(head + "\n".join(lines) + "\n")
    return path


def simulated(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the document that the command prints."""
    action = words if words[0] == "what-if" else ("run", *words)
    assert main(["simulate", *action, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_small_log_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EASY lets the third job pass the wide one and holds the fourth, which would delay it; FCFS holds both."""
    path, starts = swf(tmp_path / "small.swf", ROWS), tmp_path / "starts.csv"
    found = simulated(capsys, "--swf", str(path), "--scheduler", "fcfs,easy", "--output", str(starts))
    rows = list(csv.DictReader(starts.open()))
    assert [row["easy_start"] for row in rows] == ["0", "100", "20", "150"]
    assert [row["fcfs_start"] for row in rows] == ["0", "100", "150", "150"]
    easy = found["schedulers"]["easy"]
    assert (easy["jobs"], easy["mean_wait_s"], easy["max_wait_s"], easy["makespan_s"]) == (4, 52.5, 120, 210)
    assert easy["utilization"] == pytest.approx((300 + 200 + 60 + 60) / (4 * 210), abs=1e-6)
    assert easy["later_than_first"] == 0.0
    assert found["logged"]["mean_wait_s"] == 52.5
    assert (found["processors"], found["processors_from"]) == (4, "the log's header")


def test_equal_inputs_give_equal_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs print the same document, byte for byte."""
    path = swf(tmp_path / "small.swf", ROWS)
    printed = []
    for _ in range(2):
        assert main(["simulate", "run", "--swf", str(path), "--scheduler", "easy,conservative,sjf", "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_jobs_that_cannot_be_simulated_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job larger than the machine and one without processors are left out, each with its reason."""
    path = swf(tmp_path / "odd.swf", [*ROWS, (5, 40, 0, 10, 9, 100), (6, 50, 0, 10, -1, 100)])
    found = simulated(capsys, "--swf", str(path))
    assert found["left_out"] == {"requests no processor": 1, "is larger than the machine": 1}
    assert main(["simulate", "run", "--swf", str(path)]) == 0
    assert "1 job is left out: it is larger than the machine" in capsys.readouterr().out


def test_the_machine_is_as_large_as_was_held_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a header and without --processors the most processors that the log held at once are the machine."""
    path = swf(tmp_path / "bare.swf", ROWS, head="")
    found = simulated(capsys, "--swf", str(path))
    assert (found["processors"], found["processors_from"]) == (4, "the most that were held at once")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--scheduler", "pbs"), 2, "schedulers are conservative, easy, fair_share, fcfs, sjf, slurm"),
        (("--scheduler", ","), 2, "schedulers are conservative, easy, fair_share, fcfs, sjf"),
        (("--processors", "0"), 2, "expected a number from 1 to"),
        (("--first", "0"), 2, "'0': expected a number from 1 to 1000000000:"),
        (("--first", "-3"), 2, "'-3': expected a number from 1 to 1000000000:"),
        (("-S", "2020-01-01"), 3, "none of 4 jobs was submitted"),
        (("--processors", "2", "--first", "1", "-E", "@5"), 3, "no job of the trace can be simulated"),
    ],
)
def test_what_cannot_be_simulated_is_one_line(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong words and windows without a job end in one line that says what to do."""
    path = swf(tmp_path / "small.swf", ROWS)
    try:
        assert main(["simulate", "run", "--swf", str(path), *words]) == code
    except SystemExit as end:
        assert end.code == code  # noqa: PT017 argparse ends the program, our own checks return
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1 or error.startswith("usage")


def test_a_log_without_waits_needs_a_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that tells neither its machine nor its waits is asked for --processors."""
    path = swf(tmp_path / "bare.swf", [(1, 0, -1, 10, 2, 20), (2, 5, -1, 10, 2, 20)], head="")
    assert main(["simulate", "run", "--swf", str(path)]) == 3
    assert "give --processors" in capsys.readouterr().err
    assert simulated(capsys, "--swf", str(path), "--processors", "2")["schedulers"]["easy"]["mean_wait_s"] == 2.5


MACHINE = """[[nodes]]
names = "g[1-2]"
cpus = 2
gpus = "a100:4"
[[nodes]]
names = "off"
cpus = 64
down = true
[failures]
mtbf_h = 0.01
repair_h = 0.01
"""


def test_a_machine_file_gives_the_processors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The CPUs of the nodes that are up are the machine of schedulers that count processors."""
    path, machine = swf(tmp_path / "small.swf", ROWS, head=""), tmp_path / "small.toml"
    machine.write_text(MACHINE)
    found = simulated(capsys, "--swf", str(path), "--machine", str(machine), "--seed", "3")
    assert (found["processors"], found["processors_from"]) == (4, "the machine of small.toml")
    assert found["schedulers"]["easy"]["mean_wait_s"] == 52.5


def test_a_machine_is_written_and_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """slurm.conf becomes TOML without a history, and the TOML gives itself."""
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    (tmp_path / "slurm.conf").write_text("ClusterName=alps\nNodeName=n[1-9] Gres=gpu:2\nPartitionName=p Nodes=ALL\n")
    assert main(["simulate", "run", "--machine", str(tmp_path), "--write-machine", str(first)]) == 0
    said = capsys.readouterr().out
    assert said == f"{first}: 9 nodes, 9 CPUs, 18 GPUs; partitions: 1, QOS: 0, associations: 0\n"
    assert main(["simulate", "run", "--machine", str(first), "--write-machine", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--machine", "{place}/m.toml", "--processors", "4"), 2, "--processors: not allowed with argument --machine"),
        (("--live", "--processors", "4"), 2, "--processors: not allowed with argument --live"),
        (("--write-machine", "{place}/out.toml"), 2, "--write-machine needs a machine: give --live or --machine FILE"),
        (("--machine", "{place}/none.toml"), 2, "none.toml: cannot be read: No such file"),
        (("--machine", "{place}/small.swf"), 2, "small.swf: not a description of a machine: expected slurm.conf"),
        (("--machine", "{place}/off.toml"), 2, "the machine of off.toml: every node is down"),
        (("--machine", "{place}/m.toml", "--write-machine", "{place}/none/out"), 1, "out: cannot be written"),
    ],
)
def test_a_machine_that_cannot_be_is_one_line(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contradicting options and files that are no machine end in one line that says what to do."""
    path = swf(tmp_path / "small.swf", ROWS)
    (tmp_path / "m.toml").write_text(MACHINE)
    (tmp_path / "off.toml").write_text('[[nodes]]\nnames = "a"\ncpus = 1\ndown = true\n')
    try:
        assert main(["simulate", "run", "--swf", str(path), *(word.format(place=tmp_path) for word in words)]) == code
    except SystemExit as end:
        assert end.code == code  # noqa: PT017 argparse ends the program, our own checks return
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_slurm_on_the_nodes_of_a_machine_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without nodes the scheduler is refused in one line that names the options, as is a bad parameter of the file."""
    path, machine = swf(tmp_path / "small.swf", ROWS), tmp_path / "site.toml"
    assert main(["simulate", "run", "--swf", str(path), "--scheduler", "slurm"]) == 2
    assert "give" not in (printed := capsys.readouterr()).out
    assert "--machine FILE or --live" in printed.err
    machine.write_text('[[nodes]]\nnames = "n[1-4]"\ncpus = 1\n[settings]\nSchedulerParameters = "bf_window=no"\n')
    assert main(["simulate", "run", "--swf", str(path), "--machine", str(machine), "--scheduler", "slurm"]) != 0
    assert "bf_window='no'" in capsys.readouterr().err

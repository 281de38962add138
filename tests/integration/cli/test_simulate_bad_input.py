"""Histories and machines with something wrong in them, under every scheduler: named, counted, left out or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.test_simulate import HEAD, ROWS, simulated, swf

from gpuwaste.cli.main import main
from gpuwaste.sim.schedulers import conservative
from gpuwaste.sim.simulation import SCHEDULERS

MACHINE = '[[nodes]]\nnames = "n[1-2]"\ncpus = 2\nmemory = "1G"\n'
SLURM = "slurm"


def line(job: int, submit: int, **changes: int) -> str:
    """Return a row of a log with what a test changes of it: fields by their names in the format."""
    names = (
        "job",
        "submit",
        "wait",
        "run",
        "procs",
        "cpu",
        "mem",
        "req",
        "limit",
        "req_mem",
        "status",
        "user",
        "group",
    )
    values = {"job": job, "submit": submit, "wait": 0, "run": 50, "procs": 1, "cpu": -1, "mem": -1, "req": 1}
    values |= {"limit": 60, "req_mem": -1, "status": 1, "user": 7, "group": 1} | changes
    return " ".join(str(values[name]) for name in names) + f" -1 1 1 {changes.get('after', -1)} -1"


def log(path: Path, *lines: str, head: str = HEAD) -> str:
    """Write a log of good jobs and some lines; returns its path."""
    good = [line(job, submit) for job, submit in ((1, 0), (2, 10), (3, 20))]
    path.write_text(head + "\n".join([*good, *lines]) + "\n")
    return str(path)


@pytest.fixture(params=SCHEDULERS)
def scheduler(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Return the words that name a scheduler, with the machine that it needs."""
    if request.param != SLURM:
        return ["--scheduler", str(request.param)]
    (tmp_path / "m.toml").write_text(MACHINE)
    return ["--scheduler", SLURM, "--machine", str(tmp_path / "m.toml")]


LEFT_OUT: dict[str, tuple[str, str]] = {
    "larger than the machine": (line(9, 30, procs=50, req=50), "is larger than the machine (job 9)"),
    "never ended": (line(9, 30, run=-1), "never ended (job 9)"),
    "no processors": (line(9, 30, procs=-1, req=-1), "requests no processor (job 9)"),
    "centuries later": (line(9, 10**12), "is submitted over 100 years after the first (job 9)"),
    "a negative submission": (line(9, -30), "rows of the log could not be read (line 6: no submit time)"),
    "too few columns": ("9 30 0 50", "rows of the log could not be read (line 6: 4 columns, but SWF has 18)"),
    "no number": (line(9, 30).replace("30", "x", 1), "is not a number"),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_cannot_be_simulated_is_named_or_refused(
    what: str, scheduler: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other three jobs are simulated and the one is named; with --strict the command ends with the same words."""
    row, words = LEFT_OUT[what]
    path = log(tmp_path / "odd.swf", row)
    assert main(["simulate", "run", "--swf", path, *scheduler]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert words in text
    found = simulated(capsys, "--swf", path, *scheduler)
    assert next(iter(found["schedulers"].values()))["jobs"] == 3
    assert main(["simulate", "run", "--swf", path, *scheduler, "--strict"]) != 0
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_a_good_history_passes_strict(scheduler: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is left out: --strict changes nothing."""
    path = log(tmp_path / "good.swf")
    assert simulated(capsys, "--swf", path, *scheduler, "--strict") == simulated(capsys, "--swf", path, *scheduler)


SIMULATED: dict[str, list[str]] = {
    "no waits": [line(4, 30, wait=-1)],
    "no users": [line(4, 30, user=-1, group=-1), line(5, 31, user=-1, group=-1)],
    "a broken order": [line(4, 5), line(5, 0)],
    "jobs of one second": [line(4, 0), line(5, 0), line(6, 0, run=0)],
    "a cycle of dependencies": [line(4, 30, after=5), line(5, 31, after=4), line(6, 32, after=6)],
    "a limit of zero, which in a log is none": [line(4, 30, limit=0)],
    "a clock that went back": [line(4, 3600), line(5, 0, run=3600, limit=7200), line(6, 1800)],
    "a run beyond its limit": [line(4, 30, run=10**8, limit=60)],
    "large numbers": [line(4, 10**7, run=10**6, limit=10**6)],
}


@pytest.mark.parametrize("what", SIMULATED)
def test_what_is_odd_is_simulated(
    what: str, scheduler: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every job is simulated; none starts before its submission; no wait is negative."""
    rows, starts = SIMULATED[what], tmp_path / "starts.csv"
    found = simulated(capsys, "--swf", log(tmp_path / "odd.swf", *rows), *scheduler, "-o", str(starts))
    (result,) = found["schedulers"].values()
    assert result["jobs"] == 3 + len(rows)
    assert result["mean_wait_s"] >= 0
    lines = [row.split(",") for row in starts.read_text().splitlines()[1:]]
    assert all(int(row[-1]) >= int(row[1]) for row in lines)
    if what == "a broken order":
        assert "rows of the log are submitted before the row above" in found["unread"][0]


@pytest.mark.parametrize(
    ("tres", "said"),
    [
        ("cpu=1,gres/gpu:h200=1", "requests a GPU type that no node has"),
        ("cpu=99", "does not fit on the nodes of its partition"),
        ("cpu=1,mem=900G", "does not fit on the nodes of its partition"),
        ("cpu=1,node=70", "does not fit on the nodes of its partition"),
    ],
)
def test_what_the_machine_has_not_is_counted(
    tres: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On nodes: a GPU type, CPUs, memory and nodes that are not there leave the job out, with the reason."""
    head = "JobID|JobIDRaw|Cluster|User|Account|Partition|JobName|Submit|Start|End|ElapsedRaw|State|AllocCPUS|ReqTRES"
    rows = [
        f"{n}|{n}|c|u|a|p|x|2026-01-0{n}T10:00:00|2026-01-0{n}T10:00:05|2026-01-0{n}T10:10:05|600|COMPLETED|1|{asked}"
        for n, asked in enumerate(("cpu=1,gres/gpu:a100=1", tres), 1)
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([head, *rows]) + "\n")
    (tmp_path / "m.toml").write_text(MACHINE + 'gpus = "a100:2"\n')
    words = ["--sacct", str(tmp_path / "sacct.txt"), "--time-zone", "UTC", "-M", "c"]
    words += ["--machine", str(tmp_path / "m.toml"), "--scheduler", SLURM]
    found = simulated(capsys, *words)
    assert sum(count for reason, count in found["left_out"].items() if reason == said) == 1
    assert main(["simulate", "run", *words, "--strict"]) != 0
    assert said in capsys.readouterr().err


def test_a_bad_row_of_sacct_is_counted_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row with a time that is none: the other job is simulated, and --strict refuses the file."""
    head = "JobID|JobIDRaw|Cluster|User|Account|Partition|JobName|Submit|Start|End|ElapsedRaw|State|AllocCPUS|ReqTRES"
    good = "1|1|c|u|a|p|x|2026-01-01T10:00:00|2026-01-01T10:00:05|2026-01-01T10:10:05|600|COMPLETED|1|cpu=1"
    (tmp_path / "sacct.txt").write_text(
        "\n".join([head, good, good.replace("1|1|", "2|2|").replace("T10", "T99")]) + "\n"
    )
    words = ["--sacct", str(tmp_path / "sacct.txt"), "--time-zone", "UTC", "-M", "c"]
    found = simulated(capsys, *words)
    assert found["schedulers"]["easy"]["jobs"] == 1
    assert found["unread"] == ["1 rows of sacct.txt could not be read"]
    assert main(["simulate", "run", *words, "--strict"]) != 0
    assert "1 rows of sacct.txt could not be read" in capsys.readouterr().err


CHANGES = ("limits", "processors=2", "wrap", "policy", "gpus")
GENERATED = ("lublin:jobs=1", "lumi:jobs=1", "double_gaussian", "curie_week:weeks=1")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("what", ["no users", "a broken order", "jobs of one second", "a cycle of dependencies"])
def test_what_ifs_of_odd_logs_answer_in_one_line_or_simulate(
    what: str, change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A change of an odd log is simulated, or refused in one line that says why."""
    path = log(tmp_path / "odd.swf", *SIMULATED[what])
    code = main(["simulate", "what-if", change, "--swf", path, "--resource", "processors", "--model", "none"])
    said = capsys.readouterr()
    assert code == 0 or len(said.err.splitlines()) == 1, said.err


@pytest.mark.parametrize("words", GENERATED)
def test_a_smallest_load_is_simulated_or_refused(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each generator with as little as it takes; the one that draws from a log gets a log of three jobs."""
    more = ["--swf", log(tmp_path / "odd.swf")] if words.startswith("curie") else []
    code = main(["simulate", "run", "--generate", words, *more])
    said = capsys.readouterr()
    assert code == 0 or len(said.err.splitlines()) == 1, said.err


def test_an_interruption_leaves_what_was_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the second of three schedulers: the first one's figures, and CSV, are written; the code is 130."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(conservative, "starts", interrupted)
    path, out = swf(tmp_path / "small.swf", ROWS), tmp_path / "starts.csv"
    words = ["--scheduler", "easy,conservative,sjf", "--json", "-o", str(out)]
    assert main(["simulate", "run", "--swf", str(path), *words]) == 130
    found = json.loads(capsys.readouterr().out)
    assert list(found["schedulers"]) == ["easy"]
    assert "Interrupted" in found["stopped"]
    assert out.read_text().startswith("job_id,")

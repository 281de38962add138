"""`gpuwaste model train`: the logs that it takes, what it prints, its exit codes."""

import json
import random
from pathlib import Path

import pytest

from gpuwaste.cli.main import main

# job submit wait run procs - - procs limit - status user group program queue partition - -
ROW = "{job} {submit} 5 {run} 4 -1 -1 4 {limit} -1 {status} {user} 1 {program} -1 1 -1 -1"
SACCT = "JobID|JobIDRaw|User|Submit|Start|End|ElapsedRaw|State|TimelimitRaw"
QUICK = ("--targets", "failure", "--trials", "0", "--threads", "1")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, with a configuration of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpuwaste.toml").write_text(
        f'[common]\ncluster = "gw"\nmodels_dir = "{tmp_path}/models"\nhub_url = "unix:{tmp_path}/none.sock"\n'
        f'[hub]\nstate_dir = "{tmp_path}"\n'
    )
    return tmp_path


def train(home: Path, *words: str) -> int:
    return main(["model", "train", "--config", str(home / "gpuwaste.toml"), *words])


def swf(path: Path, jobs: int = 400) -> Path:
    """Write a log, unsorted and with every tenth row told twice; one user's program fails."""
    rng = random.Random(1)
    rows = []
    for job in range(1, jobs + 1):
        user = rng.randrange(5)
        fails = rng.random() < (0.9 if user == 0 else 0.05)
        rows.append(
            ROW.format(
                job=job, submit=job * 100, run=rng.randrange(10, 500), limit=600, status=0 if fails else 1, user=user,
                program=user,
            )
        )  # fmt: skip
    rows += rows[::10]
    rng.shuffle(rows)
    path.write_text("; Version: 2.2\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.long
def test_a_log_becomes_a_model_in_use(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first bundle is used at once, the second is not; the answer names both cards, progress is plain lines."""
    log = swf(home / "log.swf")
    assert train(home, "--swf", str(log), *QUICK) == 0
    printed = capsys.readouterr()
    assert "is the model in use now" in printed.out
    assert "average precision" in printed.out
    assert "memory: left out: not trained" in printed.out
    assert [line.partition(":")[0] for line in printed.err.splitlines()][:2] == ["history", "features"]
    assert "\r" not in printed.err
    first = (home / "models" / "champion").resolve()
    assert (first / "card.md").exists()
    assert train(home, "--swf", str(log), *QUICK, "--models-dir", str(home / "other"), "--json") == 0
    card = json.loads(capsys.readouterr().out)
    assert card["jobs"] == 400
    assert (home / "other" / "champion").resolve().name == card["name"]
    assert (home / "models" / "champion").resolve() == first


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--swf", "missing.swf"], 2, "missing.swf"),
        (["--store", "missing.duckdb"], 2, "no such file"),
        (["--swf", "lublin.swf"], 3, "has neither users nor requested resources"),
        (["--swf", "binary.swf"], 3, "contains no job"),
        (["--swf", "short.swf"], 3, "10 jobs are too few"),
        (["--sacct", "sacct.txt"], 3, "2 jobs are too few"),
        (["--csv", "binary.swf"], 2, "--mapping"),
        (["--swf", "short.swf", "--targets", "luck"], 2, "known are failure"),
        (["--swf", "short.swf", "--starttime", "some day"], 2, "expected YYYY"),
        (["--swf", "short.swf", "--trials", "-1"], 2, "expected a number"),
    ],
)
def test_what_cannot_be_learnt_from_is_one_line(
    home: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    says: str,
) -> None:
    """Each kind of bad log or wrong usage has its exit code and one line that says what to do; no model appears."""
    swf(home / "short.swf", 10)
    (home / "binary.swf").write_bytes(bytes(range(256)) * 9)
    unknown = "{} {} -1 30 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1"
    (home / "lublin.swf").write_text("\n".join(unknown.format(i + 1, i * 50) for i in range(200)) + "\n")
    day = "2024-07-01T12:0"
    told = [f"{i}|{i}|eve|{day}{i}:00|{day}{i}:01|{day}{i}:31|30|COMPLETED|5" for i in (1, 2)]
    (home / "sacct.txt").write_text("\n".join([SACCT, *told, "3|3|eve|soon|||x|COMPLETED|5"]) + "\n")
    try:
        found: object = train(home, *words)
    except SystemExit as ended:
        found = ended.code
    last = capsys.readouterr().err.splitlines()[-1]
    assert (found, says in last) == (code, True), last
    assert last.startswith("gpuwaste: ")
    assert not (home / "models").exists()


@pytest.mark.sockets
def test_without_a_store_or_a_hub_it_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default is the hub's store, then the hub: neither there is one line."""
    assert train(home, *QUICK) == 1
    assert "none.sock" in capsys.readouterr().err.splitlines()[-1]


def test_a_challenger_goes_on_trial_and_stays_there(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first model is used at once, the second is on trial, and while it is young nothing more is trained."""
    log = swf(home / "log.swf")
    assert train(home, "--swf", str(log), *QUICK, "--challenge") == 0
    assert "is the model in use now" in capsys.readouterr().out
    first = (home / "models" / "champion").resolve()
    second = first.with_name("another")
    first.rename(second)  # the next one may be made within the same second
    (second / "manifest.json").write_text(
        (second / "manifest.json").read_text().replace(f'"name": "{first.name}"', '"name": "another"')
    )
    (home / "models" / "champion").unlink()
    (home / "models" / "champion").symlink_to("another")
    assert train(home, "--swf", str(log), *QUICK, "--challenge") == 0
    assert "is on trial" in capsys.readouterr().out
    assert (home / "models" / "champion").resolve() == second
    challenger = (home / "models" / "challenger").resolve().name
    assert train(home, "--swf", str(log), *QUICK, "--challenge") == 0
    assert "has been on trial for 0.0 of at least 6 days: nothing trained" in capsys.readouterr().out
    model = ["--models-dir", str(home / "models"), "--config", str(home / "gpuwaste.toml")]
    assert main(["model", "list", *model]) == 0
    marks = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(marks[:2]) == ["*", "?"]
    assert all(mark.endswith(":") for mark in marks[2:])  # the legend
    assert main(["model", "trial", "--end", *model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["withdrawn"] == challenger
    assert main(["model", "trial", challenger, *model]) == 0
    assert main(["model", "trial", "another", *model]) == 1
    assert "is in use already" in capsys.readouterr().err

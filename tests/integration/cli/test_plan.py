"""gpuwaste plan: what it asks of Slurm's commands and of the hub, what it prints, and its one-line errors."""

import getpass
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.plan.facts import CONFIG, LIMITS, MEMBERS, NODES, PARTITIONS, SCRIPT
from tests.unit.show.predictions import prediction

from gpuwaste.cli.main import main
from gpuwaste.cli.planning import follow
from gpuwaste.plan.wait_watch import StartForecast

USER = getpass.getuser()
SCONTROL = """#!/bin/sh
for word; do case $word in
partition|node|config|assoc_mgr) cat "{here}/$word"; exit;;
esac; done
exit 1
"""
SACCTMGR = '#!/bin/sh\ncat "{here}/assoc"\n'
SBATCH = """#!/bin/sh
echo "$@" >>"{here}/sbatch.log"
case "$*" in
*--test-only*--partition=big*) echo "allocation failure: User's group not permitted to use this partition" >&2; exit 1;;
*--test-only*gpu:a100:1*) echo "sbatch: Job 1 to start at {soon} using 1 processors on nodes n in partition gpu" >&2;;
*--test-only*) echo "sbatch: Job 1 to start at {late} using 1 processors on nodes n in partition gpu" >&2;;
*) echo "42;gw";;
esac
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay out Slurm's commands as scripts that print what a site prints, a batch script, and stand in that folder."""
    now = int(time.time())
    programs = {"scontrol": SCONTROL, "sacctmgr": SACCTMGR, "sbatch": SBATCH}
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        path = tmp_path / "bin" / name
        for key, value in {"here": str(tmp_path), "soon": f"{now + 60}", "late": f"{now + 40_000}"}.items():
            text = text.replace(f"{{{key}}}", value)  # noqa: PLW2901 filled in step by step
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    limits = LIMITS.replace("alice(1001)", f"{USER}({os.getuid()})")
    texts = {"partition": PARTITIONS, "node": NODES, "config": CONFIG, "assoc_mgr": limits, "assoc": MEMBERS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "train.sh").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith("SBATCH_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def hub(here: Path) -> Iterator[HubDouble]:
    """Serve a prediction that one GPU is enough."""
    with running_hub(here) as double:
        found = prediction()
        found["changes"] = [
            {
                "option": "#SBATCH --gres=gpu:a100:1",
                "text": "one GPU works",
                "before": {"gpus": 2},
                "after": {"gpus": 1},
            }
        ]
        double.answers = {"/v1/predict": {"predictions": [found]}}
        yield double


def planned(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    """Return the document that the command prints."""
    assert main(["plan", "--json", *words, "--config", "gpuwaste.toml"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def submitted(here: Path) -> list[str]:
    """Return what sbatch was called with, less the tests."""
    return [line for line in (here / "sbatch.log").read_text().splitlines() if "--test-only" not in line]


def test_a_plan_is_made_kept_and_submitted(here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str]) -> None:
    """The hub's change is a candidate that starts sooner; only --submit submits, with the script's own arguments."""
    hub.answers["/v1/predict"]["predictions"] = hub.answers["/v1/predict"]["predictions"]
    found = planned(capsys, "-o", "a.plan", "train.sh", "1e-3")
    chosen = found["candidates"][found["chosen"] - 1]
    assert (chosen["kind"], chosen["options"]) == ("fewer_gpus", ["--gres=gpu:a100:1"])
    assert submitted(here) == []
    assert main(["plan", "--submit", "a.plan", "--config", "gpuwaste.toml"]) == 0
    assert "Submitted batch job 42" in capsys.readouterr().out
    assert submitted(here) == ["--parsable --gres=gpu:a100:1 train.sh 1e-3"]


def test_a_submitted_plan_is_recorded_at_the_hub(
    here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hub is told the job, the candidate and its interval; where it does not answer the job stays submitted."""
    at = int(time.time())
    interval = {"p10": at + 100, "p50": at + 200, "p90": at + 300}
    valid = sum(one["status"] == "valid" for one in planned(capsys, "train.sh")["candidates"])
    expected = [{"start": interval, "end": interval, "source": "simulated"}] * valid
    hub.answers["/v1/plan"] = {"at": at, "expected": expected, "running": 3, "waiting": 2}
    hub.answers["/v1/plan/submitted"] = {"jobs": [42]}
    planned(capsys, "-o", "a.plan", "train.sh")
    assert main(["plan", "--submit", "a.plan", "--config", "gpuwaste.toml"]) == 0
    sent = hub.sent[-1]
    assert (sent["jobs"], sent["start"], sent["end"]) == ([42], interval, interval)
    assert capsys.readouterr().err == ""
    del hub.answers["/v1/plan/submitted"]
    planned(capsys, "-o", "b.plan", "train.sh")
    assert main(["plan", "--submit", "b.plan", "--config", "gpuwaste.toml"]) == 0
    told = capsys.readouterr()
    assert "Submitted batch job 42" in told.out
    assert "note: the plan is not recorded at the hub" in told.err


def test_text_has_the_invalid_last_with_the_reason(
    here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    """The choice with its command, what can be submitted, what cannot and why; no line is wider than a terminal."""
    assert main(["plan", "train.sh", "--config", "gpuwaste.toml"]) == 0
    out = capsys.readouterr().out
    assert out.index("Fastest:") < out.index("What you can submit") < out.index("What you cannot submit")
    assert "sbatch --gres=gpu:a100:1 train.sh" in out
    assert "Slurm: User's group not permitted" in " ".join(out.split())
    assert all(len(line) <= 80 for line in out.splitlines() if "/" not in line), out


def test_the_queue_of_the_hub_gives_intervals(here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str]) -> None:
    """The hub is sent the valid requests without their script, and what it expects is in the plan."""
    at = int(time.time())
    interval = {"p10": at + 100, "p50": at + 200, "p90": at + 300}
    valid = sum(one["status"] == "valid" for one in planned(capsys, "train.sh")["candidates"])
    hub.answers["/v1/plan"] = {
        "at": at,
        "expected": [{"start": interval, "end": interval, "source": "simulated"}] + [None] * (valid - 1),
        "running": 3,
        "waiting": 2,
    }
    found = planned(capsys, "train.sh")
    assert found["candidates"][0]["start"] == interval
    assert all("script" not in request for request in hub.sent[-1]["requests"])
    hub.answers["/v1/plan"]["expected"] = []
    assert "does it run another version?" in " ".join(planned(capsys, "train.sh")["notes"])


def test_without_hub_and_slurm_s_limits_the_plan_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be asked is a note: the rest of the plan is there."""
    (here / "gpuwaste.toml").write_text(f'[common]\nhub_url = "unix:{here}/none"\n')
    (here / "bin" / "sacctmgr").unlink()
    (here / "assoc_mgr").unlink()
    notes = " ".join(planned(capsys, "train.sh")["notes"])
    assert "cannot read the limits" in notes
    assert "no prediction" in notes


def test_exit_codes(here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str]) -> None:
    """4 for a deadline that nobody meets, 3 where no candidate is valid."""
    found = planned(capsys, "--deadline", "now+1minutes", "train.sh", code=4)
    assert found["meets_deadline"] is False
    (here / "bin" / "sbatch").write_text("#!/bin/sh\necho 'allocation failure: Invalid account' >&2\nexit 1\n")
    assert planned(capsys, "train.sh", code=3)["chosen"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give a batch script, --submit PLAN or --watch JOB"),
        (["train.sh", "--submit", "a.plan"], "give a batch script, --submit PLAN or --watch JOB"),
        (["none.sh"], "none.sh: cannot be read"),
        (["-"], "standard input cannot be submitted later"),
        (["--submit", "none.plan"], "none.plan: cannot be read"),
        (["--submit", "train.sh"], "not JSON"),
        (["--take", "99", "train.sh"], "--take 99: candidates are 1 to"),
        (["--take", "0", "train.sh"], "expected a number from 1"),
        (["--deadline", "soon", "train.sh"], "time 'soon'"),
        (["--watch", "x"], "expected a job ID"),
        (["-o", "none/a.plan", "train.sh"], "none/a.plan: cannot be written"),
    ],
)
def test_errors_are_one_line(
    here: Path, hub: HubDouble, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each says what is wrong and where, and nothing is submitted."""
    try:
        code = main(["plan", *words, "--config", "gpuwaste.toml"])
    except SystemExit as found:
        code = int(found.code or 0)
    assert code in {1, 2}
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_script_that_changed_is_not_submitted(here: Path, hub: HubDouble, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan's script is compared by its hash."""
    planned(capsys, "-o", "a.plan", "train.sh")
    (here / "train.sh").write_text(SCRIPT.replace("train.py", "other.py"))
    assert main(["plan", "--submit", "a.plan", "--config", "gpuwaste.toml"]) == 2
    assert "train.sh has changed since the plan was made: plan again" in capsys.readouterr().err
    assert submitted(here) == []


def test_watching_ends_when_the_job_starts(capsys: pytest.CaptureFixture[str]) -> None:
    """The first look, a move with its cause, and the start; looks that are alike print nothing."""
    at = 1_800_000_000
    looks = iter([
        StartForecast(at, "PENDING", "Priority", at + 3600, None, 5),
        StartForecast(at + 60, "PENDING", "Priority", at + 3600, None, 5),
        StartForecast(at + 120, "PENDING", "Priority", at + 7200, None, 9),
        StartForecast(at + 180, "RUNNING", "None"),
    ])  # fmt: skip
    pauses: list[float] = []
    follow("7", lambda: next(looks), as_json=False, pause=pauses.append)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "5 jobs ahead of it; waits for jobs of higher priority" in lines[0]
    assert "later: 4 more jobs ahead of it" in lines[1]
    assert lines[2].endswith("job 7 is RUNNING")
    assert len(pauses) == 3

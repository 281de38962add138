"""gpuwaste policy: check, explain and replay as an operator types them, against files, a double and a real hub."""

import csv
import grp
import io
import json
import os
import pwd
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.show.predictions import REQUEST, prediction, reason, target

from gpuwaste.cli.main import main
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import RetryableWireError
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.net.hub_client import HubClient
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged

NOW = 1_700_046_000  # 11:00 UTC
STRICT = """
[policy]
name = "strict"
mode = "reject"
[targets.failure]
warn = 0.6
reject = 0.9
[sample]
pass_ratio = 0
[floor]
precision = 0
"""
ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the site's own days be those of UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """Return a directory with one policy that rejects what will probably fail."""
    folder = tmp_path / "policies.d"
    folder.mkdir()
    (folder / "10-strict.toml").write_text(STRICT)
    return folder


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    """Serve one prediction: the job fails, and its script is one that failed."""
    with running_hub(tmp_path) as double:
        fails = target("failure", p=0.95, reasons=[reason("6 of your last 8 jobs named train failed", 0.4)])
        facts = {"own": {}, "script": "same", "whole_node": False}
        answer = prediction(targets=[fails], changes=[], facts=facts, request={**REQUEST, "user": ME})
        double.answers = {"/v1/predict": {"predictions": [answer]}}
        with (tmp_path / "gpuwaste.toml").open("a") as config:
            config.write('slurm_conf = "/nonexistent"\nslurm_timeout_s = 0.2\n')
        yield double


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    """Return the option that names the configuration."""
    (tmp_path / "gpuwaste.toml").touch()
    return ["--config", str(tmp_path / "gpuwaste.toml")]


def _script(tmp_path: Path, *options: str) -> str:
    path = tmp_path / "job.sbatch"
    path.write_text("#!/bin/bash\n#SBATCH -p gpu -t 60\n" + "".join(f"#SBATCH {o}\n" for o in options) + "true\n")
    return str(path)


def test_check_says_what_each_policy_does(
    policies: Path, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each, the built-in one last; the same for the directory and for its files."""
    assert main(["policy", "check", str(policies), *config]) == 0
    said = capsys.readouterr().out
    first, last = said.splitlines()
    assert first.startswith("10-strict.toml: strict (reject): everything; failure warn 0.6, reject 0.9; 5 rejects")
    assert last.startswith("(built in): default (shadow): ")
    assert main(["policy", "check", str(policies / "10-strict.toml"), *config]) == 0
    assert capsys.readouterr().out == said


def test_check_uses_the_configured_directory(
    policies: Path, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a word it is [advisor] policies_dir."""
    (tmp_path / "gpuwaste.toml").write_text(f'[advisor]\npolicies_dir = "{policies}"\n')
    assert main(["policy", "check", *config]) == 0
    assert "strict (reject)" in capsys.readouterr().out


def test_check_names_every_bad_file(policies: Path, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line for each."""
    (policies / "20-x.toml").write_text('[policy]\nmode = "wrn"\n')
    (policies / "30-y.toml").write_text("[whn]\n")
    assert main(["policy", "check", str(policies), *config]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.count("toml: ") for line in said.err.splitlines()] == [1, 1]
    assert "did you mean 'warn'" in said.err
    assert main(["policy", "check", str(policies / "absent"), *config]) == 2


def test_check_remarks_what_is_most_likely_not_meant(
    policies: Path, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy behind one that judges everything, one that only warns, one that says nothing."""
    (policies / "00-a.toml").write_text(
        '[policy]\nmode = "reject"\n[when]\nusers = ["x"]\n[targets.gpus]\nwarn = 0.8\n'
    )
    (policies / "01-b.toml").write_text('[policy]\nmode = "warn"\n[when]\nhours = "22:00-06:00"\nweekdays = ["sun"]\n')
    (policies / "20-c.toml").write_text("[targets.failure]\nwarn = 0.5\n")
    assert main(["policy", "check", str(policies), *config]) == 0
    said = capsys.readouterr().out
    assert "01-b (warn): where 22:00-06:00, sun; no advice" in said
    assert "20-c.toml: is never used: strict before it matches every submission" in said
    assert "00-a.toml: its mode is reject, but no target has a reject: it only warns" in said
    assert "01-b.toml: its mode is warn, but it has no [targets.*]: it gives no advice" in said


def test_explain_shows_the_steps_and_the_lines(
    hub: HubDouble, config: list[str], policies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hub predicts, the policies named here decide; a job's id is asked as one."""
    assert main(["policy", "explain", "--policies", str(policies), *config, _script(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "policy strict (10-strict.toml), mode reject" in said
    assert "thresholds: failure: 95 % reaches the reject threshold, 90 % (site model)" in said
    assert "The user sees gpuwaste: rejected by policy strict: this job will probably fail (estimated 95 %)" in said
    assert main(["policy", "explain", "--policies", str(policies), "7", *config]) == 0
    assert hub.asked[-1] == ("/v1/predict", {"job": "7"})


def test_explain_reads_the_comment_and_the_user(
    hub: HubDouble, config: list[str], policies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An override in the script counts; an operator asks as another user."""
    script = _script(tmp_path, "--comment=gpuwaste:override=repaired")
    (document,) = hub.answers["/v1/predict"]["predictions"]
    document["request"]["comment"] = "gpuwaste:override=repaired"  # a hub says the request again
    words = ["policy", "explain", "--json", "--user", "bob", "--policies", str(policies), *config, script]
    assert main(words) == 0
    (decision,) = json.loads(capsys.readouterr().out)["decisions"]
    assert (decision["action"], decision["held"], decision["override"]) == ("annotate", "override", "repaired")
    (sent,) = hub.sent[-1]["requests"]
    assert (sent["user"], sent["comment"]) == ("bob", "gpuwaste:override=repaired")


def test_explain_says_where_no_policies_lie(
    hub: HubDouble, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The built-in one decides, and a note says so; --policies has to exist."""
    with (tmp_path / "gpuwaste.toml").open("a") as file:
        file.write(f'[advisor]\npolicies_dir = "{tmp_path}/absent"\n')
    assert main(["policy", "explain", _script(tmp_path), *config]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "policy default (built in), mode shadow" in said
    assert "no policies on this host" in said
    assert main(["policy", "explain", "--policies", f"{tmp_path}/absent", _script(tmp_path), *config]) == 2
    assert main(["policy", "explain", *config]) == 2


def test_predict_prints_what_sbatch_would(
    hub: HubDouble, config: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines of the hub's own policies; to an operator what shadow would do; nothing where nothing is said."""
    (document,) = hub.answers["/v1/predict"]["predictions"]
    lines = ["gpuwaste: this job will probably fail", "gpuwaste: 6 of your last 8 jobs named train failed"]
    document["policy"] = {"policy": "w", "mode": "warn", "action": "warn", "would_be": "warn", "lines": lines}
    assert main(["predict", _script(tmp_path), *config]) == 0
    assert "sbatch would print\n  gpuwaste: this job will probably fail\n" in capsys.readouterr().out
    document["policy"] |= {"mode": "shadow", "action": "pass"}
    assert main(["predict", _script(tmp_path), *config]) == 0
    assert "Policy w would warn, but its mode is shadow\n  gpuwaste: this" in capsys.readouterr().out
    document["policy"] |= {"mode": "reject", "action": "annotate", "held": "override"}
    assert main(["predict", _script(tmp_path), *config]) == 0
    assert "Policy w would warn, held back by override\n" in capsys.readouterr().out
    document["policy"] |= {"would_be": "annotate", "held": "", "lines": []}
    assert main(["predict", _script(tmp_path), *config]) == 0
    assert "Policy" not in capsys.readouterr().out
    document["policy"] |= {"would_be": "pass", "lines": []}
    assert main(["predict", _script(tmp_path), *config]) == 0
    assert "Policy" not in capsys.readouterr().out


def _run(job: int, state: str, user: str = ME) -> JobRecord:
    submit = NOW + 1000 * job
    return JobRecord(
        "gw", job, submit, printed_id=str(job), user=user, account="a", partition="gpu", name="train",
        time_limit_s=3600, req_tres="cpu=4,mem=8G,node=1,gres/gpu=2", start=submit + 5, gpus=2,
        end=submit + 605, elapsed_s=600, state=state,
    )  # fmt: skip


def _runs() -> list[JobRecord]:
    """Return twelve of my jobs that failed, one that did not, and four of bob's that ran well."""
    mine = [_run(n, "COMPLETED" if n == 13 else "FAILED") for n in range(1, 14)]
    return [*mine, *(_run(n, "COMPLETED", "bob") for n in range(20, 24))]


def _fill(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    store = HubStore.open(path, SystemClock())
    upsert_jobs(store, _runs())
    store.close()


def _replay(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["policy", "replay", "-S", "2023-11-14", "-E", "2023-11-16", *words]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def _all(document: dict[str, Any], would_be: str) -> dict[str, Any]:
    row: dict[str, Any] = next(r for r in document["rows"] if (r["target"], r["would_be"]) == ("all", would_be))
    return row


def test_replay_on_a_store(
    policies: Path, tmp_path: Path, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """After three failures each further one is a reject: nine right, one wrong, bob is not touched; GPU-hours count."""
    _fill(tmp_path / "history.duckdb")
    words = ["--store", str(tmp_path / "history.duckdb"), "--policies", str(policies), "--model", "none", *config]
    document = json.loads(_replay(capsys, "--json", *words))
    row = _all(document, "reject")
    assert (row["jobs"], row["right"], row["wrong"], row["users"]) == (10, 9, 1, 1)
    assert row["gpu_hours"] == pytest.approx(9 * 2 * 600 / 3600)
    assert (document["submissions"], document["by_model"], document["by_history"]) == (17, 0, 17)
    assert (row["said"], document["held"]) == (10, {"budget": 5})  # five rejects a day, then warnings
    assert document["false_reject_ratio"] == pytest.approx(0.1)
    text = _replay(capsys, *words)
    assert "all reject 10 10 9 1 0 90 % 3.00 1 strict" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    (cell, *_) = csv.DictReader(io.StringIO(_replay(capsys, "--csv", *words)))
    assert (cell["policy"], cell["target"], cell["right"]) == ("strict", "all", "9")
    assert _replay(capsys, "--parsable", "-n", *words).startswith("strict|all|reject|10|10|9|1|0|3|1|")
    _replay(capsys, "--fail-above", "9", *words, code=4)


def test_replay_with_unknown_scripts_only_warns(
    policies: Path, tmp_path: Path, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """--scripts=unknown: nobody would be rejected for failures."""
    _fill(tmp_path / "history.duckdb")
    words = ["--store", str(tmp_path / "history.duckdb"), "--policies", str(policies), "--model", "none", *config]
    document = json.loads(_replay(capsys, "--json", "--scripts", "unknown", *words))
    assert {row["would_be"] for row in document["rows"]} == {"warn"}
    assert _all(document, "warn")["jobs"] == 10


def test_replay_refuses_what_cannot_be(
    policies: Path, tmp_path: Path, config: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A window the wrong way round, a store and a model that are not there; an empty window is no data."""
    here = ["--policies", str(policies), *config]
    assert main(["policy", "replay", "-S", "now", "-E", "now-1days", *here]) == 2
    assert main(["policy", "replay", "--store", "/nonexistent", *here]) == 2
    _fill(tmp_path / "history.duckdb")
    store = ["--store", str(tmp_path / "history.duckdb")]
    assert main(["policy", "replay", *store, "--model", "absent", *here]) == 1
    capsys.readouterr()
    assert main(["policy", "replay", "-S", "2020-01-01", "-E", "2020-01-02", *store, "--model", "none", *here]) == 3
    assert "submissions from 2023-11-15 to 2023-11-15 only" in " ".join(capsys.readouterr().out.split())


@pytest.mark.long
@pytest.mark.skipif(munged_path() is None, reason="munged is not installed")
def test_explain_and_replay_against_a_running_hub(
    policies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real hub over HTTP with munge: its history is replayed to an operator as from its file, and a job explained."""
    group = grp.getgrgid(os.getgid()).gr_name
    with private_munged() as socket:
        lone = LoneHub(tmp_path / "hub", socket, hub={"staff_groups": [group]})
        lone.directory.mkdir()
        _fill(lone.directory / "state" / "hub.duckdb")
        lone.start()
        try:
            common = {
                "cluster": "gw", "hub_url": lone.url, "munge_socket": socket, "slurm_timeout_s": 0.2,
                "slurm_conf": str(lone.directory / "slurm.conf"), "models_dir": str(tmp_path / "models"),
            }  # fmt: skip
            hub = {"state_dir": str(lone.directory / "state")}
            (tmp_path / "gpuwaste.toml").write_text(to_toml({"common": common, "hub": hub}))
            words = ["--policies", str(policies), "--config", str(tmp_path / "gpuwaste.toml")]
            wait_until(lambda: _predicts(lone.client()), 30, "the hub to know its history", lambda: "")
            document = json.loads(_replay(capsys, "--json", *words))
            assert document["source"] == "the hub's history, cluster gw"
            assert (_all(document, "reject")["right"], _all(document, "reject")["wrong"]) == (9, 1)
            assert main(["policy", "explain", "--json", "12", *words]) == 0
            (decision,) = json.loads(capsys.readouterr().out)["decisions"]
            assert (decision["policy"], decision["action"]) == ("strict", "warn")  # its script is not known
            assert "12 of your last 13 jobs named train failed" in " ".join(decision["lines"])
        finally:
            lone.stop()


def _predicts(client: HubClient) -> bool:
    try:
        return bool(client.predict_job("12"))
    except RetryableWireError:
        return False
